// Checks all that execution of an executable relies on.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/executable/executable.h"
#include "runtime/executable/liveness.h"
#include "runtime/executable/verify_arena.h"
#include "runtime/executable/verify_program.h"
#include "support/printable.h"
#include "support/try.h"
#include "support/visitor.h"

namespace tenon::runtime {
namespace {

class Verifier {
 public:
  Verifier(const Executable& executable, std::string_view where) : executable_(executable), where_(where) {}

  Status run() {
    if (executable_.entry >= executable_.functions.size()) {
      return fail(fmt::format("the entry is function {} of {}", executable_.entry, executable_.functions.size()));
    }
    for (size_t i = 0; i < executable_.constants.size(); ++i) {
      if (!executable_.constants[i]) return fail(fmt::format("constant {} is empty", i));
    }
    if (const Function& main = executable_.main(); main.filled() != main.params.size()) {
      return fail(fmt::format("the entry '{}' is a closure with {} captures", main.name, main.captures));
    }
    for (const Function& function : executable_.functions) {
      TENON_TRY(check(function));
    }
    for (const AcceleratorProgram& program : executable_.programs) {
      TENON_TRY(verify_program(program, where_));
    }
    for (const NativeCode& native : executable_.natives) TENON_TRY(verify(native, where_));
    return check(executable_.graph);
  }

 private:
  std::unexpected<Diagnostic> fail(std::string what) const { return error(std::move(what), where_); }

  Status check(const Function& f) {
    auto fail_in = [&](std::string what) { return fail(fmt::format("function '{}': {}", f.name, what)); };
    for (auto* ports : {&f.params, &f.results}) {
      std::set<std::string_view> names;
      for (const Port& port : *ports) {
        Shape smallest = port.shape;
        std::ranges::replace(smallest, kAnySize, 0);
        if (!checked_bytes(port.dtype, smallest))
          return fail_in(
              fmt::format("'{}' has the shape {}, must have at most {} axes and 2^48 bytes, and no negative size",
                          port.name, to_string(port.shape), kMaxRank));
        if (!port.symbols.empty() && port.symbols.size() != port.shape.size())
          return fail_in(
              fmt::format("'{}' has {} sizes for {} axes", port.name, port.symbols.size(), port.shape.size()));
        if (!names.insert(port.name).second) return fail_in(fmt::format("two ports are named '{}'", port.name));
      }
    }
    if (f.filled() > f.registers) {
      return fail_in(fmt::format("{} parameters do not fit {} registers", f.filled(), f.registers));
    }
    if (f.code.empty()) return fail_in("it has no instructions");
    // A hostile register count would be memory that nothing else in the file pays for.
    uint64_t mentions = f.filled();
    for (size_t i = 0; i < f.code.size(); ++i) {
      auto problem = check(f, f.code[i], mentions);
      if (!problem.empty()) return fail_in(fmt::format("instruction {}: {}", i, problem));
    }
    if (f.registers > mentions) {
      return fail_in(fmt::format("it has {} registers, its code mentions {} at most", f.registers, mentions));
    }
    if (falls_through(f.code.back().operation)) return fail_in("the last instruction is neither return nor jump");
    if (auto problem = check_arena(f, executable_.natives); !problem.empty()) return fail_in(std::move(problem));
    return {};
  }

