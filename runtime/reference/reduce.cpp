// Reductions over axes, and scans and normalizations along one axis.
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {
namespace {

template <class T>
constexpr bool kIsFloating = std::is_floating_point_v<T>;
template <class T>
constexpr T kLowest = kIsFloating<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
template <class T>
constexpr T kHighest = kIsFloating<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

template <class T>
T wrapping_add(T a, T b) {
  if constexpr (kIsFloating<T>) return a + b;
  else return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T wrapping_multiply(T a, T b) {
  if constexpr (kIsFloating<T>) return a * b;
  else return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Transposes the reduced axes to the end; f then reduces each row to one element.
template <Name op, DTypes allowed, class F>
Result reduce(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, allowed);
  const auto rank = static_cast<int64_t>(call.input(0).shape().size());
  const auto axes = call.integers("axes", 0, -rank, rank - 1);
  const bool keep = call.integer("keep", 0, 1) == 1;
  if (!call.ok()) return call.fail();
  std::vector<bool> reduced(rank, axes.empty());
  for (int64_t axis : axes) reduced[axis < 0 ? axis + rank : axis] = true;
  std::vector<int64_t> order;
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (!reduced[i]) order.push_back(i);
    if (!reduced[i] || keep) shape.push_back(reduced[i] ? 1 : inputs[0].shape()[i]);
  }
  int64_t length = 1;
  for (int64_t i = 0; i < rank; ++i) {
    if (!reduced[i]) continue;
    order.push_back(i);
    length *= inputs[0].shape()[i];
  }
  const Tensor rows = transposed(inputs[0], order);
  Tensor out(inputs[0].dtype(), shape);
  with_arithmetic<allowed>(out.dtype(), [&]<class T>(T) {
    auto x = rows.data<T>();
    auto y = out.data<T>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = F{}(x.subspan(i * static_cast<size_t>(length), length));
  });
  return std::vector{out};
}

template <Name op, DTypes allowed, class F>
constexpr Entry reduction(F) {
  return {op.view(), reduce<op, allowed, F>};
}

template <class T, class F>
T sum_of(std::span<const T> row, F&& f) {
  T sum{};
  for (T x : row) sum = wrapping_add(sum, f(x));
  return sum;
}
constexpr auto kSame = [](auto x) { return x; };
constexpr auto kSquare = [](auto x) { return wrapping_multiply(x, x); };

// f(line in, line out) along the attribute `axis`.
template <DTypes allowed, class F>
Result along_axis(std::string_view op, const Attrs& attrs, std::span<const Tensor> inputs, F&& f) {
  Call call(op, attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, allowed);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), axis);
  with_arithmetic<allowed>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>();
    auto y = out.data<T>();
    std::vector<T> from(view.length), to(view.length);
    for_each_line(view, [&](auto at) {
      for (int64_t k = 0; k < view.length; ++k) from[k] = x[at(k)];
      f(from, to);
      for (int64_t k = 0; k < view.length; ++k) y[at(k)] = to[k];
    });
  });
  return std::vector{out};
}

Result softmax(const Attrs& attrs, std::span<const Tensor> inputs) {
  return along_axis<kReals>("softmax", attrs, inputs, []<class T>(const std::vector<T>& x, std::vector<T>& y) {
    T top = kLowest<T>, sum = 0;
    for (T value : x) top = std::max(top, value);
    for (size_t k = 0; k < x.size(); ++k) sum += y[k] = std::exp(x[k] - top);
    for (T& value : y) value /= sum;
  });
}

Result log_softmax(const Attrs& attrs, std::span<const Tensor> inputs) {
  return along_axis<kReals>("log_softmax", attrs, inputs, []<class T>(const std::vector<T>& x, std::vector<T>& y) {
    T top = kLowest<T>, sum = 0;
    for (T value : x) top = std::max(top, value);
    for (T value : x) sum += std::exp(value - top);
    for (size_t k = 0; k < x.size(); ++k) y[k] = x[k] - top - std::log(sum);
  });
}

Result hardmax(const Attrs& attrs, std::span<const Tensor> inputs) {
  return along_axis<kReals>("hardmax", attrs, inputs, []<class T>(const std::vector<T>& x, std::vector<T>& y) {
    std::ranges::fill(y, T{0});
    size_t best = 0;  // a NaN is preferred to all, as arg_max prefers it
    for (size_t k = 1; k < x.size(); ++k) best = x[k] > x[best] || (x[k] != x[k] && x[best] == x[best]) ? k : best;
    if (!x.empty()) y[best] = 1;
  });
}

