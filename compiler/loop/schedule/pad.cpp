// The primitive pad: rounds the size of an axis up, so that loops over it need no guards.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/builder.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

struct Padding {
  Symbol axis{};
  Dim size, padded;
};

// Makes the loops run to the padded size: extends the axis's loop, or its guard.
Status widen_loops(TypeContext& context, const Path& path, Stage& stage, const Axis& axis, const Padding& padding) {
  std::map<Symbol, Dim> values;
  for (const Axis& other : stage.axes) values[other.var] = other.value;
  const Dim size = context.substitute(padding.size, values), padded = context.substitute(padding.padded, values);
  const auto guard = std::ranges::find(stage.where, Guard{axis.value, size});
  if (guard != stage.where.end()) {
    const auto covered = interval_of(context, axis.value, all_loops(path));
    if (!covered || DimProver(context).less(context.subtract(padded, context.dim(1)),
                                            context.add(covered->hi, context.dim(1))) != Answer::kYes)
      return error(fmt::format("the loops of '{}' do not cover {}", context.name(axis.var), context.str(padded)), {},
                   "split by the same factor");
    guard->right = padded;
    if (always_below(context, guard->left, guard->right, all_loops(path))) stage.where.erase(guard);
    return {};
  }
  const auto var = axis.value.variable();
  const auto step = var ? path.loop(*var) : std::nullopt;
  const bool has_loop = step && path.loop_at(*step).extent == size && root_of(path) <= *step;
  if (!has_loop)
    return error(fmt::format("'{}' has neither a loop of its own nor a guard", context.name(axis.var)), {},
                 "pad before the loop is split, or split by a factor that may not divide it");
  if (path.loop_at(*step).kind != LoopKind::kSerial)
    return error(fmt::format("the loop '{}' has a loop kind already", context.name(*var)), {},
                 "pad before the loop's kind is set");
  path.loop_at(*step).extent = padded;
  return {};
}

// Whether the index stays inside the buffer while the axis runs to its padded size: because it is the axis plus a
// constant, or at every point of the loops.
bool stays_inside(TypeContext& context, const Function& function, const Path& path, const Padding& padding,
                  const Access& access, size_t position) {
  const For run{.var = padding.axis, .extent = padding.padded, .kind = {}, .body = {}};
  const Dim size = extent_at(context, function.buffer(access.buffer), position, access.indices);
  const Dim last = context.add(access.indices[position], context.dim(access.size(position) - 1));
  const auto index = offset_index(access.indices, padding.axis);
  if (index && index->position == position && always_below(context, last, size, {&run})) return true;
  const Dims ends = over_loops(context, path.stage(), {last, size, access.indices[position]});
  return always_below(context, ends[0], ends[1], all_loops(path)) &&
         always_below(context, context.dim(-1), ends[2], all_loops(path));
}

// Whether stages write the buffer up to the end of the axis, as nothing does where align_storage made it larger, and
// one of several parts of a split loop where it alone was padded.
bool is_written_to_end(TypeContext& context, const Function& function, BufferId id, size_t position) {
  const Buffer& buffer = function.buffer(id);
  bool to_end = true;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* stage = std::get_if<Stage>(&stmt.form);
    if (!stage) return;
    for_each_access(*stage, [&](const Access& access) {
      if (!access.writes || access.buffer != id) return;
      const auto axis = std::ranges::find_if(
          stage->axes, [&](const Axis& candidate) { return access.indices[position].variable() == candidate.var; });
      to_end &= axis == stage->axes.end() || axis->extent == extent_at(context, buffer, position, access.indices);
    });
  });
  return to_end;
}

// Whether the element that is read exists and was written while the axis runs to its padded size.
bool reads_inside(TypeContext& context, const Function& function, const Path& path, const Padding& padding,
                  const Access& access, size_t position) {
  return stays_inside(context, function, path, padding, access, position) &&
         is_written_to_end(context, function, access.buffer, position);
}

// Whether the element is a zero that another padding added, wherever the axis exceeds its size.
bool reads_zero(const Function& function, const Padding& padding, const Load& load) {
  const auto axis_index = offset_index(load.indices, padding.axis);
  if (!axis_index || axis_index->offset != 0 || axis_index->fold != 0) return false;
  bool zero = false;
  size_t writers = 0;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* stage = std::get_if<Stage>(&stmt.form);
    const auto* store = stage && stage->body.size() == 1 ? std::get_if<Store>(&stage->body[0].form) : nullptr;
    bool writes = false;
    if (stage)
      for_each_access(*stage, [&](const Access& access) { writes |= access.writes && access.buffer == load.buffer; });
    writers += writes;
    const auto* select = writes && store ? std::get_if<Select>(&store->value->form) : nullptr;
    const auto* below = select ? std::get_if<Binary>(&select->condition->form) : nullptr;
    const auto* fill = select ? std::get_if<Literal>(&select->otherwise->form) : nullptr;
    if (!below || below->op != BinaryOp::kLess || !fill || fill->real != 0 || fill->integer != 0) return;
    const auto* index = std::get_if<IndexValue>(&below->left->form);
    const auto* end = std::get_if<IndexValue>(&below->right->form);
    zero |= index && end && end->value == padding.size && store->indices[axis_index->position] == index->value &&
            index->value.variable().has_value();
  });
  return zero && writers == 1;
}

