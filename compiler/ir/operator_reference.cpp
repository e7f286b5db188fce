#include "compiler/ir/operator_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace tenon::compiler {
namespace {

struct AttrText {
  std::string operator()(int64_t value) const {
    return value == INT64_MAX ? "2^63 - 1" : value == INT64_MIN ? "-2^63" : std::to_string(value);
  }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return '"' + value + '"'; }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  std::string operator()(const std::vector<double>& values) const {
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
};

constexpr std::string_view kFailure = "an error when it runs, for some elements or sizes that the types allow";

}  // namespace

std::string default_text(const AttrSpec& spec) {
  return spec.default_value ? std::visit(AttrText{}, *spec.default_value) : "required";
}

std::string dtypes_text(const Operator& op, const Input& input) {
  if (input.as_first) return "as " + op.inputs[0].name;
  return input.dtypes == runtime::kAnyDType ? "any dtype" : input.dtypes.str();
}

std::string signature(const Operator& op) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const Input& input : op.inputs) add(input.name);
  for (const AttrSpec& spec : op.attributes) {
    add(spec.default_value ? spec.name + "=" + default_text(spec) : spec.name + "=...");
  }
  return fmt::format("{}({})", op.name, text);
}

std::string describe(const Operator& op) {
  std::string text = fmt::format("{}\n\n{}\n\n", signature(op), op.documentation);
  size_t width = 7;
  for (const Input& input : op.inputs) width = std::max(width, input.name.size());
  for (const AttrSpec& spec : op.attributes) width = std::max(width, spec.name.size());
  for (const Input& input : op.inputs) {
    text += fmt::format("  {:<{}}  tensor, {}{}\n", input.name, width, dtypes_text(op, input),
                        input.name.starts_with("...") ? "; one or more" : "");
  }
  for (const AttrSpec& spec : op.attributes) {
    text += fmt::format("  {:<{}}  {}, {}: {}\n", spec.name, width, name(spec.kind),
                        spec.default_value ? "default " + default_text(spec) : "required", spec.documentation);
  }
  text += fmt::format("\n  {:<{}}  {}: {}\n", "fusion", width, name(op.pattern), documentation(op.pattern));
  if (op.may_fail) text += fmt::format("  {:<{}}  {}\n", "failure", width, kFailure);
  text += fmt::format("  {:<{}}  compiler/ir/operators/{}.cpp, runtime/reference/{}.cpp\n", "source", width, op.family,
                      op.family);
  return text;
}

std::string operator_reference(const Context& context) {
  std::map<std::string, std::vector<const Operator*>> families;
  for (const Operator* op : context.operators()) families[op->family].push_back(op);
  std::string text =
      "# Operators\n\n"
      "Written by `tenon ops --markdown` from the records in this folder; do not edit. Every argument is a tensor; "
      "sizes\n"
      "may be symbolic. The fusion kinds:\n\n";
  for (OpPattern pattern : {OpPattern::kElementwise, OpPattern::kBroadcast, OpPattern::kInjective,
                            OpPattern::kReduction, OpPattern::kAnchor, OpPattern::kOpaque}) {
    text += fmt::format("- {}: {}.\n", name(pattern), documentation(pattern));
  }
  for (const auto& [family, operators] : families) {
    text += fmt::format("\n## {}\n", family);
    for (const Operator* op : operators) {
      text += fmt::format("\n### {}\n\n`{}` ({})\n\n{}\n\n", op->name, signature(*op), name(op->pattern),
                          op->documentation);
      for (const Input& input : op->inputs) text += fmt::format("- {}: {}\n", input.name, dtypes_text(*op, input));
      for (const AttrSpec& spec : op->attributes) {
        text += fmt::format("- `{}` ({}, {}): {}\n", spec.name, name(spec.kind),
                            spec.default_value ? "default " + default_text(spec) : "required", spec.documentation);
      }
      if (op->may_fail) text += fmt::format("- {}\n", kFailure);
    }
  }
  return text;
}

}  // namespace tenon::compiler
