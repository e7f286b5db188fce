// Dense layers, matrix products and sums of products.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "runtime/reference/einsum.h"
#include "runtime/reference/elements.h"
#include "runtime/reference/product.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

void expect_factors(Call& call) {
  call.expect_inputs(2);
  call.expect_dtype(0, kFactors);
  call.expect_one_dtype();
}

// rows [count][depth] times weights [outputs][depth].
template <class T>
void multiply_rows(std::span<const T> rows, std::span<const T> weights, std::span<Sum<T>> out, int64_t depth,
                   int64_t outputs) {
  const std::vector<Factor<T>> prepared = prepare(weights, outputs, depth);
  std::vector<Factor<T>> column(depth);
  const int64_t count = outputs ? static_cast<int64_t>(out.size()) / outputs : 0;
  for (int64_t n = 0; n < count; ++n) {
    std::copy_n(rows.begin() + n * depth, depth, column.begin());
    multiply(column, prepared, outputs, out.data() + n * outputs);
  }
}

Result dense(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("dense", attrs, inputs);
  expect_factors(call);
  call.expect_rank(0, 2);
  call.expect_rank(1, 2);
  call.expect(call.dim(0, 1) == call.dim(1, 1), "the features differ");
  if (!call.ok()) return call.fail();
  const int64_t depth = call.dim(0, 1), outputs = call.dim(1, 0);
  const Shape shape{call.dim(0, 0), outputs};
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(product_dtype(inputs[0].dtype()), shape);
  with_arithmetic<kFactors>(inputs[0].dtype(), [&]<class T>(T) {
    multiply_rows<T>(inputs[0].data<T>(), inputs[1].data<T>(), out.data<Sum<T>>(), depth, outputs);
  });
  return std::vector{out};
}

template <class T>
void multiply_matrices(const Tensor& a, const Tensor& b, Tensor& out) {
  const size_t rank = out.shape().size();
  const int64_t rows = out.shape()[rank - 2], columns = out.shape()[rank - 1], depth = a.shape().back();
  const int64_t matrices = element_count(std::span(out.shape()).first(rank - 2));
  std::vector<T> columns_first(columns * depth);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    // The matrix's index in an operand whose leading dims may be 1 or absent.
    auto index_in = [&](const Shape& shape) {
      int64_t remaining = matrix, index = 0, scale = 1;
      for (size_t back = 3; back <= rank; ++back) {
        const int64_t size = out.shape()[rank - back], at = remaining % size;
        remaining /= size;
        if (back > shape.size()) continue;
        const int64_t extent = shape[shape.size() - back];
        index += (extent == 1 ? 0 : at) * scale;
        scale *= extent;
      }
      return index;
    };
    const auto left = a.data<T>().subspan(index_in(a.shape()) * rows * depth, rows * depth);
    const auto right = b.data<T>().subspan(index_in(b.shape()) * depth * columns, depth * columns);
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t m = 0; m < columns; ++m) columns_first[m * depth + k] = right[k * columns + m];
    }
    multiply_rows<T>(left, columns_first, out.data<Sum<T>>().subspan(matrix * rows * columns, rows * columns), depth,
                     columns);
  }
}

Result matmul(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("matmul", attrs, inputs);
  expect_factors(call);
  if (!call.ok()) return call.fail();
  const Shape &a = inputs[0].shape(), &b = inputs[1].shape();
  call.expect(a.size() >= 2 && b.size() >= 2, "both must have at least 2 dims");
  if (!call.ok()) return call.fail();
  call.expect(a.back() == b[b.size() - 2], "columns of a and rows of b differ");
  const size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (size_t back = 3; back <= rank; ++back) {
    const int64_t left = back > a.size() ? 1 : a[a.size() - back], right = back > b.size() ? 1 : b[b.size() - back];
    call.expect(left == right || left == 1 || right == 1, "the leading dims do not broadcast");
    shape[rank - back] = left == 1 ? right : left;
  }
  shape[rank - 2] = a[a.size() - 2];
  shape[rank - 1] = b.back();
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(product_dtype(inputs[0].dtype()), shape);
  with_arithmetic<kFactors>(inputs[0].dtype(), [&]<class T>(T) { multiply_matrices<T>(inputs[0], inputs[1], out); });
  return std::vector{out};
}

