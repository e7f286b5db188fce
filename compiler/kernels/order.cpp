// What is put in order along an axis: sort, arg_sort, top_k.
#include <fmt/format.h>

#include <numeric>

#include "compiler/kernels/indices.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// What is no number is above all.
Expr is_below(const Expr& a, const Expr& b) {
  return loop::is_float(a->dtype) ? both(negated(less_equal(b, a)), same(a, a)) : less(a, b);
}

// Longer lines are merged, run by run, each twice as long as those before it: in two buffers, from one into the other
// and back. At first runs are put in order by comparisons. Of each run no more is kept than the result has. How many
// passes there are is a size, so that nothing need be known.
class Merge {
 public:
  Merge(const Operation& op, size_t axis, bool descending)
      : op_(op), emit_(op.emit), context_(op.context()), axis_(axis), descending_(descending) {}

  std::vector<Value> run(bool values, bool places) {
    const Value& x = op_.arg(0);
    length_ = x.dims[axis_], most_ = op_.dims()[axis_];
    others_ = without(x.dims, axis_);
    if (is_empty(op_.dims())) {
      const auto nothing = [&](DType dtype) {
        return emit_.expression(op_.dims(), dtype, [dtype](const Dims&) { return loop::literal(dtype, 0); });
      };
      if (values && places) return {nothing(x.dtype), nothing(DType::kI64)};
      return {nothing(values ? x.dtype : DType::kI64)};
    }
    runs_ = context_.ceil_divide(length_, kRun);
    std::vector<int64_t> lengths;
    Dim passes = dim(0);
    const Dim last = context_.maximum({context_.subtract(length_, dim(1)), dim(0)});
    for (int64_t size = kRun; size < length_.constant().value_or(kLongest) || lengths.size() < 2; size *= 2) {
      lengths.push_back(size);
      passes = context_.add(passes, context_.minimum({context_.floor_divide(last, dim(size)), dim(1)}));
    }
    const Value table =
        emit_.stored("runs", emit_.constant(Tensor::of<int64_t>({static_cast<int64_t>(lengths.size())}, lengths)));
    in_runs();
    (void)emit_.nest("merge", {}, [&](auto) { return merge(passes, name(*table.buffer)); });
    const auto result = [&](const Value& state, DType dtype) {
      return emit_.expression(op_.dims(), dtype, [=, self = *this](const Dims& at) {
        const Dim half = self.context_.modulo(passes, self.dim(2));
        return loop::convert(dtype, state.at(self.place(without(at, self.axis_), half, at[self.axis_])));
      });
    };
    std::vector<Value> results;
    if (values) results.push_back(result(sorted_, x.dtype));
    if (places) results.push_back(result(numbers_, DType::kI64));
    return results;
  }

 private:
  static constexpr int64_t kRun = 64, kLongest = int64_t{1} << 31;

  Dim dim(int64_t value) const { return context_.dim(value); }
  Symbol name(BufferId buffer) const { return emit_.builder().function().buffer(buffer).name; }
  static Dims place(Dims line, Dim half, Dim at) {
    line.push_back(half), line.push_back(at);
    return line;
  }

