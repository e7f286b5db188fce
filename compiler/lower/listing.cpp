#include "compiler/lower/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/literal.h"
#include "support/visitor.h"

namespace tenon::compiler {
namespace {

using runtime::Registers;
using runtime::SizeStep;

std::vector<std::string> register_names(const Registers& registers) {
  std::vector<std::string> names;
  for (const runtime::Register r : registers) names.push_back(fmt::format("r{}", r));
  return names;
}
std::string list_of(const Registers& registers) {
  return fmt::format("{}", fmt::join(register_names(registers), ", "));
}
std::string assigned(const Registers& results) { return results.empty() ? "" : list_of(results) + " = "; }

// " {axis=1, shape: 2 x i64}", or nothing.
std::string attributes(const runtime::CallKernel& call) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : call.attrs) texts.push_back(fmt::format("{}={}", name, attribute(value)));
  constexpr std::string_view kKinds[] = {"integer", "integers", "real", "reals"};
  for (const runtime::ComputedAttr& attr : call.computed)
    texts.push_back(
        fmt::format("{}: {} of {} operands", attr.name, kKinds[static_cast<size_t>(attr.kind)], attr.count));
  return texts.empty() ? "" : fmt::format(" {{{}}}", fmt::join(texts, ", "));
}

// " at 0+4096, outside", or nothing where no result has a slot of the arena.
std::string slots(const std::vector<runtime::ArenaSlot>& slots) {
  std::vector<std::string> texts;
  for (const runtime::ArenaSlot& slot : slots)
    texts.push_back(slot.bytes == 0 ? fmt::format("outside{}", slot.offset == 0 ? "" : fmt::format("+{}", slot.offset))
                                    : fmt::format("{}+{}", slot.offset, slot.bytes));
  return texts.empty() ? "" : fmt::format(" at {}", fmt::join(texts, ", "));
}

std::string_view symbol(SizeStep::Op op) {
  switch (op) {
    case SizeStep::Op::kAdd: return " + ";
    case SizeStep::Op::kMultiply: return " * ";
    case SizeStep::Op::kFloorDivide: return " // ";
    case SizeStep::Op::kMin: return "min";
    case SizeStep::Op::kMax: return "max";
    case SizeStep::Op::kConstant:
    case SizeStep::Op::kDim:
    case SizeStep::Op::kIndex:
    case SizeStep::Op::kElement: break;
  }
  return "";
}

std::string check_text(const runtime::CheckShape& check) {
  const std::vector<std::string> names = register_names(check.sizes);
  std::vector<std::string> axes;
  for (const runtime::Size& axis : check.axes) axes.push_back(text_of(axis, names));
  std::string text = fmt::format("check r{} is {} ({})", check.tensor, name(check.dtype), fmt::join(axes, ", "));
  if (!check.sizes.empty()) text += fmt::format(" of ({})", fmt::join(names, ", "));
  if (!check.known.empty()) text += fmt::format(", known ({})", list_of(check.known));
  return text + fmt::format("{}, else \"{} is ..., must be {}\"", check.strict ? ", strictly" : "", check.subject,
                            check.expected);
}

}  // namespace

std::string text_of(const runtime::Size& size, const std::vector<std::string>& dims) {
  // Each operand on the stack, and whether it needs parentheses within a product.
  std::vector<std::string> stack;
  const auto pop = [&] {
    std::string top = stack.empty() ? "?" : std::move(stack.back());
    if (!stack.empty()) stack.pop_back();
    return top;
  };
  const auto grouped = [](const std::string& text) {
    return text.find(' ') == std::string::npos || text.starts_with("m") ? text : fmt::format("({})", text);
  };
  for (const SizeStep& step : size) {
    const auto index = static_cast<size_t>(step.operand);
    switch (step.op) {
      case SizeStep::Op::kConstant: stack.push_back(fmt::format("{}", step.operand)); break;
      case SizeStep::Op::kDim: stack.push_back(index < dims.size() ? dims[index] : fmt::format("d{}", index)); break;
      case SizeStep::Op::kIndex: stack.push_back(fmt::format("i{}", index)); break;
      case SizeStep::Op::kElement: stack.push_back(fmt::format("p{}({})", index, pop())); break;
      case SizeStep::Op::kAdd:
      case SizeStep::Op::kMultiply:
      case SizeStep::Op::kFloorDivide: {
        const std::string right = pop(), left = pop();
        stack.push_back(fmt::format("{}{}{}", grouped(left), symbol(step.op), grouped(right)));
        break;
      }
      case SizeStep::Op::kMin:
      case SizeStep::Op::kMax: {
        const std::string right = pop(), left = pop();
        stack.push_back(fmt::format("{}({}, {})", symbol(step.op), left, right));
        break;
      }
    }
  }
  return stack.empty() ? "?" : fmt::format("{}", fmt::join(stack, " "));
}

