// Primitives that split and join iteration ranges of loops: partition, fill, hfuse.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The iterations of a loop for which a guard always holds: from `first` on, and below `end`.
struct Holds {
  std::optional<Dim> first, end;
};

// Solves guards such as c*loop + offset < bound: all terms are moved to the left side, whose largest value is compared
// with zero.
std::optional<Holds> where_it_holds(TypeContext& context, const For& loop, const Guard& guard,
                                    const std::vector<const For*>& inner) {
  const auto difference = interval_of(context, context.subtract(guard.left, guard.right), inner);
  const auto linear = difference ? context.linear_in(loop.var, difference->hi) : std::nullopt;
  const auto factor = linear ? linear->first.constant() : std::nullopt;
  if (!factor || *factor == 0) return std::nullopt;
  // factor*loop + offset <= -1
  const Dim room = context.subtract(context.dim(-1), linear->second);
  if (*factor > 0)
    return Holds{std::nullopt, context.add(context.floor_divide(room, context.dim(*factor)), context.dim(1))};
  const Dim need = context.subtract(context.dim(0), room);
  return Holds{context.floor_divide(context.add(need, context.dim(-*factor - 1)), context.dim(-*factor)), std::nullopt};
}

struct Cut {
  Dim first, end;  // the range in which all guards hold
  bool head = false, tail = false;
  std::vector<std::pair<Symbol, Guard>> proved;       // stages and their guards that hold in the range
  std::vector<std::pair<Symbol, Guard>> comparisons;  // of indices, over the axes of the stages

  bool empty() const { return proved.empty() && comparisons.empty(); }
};

// A comparison of two indices, as the condition left < right.
std::optional<Guard> as_guard(TypeContext& context, const ExprNode& node) {
  const auto* comparison = std::get_if<Binary>(&node.form);
  if (!comparison || (comparison->op != BinaryOp::kLess && comparison->op != BinaryOp::kLessEqual)) return std::nullopt;
  const auto* left = std::get_if<IndexValue>(&comparison->left->form);
  const auto* right = std::get_if<IndexValue>(&comparison->right->form);
  if (!left || !right) return std::nullopt;
  const bool strict = comparison->op == BinaryOp::kLess;
  return Guard{left->value, strict ? right->value : context.add(right->value, context.dim(1))};
}

// The comparisons of indices in the conditions of selects.
std::vector<Guard> selected_by(TypeContext& context, const Stage& stage) {
  std::vector<Guard> found;
  for (const Stmt& stmt : stage.body) {
    const auto* store = std::get_if<Store>(&stmt.form);
    if (!store) continue;
    for_each_node(store->value, [&](const ExprNode& node) {
      const auto* selection = std::get_if<Select>(&node.form);
      if (!selection) return;
      for_each_node(selection->condition, [&](const ExprNode& part) {
        const auto guard = as_guard(context, part);
        if (guard && std::ranges::find(found, *guard) == found.end()) found.push_back(*guard);
      });
    });
  }
  return found;
}

// The expression where these comparisons hold.
Expr decided(TypeContext& context, const Expr& expr, const std::vector<Guard>& holding) {
  const auto is_true = [](const Expr& value) {
    const auto* constant = std::get_if<Literal>(&value->form);
    return constant && value->dtype == DType::kBool && constant->integer != 0;
  };
  return rewrite(expr, [&](const ExprNode& node) -> Expr {
    if (const auto guard = as_guard(context, node); guard && std::ranges::find(holding, *guard) != holding.end())
      return integer_literal(DType::kBool, 1);
    const auto* both = std::get_if<Binary>(&node.form);
    if (both && both->op == BinaryOp::kAnd) {
      if (is_true(both->left)) return both->right;
      if (is_true(both->right)) return both->left;
    }
    const auto* selection = std::get_if<Select>(&node.form);
    return selection && is_true(selection->condition) ? selection->then : nullptr;
  });
}

