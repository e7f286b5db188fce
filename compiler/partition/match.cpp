// A backtracking matcher in continuation-passing style: each step calls what remains to be matched, and undoes its own
// changes where that fails.
#include "compiler/partition/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <set>

#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"
#include "compiler/partition/pattern_text.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Kind = GraphPattern::Kind;
using Next = FunctionRef<bool()>;

constexpr size_t kMaxPathSteps = 500;  // the matcher's recursion is as deep as its steps are many

// The operand that is matched: of a value, which is an operand itself; nullptr: the root.
struct Where {
  std::string_view of;
  size_t operand = 0;
  const Where* outer = nullptr;

  size_t depth() const { return outer ? outer->depth() + 1 : 1; }
  std::string str() const {
    std::string text = fmt::format("operand {} of {}", operand + 1, of);
    return outer ? fmt::format("{}, in {}", text, outer->str()) : text;
  }
};

std::string_view form_of(const Value& value) {
  if (const auto* apply = std::get_if<Apply>(&value)) return apply->op->name;
  if (std::holds_alternative<Call>(value)) return "a call";
  if (std::holds_alternative<Tuple>(value)) return "a tuple";
  if (std::holds_alternative<Project>(value)) return "a field";
  if (std::holds_alternative<If>(value)) return "an if";
  return "another value";
}

bool equal_numbers(const Attr& value, const Attr& wanted) {
  if (value == wanted) return true;
  const auto* integer = std::get_if<int64_t>(&wanted);
  const auto* real = std::get_if<double>(&value);
  return integer && real && *real == static_cast<double>(*integer);
}

bool has_attr(const Attr& value, const AttrPattern& pattern) {
  const auto is_one = [&](const Attr& number) {
    return std::ranges::any_of(pattern.values, [&](const Attr& wanted) { return equal_numbers(number, wanted); });
  };
  if (is_one(value)) return true;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    return !list->empty() && std::ranges::all_of(*list, [&](int64_t number) { return is_one(number); });
  }
  const auto* list = std::get_if<std::vector<double>>(&value);
  return list && !list->empty() && std::ranges::all_of(*list, [&](double number) { return is_one(number); });
}

bool holds(SizeRelation relation, int64_t a, int64_t b) {
  switch (relation) {
    case SizeRelation::kEqual: return a == b;
    case SizeRelation::kNotEqual: return a != b;
    case SizeRelation::kLess: return a < b;
    case SizeRelation::kLessEqual: return a <= b;
    case SizeRelation::kGreater: return a > b;
    case SizeRelation::kGreaterEqual: return a >= b;
  }
  return false;
}

class Matcher {
 public:
  Matcher(const DataFlow& flow, size_t root, const std::vector<bool>& taken, FunctionRef<bool(const Match&)> accept)
      : flow_(flow), root_(root), taken_(taken), accept_(accept) {}

  Expected<MatchResult> run(const GraphPattern& pattern) {
    const bool found = at(pattern, flow_, flow_.block().bindings[root_].var, nullptr, [&] { return finish(); });
    if (steps_ > kMaxMatchSteps) {
      return error(fmt::format("the pattern takes more than {} steps at a value", kMaxMatchSteps), {},
                   "give it fewer alternatives and fewer operands in any order");
    }
    MatchResult result{.match = std::nullopt, .failure = std::move(deepest_)};
    if (found) result.match = std::move(made_);
    return result;
  }

 private:
  struct Found {
    size_t binding;
    const Where* where;
  };
  struct Capture {
    const std::string* name;
    const Function* function;  // that has the value
    Atom value;
  };
  // A size: a number, or a dim that is not known.
  struct Size {
    std::optional<int64_t> number;
    Dim dim;
    bool operator==(const Size&) const = default;
  };
  struct NamedSize {
    const std::string* name;
    Size size;
  };
  struct Typed {
    DType dtype;
    std::vector<Size> sizes;
  };