std::string text_of(const runtime::Executable& e, const runtime::Operation& operation) {
  const auto function = [&](uint32_t index) { return fmt::format("@{}", e.functions[index].name); };
  return std::visit(
      Overloaded{
          [&](const runtime::CallKernel& c) {
            return fmt::format("{}kernel {}({}){}", assigned(c.results), c.kernel, list_of(c.args), attributes(c));
          },
          [&](const runtime::CallProgram& c) {
            return fmt::format("{}program {}({})", assigned(c.results), e.programs[c.program].name, list_of(c.args));
          },
          [&](const runtime::StartProgram& s) {
            return fmt::format("start program {}({})", e.programs[s.program].name, list_of(s.args));
          },
          [&](const runtime::StartNative& s) {
            return fmt::format("start native {}({})", e.natives[s.code].kernels[s.kernel].name, list_of(s.args));
          },
          [&](const runtime::CallNative& c) {
            return fmt::format("{}native {}({}){}", assigned(c.results), e.natives[c.code].kernels[c.kernel].name,
                               list_of(c.args), slots(c.slots));
          },
          [&](const runtime::CallFunction& c) {
            return fmt::format("{}call {}({})", assigned(c.results), function(c.function), list_of(c.args));
          },
          [](const runtime::Move& m) { return fmt::format("r{} = r{}", m.to, m.from); },
          [&](const runtime::LoadConstant& c) {
            const runtime::Tensor& constant = e.constants[c.constant];
            return fmt::format("r{} = constant {}: {} {}", c.to, c.constant, name(constant.dtype()),
                               runtime::to_string(constant.shape()));
          },
          [](const runtime::Jump& j) { return fmt::format("jump {}", j.target); },
          [](const runtime::Branch& b) { return fmt::format("branch r{} else {}", b.condition, b.otherwise); },
          [](const runtime::Kill& k) { return fmt::format("kill {}", list_of(k.registers)); },
          [](const runtime::Return& r) { return fmt::format("return {}", list_of(r.values)); },
          [](const runtime::CallClosure& c) {
            return fmt::format("{}call r{}({})", assigned(c.results), c.closure, list_of(c.args));
          },
          [&](const runtime::TailCall& c) {
            return fmt::format("tail call {}({})", function(c.function), list_of(c.args));
          },
          [](const runtime::TailCallClosure& c) {
            return fmt::format("tail call r{}({})", c.closure, list_of(c.args));
          },
          [](const runtime::ScalarCompute& c) {
            return fmt::format("r{} = {} {} r{}, r{}", c.to, name(c.op), name(c.dtype), c.a, c.b);
          },
          [](const runtime::BindSize& b) {
            const std::vector<std::string> names = register_names(b.sizes);
            const std::string of = names.empty() ? "" : fmt::format(" of ({})", fmt::join(names, ", "));
            return fmt::format("r{} = n where axis {} of r{} is {} * n + {}{}", b.to, b.axis, b.tensor,
                               text_of(b.factor, names), text_of(b.offset, names), of);
          },
          [](const runtime::ComputeSize& c) {
            return fmt::format("r{} = size {} of ({})", c.to, text_of(c.value, register_names(c.sizes)),
                               list_of(c.sizes));
          },
          [](const runtime::CheckShape& c) { return check_text(c); },
          [](const runtime::CheckSize& c) {
            return fmt::format("check r{} in {}..{}, else \"{} is ...\"", c.size, c.low, c.high, c.subject);
          },
          [&](const runtime::Construct& c) {
            const std::string type =
                c.type == runtime::kTupleType
                    ? ""
                    : fmt::format("{}.{}", e.types[c.type].name, e.types[c.type].constructors[c.constructor].name);
            return fmt::format("r{} = {}({})", c.to, type, list_of(c.fields));
          },
          [](const runtime::ReadField& f) { return fmt::format("r{} = r{}.{}", f.to, f.from, f.index); },
          [&](const runtime::Switch& s) {
            return fmt::format("switch r{}: {} to {}", s.value, s.type < e.types.size() ? e.types[s.type].name : "",
                               fmt::join(s.targets, ", "));
          },
          [&](const runtime::MakeClosure& c) {
            return fmt::format("r{} = closure {}({})", c.to, function(c.function), list_of(c.captures));
          },
          [](const runtime::MakeReference& m) { return fmt::format("r{} = ref r{}", m.to, m.value); },
          [](const runtime::ReadReference& r) { return fmt::format("r{} = read r{}", r.to, r.reference); },
          [](const runtime::WriteReference& w) { return fmt::format("write r{}, r{}", w.reference, w.value); },
      },
      operation);
}

}  // namespace tenon::compiler
