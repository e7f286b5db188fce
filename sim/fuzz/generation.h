// The generator that implements generate(): the layout of memory, random loop nests, and the instructions of each
// profile. Private to this folder.
#pragma once

#include <array>
#include <initializer_list>
#include <vector>

#include "sim/fuzz/builder.h"
#include "sim/fuzz/generator.h"
#include "support/random.h"

namespace tenon::sim::fuzz {

struct Window {
  int64_t low = 0, size = 0;
  int64_t high() const { return low + size; }
};

// One loop of a nest: its extent, the field of its factor and that field's largest value.
struct Loop {
  int64_t extent;
  int64_t* factor;
  int64_t max;
};

class Generator {
 public:
  Generator(const spec::Config& config, uint64_t seed, const GeneratorOptions& options)
      : config_(config), isa_(config), options_(options), random_(seed * 0x2545f4914f6cdd1d + 1) {
    program_.config = config;
    program_.seed = seed;
  }

  Program run();

 private:
  using Memory = spec::Memory;

  spec::Profile choose_profile();
  void lay_out();
  uint64_t spare_bytes() const;
  void assign_stream_addresses();
  int64_t nest(int64_t low, int64_t high, std::vector<Loop> loops);
  void extents(std::initializer_list<int64_t*> fields, int64_t steps, int64_t max, bool zero = true);
  const Window& window(Memory m) const { return windows_[index_of(m)]; }

  // generate_native.cpp
  bool choose_addresses(spec::native::Move& m, int unit, bool store);
  void move(spec::native::MoveFunction function);
  void fill(spec::native::MoveFunction function, Memory memory);
  void fill_native();
  spec::native::Requantize requantize();
  void gemm_native();
  void gemm_own();
  void requantize_windows(spec::native::Requantize& q);
  void requantize_native();
  void body_native();

  // generate_base.cpp
  bool choose_addresses(spec::base::Transfer& t, int64_t bytes, uint64_t base, int64_t begin, int64_t end);
  void load_base(spec::base::MemoryType type);
  void store_base();
  template <class Instruction>
  bool loops(Instruction& i, bool src_is_acc);
  void gemm_base();
  void alu_base();
  void fill_base();
  void body_base();

  const spec::Config& config_;
  const spec::Isa isa_;
  const GeneratorOptions options_;
  Random random_;
  Program program_;
  Builder* b_ = nullptr;
  std::array<Window, spec::kScratchpads> windows_;
  int64_t data_ = 0, uops_begin_ = 0, uops_end_ = 0;
};

}  // namespace tenon::sim::fuzz
