// Updates at places that are computed, and what is put in order by them.
//
// Where updates are combined, each is taken in its turn: a sum over the updates, whose place is an index that is
// computed. Where the last one counts, its number is found first, so that the result itself is written in any order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/dtypes.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// A copy that may be changed.
Value copied(const Operation& op, Value x) {
  x.buffer.reset(), x.constant.reset();
  return op.emit.stored("y", x);
}

Dims with(Dims at, size_t axis, Dim index) {
  at.insert(at.begin() + static_cast<ptrdiff_t>(axis), index);
  return at;
}
Dims without(Dims at, size_t axis) {
  at.erase(at.begin() + static_cast<ptrdiff_t>(axis));
  return at;
}
// The first so many, and all behind them.
std::pair<Dims, Dims> cut(const Dims& at, size_t count) {
  const auto middle = at.begin() + static_cast<ptrdiff_t>(count);
  return {{at.begin(), middle}, {middle, at.end()}};
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

// What is no number is above all.
Expr is_below(const Expr& a, const Expr& b) {
  return loop::is_float(a->dtype) ? both(negated(less_equal(b, a)), same(a, a)) : less(a, b);
}

// Elements along the axis are put where as many come before them: comparisons of each with each, in vectors, take less
// time than sorting while there are few.
constexpr int64_t kMostCompared = 256;

Values in_order(const Operation& op, bool descending, bool values, bool places) {
  Emitter& emit = op.emit;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const Value x = emit.stored("x", op.arg(0));
  const Dim length = x.dims[axis];
  if (!length.constant()) return error("how many elements there are to order is not known");
  if (*length.constant() > kMostCompared)
    return error(fmt::format("{} elements along an axis take less time in the reference kernel", *length.constant()));
  // Numbers of elements, in the type of the sums: vectors of these are as long as those of the elements.
  std::vector<int32_t> all(static_cast<size_t>(*length.constant()));
  std::iota(all.begin(), all.end(), 0);
  const Value numbers = emit.constant(Tensor::of<int32_t>({static_cast<int64_t>(all.size())}, all));
  const auto comes_before = [=](const Dims& at) {
    const auto [place, other] = cut(at, at.size() - 1);
    const Expr own = x.at(place), one = x.at(with(without(place, axis), axis, other[0]));
    const Expr first = descending ? is_below(own, one) : is_below(one, own);
    const Expr later = descending ? is_below(one, own) : is_below(own, one);
    const Expr earlier = less(numbers.at({other[0]}), numbers.at({place[axis]}));
    const Expr count = loop::integer_literal(DType::kI32, 1);
    return choose(either(both(earlier, negated(later)), both(negated(earlier), first)), count, like(count, 0));
  };
  const Value rank = emit.reduce("rank", {.dims = x.dims, .over = {length}, .term = comes_before, .across = true});
  const auto placed = [&](std::string_view name, DType dtype, const auto& value) {
    const Value y = emit.overwritten(name, x.dims, loop::literal(dtype, 0));
    emit.update(fmt::format("put_{}", name), y, without(x.dims, axis), {length}, [&](const Dims& all) {
      const auto [others, number] = cut(all, all.size() - 1);
      const Dims from = with(others, axis, number[0]);
      return Emitter::Update{.computed = {{rank.at(from), length}},
                             .place = [=](const Dims& found) { return with(others, axis, found[0]); },
                             .value = [=](const Expr&) { return value(from); }};
    });
    Dims dims = y.dims;
    dims[axis] = op.dims()[axis];  // the first of them
    return dims == y.dims ? y : emit.expression(dims, dtype, y.at);
  };
  std::vector<Value> results;
  if (values) results.push_back(placed("best", x.dtype, [=](const Dims& at) { return x.at(at); }));
  if (places)
    results.push_back(placed("place", DType::kI64, [=](const Dims& at) { return loop::index_value(at[axis]); }));
  return results;
}

}  // namespace

std::span<const Lowering> scatter_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"scatter_elements", scatter_elements},
      {"scatter_nd", scatter_nd},
      {"sort", [](const Operation& op) { return in_order(op, op.integer("descending") == 1, true, false); }},
      {"arg_sort", [](const Operation& op) { return in_order(op, op.integer("descending") == 1, false, true); }},
      {"top_k", [](const Operation& op) { return in_order(op, op.integer("largest") == 1, true, true); }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