// Whether the value is zero wherever the axis exceeds its size.
bool is_zero(const Function& function, const Padding& padding, const Expr& value) {
  if (const auto* load = std::get_if<Load>(&value->form)) return reads_zero(function, padding, *load);
  if (const auto* converted = std::get_if<Convert>(&value->form)) return is_zero(function, padding, converted->value);
  const auto* both = std::get_if<Binary>(&value->form);
  if (!both || (both->op != BinaryOp::kMultiply && !is_dot(both->op))) return false;
  // For floats both factors must be zero: inf * 0 and NaN * 0 are NaN.
  const bool left = is_zero(function, padding, both->left), right = is_zero(function, padding, both->right);
  return is_float(value->dtype) ? left && right : left || right;
}

Expr is_within(const Padding& padding, TypeContext& context) {
  return binary(BinaryOp::kLess, index_value(context.dim(padding.axis)), index_value(padding.size));
}
Expr within(const Padding& padding, TypeContext& context, Expr value, Expr otherwise) {
  return select(is_within(padding, context), std::move(value), std::move(otherwise));
}

// Whether the condition has a part that says index < size.
bool implies_below(const Expr& condition, Dim index, Dim size) {
  const auto* both = std::get_if<Binary>(&condition->form);
  if (!both) return false;
  if (both->op == BinaryOp::kAnd)
    return implies_below(both->left, index, size) || implies_below(both->right, index, size);
  const auto *left = std::get_if<IndexValue>(&both->left->form), *right = std::get_if<IndexValue>(&both->right->form);
  return both->op == BinaryOp::kLess && left && right && left->value == index && right->value == size;
}

// Whether the value may be undefined for zeros instead of loaded elements.
bool may_fail(const Expr& value) {
  bool found = false;
  for_each_node(value, [&](const ExprNode& node) {
    found |= std::holds_alternative<LetIndex>(node.form);
    if (const auto* cast = std::get_if<Convert>(&node.form))
      found |= is_float(cast->value->dtype) && !is_float(node.dtype) && node.dtype != DType::kBool;
    const auto* both = std::get_if<Binary>(&node.form);
    if (both && !is_float(node.dtype)) found |= both->op == BinaryOp::kDivide || both->op == BinaryOp::kRemainder;
  });
  return found;
}

// The loads of a value that the padded points may read.
class PaddedLoads {
 public:
  PaddedLoads(TypeContext& context, const Function& function, const Path& path, const Padding& padding, BufferId to)
      : context_(context), function_(function), path_(path), padding_(padding), to_(to) {}

  // The value with loads of existing elements alone: a load that may leave its buffer is not executed beyond the size.
  Expr guarded(const Expr& value) {
    return rewrite(value, [&](const ExprNode& node) -> Expr {
      if (const auto* select = std::get_if<Select>(&node.form)) {
        // The load is a Select by now, since operands are rewritten first.
        const auto* guard = std::get_if<Select>(&select->then->form);
        const auto* load = guard ? std::get_if<Load>(&guard->then->form) : nullptr;
        if (!load || !equal(guard->condition, is_within(padding_, context_))) return nullptr;
        Expr condition = select->condition;
        if (!stays_inside_where(condition, *load)) condition = binary(BinaryOp::kAnd, condition, guard->condition);
        return loop::select(condition, guard->then, select->otherwise);
      }
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer == to_ || stays_inside_where({}, *load)) return nullptr;
      return within(padding_, context_, loop::load(function_, load->buffer, load->indices), literal(node.dtype, 0));
    });
  }

 private:
  bool stays_inside_where(const Expr& condition, const Load& load) {
    const Access access{.buffer = load.buffer, .writes = false, .indices = load.indices, .sizes = {}};
    for (size_t i = 0; i < load.indices.size(); ++i) {
      const bool is_inside =
          !mentions({&load.indices[i], 1}, padding_.axis) ||
          reads_inside(context_, function_, path_, padding_, access, i) ||
          (condition && implies_below(condition, load.indices[i],
                                      extent_at(context_, function_.buffer(load.buffer), i, load.indices)));
      if (!is_inside) return false;
    }
    return true;
  }

  TypeContext& context_;
  const Function& function_;
  const Path& path_;
  const Padding& padding_;
  const BufferId to_;
};

}  // namespace

