// The debugger's command interpreter: text in, text out; `tenon debug` adds a prompt.
//
// Semantics: `step` and `continue` stop when an instruction is done, never inside an instruction. Breakpoints are
// checked after each cycle on the RTL and after each instruction on models that execute whole instructions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "driver/bringup/machine.h"

namespace tenon::driver {

class Debugger {
 public:
  // The purpose of an instruction, by slot; printed after the instruction.
  using Notes = std::map<uint32_t, std::string>;

  explicit Debugger(Machine& machine, Notes notes = {}) : machine_(machine), notes_(std::move(notes)) {}

  // Runs one command line; a nonempty answer has a final newline. An error changes nothing.
  Expected<std::string> run(std::string_view line);
  bool over() const { return over_; }

 private:
  struct Break {
    enum class Kind : uint8_t { kInstruction, kQueue, kTokens, kWrite };
    int id = 0;
    Kind kind = Kind::kInstruction;
    uint64_t value = 0;  // slot, or the first address
    uint64_t count = 1;
    spec::Engine engine{}, consumer{};
    spec::Memory memory{};
    unsigned last = 0;  // tokens at the last check
    std::string text;
  };
  using Words = std::span<const std::string_view>;

  Expected<std::string> step(Words words);
  Expected<std::string> go(uint64_t instructions, uint64_t cycles);
  Expected<std::string> add_break(Words words);
  Expected<std::string> print(Words words);
  std::string print_dram(uint64_t first, uint64_t count);
  std::string queues();
  std::string tokens();
  std::string counters();
  Expected<std::string> list(Words words);
  std::string info();
  std::string where();
  std::string line_of(size_t index) const;
  std::string hits(std::span<const uint32_t> done, std::span<const Machine::Event> writes);

  Machine& machine_;
  Notes notes_;
  std::vector<Break> breaks_;
  int next_id_ = 1;
  bool over_ = false;
  std::string last_line_;
};

}  // namespace tenon::driver
