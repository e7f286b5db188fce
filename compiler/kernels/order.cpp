// Sorting along an axis: sort, arg_sort, top_k.
#include <fmt/format.h>

#include <numeric>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/indices.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/user_defined.h"

namespace tenon::compiler::kernels {
namespace {

// a < b, where NaN is greater than all other values.
Expr is_below(const Expr& a, const Expr& b) {
  return loop::is_float(a->dtype) ? logical_and(logical_not(less_equal(b, a)), is_equal(a, a)) : less(a, b);
}

// The passes of the merge sort as a loop function. Each pass merges pairs of adjacent sorted runs from one half of the
// buffers into the other, one element at a time: the next element of the left run, unless that of the right run comes
// before it. %taken has the number of elements taken from the left run, in one of two elements in turn, since a point
// of a scan must not overwrite what it reads. The parameters in braces depend on the rank, on the types, and on the
// order.
constexpr std::string_view kMerge = R"(
loop @merge[{dims}n, kept, size, passes](%{runs}: Tensor[({table},), i64]) ->
    (%sorted: Tensor[({dims}2, size), {type}], %positions: Tensor[({dims}2, size), i32]) {{
  {loops}
  for pass in (passes) {{
    for pair in ((n + 2*{runs}(pass) - 1) // (2*{runs}(pass))) {{
      alloc %taken: Tensor[(2,), i64] in stack {{
        for next in (min(2*{runs}(pass), kept, n - 2*pair*{runs}(pass))) {{
          stage merge({axes}scan t in (passes) at (pass), given begin in (size) at (2*pair*{runs}(pass)),
                      scan p in (size) at (2*pair*{runs}(pass) + next)) {{
            let left in (size) = select(index(p - begin) == i64(0), i64(0), %taken[p % 2]) {{
              let at_left in (size) = select({has_left}, index(begin + left), index(begin)) {{
                let at_right in (size) = select({has_right}, index(p + {runs}(t) - left), index(begin)) {{
                  let source in (size) = select({takes_left}, index(at_left), index(at_right)) {{
                    %sorted[{line}(t + 1) % 2, p] = %sorted[{line}t % 2, source];
                    %positions[{line}(t + 1) % 2, p] = %positions[{line}t % 2, source];
                    %taken[(p + 1) % 2] = select({takes_left}, index(left + 1), index(left));
                  }}
                }}
              }}
            }}
          }}
        }}
      }}
    }}
  }}
  {ends}
}})";

// A bottom-up merge sort of long lines, between the two halves of a buffer. The initial runs are sorted by ranks. No
// more elements of a run are kept than the result has. The number of passes is a Dim, so that no size need be constant.
class MergeSort {
 public:
  MergeSort(const OperatorCall& op, size_t axis, bool descending)
      : op_(op), emit_(op.emit), context_(op.context()), axis_(axis), descending_(descending) {}

  std::vector<LazyTensor> run(bool values, bool positions) {
    const LazyTensor& x = op_.arg(0);
    length_ = x.dims[axis_], kept_ = op_.dims()[axis_];
    others_ = without(x.dims, axis_);
    if (is_empty(op_.dims())) {
      const auto empty = [&](DType dtype) {
        return emit_.expression(op_.dims(), dtype, [dtype](const Dims&) { return loop::literal(dtype, 0); });
      };
      if (values && positions) return {empty(x.dtype), empty(DType::kI64)};
      return {empty(values ? x.dtype : DType::kI64)};
    }
    runs_ = context_.ceil_divide(length_, kRun);
    std::vector<int64_t> lengths;
    Dim passes = dim(0);
    const Dim last = context_.maximum({context_.subtract(length_, dim(1)), dim(0)});
    for (int64_t size = kRun; size < length_.constant().value_or(kLongest) || lengths.size() < 2; size *= 2) {
      lengths.push_back(size);
      passes = context_.add(passes, context_.minimum({context_.floor_divide(last, dim(size)), dim(1)}));
    }
    const LazyTensor table =
        emit_.stored("runs", emit_.constant(Tensor::of<int64_t>({static_cast<int64_t>(lengths.size())}, lengths)));
    sort_runs();
    (void)emit_.nest("merge", {}, [&](auto) { return merge(passes, *table.buffer); });
    const auto result = [&](const LazyTensor& state, DType dtype) {
      return emit_.expression(op_.dims(), dtype, [=, self = *this](const Dims& at) {
        const Dim half = self.context_.modulo(passes, self.dim(2));
        return loop::convert(dtype, state.at(self.element_index(without(at, self.axis_), half, at[self.axis_])));
      });
    };
    std::vector<LazyTensor> results;
    if (values) results.push_back(result(sorted_, x.dtype));
    if (positions) results.push_back(result(positions_, DType::kI64));
    return results;
  }

 private:
  static constexpr int64_t kRun = 64, kLongest = int64_t{1} << 31;