  // The value is described by the pattern, and the remaining values by theirs.
  bool at(const GraphPattern& pattern, const DataFlow& flow, const Atom& atom, const Where* where, Next next) {
    if (++steps_ > kMaxMatchSteps) return false;
    const size_t sizes_before = sizes_.size(), conditions_before = conditions_.size();
    const bool captures = !pattern.name.empty();
    if (captures) {
      const auto same = std::ranges::find_if(captures_, [&](const Capture& c) { return *c.name == pattern.name; });
      if (same != captures_.end() && !is_equal(*same, flow, atom)) {
        return fail(where, flow, atom, [&] { return fmt::format("the same value as the other %{}", pattern.name); });
      }
      captures_.push_back({&pattern.name, &flow.function(), atom});
    }
    const bool matched =
        (!pattern.type || has_type(*pattern.type, flow, atom, where)) && has_form(pattern, flow, atom, where, next);
    if (captures) captures_.pop_back();
    sizes_.resize(sizes_before);
    conditions_.resize(conditions_before);
    return matched;
  }

  bool has_form(const GraphPattern& pattern, const DataFlow& flow, const Atom& atom, const Where* where, Next next) {
    switch (pattern.kind) {
      case Kind::kAny: return next();
      case Kind::kConstant:
        return std::holds_alternative<ConstId>(atom) ? next() : fail(where, flow, atom, [] { return "const"; });
      case Kind::kEither:
        return std::ranges::any_of(pattern.parts,
                                   [&](const GraphPattern& part) { return at(part, flow, atom, where, next); });
      case Kind::kOptional:
        return at_binding(pattern, flow, atom, where, next) || at(pattern.parts[0], flow, atom, where, next);
      case Kind::kPath:
        return at(pattern.parts[2], flow, atom, where, [&] { return path(pattern, flow, atom, where, next); });
      case Kind::kOp:
      case Kind::kTuple:
      case Kind::kField:
      case Kind::kBranch:
      case Kind::kFunction: return at_binding(pattern, flow, atom, where, next);
    }
    return false;
  }

  // The value is the result of a binding of this block, which becomes a part of the match. Values of an arm or of a
  // callee belong to it as a whole.
  bool at_binding(const GraphPattern& pattern, const DataFlow& flow, const Atom& atom, const Where* where, Next next) {
    const auto* var = std::get_if<VarId>(&atom);
    const auto binding = var ? flow.producer(*var) : std::nullopt;
    if (!binding) return fail(where, flow, atom, [&] { return required(pattern); });
    const Value& value = flow.block().bindings[*binding].value;
    if (!is_of(pattern, value)) return fail(where, flow, atom, [&] { return required(pattern); });
    if (&flow != &flow_) return operands(pattern, flow, value, where, next);
    if (!taken_.empty() && taken_[*binding]) {
      return fail(where, flow, atom, [&] { return fmt::format("{} that is in no other match", form_of(value)); });
    }
    if (*binding != root_ && flow.last_use(*var) > root_) {
      return fail(where, flow, atom, [&] { return without_users(value); });
    }
    if (std::ranges::find(found_, *binding, &Found::binding) != found_.end()) {
      return operands(pattern, flow, value, where, next);
    }
    found_.push_back({*binding, where});
    if (operands(pattern, flow, value, where, next)) return true;
    found_.pop_back();
    return false;
  }

  bool is_of(const GraphPattern& pattern, const Value& value) const {
    switch (pattern.kind) {
      case Kind::kOp:
      case Kind::kOptional: {
        const auto* apply = std::get_if<Apply>(&value);
        return apply && apply->op->is(pattern.op) &&
               (pattern.any_operands || apply->args.size() == pattern.parts.size());
      }
      case Kind::kTuple: {
        const auto* tuple = std::get_if<Tuple>(&value);
        return tuple && tuple->fields.size() == pattern.parts.size();
      }
      case Kind::kField: {
        const auto* project = std::get_if<Project>(&value);
        return project && project->index == pattern.field;
      }
      case Kind::kBranch: return std::holds_alternative<If>(value);
      case Kind::kFunction: {
        const auto* call = std::get_if<Call>(&value);
        const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
        return callee && flow_.module().function(*callee) &&
               (pattern.any_operands || call->args.size() + 1 == pattern.parts.size());
      }
      case Kind::kAny:
      case Kind::kConstant:
      case Kind::kEither:
      case Kind::kPath: return false;
    }
    return false;
  }

