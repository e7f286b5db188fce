// Updates at places that are computed.
//
// Where updates are combined, each is taken in its turn: a sum over the updates, whose place is an index that is
// computed. Where the last one counts, its number is found first, so that the result itself is written in any order.
#include "compiler/kernels/indices.h"
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// A copy that may be changed.
Value copied(const Operation& op, Value x) {
  x.buffer.reset(), x.constant.reset();
  return op.emit.stored("y", x);
}

Dims joined(Dims first, const Dims& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Expr combined(const std::string& reduction, const Expr& there, const Expr& update) {
  if (reduction == "add") return there + update;
  if (reduction == "mul") return there * update;
  return reduction == "max" ? larger(there, update) : smaller(there, update);
}

// For each place the number of the last update, -1 where there is none.
Value nobody(const Operation& op, Dims dims) {
  return op.emit.overwritten("last", std::move(dims), loop::integer_literal(DType::kI64, -1));
}
// The update of that number, or what was there.
Expr last_or(const Operation& op, const Expr& number, Dim count, const Expr& there,
             const std::function<Expr(Dim number)>& update) {
  return choose(below(number, 0), there, op.emit.at_index(number, count, update));
}

// Updates that meet differ along the axis alone.
Values scatter_elements(const Operation& op) {
  Emitter& emit = op.emit;
  const std::string& reduction = op.text("reduction");
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const Value& x = op.arg(0);
  const Value indices = emit.stored("at", op.arg(1)), updates = emit.stored("updates", op.arg(2));
  const Dim length = x.dims[axis], count = updates.dims[axis];
  const auto change = [&](std::string_view name, const Value& y, const auto& value) {
    emit.update(name, y, without(updates.dims, axis), {count}, [&](const Dims& at) {
      const auto [others, number] = cut(at, at.size() - 1);
      const Dims from = with(others, axis, number[0]);
      return Emitter::Update{.computed = {{indices.at(from), length}},
                             .place = [=](const Dims& found) { return with(others, axis, found[0]); },
                             .value = [=](const Expr& there) { return value(there, from); }};
    });
  };
  if (reduction != "none") {
    const Value y = copied(op, x);
    change("scatter", y, [=](const Expr& there, const Dims& at) { return combined(reduction, there, updates.at(at)); });
    return std::vector{y};
  }
  const Value last = nobody(op, x.dims);
  change("find_last", last, [=](const Expr& there, const Dims& at) {
    return loop::binary(BinaryOp::kMax, there, loop::index_value(at[axis]));
  });
  return op.expression([=](const Dims& at) {
    return last_or(op, last.at(at), count, x.at(at),
                   [&](Dim number) { return updates.at(with(without(at, axis), axis, number)); });
  });
}

// Updates are parts of x, each at a tuple of indices.
Values scatter_nd(const Operation& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const std::string& reduction = op.text("reduction");
  const Value& x = op.arg(0);
  const Value indices = emit.stored("at", op.arg(1)), updates = emit.stored("updates", op.arg(2));
  const auto depth = static_cast<size_t>(*indices.dims.back().constant());  // inference has seen to it
  const auto [tuples, part] = cut(updates.dims, indices.rank() - 1);
  const auto computed = [=, &emit](const Dims& tuple) {
    std::vector<std::pair<Expr, Dim>> all;
    for (size_t k = 0; k < depth; ++k)
      all.emplace_back(indices.at(joined(tuple, {emit.dim(static_cast<int64_t>(k))})), x.dims[k]);
    return all;
  };
  if (reduction != "none") {
    const Value y = copied(op, x);
    emit.update("scatter", y, part, tuples, [&](const Dims& at) {
      const auto [rest, tuple] = cut(at, part.size());
      return Emitter::Update{
          .computed = computed(tuple),
          .place = [=](const Dims& found) { return joined(found, rest); },
          .value = [=](const Expr& there) { return combined(reduction, there, updates.at(joined(tuple, rest))); }};
    });
    return std::vector{y};
  }
  // Tuples are numbered in their order; where there are none nothing changes.
  if (is_empty(tuples)) return std::vector{x};
  const Value last = nobody(op, cut(x.dims, depth).first);
  emit.update("find_last", last, {}, tuples, [&](const Dims& tuple) {
    Dim number = emit.dim(0);
    for (size_t d = 0; d < tuple.size(); ++d) number = context.add(context.multiply(number, tuples[d]), tuple[d]);
    return Emitter::Update{
        .computed = computed(tuple),
        .place = [](const Dims& found) { return found; },
        .value = [=](const Expr& there) { return loop::binary(BinaryOp::kMax, there, loop::index_value(number)); }};
  });
  return op.expression([=, &context](const Dims& at) {
    const auto [place, rest] = cut(at, depth);
    return last_or(op, last.at(place), context.product(tuples), x.at(at), [&](Dim number) {
      Dims tuple(tuples.size());
      for (size_t d = tuples.size(); d-- > 0; number = context.floor_divide(number, tuples[d]))
        tuple[d] = d == 0 ? number : context.modulo(number, tuples[d]);
      return updates.at(joined(tuple, rest));
    });
  });
}

}  // namespace

std::span<const Lowering> scatter_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"scatter_elements", scatter_elements},
      {"scatter_nd", scatter_nd},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