Expected<Function> pad(TypeContext& context, Function function, Symbol stage, Symbol axis, int64_t multiple,
                       int64_t more) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  Stage& target = path->stage();
  const auto found = std::ranges::find(target.axes, axis, &Axis::var);
  const std::string name(context.name(axis));
  if (found == target.axes.end())
    return error(fmt::format("the stage '{}' has no axis '{}'", context.name(stage), name));
  if (found->kind != AxisKind::kSpatial && found->kind != AxisKind::kReduce)
    return error(fmt::format("'{}' is neither a spatial axis nor a reduction", name));
  const bool reduction = found->kind == AxisKind::kReduce;
  const Dim least = context.add(found->extent, context.dim(more));
  const Padding padding{axis, found->extent,
                        context.multiply(context.ceil_divide(least, multiple), context.dim(multiple))};
  if (more == 0 && DimProver(context).divides(context.dim(multiple), padding.size) == Answer::kYes)
    return error(
        fmt::format("the size {} of '{}' is already a multiple of {}", context.str(padding.size), name, multiple));
  for (const Axis& other : target.axes) {
    if (mentions({&other.extent, 1}, axis) || (&other == &*found && !padding.padded.valid()))
      return error(fmt::format("the size of '{}' depends on '{}'", context.name(other.var), name));
    if (other.kind == AxisKind::kScan) return error(fmt::format("'{}' is a scan axis", context.name(other.var)));
  }
  const auto* store = target.body.size() == 1 ? std::get_if<Store>(&target.body[0].form) : nullptr;
  const bool simple = store && std::ranges::all_of(target.init, [&](const Stmt& stmt) {
                        return std::holds_alternative<Store>(stmt.form);
                      });
  if (!simple) return error(fmt::format("the stage '{}' is more than one assignment", context.name(stage)));
  TENON_TRY(widen_loops(context, *path, target, *found, padding));

  // The buffer grows, unless it contains the new points already.
  const BufferId to = store->buffer;
  for (size_t i = 0; i < store->indices.size(); ++i) {
    if (reduction || !mentions({&store->indices[i], 1}, axis)) continue;
    BufferAxis& size = function.buffers[index(to)].axes[i];
    const Access write{.buffer = to, .writes = true, .indices = store->indices, .sizes = {}};
    const bool ragged = is_ragged(function.buffer(to), i);
    if (!ragged && store->indices[i] == context.dim(axis) && size.extent == padding.size &&
        find_alloc(function.body, to)) {
      size.extent = padding.padded;
    } else if (!stays_inside(context, function, *path, padding, write, i)) {
      return error(fmt::format("{} is not large enough for the padded axis, at {}", local(context, function, to),
                               context.str(store->indices)),
                   {},
                   ragged ? fmt::format("round the sizes of its rows up before: align_storage({}, {}, {})",
                                        context.name(function.buffer(to).name), i, multiple)
                          : "");
    }
  }
  for (const Use& use : uses_of(context, function.body, to)) {
    if (!use.stage && !reduction)
      return error(fmt::format("{} is used by an if, a let or a library", local(context, function, to)));
  }

  // The elements that the new points read must exist.
  bool inside = true;
  for_each_access(target, [&](const Access& access) {
    for (size_t i = 0; i < access.indices.size(); ++i) {
      if (!access.writes && mentions({&access.indices[i], 1}, axis))
        inside &= access.buffer == to || reads_inside(context, function, *path, padding, access, i);
    }
  });
  const DType dtype = function.buffer(to).dtype;
  found->extent = padding.padded;
  if (reduction) {
    const auto* sum = std::get_if<Binary>(&store->value->form);
    const Expr before = load(function, to, store->indices);
    const bool adds = sum && sum->op == BinaryOp::kAdd && equal(sum->left, before);
    if (!(inside && adds && is_zero(function, padding, sum->right)))
      target.body[0] = Stmt{Store{to, store->indices, within(padding, context, store->value, before)}};
    return function;
  }
  const bool copies = target.init.empty();
  if (inside && !copies) return function;
  PaddedLoads loads(context, function, *path, padding, to);
  for (Body* body : {&target.init, &target.body}) {
    for (Stmt& stmt : *body) {
      auto& assignment = std::get<Store>(stmt.form);
      // A copy's new elements are zeros, and those of sums any values, which are not read.
      assignment.value = copies || may_fail(assignment.value)
                             ? within(padding, context, assignment.value, literal(dtype, 0))
                             : loads.guarded(assignment.value);
    }
  }
  return function;
}

}  // namespace tenon::compiler::loop