  // What is_of() requires.
  static std::string required(const GraphPattern& pattern) {
    switch (pattern.kind) {
      case Kind::kOp:
      case Kind::kOptional:
        return pattern.any_operands ? std::string(name(pattern.op))
                                    : fmt::format("{} of {} operand{}", name(pattern.op), pattern.parts.size(),
                                                  pattern.parts.size() == 1 ? "" : "s");
      case Kind::kTuple: return fmt::format("a tuple of {}", pattern.parts.size());
      case Kind::kField: return fmt::format("field {} of a tuple", pattern.field);
      case Kind::kBranch: return "an if";
      case Kind::kFunction:
        return pattern.any_operands
                   ? "a call of a global function"
                   : fmt::format("a call of a global function of {} parameters", pattern.parts.size() - 1);
      case Kind::kAny:
      case Kind::kConstant:
      case Kind::kEither:
      case Kind::kPath: break;
    }
    return to_string(pattern);
  }

  bool operands(const GraphPattern& pattern, const DataFlow& flow, const Value& value, const Where* where, Next next) {
    switch (pattern.kind) {
      case Kind::kOp:
      case Kind::kOptional: {
        const auto& apply = std::get<Apply>(value);
        for (const AttrPattern& wanted : pattern.attrs) {
          const auto attr = apply.attrs.find(wanted.name);
          if (attr != apply.attrs.end() && has_attr(attr->second, wanted)) continue;
          if (!is_deepest(where)) return false;
          std::vector<std::string> values;
          for (const Attr& each : wanted.values) values.push_back(attribute(each));
          return fail(where, fmt::format("{} with {} {}", apply.op->name, wanted.name, fmt::join(values, " or ")),
                      attr == apply.attrs.end() ? "a value that is computed" : attribute(attr->second));
        }
        if (pattern.any_operands) return next();
        if (pattern.commutative) return in_any_order(pattern.parts, flow, apply, {}, where, next);
        return in_order(pattern.parts, flow, apply.args, 0, apply.op->name, where, next);
      }
      case Kind::kTuple: return in_order(pattern.parts, flow, std::get<Tuple>(value).fields, 0, "a tuple", where, next);
      case Kind::kField: {
        const Where inner{"a field", 0, where};
        return at(pattern.parts[0], flow, std::get<Project>(value).tuple, &inner, next);
      }
      case Kind::kBranch: {
        const auto& branch = std::get<If>(value);
        const Where condition{"an if", 0, where}, then{"an if", 1, where}, otherwise{"an if", 2, where};
        return at(pattern.parts[0], flow, branch.condition, &condition, [&] {
          return at(pattern.parts[1], inside(flow.function(), branch.arms[0]), branch.arms[0].result, &then, [&] {
            return at(pattern.parts[2], inside(flow.function(), branch.arms[1]), branch.arms[1].result, &otherwise,
                      next);
          });
        });
      }
      case Kind::kFunction: {
        const auto& call = std::get<Call>(value);
        const Function& callee = *flow_.module().function(std::get<Symbol>(call.callee));
        const Where result{"the callee's result", 0, where};
        return at(pattern.parts[0], inside(callee, callee.body), callee.body.result, &result, [&] {
          if (pattern.any_operands) return next();
          return in_order(std::span(pattern.parts).subspan(1), flow, call.args, 0, "a call", where, next);
        });
      }
      case Kind::kAny:
      case Kind::kConstant:
      case Kind::kEither:
      case Kind::kPath: break;
    }
    return false;
  }

