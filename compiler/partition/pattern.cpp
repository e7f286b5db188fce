#include "compiler/partition/pattern.h"

#include <algorithm>

namespace tenon::compiler {

using Kind = GraphPattern::Kind;

GraphPattern any() { return {}; }
GraphPattern constant() { return {.kind = Kind::kConstant}; }
GraphPattern op(OperatorId op, std::vector<GraphPattern> operands) {
  return {.kind = Kind::kOp, .op = op, .parts = std::move(operands)};
}
GraphPattern op(OperatorId op) { return {.kind = Kind::kOp, .op = op, .any_operands = true}; }
GraphPattern commutative(OperatorId op, std::vector<GraphPattern> operands) {
  return {.kind = Kind::kOp, .op = op, .commutative = true, .parts = std::move(operands)};
}
GraphPattern either(std::vector<GraphPattern> alternatives) {
  if (alternatives.size() == 1) return std::move(alternatives.front());
  return {.kind = Kind::kEither, .parts = std::move(alternatives)};
}
GraphPattern optional(OperatorId op, std::vector<GraphPattern> operands) {
  return {.kind = Kind::kOptional, .op = op, .parts = std::move(operands)};
}
GraphPattern path(GraphPattern start, GraphPattern step, GraphPattern end) {
  return {.kind = Kind::kPath, .parts = {std::move(start), std::move(step), std::move(end)}};
}
GraphPattern tuple(std::vector<GraphPattern> fields) { return {.kind = Kind::kTuple, .parts = std::move(fields)}; }
GraphPattern field(GraphPattern tuple, uint32_t index) {
  return {.kind = Kind::kField, .field = index, .parts = {std::move(tuple)}};
}
GraphPattern branch(GraphPattern condition, GraphPattern then_result, GraphPattern else_result) {
  return {.kind = Kind::kBranch, .parts = {std::move(condition), std::move(then_result), std::move(else_result)}};
}
GraphPattern function(GraphPattern result) {
  return {.kind = Kind::kFunction, .any_operands = true, .parts = {std::move(result)}};
}
GraphPattern function(GraphPattern result, std::vector<GraphPattern> args) {
  args.insert(args.begin(), std::move(result));
  return {.kind = Kind::kFunction, .parts = std::move(args)};
}

GraphPattern named(std::string_view name, GraphPattern pattern) {
  pattern.name = name;
  return pattern;
}
GraphPattern typed(GraphPattern pattern, TypePattern type) {
  pattern.type = std::move(type);
  return pattern;
}
GraphPattern with_attr(GraphPattern pattern, std::string_view attr, std::vector<runtime::Attr> values) {
  pattern.attrs.push_back({std::string(attr), std::move(values)});
  return pattern;
}

bool mentions(const GraphPattern& pattern, OperatorId op) {
  const bool is_operator = pattern.kind == Kind::kOp || pattern.kind == Kind::kOptional;
  return (is_operator && pattern.op == op) ||
         std::ranges::any_of(pattern.parts, [&](const GraphPattern& part) { return mentions(part, op); });
}

}  // namespace tenon::compiler
