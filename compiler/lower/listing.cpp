#include "compiler/lower/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <concepts>
#include <string_view>
#include <utility>
#include <variant>

#include "compiler/ir/literal.h"

namespace tenon::compiler {
namespace {

using runtime::Registers;
using runtime::Role;
using runtime::SizeStep;

std::vector<std::string> register_names(const Registers& registers) {
  std::vector<std::string> names;
  for (const runtime::Register r : registers) names.push_back(fmt::format("r{}", r));
  return names;
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

// The operands of an instruction as text, by name.
class OperandTexts {
 public:
  OperandTexts(const runtime::Executable& executable, const runtime::Operation& operation) : e_(executable) {
    runtime::visit_operands(operation, [&](const auto& operand, Role role, std::string_view name) {
      if (role == Role::kReadSize) visit_sizes(operand);
      if constexpr (std::same_as<decltype(operand), const bool&>) texts_.emplace_back(name, operand ? name : "");
      else texts_.emplace_back(name, text(operand, role));
    });
    std::visit([&](const auto& o) { add_joint(o); }, operation);
  }

  const std::string& operator[](std::string_view name) const {
    const auto found = std::ranges::find(texts_, name, &std::pair<std::string_view, std::string>::first);
    assert(found != texts_.end() && "the text of an instruction names its operands");
    return found->second;
  }

 private:
  void visit_sizes(const Registers& registers) { size_names_ = register_names(registers); }
  void visit_sizes(const auto&) {}

  std::string text(uint32_t index, Role role) {
    switch (role) {
      case Role::kRead:
      case Role::kReadSize:
      case Role::kWrite:
      case Role::kErase: return fmt::format("r{}", index);
      case Role::kFunction: return fmt::format("@{}", e_.functions[index].name);
      case Role::kProgram: return e_.programs[index].name;
      case Role::kNative: native_ = index; break;
      case Role::kKernel: return e_.natives[native_].kernels[index].name;
      case Role::kConstant:
        return fmt::format("{}: {} {}", index, name(e_.constants[index].dtype()),
                           runtime::to_string(e_.constants[index].shape()));
      case Role::kType: return e_.types[index].name;
      case Role::kTarget:
      case Role::kValue: break;
    }
    return fmt::format("{}", index);
  }
  template <class T>
  std::string text(const std::vector<T>& list, Role role) {
    std::vector<std::string> texts;
    for (const T& element : list) texts.push_back(text(element, role));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  std::string text(const runtime::Size& size, Role) { return text_of(size, size_names_); }
  // "0+4096", "outside".
  static std::string text(const runtime::ArenaSlot& slot, Role) {
    if (slot.bytes != 0) return fmt::format("{}+{}", slot.offset, slot.bytes);
    return slot.offset == 0 ? "outside" : fmt::format("outside+{}", slot.offset);
  }
  // "shape: 2 x i64".
  static std::string text(const runtime::ComputedAttr& attr, Role) {
    constexpr std::string_view kKinds[] = {"integer", "integers", "real", "reals"};
    return fmt::format("{}: {} of {} operands", attr.name, kKinds[static_cast<size_t>(attr.kind)], attr.count);
  }
  static std::string text(const runtime::Attrs& attrs, Role) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : attrs) texts.push_back(fmt::format("{}={}", name, attribute(value)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  static std::string text(const std::string& text, Role) { return text; }
  static std::string text(std::integral auto number, Role) { return fmt::format("{}", number); }
  static std::string text(runtime::DType dtype, Role) { return std::string(name(dtype)); }
  static std::string text(runtime::ScalarOp op, Role) { return std::string(name(op)); }

  // The texts that several operands have together.
  void add_joint(const auto&) {}
  void add_joint(const runtime::CallKernel&) {
    const std::string &fixed = (*this)["attrs"], &computed = (*this)["computed"];
    const std::string all = fixed + (fixed.empty() || computed.empty() ? "" : ", ") + computed;
    texts_.emplace_back("attributes", all.empty() ? "" : fmt::format("{{{}}}", all));
  }
  void add_joint(const runtime::Construct& c) {
    const bool is_tuple = c.type == runtime::kTupleType;
    texts_.emplace_back(
        "name",
        is_tuple ? "" : fmt::format("{}.{}", e_.types[c.type].name, e_.types[c.type].constructors[c.constructor].name));
  }

  const runtime::Executable& e_;
  std::vector<std::pair<std::string_view, std::string>> texts_;
  std::vector<std::string> size_names_;
  uint32_t native_ = 0;
};

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
  const OperandTexts operands(e, operation);
  std::string text;
  std::string_view form = runtime::facts(operation).text;
  while (!form.empty()) {
    const char c = form.front();
    form.remove_prefix(1);
    if (c == '[') {
      // The group is left out, up to its end, if its first operand is empty.
      const size_t begin = form.find('{') + 1;
      if (operands[form.substr(begin, form.find('}') - begin)].empty()) form.remove_prefix(form.find(']') + 1);
    } else if (c == '{') {
      text += operands[form.substr(0, form.find('}'))];
      form.remove_prefix(form.find('}') + 1);
    } else if (c != ']') {
      text += c;
    }
  }
  return text;
}

}  // namespace tenon::compiler