  // Runs of elements and their numbers, each in order, in the first half.
  void in_runs() {
    const Value& x = op_.arg(0);
    const bool whole = length_.constant().value_or(1) % kRun == 0;
    const size_t rank = others_.size();
    Dims blocks = others_;
    blocks.push_back(runs_), blocks.push_back(dim(kRun));
    const Value line = emit_.stored("line", emit_.expression(blocks, x.dtype, [=, this](const Dims& at) {
      const Dim number = context_.add(context_.multiply(at[rank], dim(kRun)), at[rank + 1]);
      const Expr element = x.at(with(cut(at, rank).first, axis_, number));
      if (whole) return element;
      return choose(less(loop::index_value(number), loop::index_value(length_)), element, like(element, 0));
    }));
    std::vector<int32_t> all(kRun);
    std::iota(all.begin(), all.end(), 0);
    const Value numbers = emit_.constant(Tensor::of<int32_t>({kRun}, all));
    // What lies behind the end stays there.
    const auto comes_before = [=, this](const Dims& at) {
      const auto [at_own, other] = cut(at, rank + 2);
      Dims at_other = at_own;
      at_other[rank + 1] = other[0];
      const Expr own = line.at(at_own), one = line.at(at_other);
      const Expr number = numbers.at({at_own[rank + 1]}), number_of_one = numbers.at({other[0]});
      Expr first = descending_ ? is_below(own, one) : is_below(one, own);
      Expr not_later = negated(descending_ ? is_below(one, own) : is_below(own, one));
      if (!whole) {
        const Dim rest = context_.subtract(length_, context_.multiply(at_own[rank], dim(kRun)));
        const Expr count = loop::convert(DType::kI32, loop::index_value(context_.minimum({rest, dim(kRun)})));
        first = both(less(number_of_one, count), first);
        not_later = either(less_equal(count, number), not_later);
      }
      const Expr earlier = less(number_of_one, number), one_more = loop::integer_literal(DType::kI32, 1);
      return choose(either(both(earlier, not_later), both(negated(earlier), first)), one_more, like(one_more, 0));
    };
    const Value rank_of =
        emit_.reduce("rank", {.dims = blocks, .over = {dim(kRun)}, .term = comes_before, .across = true});
    Dims halves = others_;
    halves.push_back(dim(2)), halves.push_back(context_.multiply(runs_, dim(kRun)));
    const auto put = [&](std::string_view name, DType dtype, const auto& value) {
      const Value to = emit_.overwritten(name, halves, loop::literal(dtype, 0));
      emit_.update(fmt::format("put_{}", name), to, cut(blocks, rank + 1).first, {dim(kRun)}, [&](const Dims& at) {
        return Emitter::Update{.computed = {{rank_of.at(at), dim(kRun)}},
                               .place =
                                   [=, this](const Dims& found) {
                                     return place(cut(at, rank).first, dim(0),
                                                  context_.add(context_.multiply(at[rank], dim(kRun)), found[0]));
                                   },
                               .value = [=](const Expr&) { return value(at); }};
      });
      return to;
    };
    sorted_ = put("sorted", x.dtype, [=](const Dims& at) { return line.at(at); });
    numbers_ = put("places", DType::kI32, [=, this](const Dims& at) {
      const Dim number = context_.add(context_.multiply(at[rank], dim(kRun)), at[rank + 1]);
      return loop::convert(DType::kI32, loop::index_value(number));
    });
  }