// cumsum and cumprod.
template <class F>
Result cumulate(std::string_view op, int start, F combine, const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op, attrs, inputs);
  const bool exclusive = call.integer("exclusive", 0, 1) == 1, reverse = call.integer("reverse", 0, 1) == 1;
  if (!call.ok()) return call.fail();
  return along_axis<kNumericTypes>(op, attrs, inputs, [=]<class T>(const std::vector<T>& x, std::vector<T>& y) {
    T so_far = static_cast<T>(start);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t k = reverse ? x.size() - 1 - i : i;
      const T next = combine(so_far, x[k]);
      y[k] = exclusive ? so_far : next;
      so_far = next;
    }
  });
}
Result cumsum(const Attrs& attrs, std::span<const Tensor> inputs) {
  return cumulate(
      "cumsum", 0, [](auto a, auto b) { return wrapping_add(a, b); }, attrs, inputs);
}
Result cumprod(const Attrs& attrs, std::span<const Tensor> inputs) {
  return cumulate(
      "cumprod", 1, [](auto a, auto b) { return wrapping_multiply(a, b); }, attrs, inputs);
}

// The index of the first element that `better` prefers to all others, or of the last. A NaN is preferred to all.
template <Name op, class Better>
Result find_best(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kNumericTypes);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const bool keep = call.integer("keep", 0, 1) == 1, last = call.integer("select_last", 0, 1) == 1;
  call.expect(call.dim(0, axis) > 0, "the axis has no element");
  if (!call.ok()) return call.fail();
  const AxisView view = view_axis(inputs[0].shape(), axis);
  Shape shape = inputs[0].shape();
  if (keep) shape[axis] = 1;
  else shape.erase(shape.begin() + axis);
  Tensor out(DType::kI64, shape);
  int64_t* next = out.data<int64_t>().data();
  with_arithmetic<kNumericTypes>(inputs[0].dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>();
    for_each_line(view, [&](auto at) {
      int64_t best = 0;
      for (int64_t k = 1; k < view.length; ++k) {
        const T value = x[at(k)], champion = x[at(best)];
        const bool equal = value == champion || (value != value && champion != champion);
        const bool wins = value != value ? champion == champion : Better{}(value, champion);
        if (wins || (equal && last)) best = k;
      }
      *next++ = best;
    });
  });
  return std::vector{out};
}
template <Name op, class Better>
constexpr Entry index_of_best(Better) {
  return {op.view(), find_best<op, Better>};
}

}  // namespace

std::span<const Entry> reduce_kernels() {
  static constexpr Entry kEntries[] = {
      reduction<"sum", kNumericTypes>([]<class T>(std::span<const T> row) { return sum_of(row, kSame); }),
      reduction<"mean", kReals>(
          []<class T>(std::span<const T> row) { return sum_of(row, kSame) / static_cast<T>(row.size()); }),
      reduction<"prod", kNumericTypes>([]<class T>(std::span<const T> row) {
        T product = 1;
        for (T x : row) product = wrapping_multiply(product, x);
        return product;
      }),
      reduction<"max", kNumericTypes>([]<class T>(std::span<const T> row) {
        T best = kLowest<T>;
        for (T x : row) best = x > best || x != x ? x : best;
        return best;
      }),
      reduction<"min", kNumericTypes>([]<class T>(std::span<const T> row) {
        T best = kHighest<T>;
        for (T x : row) best = x < best || x != x ? x : best;
        return best;
      }),
      reduction<"all", kBoolean>([](std::span<const bool> row) { return std::ranges::find(row, false) == row.end(); }),
      reduction<"any", kBoolean>([](std::span<const bool> row) { return std::ranges::find(row, true) != row.end(); }),
      reduction<"sum_square", kNumericTypes>([]<class T>(std::span<const T> row) { return sum_of(row, kSquare); }),
      reduction<"norm_l1", kReals>(
          []<class T>(std::span<const T> row) { return sum_of(row, [](T x) { return std::abs(x); }); }),
      reduction<"norm_l2", kReals>([]<class T>(std::span<const T> row) { return std::sqrt(sum_of(row, kSquare)); }),
      reduction<"log_sum", kReals>([]<class T>(std::span<const T> row) { return std::log(sum_of(row, kSame)); }),
      reduction<"log_sum_exp", kReals>([]<class T>(std::span<const T> row) {
        T top = kLowest<T>;
        for (T x : row) top = x > top || x != x ? x : top;
        if (!std::isfinite(top)) return top;  // no element, or one that is infinite or NaN
        return top + std::log(sum_of(row, [=](T x) { return std::exp(x - top); }));
      }),
      index_of_best<"arg_max">([](auto a, auto b) { return a > b; }),
      index_of_best<"arg_min">([](auto a, auto b) { return a < b; }),
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"hardmax", hardmax},
      {"cumsum", cumsum},
      {"cumprod", cumprod},
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
