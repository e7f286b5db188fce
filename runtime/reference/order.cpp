// Sorting and searching: results whose order, or number of elements, depends on the data.
#include <algorithm>
#include <numeric>

#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {
namespace {

// A total order: NaN is above all other values, and equal to itself.
template <class T>
bool below(T a, T b) {
  if (a != a || b != b) return b != b && a == a;
  return a < b;
}

// The indices of a line's elements in sorted order; the sort is stable.
template <class T>
std::vector<int64_t> ranking(const std::vector<T>& line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t i, int64_t k) {
    const T a = line[static_cast<size_t>(i)], b = line[static_cast<size_t>(k)];
    return descending ? below(b, a) : below(a, b);
  });
  return order;
}

// The first k of each line in order; kValues, kIndices or both.
Result ordered(Call& call, const Tensor& in, int64_t axis, int64_t k, bool descending, bool values, bool indices) {
  const AxisView view = view_axis(in.shape(), axis);
  call.expect(k <= view.length, "there are fewer elements than k");
  if (!call.ok()) return call.fail();
  Shape shape = in.shape();
  shape[axis] = k;
  Tensor best(in.dtype(), shape), positions(DType::kI64, shape);
  auto position = positions.data<int64_t>();
  int64_t line_index = 0;
  with_arithmetic<kNumericTypes>(in.dtype(), [&]<class T>(T) {
    std::vector<T> line(view.length);
    for_each_line(view, [&](auto at) {
      for (int64_t i = 0; i < view.length; ++i) line[i] = in.data<T>()[at(i)];
      const auto order = ranking(line, descending);
      const int64_t o = line_index / view.inner, inner = line_index % view.inner;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (o * k + i) * view.inner + inner;
        best.data<T>()[to] = line[order[i]];
        position[to] = order[i];
      }
      ++line_index;
    });
  });
  std::vector<Tensor> results;
  if (values) results.push_back(best);
  if (indices) results.push_back(positions);
  return results;
}

Result top_k(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("top_k", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kNumericTypes);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const int64_t k = call.integer("k", 0, kMaxExtent);
  const bool largest = call.integer("largest", 0, 1) == 1;
  if (!call.ok()) return call.fail();
  return ordered(call, inputs[0], axis, k, largest, true, true);
}

template <Name op, bool values>
Result sort(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kNumericTypes);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const bool descending = call.integer("descending", 0, 1) == 1;
  if (!call.ok()) return call.fail();
  return ordered(call, inputs[0], axis, inputs[0].shape()[axis], descending, values, !values);
}

// The order of the first axis of `parts`, [count, ...], by the elements of each part.
template <class T>
std::vector<int64_t> ranking_of_parts(const Tensor& parts) {
  const int64_t count = parts.shape()[0], width = count ? parts.size() / count : 0;
  const T* x = parts.data<T>().data();
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < width; ++k) {
      const T left = x[a * width + k], right = x[b * width + k];
      if (below(left, right)) return true;
      if (below(right, left)) return false;
    }
    return false;
  });
  return order;
}

Result unique(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("unique", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kNumericTypes);
  const bool sorted = call.integer("sorted", 0, 1) == 1;
  const auto rank_of_x = static_cast<int64_t>(call.input(0).shape().size());
  std::vector<int64_t> axes = call.integers("axes", 0, -rank_of_x, rank_of_x - 1);
  call.expect(axes.size() <= 1, "parts along several axes are not supported");
  if (!call.ok()) return call.fail();
  // The parts, [count, ...].
  std::vector<int64_t> forth, back;
  const int64_t axis = axes.empty() ? 0 : axes[0] + (axes[0] < 0 ? rank_of_x : 0);
  for (int64_t d = 0; d < rank_of_x; ++d) {
    if (d != axis) forth.push_back(d);
    back.push_back(d == axis ? 0 : d < axis ? d + 1 : d);
  }
  forth.insert(forth.begin(), axis);
  const Tensor parts = axes.empty() ? inputs[0].reshaped({inputs[0].size()}) : transposed(inputs[0], forth);
  const int64_t count = parts.shape()[0], width = count ? parts.size() / count : 0;
  std::vector<Tensor> results;
  with_arithmetic<kNumericTypes>(parts.dtype(), [&]<class T>(T) {
    const std::vector<int64_t> order = ranking_of_parts<T>(parts);
    const T* x = parts.data<T>().data();
    const auto differ = [&](int64_t a, int64_t b) {
      for (int64_t k = 0; k < width; ++k) {
        if (below(x[a * width + k], x[b * width + k]) || below(x[b * width + k], x[a * width + k])) return true;
      }
      return false;
    };
    // Runs of equal parts, each with the index of its first.
    std::vector<int64_t> firsts, run_of(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || differ(order[i - 1], order[i])) firsts.push_back(order[i]);
      run_of[order[i]] = static_cast<int64_t>(firsts.size()) - 1;
    }
    std::vector<int64_t> runs(firsts.size()), rank(firsts.size());
    std::iota(runs.begin(), runs.end(), 0);
    if (!sorted) std::ranges::sort(runs, {}, [&](int64_t run) { return firsts[run]; });
    std::vector<T> values;
    std::vector<int64_t> indices, inverse, counts(firsts.size(), 0);
    for (size_t i = 0; i < runs.size(); ++i) {
      const T* part = x + firsts[runs[i]] * width;
      values.insert(values.end(), part, part + width);
      indices.push_back(firsts[runs[i]]);
      rank[runs[i]] = static_cast<int64_t>(i);
    }
    for (int64_t run : run_of) {
      inverse.push_back(rank[run]);
      ++counts[rank[run]];
    }
    Shape shape = parts.shape();
    shape[0] = static_cast<int64_t>(runs.size());
    const Tensor distinct = Tensor::of<T>(shape, values);
    results = {axes.empty() ? distinct : transposed(distinct, back), Tensor::of<int64_t>({shape[0]}, indices),
               Tensor::of<int64_t>({count}, inverse), Tensor::of<int64_t>({shape[0]}, counts)};
  });
  return results;
}

