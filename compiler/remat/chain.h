// Optimal plans for chains: stages one after another, whose backward passes run in the reverse order.
//
// Source: Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous chains: how to
// train deep neural networks with limited memory", 2019: the dynamic program over the first stage, the last stage and
// the memory. It is optimal among the plans that keep what they store until the backward pass that reads it. In
// addition, what backward passes leave (gradients, new weights) takes memory, which earlier stages then have
// less of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::compiler {

// Bytes, and costs in any unit. What crosses over a stage, from one before it to one after it, is passed by it, too.
struct ChainStage {
  int64_t forward = 0, backward = 0;  // costs
  int64_t passed = 0;                 // what the stages after it read
  int64_t saved = 0;                  // what its backward pass reads, and what it passes: at least `passed`
  int64_t forward_peak = 0;           // while it runs forward and saves nothing, beside what it reads
  int64_t saving_peak = 0;            // while it runs forward and saves, beside what it reads
  int64_t left = 0;                   // what the backward passes of later stages left, before its own begins
  int64_t backward_peak = 0;          // while it runs backward, beside what is saved; with what is left
};

struct ChainStep {
  enum class Kind : unsigned char { kForward, kSave, kBackward };  // kForward: only what is passed is stored
  Kind kind = Kind::kForward;
  uint32_t stage = 0;
  bool operator==(const ChainStep&) const = default;
};

class ChainPlans {
 public:
  // For every memory up to `memory` bytes, in units of memory / slots, to which sizes are rounded up. In time
  // stages^3 * slots / 6.
  ChainPlans(std::vector<ChainStage> stages, int64_t memory, int64_t slots);

  // The least cost within so many bytes; nothing where no plan is within them.
  std::optional<int64_t> cost(int64_t bytes) const;
  // The steps of such a plan, of which there must be one.
  std::vector<ChainStep> steps(int64_t bytes) const;

 private:
  static constexpr int64_t kNoPlan = INT64_MAX;

  size_t at(int64_t first, int64_t last, int64_t slots) const {
    return static_cast<size_t>((first * count_ + last) * (slots_ + 1) + slots);
  }
  int64_t slots_of(int64_t bytes) const { return (bytes + unit_ - 1) / unit_; }
  void solve(int64_t first, int64_t last);
  void append(int64_t first, int64_t last, int64_t slots, std::vector<ChainStep>& steps) const;

  std::vector<ChainStage> stages_;
  int64_t count_, unit_, slots_;
  std::vector<int64_t> costs_;
  // What a plan begins with: 0 saves the first stage, k runs k stages forward and stores what the last one passes.
  std::vector<uint16_t> beginnings_;
};

}  // namespace tenon::compiler