  Dim dim(int64_t value) const { return context_.dim(value); }
  static Dims element_index(Dims line, Dim half, Dim at) {
    line.push_back(half), line.push_back(at);
    return line;
  }

  // Stores sorted runs of elements and of their positions in the first half of the buffers.
  void sort_runs() {
    const LazyTensor& x = op_.arg(0);
    const bool is_exact = length_.constant().value_or(1) % kRun == 0;
    const size_t rank = others_.size();
    Dims blocks = others_;
    blocks.push_back(runs_), blocks.push_back(dim(kRun));
    const LazyTensor line = emit_.stored("line", emit_.expression(blocks, x.dtype, [=, this](const Dims& at) {
      const Dim position = context_.add(context_.multiply(at[rank], dim(kRun)), at[rank + 1]);
      const Expr element = x.at(with(split_at(at, rank).first, axis_, position));
      if (is_exact) return element;
      return select(less(loop::index_value(position), loop::index_value(length_)), element, like(element, 0));
    }));
    std::vector<int32_t> iota(kRun);
    std::iota(iota.begin(), iota.end(), 0);
    const LazyTensor run_positions = emit_.constant(Tensor::of<int32_t>({kRun}, iota));
    // Elements past the end of the line stay there.
    const auto comes_before = [=, this](const Dims& at) {
      const auto [at_element, other_index] = split_at(at, rank + 2);
      Dims at_other = at_element;
      at_other[rank + 1] = other_index[0];
      const Expr element = line.at(at_element), other = line.at(at_other);
      const Expr position = run_positions.at({at_element[rank + 1]}),
                 other_position = run_positions.at({other_index[0]});
      Expr is_before = descending_ ? is_below(element, other) : is_below(other, element);
      Expr is_not_after = logical_not(descending_ ? is_below(other, element) : is_below(element, other));
      if (!is_exact) {
        const Dim remaining = context_.subtract(length_, context_.multiply(at_element[rank], dim(kRun)));
        const Expr count = loop::convert(DType::kI32, loop::index_value(context_.minimum({remaining, dim(kRun)})));
        is_before = logical_and(less(other_position, count), is_before);
        is_not_after = logical_or(less_equal(count, position), is_not_after);
      }
      const Expr is_earlier = less(other_position, position), increment = loop::integer_literal(DType::kI32, 1);
      return select(logical_or(logical_and(is_earlier, is_not_after), logical_and(logical_not(is_earlier), is_before)),
                    increment, like(increment, 0));
    };
    const LazyTensor rank_of =
        emit_.reduce("rank", {.dims = blocks, .over = {dim(kRun)}, .term = comes_before, .across = true});
    Dims halves = others_;
    halves.push_back(dim(2)), halves.push_back(context_.multiply(runs_, dim(kRun)));
    const auto place_by_rank = [&](std::string_view name, DType dtype, const auto& value) {
      const LazyTensor to = emit_.overwritten(name, halves, loop::literal(dtype, 0));
      emit_.update(fmt::format("place_{}", name), to, split_at(blocks, rank + 1).first, {dim(kRun)},
                   [&](const Dims& at) {
                     return Emitter::Update{.computed = {{rank_of.at(at), dim(kRun)}},
                                            .index =
                                                [=, this](const Dims& found) {
                                                  return element_index(
                                                      split_at(at, rank).first, dim(0),
                                                      context_.add(context_.multiply(at[rank], dim(kRun)), found[0]));
                                                },
                                            .value = [=](const Expr&) { return value(at); }};
                   });
      return to;
    };
    sorted_ = place_by_rank("sorted", x.dtype, [=](const Dims& at) { return line.at(at); });
    positions_ = place_by_rank("positions", DType::kI32, [=, this](const Dims& at) {
      const Dim position = context_.add(context_.multiply(at[rank], dim(kRun)), at[rank + 1]);
      return loop::convert(DType::kI32, loop::index_value(position));
    });
  }

  // The merge passes in place: %sorted and %positions are [..., half, index along the axis].
  loop::Body merge(Dim passes, BufferId table) const {
    std::string dims, loops, axes, line, ends;
    for (size_t d = 0; d < others_.size(); ++d) {
      dims += fmt::format("d{}, ", d), line += fmt::format("l{}, ", d), ends += "}";
      loops += fmt::format("for l{0} in (d{0}) {1}{{ ", d, d == 0 ? "parallel " : "");
      axes += fmt::format("l{0} in (d{0}) at (l{0}), ", d);
    }
    const loop::Buffer& buffer = emit_.builder().function().buffer(table);
    const std::string_view runs = context_.name(buffer.name);
    const std::string left = fmt::format("%sorted[{}t % 2, at_left]", line),
                      right = fmt::format("%sorted[{}t % 2, at_right]", line);
    const std::string &a = descending_ ? left : right, &b = descending_ ? right : left;
    const std::string right_first = loop::is_float(sorted_.dtype)
                                        ? fmt::format("not ({1} <= {0}) and {0} == {0}", a, b)  // as is_below()
                                        : fmt::format("{} < {}", a, b);
    const std::string has_left = fmt::format("index(left) < index(min({}(t), kept, n - begin))", runs),
                      has_right =
                          fmt::format("index(p - begin - left) < index(min({0}(t), kept, n - begin - {0}(t)))", runs);
    const std::string text = fmt::format(
        kMerge, fmt::arg("dims", dims), fmt::arg("runs", runs), fmt::arg("table", *buffer.axes[0].extent.constant()),
        fmt::arg("type", runtime::name(sorted_.dtype)), fmt::arg("loops", loops), fmt::arg("axes", axes),
        fmt::arg("line", line), fmt::arg("ends", ends), fmt::arg("has_left", has_left),
        fmt::arg("has_right", has_right),
        fmt::arg("takes_left", fmt::format("(not ({}) or not ({})) and {}", right_first, has_right, has_left)));
    Dims sizes = others_;
    sizes.insert(sizes.end(), {length_, kept_, sorted_.dims.back(), passes});
    return inline_text(emit_, text, sizes, {table, *sorted_.buffer, *positions_.buffer});
  }