  bool in_order(std::span<const GraphPattern> parts, const DataFlow& flow, const Atoms& atoms, size_t i,
                std::string_view of, const Where* where, Next next) {
    if (i == parts.size()) return next();
    const Where operand{of, i, where};
    return at(parts[i], flow, atoms[i], &operand, [&] { return in_order(parts, flow, atoms, i + 1, of, where, next); });
  }

  // `used`: the operands of the first parts.
  bool in_any_order(std::span<const GraphPattern> parts, const DataFlow& flow, const Apply& apply,
                    const std::vector<size_t>& used, const Where* where, Next next) {
    if (used.size() == parts.size()) return next();
    for (size_t i = 0; i < apply.args.size(); ++i) {
      if (std::ranges::find(used, i) != used.end()) continue;
      const Where operand{apply.op->name, i, where};
      std::vector<size_t> now = used;
      now.push_back(i);
      const auto others = [&] { return in_any_order(parts, flow, apply, now, where, next); };
      if (at(parts[used.size()], flow, apply.args[i], &operand, others)) return true;
    }
    return false;
  }

  // Whether the value alone, with what it computes from, is described.
  bool is_described(const GraphPattern& pattern, const DataFlow& flow, const Atom& atom, const Where* where) {
    const size_t before = found_.size();
    const bool described = at(pattern, flow, atom, where, [] { return true; });
    found_.resize(before);  // a success undoes nothing
    return described;
  }

  // The end of a path has matched. A start is a value that matches, to which steps alone lead: backwards from the end,
  // the nearest first. Between start and end lie the steps that depend on the start; that these and the start have no
  // other users makes the end their dominator.
  bool path(const GraphPattern& pattern, const DataFlow& flow, const Atom& end, const Where* where, Next next) {
    const auto* end_var = std::get_if<VarId>(&end);
    const auto producer_of_end = end_var ? flow.producer(*end_var) : std::nullopt;
    if (!producer_of_end) return fail(where, flow, end, [] { return "an operation as the end of a path"; });
    const size_t last = *producer_of_end;
    const auto& bindings = flow.block().bindings;
    std::set<size_t, std::greater<>> reached, open{last};
    while (!open.empty()) {
      const size_t binding = *open.begin();
      open.erase(open.begin());
      for_each_operand(bindings[binding].value, [&](const Atom& atom) {
        const auto* var = std::get_if<VarId>(&atom);
        const auto producer = var ? flow.producer(*var) : std::nullopt;
        if (!producer || !reached.insert(*producer).second) return;
        if (is_described(pattern.parts[1], flow, atom, where)) open.insert(*producer);
      });
    }
    const Where inner{"the path", 0, where};
    return std::ranges::any_of(reached, [&](size_t start) {
      return at(pattern.parts[0], flow, bindings[start].var, &inner, [&] {
        std::vector<bool> depends(bindings.size());
        depends[start] = true;
        std::vector<size_t> steps;
        for (size_t i = start + 1; i < last; ++i) {
          for_each_operand(bindings[i].value, [&](const Atom& atom) {
            const auto* var = std::get_if<VarId>(&atom);
            const auto producer = var ? flow.producer(*var) : std::nullopt;
            if (producer && depends[*producer]) depends[i] = true;
          });
          if (depends[i] && reached.contains(i)) steps.push_back(i);
        }
        if (steps.size() > kMaxPathSteps) {
          return fail(where, fmt::format("a path of at most {} steps", kMaxPathSteps), fmt::format("{}", steps.size()));
        }
        return all_steps(pattern.parts[1], flow, steps, &inner, next);
      });
    });
  }

  bool all_steps(const GraphPattern& step, const DataFlow& flow, std::span<const size_t> steps, const Where* where,
                 Next next) {
    if (steps.empty()) return next();
    return at(step, flow, flow.block().bindings[steps.front()].var, where,
              [&] { return all_steps(step, flow, steps.subspan(1), where, next); });
  }

