// Images resampled: resize, grid_sample, roi_align. Coordinates are those of ONNX.
#include <array>
#include <cmath>
#include <limits>

#include "runtime/reference/elements.h"
#include "runtime/reference/resize.h"

namespace tenon::runtime::reference {
namespace {

// Resizes along one axis; a resize along several axes is one after another, since its weights are products.
template <class T>
Tensor resize_axis(const Resize& r, const Tensor& x, int64_t axis, int64_t length, T scale) {
  Shape shape = x.shape();
  shape[axis] = length;
  Tensor out(x.dtype(), shape);
  const AxisView from = view_axis(x.shape(), axis);
  for (int64_t i = 0; i < length; ++i) {
    const WeightedIndices<T> sources = weighted_indices(r, i, from.length, length, scale);
    for (int64_t o = 0; o < from.outer; ++o) {
      for (int64_t k = 0; k < from.inner; ++k) {
        T sum = 0;
        for (size_t s = 0; s < sources.index.size(); ++s) {
          sum += sources.weight[s] * x.data<T>()[(o * from.length + sources.index[s]) * from.inner + k];
        }
        out.data<T>()[(o * length + i) * from.inner + k] = sum;
      }
    }
  }
  return out;
}

Result resize(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("resize", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kReals);
  const size_t rank = call.input(0).shape().size();
  Resize r{call.string("mode"),
           call.string("coordinates"),
           call.string("nearest"),
           call.real("cubic"),
           call.integer("exclude_outside", 0, 1) == 1,
           call.integer("antialias", 0, 1) == 1};
  call.expect(is_one_of(r.mode, kResizeModes), "mode is not supported");
  call.expect(is_one_of(r.coordinates, kResizeCoordinates), "coordinates are not supported");
  call.expect(is_one_of(r.nearest, kResizeRoundings), "nearest is not supported");
  const auto sizes = call.integers("sizes", 0, -1, kMaxExtent);
  std::vector<double> scales = call.reals("scales");
  call.expect(sizes.empty() || sizes.size() == rank, "needs a size for each dim");
  call.expect(scales.empty() || scales.size() == rank, "needs a scale for each dim");
  call.expect(!sizes.empty() || !scales.empty(), "needs sizes or scales");
  if (!call.ok()) return call.fail();
  Shape shape = inputs[0].shape();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t in = shape[d];
    if (!scales.empty()) call.expect(scales[d] > 0 && scales[d] <= 1 << 20, "a scale is not positive");
    if (!call.ok()) return call.fail();
    if (sizes.empty()) shape[d] = resized_length(in, scales[d]);
    else if (sizes[d] >= 0) shape[d] = sizes[d];
    call.expect(in > 0 || shape[d] == 0, "there is nothing to resize");
  }
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out = inputs[0];
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    for (size_t d = 0; d < rank; ++d) {
      const int64_t in = inputs[0].shape()[d];
      const T scale = scales.empty() ? static_cast<T>(shape[d]) / static_cast<T>(in) : static_cast<T>(scales[d]);
      if (scale == 1 && shape[d] == in) continue;
      out = resize_axis<T>(r, out, static_cast<int64_t>(d), shape[d], scale);
    }
  });
  return std::vector{out};
}

// One channel of an image or, with a depth other than 1, of a volume, with values outside of its bounds.
template <class T>
struct Map {
  const T* data;
  int64_t depth, height, width;
  std::string padding;
  bool align;

  // Mirrors at the boundary: at the centres of the outer elements if corners are aligned, else at their outer edges.
  int64_t mirrored(int64_t i, int64_t n) const {
    if (align && n == 1) return 0;
    const int64_t period = align ? 2 * (n - 1) : 2 * n;
    int64_t at = ((i % period) + period) % period;
    return at < n ? at : (align ? period - at : period - 1 - at);
  }
  // The index along an axis of n elements; -1 for an element that is zero.
  int64_t index(T position, int64_t n) const {
    constexpr T kFar = T(1 << 24);  // farther coordinates have the same values, and integers up to it are exact
    const auto i = static_cast<int64_t>(std::clamp(position, -kFar, kFar));
    if (padding == "border") return std::clamp<int64_t>(i, 0, n - 1);
    if (padding == "reflection") return mirrored(i, n);
    return i < 0 || i >= n ? -1 : i;
  }
  T at(T layer, T row, T column) const {
    const int64_t z = index(layer, depth), y = index(row, height), x = index(column, width);
    return z < 0 || y < 0 || x < 0 ? T{0} : data[(z * height + y) * width + x];
  }
};