Result einsum(const Attrs& attrs, std::span<const Tensor> inputs) {
  constexpr DTypes kTypes = DTypes{DType::kI32, DType::kI64} | kReals;
  Call call("einsum", attrs, inputs);
  call.expect_inputs(std::max<size_t>(inputs.size(), 1));
  call.expect_dtype(0, kTypes);
  call.expect_one_dtype();
  const std::string equation = call.string("equation");
  if (!call.ok()) return call.fail();
  std::vector<int64_t> ranks;
  for (const Tensor& input : inputs) ranks.push_back(static_cast<int64_t>(input.shape().size()));
  TENON_TRY_ASSIGN(parsed, Einsum::parse(equation, ranks));
  std::map<char, int64_t> sizes;
  for (size_t n = 0; n < inputs.size(); ++n) {
    for (size_t d = 0; d < parsed->inputs[n].size(); ++d) {
      const int64_t size = sizes.emplace(parsed->inputs[n][d], inputs[n].shape()[d]).first->second;
      call.expect(size == inputs[n].shape()[d], "an axis has two sizes");
    }
  }
  const std::string summed = parsed->summed();
  Shape shape, sum_shape;
  for (char axis : parsed->output) shape.push_back(sizes[axis]);
  for (char axis : summed) sum_shape.push_back(sizes[axis]);
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  // By input: its stride along each of the axes, which are those of the result or of the sum.
  auto strides_of = [&](const std::string& axes) {
    std::vector<std::vector<int64_t>> of_inputs;
    for (size_t n = 0; n < inputs.size(); ++n) {
      const auto input_strides = dense_strides(inputs[n].shape());
      std::vector<int64_t> strides(axes.size(), 0);
      for (size_t d = 0; d < input_strides.size(); ++d) {
        const size_t axis = axes.find(parsed->inputs[n][d]);
        if (axis != std::string::npos) strides[axis] += input_strides[d];
      }
      of_inputs.push_back(strides);
    }
    return of_inputs;
  };
  const auto out_strides = strides_of(parsed->output), sum_strides = strides_of(summed);
  auto dot = [](const Shape& at, const std::vector<int64_t>& strides) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    return offset;
  };
  Tensor out(inputs[0].dtype(), shape);
  with_arithmetic<kTypes>(out.dtype(), [&]<class T>(T) {
    using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
    auto y = out.data<T>();
    for_each_index(shape, [&](const Shape& at, int64_t i) {
      Wrapping sum = 0;
      for_each_index(sum_shape, [&](const Shape& k, int64_t) {
        Wrapping product = 1;
        for (size_t n = 0; n < inputs.size(); ++n) {
          product *= static_cast<Wrapping>(inputs[n].data<T>()[dot(at, out_strides[n]) + dot(k, sum_strides[n])]);
        }
        sum += product;
      });
      y[i] = static_cast<T>(sum);
    });
  });
  return std::vector{out};
}

// The determinant of a matrix of n rows, which elimination with partial pivoting overwrites.
double determinant(std::span<double> a, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a.begin() + pivot * n, a.begin() + (pivot + 1) * n, a.begin() + k * n);
      result = -result;
    }
    const double diagonal = a[k * n + k];
    result *= diagonal;
    if (diagonal == 0) return result;
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / diagonal;
      for (int64_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return result;
}

Result det(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("det", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kReals);
  const size_t rank = call.input(0).shape().size();
  call.expect(rank >= 2 && call.dim(0, rank - 2) == call.dim(0, rank - 1), "the matrices must be square");
  if (!call.ok()) return call.fail();
  const Shape& shape = inputs[0].shape();
  const int64_t n = shape.back(), elements = n * n;
  Tensor out(inputs[0].dtype(), Shape(shape.begin(), shape.end() - 2));
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    const auto x = inputs[0].data<T>();
    std::vector<double> matrix(static_cast<size_t>(elements));  // in f64: products of pivots lose digits
    for (int64_t i = 0; i < out.size(); ++i) {
      std::copy_n(x.begin() + i * elements, elements, matrix.begin());
      out.data<T>()[i] = static_cast<T>(determinant(matrix, n));
    }
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> contraction_kernels() {
  static constexpr Entry kEntries[] = {{"dense", dense}, {"matmul", matmul}, {"det", det}, {"einsum", einsum}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