  bool has_type(const TypePattern& wanted, const DataFlow& flow, const Atom& atom, const Where* where) {
    const auto type = type_of(flow, atom);
    const auto refuse = [&] { return fail(where, flow, atom, [&] { return to_string(typed(any(), wanted)); }); };
    if (!type || (wanted.dtype && type->dtype != *wanted.dtype)) return refuse();
    if (wanted.sizes) {
      if (wanted.sizes->size() != type->sizes.size()) return refuse();
      for (size_t i = 0; i < type->sizes.size(); ++i) {
        const SizePattern& size = (*wanted.sizes)[i];
        if (size.size && type->sizes[i].number != size.size) return refuse();
        if (size.name.empty()) continue;
        if (const Size* same = named_size(size.name); same && *same != type->sizes[i]) return refuse();
        sizes_.push_back({&size.name, type->sizes[i]});
      }
    }
    for (const SizeCondition& condition : wanted.conditions) conditions_.push_back(&condition);
    // A size that a later operand names is compared when it is there.
    const bool possible = std::ranges::all_of(
        conditions_, [&](const SizeCondition* condition) { return holds_now(*condition).value_or(true); });
    return possible || refuse();
  }

  const Size* named_size(std::string_view name) const {
    const auto named = std::ranges::find_if(sizes_, [&](const NamedSize& s) { return *s.name == name; });
    return named == sizes_.end() ? nullptr : &named->size;
  }

  // nullopt where a size has no value yet.
  std::optional<bool> holds_now(const SizeCondition& condition) const {
    const Size* a = named_size(condition.name);
    const Size number{.number = condition.bound.size, .dim = {}};
    const Size* b = condition.bound.size ? &number : named_size(condition.bound.name);
    if (!a || !b) return std::nullopt;
    return a->number && b->number && holds(condition.relation, *a->number, *b->number);
  }