Expected<Cut> find_cut(TypeContext& context, const Function& function, const Path& path, size_t step) {
  For& loop = path.loop_at(step);
  Cut cut{.first = context.dim(0), .end = loop.extent, .head = false, .tail = false, .proved = {}, .comparisons = {}};
  const std::set<Symbol> outside = outside_variables(function, path, step);
  std::vector<const For*> inner;
  const std::function<void(Stmt&)> visit = [&](Stmt& stmt) {
    if (auto* deeper = std::get_if<For>(&stmt.form)) inner.push_back(deeper);
    // Cuts where the condition begins and ceases to hold, and returns whether that is possible.
    const auto cut_at = [&](const Guard& guard) {
      const Dim both[] = {guard.left, guard.right};
      if (!mentions(both, loop.var)) return false;
      const auto holds = where_it_holds(context, loop, guard, inner);
      bool usable = holds.has_value();
      if (holds) {
        for_each_variable(holds->first.value_or(holds->end.value_or(Dim{})),
                          [&](Symbol var) { usable &= outside.contains(var) && var != loop.var; });
      }
      if (!usable) return false;
      if (holds->first)
        cut.first = cut.head ? context.maximum({cut.first, *holds->first}) : *holds->first, cut.head = true;
      if (holds->end) cut.end = cut.tail ? context.minimum({cut.end, *holds->end}) : *holds->end, cut.tail = true;
      return true;
    };
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
      for (const Guard& guard : stage->where)
        if (cut_at(guard)) cut.proved.emplace_back(stage->name, guard);
      for (const Guard& comparison : selected_by(context, *stage)) {
        const Dims ends = over_loops(context, *stage, {comparison.left, comparison.right});
        if (cut_at({ends[0], ends[1]})) cut.comparisons.emplace_back(stage->name, comparison);
      }
      return;
    }
    for_each_body(stmt, [&](Body& body) { std::ranges::for_each(body, visit); });
    if (std::holds_alternative<For>(stmt.form)) inner.pop_back();
  };
  std::ranges::for_each(loop.body, visit);
  if (cut.empty())
    return error(fmt::format("no guard inside '{}' holds for a whole range of its iterations", context.name(loop.var)));
  // 0 <= first <= end <= extent
  const DimProver prover(context);
  auto at_least = [&](Dim a, Dim b) {
    if (prover.less_equal(b, a) == Answer::kYes) return a;
    return prover.less_equal(a, b) == Answer::kYes ? b : context.maximum({a, b});
  };
  auto at_most = [&](Dim a, Dim b) {
    if (prover.less_equal(a, b) == Answer::kYes) return a;
    return prover.less_equal(b, a) == Answer::kYes ? b : context.minimum({a, b});
  };
  cut.first = at_most(at_least(cut.first, context.dim(0)), loop.extent);
  cut.end = at_most(at_least(cut.end, cut.first), loop.extent);
  for (Dim end : {cut.first, cut.end})
    if (!end.valid())
      return error(
          fmt::format("the range in which the guards of '{}' hold cannot be expressed", context.name(loop.var)));
  return cut;
}

}  // namespace