  // Empty if the instruction is sound, else its first fault.
  std::string check(const Function& f, const Instruction& instruction, uint64_t& mentions) const {
    std::string problem;
    auto reg = [&](Register r) {
      ++mentions;
      if (r >= f.registers && problem.empty()) problem = fmt::format("register {} of {}", r, f.registers);
    };
    auto index = [&](std::string_view kind, size_t i, size_t count) {
      if (i >= count && problem.empty()) problem = fmt::format("{} {} of {}", kind, i, count);
      return i < count;
    };
    auto counts = [&](std::string_view kind, size_t found, size_t expected) {
      if (found != expected && problem.empty()) problem = fmt::format("{} {}, must be {}", found, kind, expected);
    };
    for_each_read(instruction.operation, reg);
    for_each_write(instruction.operation, reg);
    auto distinct = [&](const Registers& results) {
      if (std::set<Register>(results.begin(), results.end()).size() != results.size() && problem.empty()) {
        problem = "two results go to one register";
      }
    };
    auto callee = [&](const Function& function) {
      counts("captures of a function that is no closure", function.filled() - function.params.size(), 0);
    };
    auto malformed = [&] {
      if (problem.empty()) problem = "a size is malformed";
    };
    auto programs = [&](const std::vector<Size>& sizes, size_t count) {
      for (const Size& size : sizes) {
        if (!size.empty() && !is_sound(size, count)) malformed();
      }
    };
    std::visit(Overloaded{[&](const CallKernel& c) {
                            distinct(c.results);
                            uint64_t computed = 0;
                            for (const ComputedAttr& attr : c.computed) computed += attr.count;
                            if (computed > c.args.size() && problem.empty()) {
                              problem =
                                  fmt::format("{} values of attributes among {} arguments", computed, c.args.size());
                            }
                          },
                          [&](const CallProgram& c) {
                            distinct(c.results);
                            if (!index("program", c.program, executable_.programs.size())) return;
                            counts("arguments", c.args.size(), executable_.programs[c.program].inputs.size());
                            counts("results", c.results.size(), executable_.programs[c.program].outputs.size());
                          },
                          [&](const StartProgram& s) {
                            if (!index("program", s.program, executable_.programs.size())) return;
                            counts("arguments", s.args.size(), executable_.programs[s.program].inputs.size());
                          },
                          [&](const StartNative& s) {
                            if (!index("native code", s.code, executable_.natives.size())) return;
                            const auto& kernels = executable_.natives[s.code].kernels;
                            if (!index("native kernel", s.kernel, kernels.size())) return;
                            counts("arguments", s.args.size(), kernels[s.kernel].signature.params.size());
                          },
                          [&](const CallNative& c) {
                            distinct(c.results);
                            if (!index("native code", c.code, executable_.natives.size())) return;
                            const auto& kernels = executable_.natives[c.code].kernels;
                            if (!index("native kernel", c.kernel, kernels.size())) return;
                            counts("arguments", c.args.size(), kernels[c.kernel].signature.params.size());
                            counts("results", c.results.size(), kernels[c.kernel].signature.results.size());
                            if (!c.slots.empty()) counts("arena slots", c.slots.size(), c.results.size());
                          },
                          [&](const CallFunction& c) {
                            distinct(c.results);
                            if (!index("function", c.function, executable_.functions.size())) return;
                            callee(executable_.functions[c.function]);
                            counts("arguments", c.args.size(), executable_.functions[c.function].params.size());
                            counts("results", c.results.size(), executable_.functions[c.function].results.size());
                          },
                          [](const Move&) {},
                          [&](const LoadConstant& c) { index("constant", c.constant, executable_.constants.size()); },
                          [&](const Jump& j) { index("a jump to instruction", j.target, f.code.size()); },
                          [&](const Branch& b) { index("a branch to instruction", b.otherwise, f.code.size()); },
                          [](const Kill&) {},
                          [&](const Return& r) { counts("values", r.values.size(), f.results.size()); },
                          [&](const CallClosure& c) { counts("results", c.results.size(), 1); },
                          [&](const TailCall& c) {
                            if (!index("function", c.function, executable_.functions.size())) return;
                            callee(executable_.functions[c.function]);
                            counts("arguments", c.args.size(), executable_.functions[c.function].params.size());
                            counts("results of the callee", executable_.functions[c.function].results.size(),
                                   f.results.size());
                          },
                          [&](const TailCallClosure&) { counts("results of the function", f.results.size(), 1); },
                          [&](const ScalarCompute& c) {
                            if (!is_defined(c.op, c.dtype) && problem.empty())
                              problem = fmt::format("{} of {}", name(c.op), runtime::name(c.dtype));
                          },
                          [&](const BindSize& b) {
                            programs({{b.factor, b.offset}}, b.sizes.size());
                            if (b.factor.empty() || b.offset.empty()) malformed();
                          },
                          [&](const ComputeSize& c) { programs({{c.value}}, c.sizes.size()); },
                          [&](const CheckShape& c) { programs(c.axes, c.sizes.size()); },
                          [](const CheckSize&) {},
                          [&](const Construct& c) {
                            if (c.type == kTupleType) return counts("constructors of tuples", c.constructor, 0);
                            if (!index("type", c.type, executable_.types.size())) return;
                            const auto& constructors = executable_.types[c.type].constructors;
                            if (!index("constructor", c.constructor, constructors.size())) return;
                            counts("fields", c.fields.size(), constructors[c.constructor].fields);
                          },
                          [](const ReadField&) {},
                          [&](const Switch& s) {
                            if (!index("type", s.type, executable_.types.size())) return;
                            counts("targets", s.targets.size(), executable_.types[s.type].constructors.size());
                            for (const uint32_t target : s.targets)
                              index("a switch to instruction", target, f.code.size());
                          },
                          [&](const MakeClosure& c) {
                            if (!index("function", c.function, executable_.functions.size())) return;
                            counts("captures", c.captures.size(), executable_.functions[c.function].captures);
                            counts("results of a closure", executable_.functions[c.function].results.size(), 1);
                          },
                          [](const MakeReference&) {},
                          [](const ReadReference&) {},
                          [](const WriteReference&) {}},
               instruction.operation);
    return problem;
  }