  OperatorCall op_;
  Emitter& emit_;
  Context& context_;
  size_t axis_;
  bool descending_;
  Dim length_, kept_, runs_;  // sizes along the axis: of the line, of the result; number of runs
  Dims others_;
  LazyTensor sorted_, positions_;  // [..., half, along the axis]
};

// The rank of an element is the number of elements that come before it. On short lines, vectorized comparisons of all
// pairs take less time than sorting.
constexpr int64_t kMaxCompared = 256;

LoweredResults ordered(const OperatorCall& op, bool descending, bool values, bool positions) {
  Emitter& emit = op.emit;
  const size_t axis = op.axis("axis", op.arg(0).rank());
  const LazyTensor x = emit.stored("x", op.arg(0));
  const Dim length = x.dims[axis];
  if (DimProver(op.context()).less_equal(op.dims()[axis], length) != Answer::kYes)
    return error("the axis may have fewer elements than the result");
  if (length.constant().value_or(kMaxCompared + 1) > kMaxCompared)
    return MergeSort(op, axis, descending).run(values, positions);
  // Positions in the type of the ranks, so that their vectors have as many lanes as those of the elements.
  std::vector<int32_t> iota(static_cast<size_t>(*length.constant()));
  std::iota(iota.begin(), iota.end(), 0);
  const LazyTensor line_positions = emit.constant(Tensor::of<int32_t>({static_cast<int64_t>(iota.size())}, iota));
  const auto comes_before = [=](const Dims& at) {
    const auto [at_element, other_index] = split_at(at, at.size() - 1);
    const Expr element = x.at(at_element), other = x.at(with(without(at_element, axis), axis, other_index[0]));
    const Expr is_before = descending ? is_below(element, other) : is_below(other, element);
    const Expr is_after = descending ? is_below(other, element) : is_below(element, other);
    const Expr is_earlier = less(line_positions.at({other_index[0]}), line_positions.at({at_element[axis]}));
    const Expr count = loop::integer_literal(DType::kI32, 1);
    return select(
        logical_or(logical_and(is_earlier, logical_not(is_after)), logical_and(logical_not(is_earlier), is_before)),
        count, like(count, 0));
  };
  const LazyTensor rank = emit.reduce("rank", {.dims = x.dims, .over = {length}, .term = comes_before, .across = true});
  const auto place_by_rank = [&](std::string_view name, DType dtype, const auto& value) {
    const LazyTensor y = emit.overwritten(name, x.dims, loop::literal(dtype, 0));
    emit.update(fmt::format("place_{}", name), y, without(x.dims, axis), {length}, [&](const Dims& at) {
      const auto [others, position] = split_at(at, at.size() - 1);
      const Dims from = with(others, axis, position[0]);
      return Emitter::Update{.computed = {{rank.at(from), length}},
                             .index = [=](const Dims& found) { return with(others, axis, found[0]); },
                             .value = [=](const Expr&) { return value(from); }};
    });
    Dims dims = y.dims;
    dims[axis] = op.dims()[axis];  // a prefix of the line
    return dims == y.dims ? y : emit.expression(dims, dtype, y.at);
  };
  std::vector<LazyTensor> results;
  if (values) results.push_back(place_by_rank("sorted", x.dtype, [=](const Dims& at) { return x.at(at); }));
  if (positions)
    results.push_back(
        place_by_rank("positions", DType::kI64, [=](const Dims& at) { return loop::index_value(at[axis]); }));
  return results;
}

}  // namespace

std::span<const Lowering> order_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kSort, [](const OperatorCall& op) { return ordered(op, op.integer("descending") == 1, true, false); }},
      {ops::kArgSort, [](const OperatorCall& op) { return ordered(op, op.integer("descending") == 1, false, true); }},
      {ops::kTopK, [](const OperatorCall& op) { return ordered(op, op.integer("largest") == 1, true, true); }},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