Expected<Function> partition(TypeContext& context, Function function, Symbol stage, Symbol loop) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  const For whole = path->loop_at(*step);
  if (whole.kind == LoopKind::kVectorized || whole.kind == LoopKind::kUnrolled)
    return error(fmt::format("the loop '{}' has a loop kind already", context.name(loop)), {},
                 "partition the loop before its kind is set");
  TENON_TRY_ASSIGN(cut, find_cut(context, function, *path, *step));
  // The iterations from `first` to `end`; all ranges but the middle one are copies.
  auto subrange = [&](Dim first, Dim end, const std::string& suffix) {
    For part = whole;
    if (!suffix.empty()) part.body = copy_of(context, function, whole.body, suffix);
    part.extent = context.subtract(end, first);
    if (first != context.dim(0)) {
      part.var =
          fresh(context, function, fmt::format("{}_{}", context.name(whole.var), suffix.empty() ? "full" : suffix));
      for (Stmt& stmt : part.body)
        substitute(context, function, stmt, {{whole.var, context.add(first, context.dim(part.var))}});
    }
    return part;
  };
  const auto has_iterations = [&](Dim first, Dim end) { return context.subtract(end, first).constant() != 0; };
  std::vector<Stmt> parts;
  if (cut->head && has_iterations(context.dim(0), cut->first))
    parts.push_back({subrange(context.dim(0), cut->first, "head")});
  const Symbol var = whole.var;
  For& middle = path->loop_at(*step);
  for (Stmt& stmt : middle.body) {
    for_each_stage(stmt, [&](Stage& inside) {
      std::erase_if(inside.where, [&](const Guard& guard) {
        return std::ranges::find(cut->proved, std::pair{inside.name, guard}) != cut->proved.end();
      });
      std::vector<Guard> holding;
      for (const auto& [name, comparison] : cut->comparisons)
        if (name == inside.name) holding.push_back(comparison);
      if (holding.empty()) return;
      for_each_expr(inside, [&](Expr& expr) { expr = decided(context, expr, holding); });
    });
  }
  middle.extent = context.subtract(cut->end, cut->first);
  if (cut->first != context.dim(0)) {
    middle.var = fresh(context, function, fmt::format("{}_full", context.name(var)));
    for (Stmt& stmt : middle.body)
      substitute(context, function, stmt, {{var, context.add(cut->first, context.dim(middle.var))}});
  }
  const bool has_tail = cut->tail && has_iterations(cut->end, whole.extent);
  if (has_iterations(cut->first, cut->end) || (parts.empty() && !has_tail)) parts.push_back({std::move(middle)});
  if (has_tail) parts.push_back({subrange(cut->end, whole.extent, "tail")});
  const Path::Step original = path->steps[*step];
  erase(original);
  original.body->insert(original.body->begin() + static_cast<ptrdiff_t>(original.index),
                        std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  return function;
}

namespace {

// The comparisons that a condition is the conjunction of; nothing where it is none.
std::optional<std::vector<Guard>> conjunction(TypeContext& context, const Expr& condition) {
  if (const auto guard = as_guard(context, *condition)) return std::vector{*guard};
  const auto* both = std::get_if<Binary>(&condition->form);
  if (!both || both->op != BinaryOp::kAnd) return std::nullopt;
  auto left = conjunction(context, both->left), right = conjunction(context, both->right);
  if (!left || !right) return std::nullopt;
  left->insert(left->end(), right->begin(), right->end());
  return left;
}

// A value, the comparisons under which it is selected, and the value where one of them fails.
struct Selected {
  Expr value, otherwise;
  std::vector<Guard> where;
};
std::optional<Selected> selected(TypeContext& context, const Expr& value) {
  const auto* select = std::get_if<Select>(&value->form);
  if (!select || has_loads(select->otherwise)) return std::nullopt;
  auto where = conjunction(context, select->condition);
  if (!where) return std::nullopt;
  auto inner = selected(context, select->then);
  if (!inner) return Selected{select->then, select->otherwise, std::move(*where)};
  where->insert(where->end(), inner->where.begin(), inner->where.end());
  const bool is_same = equal(inner->otherwise, select->otherwise);
  return Selected{inner->value,
                  is_same ? inner->otherwise : loop::select(select->condition, inner->otherwise, select->otherwise),
                  std::move(*where)};
}

}  // namespace