Result nonzero(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("nonzero", attrs, inputs);
  call.expect_inputs(1);
  if (!call.ok()) return call.fail();
  std::vector<Shape> found;
  with_arithmetic<kAnyDType>(inputs[0].dtype(), [&]<class T>(T) {
    for_each_index(inputs[0].shape(), [&](const Shape& at, int64_t i) {
      if (inputs[0].data<T>()[i] != T{}) found.push_back(at);
    });
  });
  const auto rank = static_cast<int64_t>(inputs[0].shape().size()), count = static_cast<int64_t>(found.size());
  Tensor out(DType::kI64, Shape{rank, count});
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t i = 0; i < count; ++i) out.data<int64_t>()[d * count + i] = found[i][d];
  }
  return std::vector{out};
}

Result compress(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("compress", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(1, kBoolean);
  call.expect_rank(1, 1);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  call.expect(call.dim(1, 0) <= call.dim(0, axis), "the condition is longer than the axis");
  if (!call.ok()) return call.fail();
  std::vector<int64_t> kept;
  const auto condition = inputs[1].data<bool>();
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i]) kept.push_back(static_cast<int64_t>(i));
  }
  Shape shape = inputs[0].shape();
  shape[axis] = static_cast<int64_t>(kept.size());
  const auto strides = dense_strides(inputs[0].shape());
  Tensor out(inputs[0].dtype(), shape);
  gather_elements(inputs[0], out, [&](const Shape& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d)
      offset += (static_cast<int64_t>(d) == axis ? kept[at[d]] : at[d]) * strides[d];
    return offset;
  });
  return std::vector{out};
}

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box read_box(const float* x, bool centered) {
  if (centered) return {x[1] - x[3] / 2, x[0] - x[2] / 2, x[1] + x[3] / 2, x[0] + x[2] / 2};
  return {std::min(x[0], x[2]), std::min(x[1], x[3]), std::max(x[0], x[2]), std::max(x[1], x[3])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return false;
  const float shared = height * width, united = a.area() + b.area() - shared;
  return united > 0 && shared / united > threshold;
}

Result non_max_suppression(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("non_max_suppression", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, {DType::kF32});
  call.expect_one_dtype();
  call.expect_rank(0, 3);
  call.expect_rank(1, 3);
  const int64_t most = call.integer("max_boxes", 0, INT64_MAX);
  const bool centered = call.integer("centered", 0, 1) == 1;
  const auto iou = static_cast<float>(call.real("iou_threshold")),
             least = static_cast<float>(call.real("score_threshold"));
  call.expect(call.dim(0, 2) == 4 && call.dim(0, 0) == call.dim(1, 0) && call.dim(0, 1) == call.dim(1, 2),
              "boxes must be [B, N, 4], scores [B, C, N]");
  if (!call.ok()) return call.fail();
  const int64_t batches = call.dim(1, 0), classes = call.dim(1, 1), count = call.dim(1, 2);
  const auto boxes = inputs[0].data<float>(), scores = inputs[1].data<float>();
  std::vector<int64_t> chosen;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t c = 0; c < classes; ++c) {
      const auto from = scores.subspan((b * classes + c) * count, count);
      std::vector<Box> kept;
      for (int64_t i : ranking(std::vector<float>(from.begin(), from.end()), true)) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        if (!(from[i] > least)) continue;
        const Box box = read_box(boxes.data() + (b * count + i) * 4, centered);
        if (std::ranges::any_of(kept, [&](const Box& other) { return overlaps(box, other, iou); })) continue;
        kept.push_back(box);
        chosen.insert(chosen.end(), {b, c, i});
      }
    }
  }
  return std::vector{Tensor::of<int64_t>({static_cast<int64_t>(chosen.size()) / 3, 3}, chosen)};
}

}  // namespace

std::span<const Entry> order_kernels() {
  static constexpr Entry kEntries[] = {{"top_k", top_k},
                                       {"sort", sort<"sort", true>},
                                       {"arg_sort", sort<"arg_sort", false>},
                                       {"unique", unique},
                                       {"nonzero", nonzero},
                                       {"compress", compress},
                                       {"non_max_suppression", non_max_suppression}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
