// Calls of foreign code in a child process, with limits of time and memory.
//
// Semantics: the child is a copy of this process (fork), so that the call sees all values of the caller without a copy
// of them, and nothing that it writes comes back but its answer. It ends with the call, whatever the call does. Other
// threads do not exist in the child: the call must not wait for one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "support/diagnostic.h"
#include "support/function_ref.h"

namespace tenon::compiler::plugin {

struct Limits {
  std::chrono::milliseconds time{60'000};  // of one step of foreign code
  uint64_t memory = uint64_t{4} << 30;     // bytes beside those of its beginning; sanitized builds have no limit
  bool operator==(const Limits&) const = default;
};

// What the child writes to its parent: step() before each step of foreign code, so that the parent knows where it
// ended, own_step() where code of the compiler's follows, which has no limits, and one of the others at the end, once.
class ChildOutput {
 public:
  ChildOutput(int file, const Limits& limits) : file_(file), memory_(limits.memory) {}
  void step(std::string_view name);
  void own_step(std::string_view name);
  void answer(std::initializer_list<std::string_view> parts);  // one after the other
  void answer(std::string_view bytes) { answer({bytes}); }
  void exception(std::string_view what);

 private:
  void write(char kind, std::initializer_list<std::string_view> parts);
  void limit_memory();
  int file_;
  uint64_t memory_;  // Limits::memory
};

// What `call` answered. The error says how the child ended without an answer, in which step, and the limit that it
// exceeded: "accepts did not return within 60 s"; its `where` is the step. An exception of the call is such an error.
// Fault::kInternal: there is no child.
Expected<std::string> call_in_child(FunctionRef<void(ChildOutput&)> call, const Limits& limits);

}  // namespace tenon::compiler::plugin
