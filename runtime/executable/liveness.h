// Liveness on the machine's code: which registers each instruction reads and writes, and from these the live ranges of
// registers and of native kernels' results.
//
// The only liveness analysis of lowered code: the compiler inserts its Kill instructions and makes its memory plan from
// it (compiler/lower/memory.h), and the loader checks a file's memory plan with it (verify_arena.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/executable/executable.h"
#include "support/visitor.h"

namespace tenon::runtime {

// Calls visit(Register) for each register that the operation reads, in order; a register may come several times.
void for_each_read(const Operation& operation, auto&& visit) {
  const auto list = [&](const Registers& registers) { std::ranges::for_each(registers, visit); };
  std::visit(Overloaded{[&](const CallKernel& c) { list(c.args); }, [&](const CallProgram& c) { list(c.args); },
                        [&](const CallNative& c) { list(c.args); }, [&](const CallFunction& c) { list(c.args); },
                        [&](const Move& m) { visit(m.from); }, [](const LoadConstant&) {}, [](const Jump&) {},
                        [&](const Branch& b) { visit(b.condition); }, [](const Kill&) {},
                        [&](const Return& r) { list(r.values); }},
             operation);
}

// Visits each register that the operation fills or empties.
void for_each_write(const Operation& operation, auto&& visit) {
  const auto list = [&](const Registers& registers) { std::ranges::for_each(registers, visit); };
  std::visit(
      Overloaded{[&](const CallKernel& c) { list(c.results); }, [&](const CallProgram& c) { list(c.results); },
                 [&](const CallNative& c) { list(c.results); }, [&](const CallFunction& c) { list(c.results); },
                 [&](const Move& m) { visit(m.to); }, [&](const LoadConstant& c) { visit(c.to); }, [](const Jump&) {},
                 [](const Branch&) {}, [&](const Kill& k) { list(k.registers); }, [](const Return&) {}},
      operation);
}

// By register: the last instruction that reads or writes it; 0 if there is none. The code is one straight line.
std::vector<uint32_t> last_uses(const Function& function);

// The live range of one result of a native kernel: from instruction `call`, which makes it, to instruction `last_use`,
// the last one that may read it. A kernel of the reference or a function may return its arguments, so whatever they
// hold, its results may hold too.
struct ResultRange {
  uint32_t call = 0;
  uint32_t result = 0;  // index among the results of the call
  uint32_t last_use = 0;
  bool escapes = false;  // the result may outlive the frame, or code jumps back and its live range is unknown
};

// Of code with any jumps and with its Kill instructions, in the order of the calls. The function's instructions have
// passed their own checks.
std::vector<ResultRange> result_ranges(const Function& function);

}  // namespace tenon::runtime
