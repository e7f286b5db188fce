#include "runtime/reference/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::runtime::reference {

const Tensor Call::none_;

Call::Call(std::string_view op, const Attrs& attrs, std::span<const Tensor> inputs)
    : op_(op), attrs_(attrs), inputs_(inputs) {}

void Call::expect(bool condition, std::string_view what) {
  if (condition || !ok()) return;
  std::string shapes;
  for (const Tensor& input : inputs_) {
    shapes += fmt::format("{}{}{}", shapes.empty() ? "" : ", ", input ? name(input.dtype()) : "none",
                          to_string(input.shape()));
  }
  problem_ = fmt::format("{}: {}: inputs {}", op_, what, shapes);
}

// A message is only made where it is needed: kernels of a few elements would take longer for it than for their work.
void Call::expect_inputs(size_t count) {
  if (inputs_.size() != count) expect(false, fmt::format("needs {} inputs, found {}", count, inputs_.size()));
  expect(std::ranges::all_of(inputs_, [](const Tensor& tensor) { return bool(tensor); }), "an input is missing");
}

void Call::expect_dtype(size_t i, DTypes allowed) {
  if (i < inputs_.size() && allowed.contains(inputs_[i].dtype())) return;
  expect(false, fmt::format("input {} has a dtype that is not supported", i));
}

void Call::expect_one_dtype() {
  expect(std::ranges::all_of(inputs_, [&](const Tensor& tensor) { return tensor.dtype() == inputs_[0].dtype(); }),
         "all must have one dtype");
}

void Call::expect_rank(size_t i, int64_t rank) {
  if (static_cast<int64_t>(input(i).shape().size()) == rank) return;
  expect(false, fmt::format("input {} must have {} dims", i, rank));
}

void Call::expect_size(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    expect(size >= 0 && size <= kMaxExtent, "the result is too large");
    if (!ok()) return;
    elements *= std::max<int64_t>(size, 1);
    expect(elements <= kMaxExtent, "the result is too large");
    if (!ok()) return;
  }
}

int64_t Call::dim(size_t i, size_t axis) const {
  const Shape& shape = input(i).shape();
  return axis < shape.size() ? shape[axis] : 0;
}

int64_t Call::integer(std::string_view name, int64_t lo, int64_t hi) {
  auto found = attrs_.find(name);
  auto* value = found == attrs_.end() ? nullptr : std::get_if<int64_t>(&found->second);
  if (!value) expect(false, fmt::format("needs the integer attribute {}", name));
  if (!value) return lo;
  if (*value < lo || *value > hi) expect(false, fmt::format("{} is {}, must be in {} .. {}", name, *value, lo, hi));
  return std::clamp(*value, lo, hi);
}

double Call::real(std::string_view name) {
  auto found = attrs_.find(name);
  auto* value = found == attrs_.end() ? nullptr : std::get_if<double>(&found->second);
  if (!value) expect(false, fmt::format("needs the float attribute {}", name));
  return value ? *value : 0;
}

std::string Call::string(std::string_view name) {
  auto found = attrs_.find(name);
  auto* value = found == attrs_.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (!value) expect(false, fmt::format("needs the string attribute {}", name));
  return value ? *value : std::string();
}

std::vector<int64_t> Call::integers(std::string_view name, size_t count, int64_t lo, int64_t hi) {
  auto found = attrs_.find(name);
  auto* value = found == attrs_.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  if (!value || (count != 0 && value->size() != count))
    expect(false, fmt::format("needs {} integers as attribute {}", count, name));
  if (!ok()) return std::vector<int64_t>(count, lo);
  for (int64_t element : *value) {
    if (element < lo || element > hi)
      expect(false, fmt::format("{} has {}, must be in {} .. {}", name, element, lo, hi));
  }
  return *value;
}

std::vector<double> Call::reals(std::string_view name) {
  auto found = attrs_.find(name);
  auto* value = found == attrs_.end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
  if (!value) expect(false, fmt::format("needs the float list {}", name));
  return value ? *value : std::vector<double>();
}

int64_t Call::axis(std::string_view name, int64_t rank) {
  expect(rank > 0, "needs at least one dim");
  if (!ok()) return 0;
  const int64_t axis = integer(name, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

bool representable(DType dtype, double value) {
  constexpr DTypes kFloats = kReals | kNarrowFloats;
  if (kFloats.contains(dtype)) return true;
  return runtime::with_dtype<kAnyDType.without(kFloats)>(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) return value == 0 || value == 1;
    else if constexpr (is_narrow<T>) return value >= T::format.min() && value <= T::format.max();
    // 2^n of the range's upper end is exact in a double, while the largest i64 and u64 are not.
    else
      return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value < std::ldexp(1.0, std::numeric_limits<T>::digits);
  });
}

AxisView view_axis(const Shape& shape, int64_t axis) {
  AxisView view;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    (i < axis ? view.outer : i == axis ? view.length : view.inner) *= shape[i];
  }
  return view;
}

int64_t window_count(int64_t extent, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation,
                     bool ceil) {
  const int64_t positions = extent + before + after - ((kernel - 1) * dilation + 1);
  if (positions < 0) return 0;
  int64_t steps = positions / stride;
  if (ceil && positions % stride != 0 && (steps + 1) * stride < extent + before) ++steps;
  return steps + 1;
}

}  // namespace tenon::runtime::reference
