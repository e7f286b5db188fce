#include "compiler/kernels/zero_points.h"

#include <algorithm>
#include <utility>

#include "runtime/reference/elements.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kLargestTable = 1 << 18;

// The pixels along an axis, by the kernel taps that are inside of the image: a class for each pixel before `first`, one
// for those up to `last`, whose kernel taps are all inside, and one for each after it.
struct Classes {
  int64_t first = 0, last = 0, count = 0;
  std::vector<std::pair<int64_t, int64_t>>
      inside;  // kernel taps of each class: from the first, to the second exclusive
};

std::optional<Classes> classes_of(const Windows& windows, size_t d) {
  const auto out = windows.out[d].constant(), in = windows.in[d].constant(), kernel = windows.kernel[d].constant();
  if (!out || !in || !kernel || *out <= 0) return std::nullopt;
  const int64_t dilation = windows.dilation[d];
  const auto inside_of = [&](int64_t pixel) {
    const int64_t start = pixel * windows.strides[d] - windows.before[d];
    const auto count_below = [&](int64_t index) {
      return std::clamp<int64_t>((index - start + dilation - 1) / dilation, 0, *kernel);
    };
    return std::pair(count_below(0), count_below(*in));
  };
  const auto is_inside = [&](int64_t pixel) { return inside_of(pixel) == std::pair<int64_t, int64_t>(0, *kernel); };
  Classes classes;
  while (classes.first < *out && !is_inside(classes.first)) {
    if (++classes.first > kLargestTable) return std::nullopt;
  }
  classes.last = *out - 1;
  while (classes.last > classes.first && !is_inside(classes.last)) {
    if (*out - --classes.last > kLargestTable) return std::nullopt;
  }
  for (int64_t pixel = 0; pixel <= std::min(classes.first, *out - 1); ++pixel)
    classes.inside.push_back(inside_of(pixel));
  for (int64_t pixel = classes.last + 1; pixel < *out; ++pixel) classes.inside.push_back(inside_of(pixel));
  classes.count = static_cast<int64_t>(classes.inside.size());
  return classes;
}

// The sums over the input channels, [outputs, kernel...].
Tensor channel_sums(const Tensor& weights) {
  runtime::Shape shape = weights.shape();
  const int64_t inputs = shape[1];
  shape.erase(shape.begin() + 1);
  Tensor sums(DType::kI32, shape);
  const auto values = weights.data<int8_t>();
  const auto to = sums.data<int32_t>();
  const auto kernel_size = static_cast<size_t>(sums.size() / shape[0]);
  for (size_t i = 0; i < values.size(); ++i)
    to[i / (static_cast<size_t>(inputs) * kernel_size) * kernel_size + i % kernel_size] += values[i];
  return sums;
}

}  // namespace

std::optional<LazyTensor> zero_point_corrections(const OperatorCall& op, const Windows& windows, const Tensor& weights,
                                                 int64_t zero, int64_t padding) {
  const int64_t outputs = weights.shape()[0];
  std::vector<Classes> classes;
  runtime::Shape shape{outputs};
  for (size_t d = 0; d < windows.rank(); ++d) {
    auto of_axis = classes_of(windows, d);
    if (!of_axis) return std::nullopt;
    shape.push_back(of_axis->count);
    classes.push_back(std::move(*of_axis));
  }
  if (weights.size() == 0 || runtime::element_count(shape) > kLargestTable) return std::nullopt;
  const Tensor sums = channel_sums(weights);
  Tensor table(DType::kI32, shape);
  const auto values = sums.data<int32_t>();
  runtime::reference::for_each_index(shape, [&](const runtime::Shape& at, int64_t to) {
    uint32_t correction = 0;
    const runtime::Shape kernel(sums.shape().begin() + 1, sums.shape().end());
    runtime::reference::for_each_index(kernel, [&](const runtime::Shape& kernel_index, int64_t offset) {
      bool inside = true;
      for (size_t d = 0; d < windows.rank(); ++d) {
        const auto [begin, end] = classes[d].inside[static_cast<size_t>(at[1 + d])];
        inside &= begin <= kernel_index[d] && kernel_index[d] < end;
      }
      const int64_t weight = values[static_cast<size_t>(at[0] * runtime::element_count(kernel) + offset)];
      correction += static_cast<uint32_t>((inside ? -zero : padding) * weight);
    });
    table.data<int32_t>()[static_cast<size_t>(to)] = static_cast<int32_t>(correction);
  });
  return op.emit.expression(
      op.dims(), DType::kI32, [=, &context = op.context(), table = op.emit.constant(table)](const Dims& at) {
        Dims from{at[1]};
        for (size_t d = 0; d < classes.size(); ++d) {
          const Dim before = context.minimum({at[2 + d], context.dim(classes[d].first)});
          const Dim after =
              context.maximum({context.subtract(at[2 + d], context.dim(classes[d].last)), context.dim(0)});
          from.push_back(classes[d].count == 1 ? context.dim(0) : context.add(before, after));
        }
        return table.at(from);
      });
}

}  // namespace tenon::compiler::kernels