template <class T>
T bilinear(const Map<T>& map, T layer, T y, T x) {
  const T top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  return (1 - dy) * ((1 - dx) * map.at(layer, top, left) + dx * map.at(layer, top, left + 1)) +
         dy * ((1 - dx) * map.at(layer, top + 1, left) + dx * map.at(layer, top + 1, left + 1));
}

template <class T>
T sample(const Map<T>& map, const std::string& mode, T z, T y, T x) {
  if (!std::isfinite(z) || !std::isfinite(y) || !std::isfinite(x)) return T{0};
  if (mode == "nearest") return map.at(std::nearbyint(z), std::nearbyint(y), std::nearbyint(x));
  if (mode == "linear") {
    const T front = std::floor(z), dz = z - front;
    if (dz == 0) return bilinear(map, front, y, x);
    return (1 - dz) * bilinear(map, front, y, x) + dz * bilinear(map, front + 1, y, x);
  }
  const T top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  const auto rows = cubic_weights(dy, T(-0.75)), columns = cubic_weights(dx, T(-0.75));
  T sum = 0;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) {
      sum += rows[i] * columns[k] * map.at(0, top + static_cast<T>(i - 1), left + static_cast<T>(k - 1));
    }
  }
  return sum;
}

Result grid_sample(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("grid_sample", attrs, inputs);
  call.expect_inputs(2);
  call.expect_dtype(0, kReals);
  call.expect_one_dtype();
  const bool volume = call.input(0).shape().size() == 5;
  const size_t dims = volume ? 3 : 2;
  call.expect_rank(0, static_cast<int64_t>(dims) + 2);
  call.expect_rank(1, static_cast<int64_t>(dims) + 2);
  const std::string mode = call.string("mode"), padding = call.string("padding");
  const bool align = call.integer("align_corners", 0, 1) == 1, normalized = call.integer("normalized", 0, 1) == 1;
  call.expect(is_one_of(mode, kResizeModes) && (!volume || mode != "cubic"), "mode is not supported");
  call.expect(padding == "zeros" || padding == "border" || padding == "reflection", "padding is not supported");
  call.expect(call.dim(1, 0) == call.dim(0, 0) && call.dim(1, dims + 1) == static_cast<int64_t>(dims),
              "the grid must be [N, H, W, 2] or [N, D, H, W, 3]");
  const int64_t channels = call.dim(0, 1), depth = volume ? call.dim(0, 2) : 1, height = call.dim(0, dims),
                width = call.dim(0, dims + 1);
  for (const int64_t size : {depth, height, width}) {
    call.expect(size > 0 && size < 1 << 24, "the maps are empty or too large");
  }
  Shape shape{call.dim(0, 0), channels};
  for (size_t d = 0; d < dims; ++d) shape.push_back(call.dim(1, d + 1));
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  const int64_t points = element_count(std::span(shape).subspan(2));
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto coordinate = [&](T value, int64_t size) {
      const T n = static_cast<T>(size);
      if (!normalized) return value;
      return align ? (value + 1) / 2 * (n - 1) : ((value + 1) * n - 1) / 2;
    };
    for (int64_t i = 0; i < out.size(); ++i) {
      const int64_t channel = i / points, batch = channel / channels;
      const T* point = inputs[1].data<T>().data() + (batch * points + i % points) * static_cast<int64_t>(dims);
      const Map<T> map{
          inputs[0].data<T>().data() + channel * depth * height * width, depth, height, width, padding, align};
      out.data<T>()[i] = sample(map, mode, volume ? coordinate(point[2], depth) : T{0}, coordinate(point[1], height),
                                coordinate(point[0], width));
    }
  });
  return std::vector{out};
}