  Status check(const Graph& graph) const {
    for (const GraphEdge& edge : graph.edges) {
      if (edge.from >= graph.nodes.size() || edge.to >= graph.nodes.size()) {
        return fail(
            fmt::format("the graph has {} nodes and an edge from {} to {}", graph.nodes.size(), edge.from, edge.to));
      }
    }
    return {};
  }

  const Executable& executable_;
  std::string where_;
};

}  // namespace

std::vector<std::string> file_names(std::span<const Port> ports) {
  constexpr size_t kLongest = 200;
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string name = ports[i].name;
    std::ranges::replace_if(
        name, [](char c) { return c == '/' || static_cast<uint8_t>(c) < ' '; }, '_');
    if (name.size() > kLongest) name.resize(kLongest);
    while (std::ranges::find(names, name) != names.end()) name += fmt::format(".{}", i);
    names.push_back(std::move(name));
  }
  return names;
}

bool Port::is_static() const { return is_tensor() && std::ranges::find(shape, kAnySize) == shape.end(); }

bool Port::accepts(const Tensor& tensor) const {
  return tensor && is_tensor() && tensor.dtype() == dtype &&
         std::ranges::equal(shape, tensor.shape(),
                            [](int64_t size, int64_t found) { return size == kAnySize || size == found; });
}

std::string type_text(const Port& port) {
  if (!port.is_tensor()) return port.type;
  std::string sizes;
  for (size_t i = 0; i < port.shape.size(); ++i) {
    const std::string any = port.symbols.empty() || port.symbols[i].empty() ? "?" : port.symbols[i];
    sizes += fmt::format("{}{}", i == 0 ? "" : ", ", port.shape[i] == kAnySize ? any : std::to_string(port.shape[i]));
  }
  return fmt::format("{} ({}{})", name(port.dtype), sizes, port.shape.size() == 1 ? "," : "");
}

std::string to_string(const Port& port) { return fmt::format("{}: {}", printable(port.name), type_text(port)); }

std::string_view name(ScalarOp op) {
  constexpr std::string_view kNames[] = {"add",           "subtract", "multiply",  "divide", "floor_divide", "minimum",
                                         "maximum",       "equal",    "not_equal", "less",   "less_equal",   "greater",
                                         "greater_equal", "and",      "or",        "xor"};
  static_assert(std::size(kNames) == kScalarOps);
  return kNames[static_cast<size_t>(op)];
}

bool is_defined(ScalarOp op, DType dtype) {
  if (kStorageTypes.contains(dtype)) return false;
  const bool real = dtype == DType::kF32 || dtype == DType::kF64;
  switch (op) {
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor: return !real;
    case ScalarOp::kEqual:
    case ScalarOp::kNotEqual: return true;
    case ScalarOp::kAdd:
    case ScalarOp::kSubtract:
    case ScalarOp::kMultiply:
    case ScalarOp::kDivide:
    case ScalarOp::kFloorDivide:
    case ScalarOp::kMinimum:
    case ScalarOp::kMaximum:
    case ScalarOp::kLess:
    case ScalarOp::kLessEqual:
    case ScalarOp::kGreater:
    case ScalarOp::kGreaterEqual: break;
  }
  return dtype != DType::kBool;
}

Status verify(const Executable& executable, std::string_view where) { return Verifier(executable, where).run(); }

}  // namespace tenon::runtime