Expected<Function> fill(TypeContext& context, Function function, Symbol stage) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  Stage& target = path->stage();
  const std::string name(context.name(stage));
  auto* store = target.body.size() == 1 && target.init.empty() ? std::get_if<Store>(&target.body[0].form) : nullptr;
  const auto parts = store ? selected(context, store->value) : std::nullopt;
  if (!parts)
    return error(fmt::format("the values of the stage '{}' are not selected by comparisons of indices", name), {},
                 "only a stage of one assignment, as of select(i < n, x[i], 0), can be filled first");
  bool updates = false;
  for_each_access(target, [&](const Access& access) { updates |= !access.writes && access.buffer == store->buffer; });
  if (updates)
    return error(fmt::format("the stage '{}' reads {}, which the other values would overwrite", name,
                             local(context, function, store->buffer)));
  const size_t root = root_of(*path);
  const Body original{path->steps[root].stmt()};
  // The range of each loop in which all comparisons hold.
  for (const Guard& comparison : parts->where) {
    const Dims ends = over_loops(context, target, {comparison.left, comparison.right});
    if (always_below(context, ends[0], ends[1], all_loops(*path))) continue;
    std::optional<size_t> step;
    bool is_one = true;
    for (size_t i = root; i + 1 < path->steps.size(); ++i) {
      if (!path->is_loop(i) || !mentions(ends, path->loop_at(i).var)) continue;
      is_one &= !step && path->loop_at(i).kind == LoopKind::kSerial;
      step = i;
    }
    const auto holds =
        step && is_one ? where_it_holds(context, path->loop_at(*step), {ends[0], ends[1]}, {}) : std::nullopt;
    Dim first = context.dim(0), end = first;
    if (holds) {
      end = path->loop_at(*step).extent;
      if (holds->first) first = context.minimum({context.maximum({*holds->first, first}), end});
      if (holds->end) end = context.maximum({context.minimum({*holds->end, end}), first});
    }
    if (!holds || !first.valid() || !end.valid())
      return error(fmt::format("the comparison {} < {} of the stage '{}' is not one of a loop's range",
                               context.str(comparison.left), context.str(comparison.right), name),
                   {}, "fill the stage before its loops are split, fused or marked");
    For& loop = path->loop_at(*step);
    loop.extent = context.subtract(end, first);
    if (first == context.dim(0)) continue;
    const Symbol var = loop.var;
    for (Stmt& stmt : loop.body) substitute(context, function, stmt, {{var, context.add(first, context.dim(var))}});
  }
  store->value = parts->value;
  Body filled = copy_of(context, function, original, "fill");
  for_each_statement(filled, [&](Stmt& stmt) {
    if (auto* copy = std::get_if<Stage>(&stmt.form)) std::get<Store>(copy->body[0].form).value = parts->otherwise;
  });
  const Path::Step at = path->steps[root];
  at.body->insert(at.body->begin() + static_cast<ptrdiff_t>(at.index), std::move(filled[0]));
  return function;
}

Expected<Function> hfuse(TypeContext& context, Function function, Symbol first, Symbol first_loop, Symbol second,
                         Symbol second_loop) {
  TENON_TRY_ASSIGN(left, find_stage(context, function, first));
  TENON_TRY_ASSIGN(right, find_stage(context, function, second));
  TENON_TRY_ASSIGN(first_step, find_loop(context, *left, first_loop));
  TENON_TRY_ASSIGN(second_step, find_loop(context, *right, second_loop));
  const Path::Step earlier = left->steps[*first_step], later = right->steps[*second_step];
  if (earlier.body != later.body || earlier.index + 1 != later.index)
    return error(fmt::format("the loop '{}' of '{}' does not directly follow '{}' of '{}'", context.name(second_loop),
                             context.name(second), context.name(first_loop), context.name(first)));
  For head = std::move(left->loop_at(*first_step)), tail = std::move(right->loop_at(*second_step));
  if (head.kind != LoopKind::kSerial || tail.kind != LoopKind::kSerial)
    return error("a loop with a loop kind cannot be fused", {}, "fuse the loops before their kinds are set");
  const Symbol both =
      fresh(context, function, fmt::format("{}_{}", context.name(first_loop), context.name(second_loop)));
  const Dim iteration = context.dim(both);
  for (Stmt& stmt : head.body) substitute(context, function, stmt, {{head.var, iteration}});
  for (Stmt& stmt : tail.body)
    substitute(context, function, stmt, {{tail.var, context.subtract(iteration, head.extent)}});
  If branch{.condition = binary(BinaryOp::kLess, index_value(iteration), index_value(head.extent)),
            .then = std::move(head.body),
            .otherwise = std::move(tail.body)};
  For loop{.var = both, .extent = context.add(head.extent, tail.extent), .kind = LoopKind::kSerial, .body = {}};
  loop.body.push_back({std::move(branch)});
  earlier.stmt() = Stmt{std::move(loop)};
  erase(later);
  return function;
}

}  // namespace tenon::compiler::loop