Result roi_align(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("roi_align", attrs, inputs);
  call.expect_inputs(3);
  call.expect_dtype(0, kReals);
  call.expect_dtype(2, kIndices);
  call.expect(call.ok() && inputs[0].dtype() == inputs[1].dtype(), "x and rois must have one dtype");
  call.expect_rank(0, 4);
  call.expect_rank(1, 2);
  call.expect_rank(2, 1);
  const auto size = call.integers("size", 2, 1, 1 << 12);
  const int64_t ratio = call.integer("sampling_ratio", 0, 1 << 10);
  const double scale = call.real("spatial_scale");
  const std::string mode = call.string("mode");
  const bool half = call.integer("half_pixel", 0, 1) == 1;
  call.expect(mode == "avg" || mode == "max", "mode must be avg or max");
  const int64_t rois = call.dim(1, 0), channels = call.dim(0, 1), height = call.dim(0, 2), width = call.dim(0, 3);
  call.expect(call.dim(1, 1) == 4 && call.dim(2, 0) == rois, "rois must be [R, 4], batches [R]");
  call.expect(std::isfinite(scale) && height > 0 && width > 0, "the maps are empty, or the scale is not finite");
  if (!call.ok()) return call.fail();
  const auto batches = to_int64(inputs[2]);
  for (int64_t batch : batches) call.expect(batch >= 0 && batch < call.dim(0, 0), "a batch is outside of x");
  const Shape shape{rois, channels, size[0], size[1]};
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    const T offset = half ? T(0.5) : T{0};
    for_each_index(shape, [&](const Shape& at, int64_t i) {
      const T* roi = inputs[1].data<T>().data() + at[0] * 4;
      const T* map = inputs[0].data<T>().data() + (batches[at[0]] * channels + at[1]) * height * width;
      const T s = static_cast<T>(scale), left = roi[0] * s - offset, top = roi[1] * s - offset;
      T w = roi[2] * s - offset - left, h = roi[3] * s - offset - top;
      if (!half) w = std::max(w, T{1}), h = std::max(h, T{1});
      const T bin_h = h / static_cast<T>(size[0]), bin_w = w / static_cast<T>(size[1]);
      auto samples = [&](T bin) {
        return ratio > 0            ? ratio
               : std::isfinite(bin) ? static_cast<int64_t>(std::clamp<T>(std::ceil(bin), 0, 1 << 10))
                                    : 0;
      };
      const int64_t rows = samples(bin_h), columns = samples(bin_w);
      T sum = 0, best = rows * columns == 0 ? T{0} : -std::numeric_limits<T>::infinity();
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          T y = top + (static_cast<T>(at[2]) + (static_cast<T>(r) + T(0.5)) / static_cast<T>(rows)) * bin_h;
          T x = left + (static_cast<T>(at[3]) + (static_cast<T>(c) + T(0.5)) / static_cast<T>(columns)) * bin_w;
          T corners[4] = {0, 0, 0, 0};
          // A point more than one element outside counts as zero; other points outside are clamped to the boundary.
          if (y >= -1 && y <= static_cast<T>(height) && x >= -1 && x <= static_cast<T>(width)) {
            y = std::clamp<T>(y, 0, static_cast<T>(height - 1)), x = std::clamp<T>(x, 0, static_cast<T>(width - 1));
            const auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
            const int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
            const T dy = y - static_cast<T>(y0), dx = x - static_cast<T>(x0);
            corners[0] = (1 - dy) * (1 - dx) * map[y0 * width + x0], corners[1] = (1 - dy) * dx * map[y0 * width + x1];
            corners[2] = dy * (1 - dx) * map[y1 * width + x0], corners[3] = dy * dx * map[y1 * width + x1];
          }
          // The maximum is that of the weighted corners, as in ONNX; NaN is ignored, as in ONNX Runtime.
          for (const T corner : corners) best = std::max(best, corner);
          sum += corners[0] + corners[1] + corners[2] + corners[3];
        }
      }
      out.data<T>()[i] = mode == "max" ? best : sum / static_cast<T>(std::max<int64_t>(rows * columns, 1));
    });
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> image_kernels() {
  static constexpr Entry kEntries[] = {{"resize", resize}, {"grid_sample", grid_sample}, {"roi_align", roi_align}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