  // A pass: pairs of neighbouring runs become one, an element at a time, of the left run while the right one has none
  // that comes before it.
  loop::Body merge(Dim passes, Symbol lengths) {
    const auto index = [](Dim value) { return loop::index_value(value); };
    const Symbol pass = emit_.fresh_index(), pair = emit_.fresh_index(), next = emit_.fresh_index(),
                 to = emit_.fresh_index(), begin = emit_.fresh_index();
    const Dim t = context_.dim(pass), p = context_.dim(to), base = context_.dim(begin), two = dim(2);
    const Dim size = context_.apply(lengths, {t}), both_sizes = context_.multiply(size, two), all = sorted_.dims.back();
    const BufferId taken = emit_.local("taken", {two}, DType::kI64);
    const auto load = [&](BufferId buffer, Dims at) {
      return loop::load(emit_.builder().function(), buffer, std::move(at));
    };
    std::vector<loop::For> loops;
    std::vector<Axis> axes;
    Dims line;
    for (const Dim count : others_) {
      const Symbol var = emit_.fresh_index();
      loops.push_back({.var = var, .extent = count, .mark = Mark::kSerial, .body = {}});
      axes.push_back({.var = var, .extent = count, .kind = AxisKind::kSpatial, .value = context_.dim(var)});
      line.push_back(context_.dim(var));
    }
    if (!loops.empty()) loops.front().mark = Mark::kParallel;
    loops.push_back({.var = pass, .extent = passes, .mark = Mark::kSerial, .body = {}});
    axes.push_back({.var = pass, .extent = passes, .kind = AxisKind::kScan, .value = t});
    const Dim pairs = context_.floor_divide(context_.add(length_, context_.subtract(both_sizes, dim(1))), both_sizes);
    loops.push_back({.var = pair, .extent = pairs, .mark = Mark::kSerial, .body = {}});
    const Dim from = context_.multiply(context_.dim(pair), both_sizes);
    axes.push_back({.var = begin, .extent = all, .kind = AxisKind::kGiven, .value = from});
    axes.push_back(
        {.var = to, .extent = all, .kind = AxisKind::kScan, .value = context_.add(from, context_.dim(next))});

    // How many were taken of the left run, and so of the right one.
    const Symbol left = emit_.fresh_index(), at_left = emit_.fresh_index(), at_right = emit_.fresh_index(),
                 chosen = emit_.fresh_index();
    const Dim i = context_.dim(left), number = context_.subtract(p, base), k = context_.subtract(number, i);
    const Dim half = context_.modulo(t, two), other_half = context_.modulo(context_.add(t, dim(1)), two);
    const Dim rest = context_.subtract(length_, base), middle = context_.add(base, size);
    const Expr has_left = less(index(i), index(context_.minimum({size, most_, rest}))),
               has_right = less(index(k), index(context_.minimum({size, most_, context_.subtract(rest, size)})));
    const auto element = [&](const Value& state, Symbol at) {
      return load(*state.buffer, place(line, half, context_.dim(at)));
    };
    const Expr a = element(sorted_, at_left), b = element(sorted_, at_right);
    const Expr right_first = descending_ ? is_below(a, b) : is_below(b, a);
    const Expr takes_left = both(either(negated(right_first), negated(has_right)), has_left);
    const Expr none = loop::integer_literal(DType::kI64, 0);
    const auto store = [&](const Value& state) {
      return Stmt{loop::Store{*state.buffer, place(line, other_half, p), element(state, chosen)}};
    };
    loop::Body body;
    body.push_back(store(sorted_)), body.push_back(store(numbers_));
    body.push_back({loop::Store{taken,
                                {context_.modulo(context_.add(p, dim(1)), two)},
                                choose(takes_left, index(context_.add(i, dim(1))), index(i))}});
    const auto let = [&](Symbol var, const Expr& value) {
      loop::Body inner = std::exchange(body, {});
      body.push_back({loop::Let{.var = var, .extent = all, .value = value, .body = std::move(inner)}});
    };
    let(chosen, choose(takes_left, index(context_.dim(at_left)), index(context_.dim(at_right))));
    let(at_right, choose(has_right, index(context_.add(middle, k)), index(base)));
    let(at_left, choose(has_left, index(context_.add(base, i)), index(base)));
    let(left, choose(same(index(number), none), none, load(taken, {context_.modulo(p, two)})));
    loop::Stage stage{
        .name = emit_.builder().stage_name("merge"), .axes = axes, .where = {}, .init = {}, .body = std::move(body)};
    Stmt inner{For{.var = next,
                   .extent = context_.minimum({both_sizes, most_, context_.subtract(length_, from)}),
                   .mark = Mark::kSerial,
                   .body = {}}};
    std::get<For>(inner.form).body.push_back({std::move(stage)});
    loop::Body merged;
    merged.push_back(std::move(inner));
    loop::Body result;
    result.push_back(loop::nest(
        std::move(loops), Stmt{loop::Alloc{.buffer = taken, .scope = loop::Scope::kStack, .body = std::move(merged)}}));
    return result;
  }

  Operation op_;
  Emitter& emit_;
  Context& context_;
  size_t axis_;
  bool descending_;
  Dim length_, most_, runs_;  // along the axis; of the result
  Dims others_;
  Value sorted_, numbers_;  // [..., half, along the axis]
};

// Elements along the axis are put where as many come before them: comparisons of each with each, in vectors, take less
// time than sorting while there are few.
constexpr int64_t kMostCompared = 256;

Values in_order(const Operation& op, bool descending, bool values, bool places) {
  Emitter& emit = op.emit;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const Value x = emit.stored("x", op.arg(0));
  const Dim length = x.dims[axis];
  if (length.constant().value_or(kMostCompared + 1) > kMostCompared)
    return Merge(op, axis, descending).run(values, places);
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

std::span<const Lowering> order_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {"sort", [](const Operation& op) { return in_order(op, op.integer("descending") == 1, true, false); }},
      {"arg_sort", [](const Operation& op) { return in_order(op, op.integer("descending") == 1, false, true); }},
      {"top_k", [](const Operation& op) { return in_order(op, op.integer("largest") == 1, true, true); }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
