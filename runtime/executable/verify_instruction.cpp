#include "runtime/executable/verify_instruction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenon::runtime {
namespace {

class InstructionCheck {
 public:
  InstructionCheck(const Executable& executable, const Function& function, uint64_t& mentions)
      : executable_(executable), function_(function), mentions_(mentions) {}

  std::string run(const Operation& operation) && {
    // Indices before conditions, which look up what they name.
    visit_operands(operation,
                   [&](const auto& operand, Role role, std::string_view) { check_registers(operand, role); });
    visit_operands(operation, [&](const auto& operand, Role role, std::string_view) { check_index(operand, role); });
    if (problem_.empty()) visit_operands(operation, [&](const auto& o, Role, std::string_view) { check_size(o); });
    if (problem_.empty()) std::visit([&](const auto& o) { check(o); }, operation);
    return std::move(problem_);
  }

 private:
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  void index(std::string_view kind, size_t i, size_t count) {
    if (i >= count) fail(fmt::format("{} {} of {}", kind, i, count));
  }
  void counts(std::string_view kind, size_t found, size_t expected) {
    if (found != expected) fail(fmt::format("{} {}, must be {}", found, kind, expected));
  }

  void check_registers(const auto& operand, Role role) {
    if (!is_register(role)) return;
    visit_indices(operand, [&](Register r) {
      ++mentions_;
      index("register", r, function_.registers);
    });
    if constexpr (std::same_as<decltype(operand), const Registers&>) {
      if (role == Role::kReadSize) sizes_ = operand.size();
      if (role != Role::kWrite) return;
      Registers sorted = operand;
      std::ranges::sort(sorted);
      if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("two results go to one register");
    }
  }
  void check_index(const auto& operand, Role role) {
    visit_indices(operand, [&](uint32_t i) {
      switch (role) {
        case Role::kTarget: return index("a jump to instruction", i, function_.code.size());
        case Role::kFunction: return index("function", i, executable_.functions.size());
        case Role::kProgram: return index("program", i, executable_.programs.size());
        case Role::kNative: native_ = i; return index("native code", i, executable_.natives.size());
        case Role::kKernel:
          if (native_ < executable_.natives.size())
            index("native kernel", i, executable_.natives[native_].kernels.size());
          return;
        case Role::kConstant: return index("constant", i, executable_.constants.size());
        case Role::kType: return index("type", i, executable_.types.size());
        case Role::kRead:
        case Role::kReadSize:
        case Role::kWrite:
        case Role::kErase:
        case Role::kValue: break;
      }
    });
  }
  void check_size(const Size& size) {
    if (!size.empty() && !is_sound(size, sizes_)) fail("a size is malformed");
  }
  void check_size(const std::vector<Size>& sizes) {
    for (const Size& size : sizes) check_size(size);
  }
  void check_size(const auto&) {}

  // Conditions between several operands, of the instructions that have some.
  void check(const auto&) {}
  void check(const CallKernel& c) {
    uint64_t computed = 0;
    for (const ComputedAttr& attr : c.computed) computed += attr.count;
    if (computed > c.args.size())
      fail(fmt::format("{} values of attributes among {} arguments", computed, c.args.size()));
  }
  void check(const CallProgram& c) {
    counts("arguments", c.args.size(), executable_.programs[c.program].inputs.size());
    counts("results", c.results.size(), executable_.programs[c.program].outputs.size());
  }
  void check(const StartProgram& s) {
    counts("arguments", s.args.size(), executable_.programs[s.program].inputs.size());
  }
  void check(const CallNative& c) {
    const Signature& signature = executable_.natives[c.code].kernels[c.kernel].signature;
    counts("arguments", c.args.size(), signature.params.size());
    counts("results", c.results.size(), signature.results.size());
    if (!c.slots.empty()) counts("arena slots", c.slots.size(), c.results.size());
  }
  void check(const StartNative& s) {
    counts("arguments", s.args.size(), executable_.natives[s.code].kernels[s.kernel].signature.params.size());
  }
  const Function& callee(uint32_t index, size_t args) {
    const Function& function = executable_.functions[index];
    counts("captures of a function that is no closure", function.filled() - function.params.size(), 0);
    counts("arguments", args, function.params.size());
    return function;
  }
  void check(const CallFunction& c) {
    counts("results", c.results.size(), callee(c.function, c.args.size()).results.size());
  }
  void check(const CallClosure& c) { counts("results", c.results.size(), 1); }
  void check(const TailCall& c) {
    counts("results of the callee", callee(c.function, c.args.size()).results.size(), function_.results.size());
  }
  void check(const TailCallClosure&) { counts("results of the function", function_.results.size(), 1); }
  void check(const Return& r) { counts("values", r.values.size(), function_.results.size()); }
  void check(const ScalarCompute& c) {
    if (!is_defined(c.op, c.dtype)) fail(fmt::format("{} of {}", name(c.op), name(c.dtype)));
  }
  void check(const BindSize& b) {
    if (b.factor.empty() || b.offset.empty()) fail("a size is malformed");
  }
  void check(const Construct& c) {
    if (c.type == kTupleType) return counts("constructors of tuples", c.constructor, 0);
    index("type", c.type, executable_.types.size());
    if (!problem_.empty()) return;
    const auto& constructors = executable_.types[c.type].constructors;
    index("constructor", c.constructor, constructors.size());
    if (problem_.empty()) counts("fields", c.fields.size(), constructors[c.constructor].fields);
  }
  void check(const Switch& s) { counts("targets", s.targets.size(), executable_.types[s.type].constructors.size()); }
  void check(const MakeClosure& c) {
    counts("captures", c.captures.size(), executable_.functions[c.function].captures);
    counts("results of a closure", executable_.functions[c.function].results.size(), 1);
  }

  const Executable& executable_;
  const Function& function_;
  uint64_t& mentions_;
  std::string problem_;
  size_t sizes_ = 0;     // that programs of sizes may read
  uint32_t native_ = 0;  // the last native code that was named
};

}  // namespace

std::string check_instruction(const Executable& executable, const Function& function, const Operation& operation,
                              uint64_t& mentions) {
  return InstructionCheck(executable, function, mentions).run(operation);
}

}  // namespace tenon::runtime
