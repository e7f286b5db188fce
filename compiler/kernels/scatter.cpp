// Scatters: updates at computed indices.
//
// Combining updates are a reduction over the updates into elements at computed indices. Where the last update wins, its
// index is found first by a maximum, so that the result itself can be computed in any order.
#include "compiler/kernels/indices.h"
#include "compiler/kernels/lowerings.h"
#include "support/function_ref.h"

namespace tenon::compiler::kernels {
namespace {

// A copy of the tensor that may be updated.
LazyTensor mutable_copy(const OperatorCall& op, LazyTensor x) {
  x.buffer.reset(), x.constant.reset();
  return op.emit.stored("y", x);
}

Dims concatenated(Dims first, const Dims& tail) {
  first.insert(first.end(), tail.begin(), tail.end());
  return first;
}

Expr combined(const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  return reduction == "max" ? maximum(old, update) : minimum(old, update);
}

// A table of the index of the last update of each element, -1 where there is none.
LazyTensor last_update_table(const OperatorCall& op, Dims dims) {
  return op.emit.overwritten("last", std::move(dims), loop::integer_literal(DType::kI64, -1));
}
// The update with this index, or the old element where the index is negative.
Expr updated_or(const OperatorCall& op, const Expr& update_index, Dim count, const Expr& old,
                FunctionRef<Expr(Dim update_index)> update) {
  return select(below(update_index, 0), old, op.emit.at_index(update_index, count, update));
}

// Updates of the same element differ in their index along the axis only.
LoweredResults scatter_elements(const OperatorCall& op) {
  Emitter& emit = op.emit;
  const std::string& reduction = op.text("reduction");
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const LazyTensor& x = op.arg(0);
  const LazyTensor indices = emit.stored("at", op.arg(1)), updates = emit.stored("updates", op.arg(2));
  const Dim length = x.dims[axis], count = updates.dims[axis];
  const auto change = [&](std::string_view name, const LazyTensor& y, const auto& value) {
    emit.update(name, y, without(updates.dims, axis), {count}, [&](const Dims& at) {
      const auto [others, update_index] = split_at(at, at.size() - 1);
      const Dims from = with(others, axis, update_index[0]);
      return Emitter::Update{.computed = {{indices.at(from), length}},
                             .index = [=](const Dims& found) { return with(others, axis, found[0]); },
                             .value = [=](const Expr& old) { return value(old, from); }};
    });
  };
  if (reduction != "none") {
    const LazyTensor y = mutable_copy(op, x);
    change("scatter", y, [=](const Expr& old, const Dims& at) { return combined(reduction, old, updates.at(at)); });
    return std::vector{y};
  }
  const LazyTensor last = last_update_table(op, x.dims);
  change("find_last", last, [=](const Expr& old, const Dims& at) {
    return loop::binary(BinaryOp::kMax, old, loop::index_value(at[axis]));
  });
  return op.expression([=](const Dims& at) {
    return updated_or(op, last.at(at), count, x.at(at),
                      [&](Dim update_index) { return updates.at(with(without(at, axis), axis, update_index)); });
  });
}

// Each update is a slice of x at a tuple of indices.
LoweredResults scatter_nd(const OperatorCall& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const std::string& reduction = op.text("reduction");
  const LazyTensor& x = op.arg(0);
  const LazyTensor indices = emit.stored("at", op.arg(1)), updates = emit.stored("updates", op.arg(2));
  const auto depth = static_cast<size_t>(*indices.dims.back().constant());  // guaranteed by type inference
  const auto [tuples, part] = split_at(updates.dims, indices.rank() - 1);
  const auto computed = [=, &emit](const Dims& tuple) {
    std::vector<std::pair<Expr, Dim>> indices_with_extents;
    for (size_t k = 0; k < depth; ++k)
      indices_with_extents.emplace_back(indices.at(concatenated(tuple, {emit.dim(static_cast<int64_t>(k))})),
                                        x.dims[k]);
    return indices_with_extents;
  };
  if (reduction != "none") {
    const LazyTensor y = mutable_copy(op, x);
    emit.update("scatter", y, part, tuples, [&](const Dims& at) {
      const auto [tail, tuple] = split_at(at, part.size());
      return Emitter::Update{
          .computed = computed(tuple),
          .index = [=](const Dims& found) { return concatenated(found, tail); },
          .value = [=](const Expr& old) { return combined(reduction, old, updates.at(concatenated(tuple, tail))); }};
    });
    return std::vector{y};
  }
  // The index of an update is the row-major index of its tuple. Without tuples the result is x.
  if (is_empty(tuples)) return std::vector{x};
  const LazyTensor last = last_update_table(op, split_at(x.dims, depth).first);
  emit.update("find_last", last, {}, tuples, [&](const Dims& tuple) {
    Dim update_index = emit.dim(0);
    for (size_t d = 0; d < tuple.size(); ++d)
      update_index = context.add(context.multiply(update_index, tuples[d]), tuple[d]);
    return Emitter::Update{
        .computed = computed(tuple),
        .index = [](const Dims& found) { return found; },
        .value = [=](const Expr& old) { return loop::binary(BinaryOp::kMax, old, loop::index_value(update_index)); }};
  });
  return op.expression([=, &context](const Dims& at) {
    const auto [element, tail] = split_at(at, depth);
    return updated_or(op, last.at(element), context.product(tuples), x.at(at), [&](Dim update_index) {
      Dims tuple(tuples.size());
      for (size_t d = tuples.size(); d-- > 0; update_index = context.floor_divide(update_index, tuples[d]))
        tuple[d] = d == 0 ? update_index : context.modulo(update_index, tuples[d]);
      return updates.at(concatenated(tuple, tail));
    });
  });
}

}  // namespace

std::span<const Lowering> scatter_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kScatterElements, scatter_elements},
      {ops::kScatterNd, scatter_nd},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
