#include "compiler/partition/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

class Matcher {
 public:
  Matcher(const DataFlow& flow, const std::vector<bool>& taken) : flow_(flow), taken_(taken) {}

  bool at_binding(const GraphPattern& pattern, size_t binding) {
    if (pattern.kind == GraphPattern::Kind::kEither) {
      return std::ranges::any_of(pattern.parts, [&](const GraphPattern& part) { return attempt(part, binding); });
    }
    if (pattern.kind != GraphPattern::Kind::kOp || taken_[binding]) return false;
    const auto* apply = std::get_if<Apply>(&flow_.block().bindings[binding].value);
    if (!apply || !apply->op->is(pattern.op) || apply->args.size() != pattern.parts.size()) return false;
    for (size_t i = 0; i < apply->args.size(); ++i) {
      if (!at_atom(pattern.parts[i], apply->args[i])) return false;
    }
    if (std::ranges::find(found_, binding) == found_.end()) found_.push_back(binding);
    return true;
  }

  std::vector<size_t> found() && { return std::move(found_); }

 private:
  // Discards the bindings that a failed alternative has matched.
  bool attempt(const GraphPattern& pattern, size_t binding) {
    const size_t found_before = found_.size();
    if (at_binding(pattern, binding)) return true;
    found_.resize(found_before);
    return false;
  }

  bool at_atom(const GraphPattern& pattern, const Atom& atom) {
    switch (pattern.kind) {
      case GraphPattern::Kind::kAny: return true;
      case GraphPattern::Kind::kConstant: return std::holds_alternative<ConstId>(atom);
      case GraphPattern::Kind::kEither: {
        const size_t found_before = found_.size();
        for (const GraphPattern& part : pattern.parts) {
          if (at_atom(part, atom)) return true;
          found_.resize(found_before);
        }
        return false;
      }
      case GraphPattern::Kind::kOp: break;
    }
    const auto* var = std::get_if<VarId>(&atom);
    const auto producer = var ? flow_.producer(*var) : std::nullopt;
    return producer && at_binding(pattern, *producer);
  }

  const DataFlow& flow_;
  const std::vector<bool>& taken_;
  std::vector<size_t> found_;
};

}  // namespace

GraphPattern any() { return {}; }
GraphPattern constant() { return {.kind = GraphPattern::Kind::kConstant, .op = {}, .parts = {}}; }
GraphPattern op(OperatorId op, std::vector<GraphPattern> operands) {
  return {.kind = GraphPattern::Kind::kOp, .op = op, .parts = std::move(operands)};
}
GraphPattern either(std::vector<GraphPattern> alternatives) {
  return {.kind = GraphPattern::Kind::kEither, .op = {}, .parts = std::move(alternatives)};
}
GraphPattern optional(OperatorId op, const GraphPattern& operand) {
  return either({compiler::op(op, {operand}), operand});
}

std::string to_string(const GraphPattern& pattern) {
  constexpr size_t kMostAlternatives = 12;  // that a person reads
  std::vector<std::string> parts;
  for (const GraphPattern& part : pattern.parts) {
    if (pattern.kind == GraphPattern::Kind::kEither && parts.size() + 1 == kMostAlternatives &&
        pattern.parts.size() > kMostAlternatives) {
      parts.push_back(fmt::format("{} others", pattern.parts.size() - parts.size()));
      break;
    }
    parts.push_back(to_string(part));
  }
  switch (pattern.kind) {
    case GraphPattern::Kind::kAny: return "_";
    case GraphPattern::Kind::kConstant: return "const";
    case GraphPattern::Kind::kOp: return fmt::format("{}({})", name(pattern.op), fmt::join(parts, ", "));
    case GraphPattern::Kind::kEither: return fmt::format("[{}]", fmt::join(parts, " | "));
  }
  return {};
}

bool mentions(const GraphPattern& pattern, OperatorId op) {
  return (pattern.kind == GraphPattern::Kind::kOp && pattern.op == op) ||
         std::ranges::any_of(pattern.parts, [&](const GraphPattern& part) { return mentions(part, op); });
}

DataFlow::DataFlow(const Function& function, const Block& block)
    : block_(&block), producers_(function.vars.size(), SIZE_MAX), uses_(function.vars.size()) {
  for (size_t i = 0; i < block.bindings.size(); ++i) producers_[index(block.bindings[i].var)] = i;
  for_each_use(block, [&](const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) ++uses_[index(*var)];
  });
}

std::optional<size_t> DataFlow::producer(VarId var) const {
  const size_t binding = producers_[index(var)];
  return binding == SIZE_MAX ? std::nullopt : std::optional(binding);
}

const Apply* Match::find(const Function& function, OperatorId op) const {
  for (const size_t binding : bindings) {
    const auto* apply = std::get_if<Apply>(&function.body.bindings[binding].value);
    if (apply && apply->op->is(op)) return apply;
  }
  return nullptr;
}

const Apply& Match::apply(const Function& function, OperatorId op) const {
  const Apply* found = find(function, op);
  assert(found);
  return *found;
}

std::optional<Match> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                           const std::vector<bool>& taken) {
  Matcher matcher(flow, taken);
  if (!matcher.at_binding(pattern, root)) return std::nullopt;
  Match result{std::move(matcher).found()};
  std::ranges::sort(result.bindings);
  // Every use of an interior value must be inside the match.
  std::map<VarId, uint32_t> inside;
  for (const size_t binding : result.bindings) {
    for_each_operand(flow.block().bindings[binding].value, [&](const Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) ++inside[*var];
    });
  }
  for (const size_t binding : result.bindings) {
    const VarId var = flow.block().bindings[binding].var;
    if (binding != root && inside[var] != flow.uses(var)) return std::nullopt;
  }
  return result;
}

}  // namespace tenon::compiler
