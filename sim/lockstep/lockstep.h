// Lockstep: two simulators that execute the same program, compared at every architectural write.
//
// Semantics: software sees the tested simulator, through registers and memory. Each launch starts both with the same
// memory. For every instruction that both have finished, the final value of each element and of each byte of DRAM that
// either wrote must be equal. The order between instructions is not compared: engines run independently, and only
// tokens order them. When both are idle, the stop code and its instruction, tokens, the counts of instructions and
// multiplications and the whole memory are compared; of a run that stopped with an error, code and instruction alone,
// since the engines may have progressed differently.
//
// The first difference stops the run: the status register has StopCode::kDivergence, the error index the instruction,
// and explain() the details. A soft reset clears the divergence. The reference may be stricter: a race that it detects
// is a difference too, since the tested simulator cannot detect it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hw/spec/isa.h"
#include "sim/lockstep/write_log.h"
#include "sim/simulator.h"

namespace tenon::sim {

class Lockstep final : public Simulator {
 public:
  // Returns the purpose of an instruction ("conv2_1, tile 3"), for the report.
  using Note = std::function<std::string(uint32_t instruction)>;
  struct Side {
    std::string name;
    std::unique_ptr<Simulator> simulator;
  };

  // Both sides must have the same configuration and size of memory.
  static Expected<std::unique_ptr<Lockstep>> make(Side tested, Side reference);

  void set_note(Note note) { note_ = std::move(note); }
  uint64_t compared_instructions() const { return compared_instructions_; }
  uint64_t compared_writes() const { return compared_writes_; }

  const spec::Config& config() const override { return tested_.simulator->config(); }
  uint32_t read_register(uint32_t offset) override;
  void write_register(uint32_t offset, uint32_t value) override;
  std::span<std::byte> memory() override { return tested_.simulator->memory(); }
  bool advance(uint64_t cycles) override;
  std::string explain() override;
  void observe(WriteObserver* observer) override { tested_log_.forward_to(observer); }
  void record_timeline(bool on) override { tested_.simulator->record_timeline(on); }
  std::span<const Interval> timeline() const override { return tested_.simulator->timeline(); }

 private:
  struct Divergence {
    uint32_t instruction = 0;
    std::string text;
  };

  Lockstep(Side tested, Side reference);
  void copy_memory();
  void compare_writes();
  bool compare(uint32_t instruction, const WriteLog::Record& tested, const WriteLog::Record& reference);
  void compare_ends();
  std::string describe(uint32_t instruction);
  void diverge(uint32_t instruction, std::string text);

  Side tested_, reference_;
  WriteLog tested_log_, reference_log_;
  Note note_;
  spec::Isa isa_;
  bool running_ = false;
  std::optional<Divergence> divergence_;
  uint64_t compared_instructions_ = 0, compared_writes_ = 0;
};

}  // namespace tenon::sim