  static std::optional<Typed> type_of(const DataFlow& flow, const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) {
      const TensorType* type = flow.function().type(*var).tensor();
      if (!type) return std::nullopt;
      Typed result{.dtype = type->dtype, .sizes = {}};
      for (const Dim dim : type->dims) {
        const auto number = dim.constant();
        result.sizes.push_back({number, number ? Dim() : dim});
      }
      return result;
    }
    const auto* id = std::get_if<ConstId>(&atom);
    if (!id) return std::nullopt;
    const runtime::Tensor& tensor = flow.module().constant(*id);
    Typed result{.dtype = tensor.dtype(), .sizes = {}};
    for (const int64_t size : tensor.shape()) result.sizes.push_back({size, {}});
    return result;
  }

  bool is_equal(const Capture& capture, const DataFlow& flow, const Atom& atom) const {
    const auto *a = std::get_if<ConstId>(&capture.value), *b = std::get_if<ConstId>(&atom);
    if (a && b) return *a == *b || flow.module().constant(*a) == flow.module().constant(*b);
    return capture.function == &flow.function() && capture.value == atom;
  }

  const DataFlow& inside(const Function& function, const Block& block) {
    auto& flow = inner_[&block];
    if (!flow) flow = std::make_unique<DataFlow>(flow_.context(), flow_.module(), function, block);
    return *flow;
  }

  // Every value has matched: every use of an interior value must be inside the match.
  bool finish() {
    if (found_.empty()) return false;
    for (const SizeCondition* condition : conditions_) {
      if (holds_now(*condition).value_or(false)) continue;
      return fail(nullptr, fmt::format("a value with the size {}", condition->name), "none in the match");
    }
    for (const auto& [binding, where] : found_) {
      if (binding == root_) continue;
      const VarId var = flow_.block().bindings[binding].var;
      uint32_t inside = 0;
      for (const Found& other : found_) {
        for_each_operand(flow_.block().bindings[other.binding].value,
                         [&](const Atom& atom) { inside += atom == Atom(var) ? 1 : 0; });
      }
      if (inside != flow_.uses(var)) {
        return fail(where, flow_, var, [&] { return without_users(flow_.block().bindings[binding].value); });
      }
    }
    made_ = {};
    for (const Found& found : found_) made_.bindings.push_back(found.binding);
    std::ranges::sort(made_.bindings);
    for (const Capture& capture : captures_) made_.captures.emplace(*capture.name, capture.value);
    return accept_(made_);
  }

  static std::string without_users(const Value& value) {
    return fmt::format("{} without users outside of the match", form_of(value));
  }

  // Keeps the failure if it is the deepest one. `required()` is the text of what the pattern requires: most attempts
  // fail at the root, and need none.
  template <class Required>
  bool fail(const Where* where, const DataFlow& flow, const Atom& atom, Required&& required) {
    if (!is_deepest(where)) return false;
    std::string found = "a constant";
    if (const auto* var = std::get_if<VarId>(&atom)) {
      const VarInfo& info = flow.function().info(*var);
      const std::string_view name = flow.context().name(info.name);
      const auto producer = flow.producer(*var);
      found = producer ? std::string(form_of(flow.block().bindings[*producer].value)) : "a value from outside";
      if (!name.empty()) found += fmt::format(" %{}", name);
      found += fmt::format(" of type {}", flow.context().str(info.type));
    } else if (std::holds_alternative<Symbol>(atom)) {
      found = "a global";
    }
    return fail(where, std::string(required()), std::move(found));
  }
  bool fail(const Where* where, std::string required, std::string found) {
    if (!is_deepest(where)) return false;
    deepest_ = {
        .bindings = {}, .at = where ? where->str() : "", .required = std::move(required), .found = std::move(found)};
    for (const Found& each : found_) deepest_->bindings.push_back(each.binding);
    depth_ = where ? where->depth() : 0;
    return false;
  }
  // The first of the failures with the most values matched, and the deepest operand of these.
  bool is_deepest(const Where* where) const {
    if (found_.empty() || steps_ > kMaxMatchSteps) return false;
    if (!deepest_) return true;
    const size_t depth = where ? where->depth() : 0;
    return std::pair(found_.size(), depth) > std::pair(deepest_->bindings.size(), depth_);
  }

  const DataFlow& flow_;
  size_t root_;
  const std::vector<bool>& taken_;
  FunctionRef<bool(const Match&)> accept_;
  int steps_ = 0;
  std::vector<Found> found_;
  std::vector<Capture> captures_;
  std::vector<NamedSize> sizes_;
  std::vector<const SizeCondition*> conditions_;  // of the types that matched
  std::map<const Block*, std::unique_ptr<DataFlow>> inner_;
  std::optional<MatchFailure> deepest_;
  size_t depth_ = 0;  // of the deepest failure's operand
  Match made_;
};

}  // namespace

std::string MatchFailure::str() const {
  return fmt::format("requires {}{}{}, found {}", required, at.empty() ? "" : " as ", at, found);
}

DataFlow::DataFlow(const Context& context, const Module& module, const Function& function, const Block& block)
    : context_(&context),
      module_(&module),
      function_(&function),
      block_(&block),
      producers_(function.vars.size(), SIZE_MAX),
      uses_(function.vars.size()),
      last_uses_(function.vars.size()) {
  for (size_t i = 0; i < block.bindings.size(); ++i) producers_[index(block.bindings[i].var)] = i;
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    const auto use = [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      if (!var) return;
      ++uses_[index(*var)];
      last_uses_[index(*var)] = i;
    };
    for_each_operand(block.bindings[i].value, use);
    for_each_block(block.bindings[i].value, [&](const Block& inner) { for_each_use(inner, use); });
  }
  if (const auto* var = std::get_if<VarId>(&block.result)) {
    ++uses_[index(*var)];
    last_uses_[index(*var)] = block.bindings.size();
  }
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

Expected<MatchResult> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                            const std::vector<bool>& taken, FunctionRef<bool(const Match&)> accept) {
  return Matcher(flow, root, taken, accept).run(pattern);
}

Expected<MatchResult> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                            const std::vector<bool>& taken) {
  return match(pattern, flow, root, taken, [](const Match&) { return true; });
}

}  // namespace tenon::compiler
