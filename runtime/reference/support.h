// Utilities of the reference kernels: checked access to attributes and inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dtype.h"
#include "runtime/reference/kernels.h"

namespace tenon::runtime::reference {

using Result = Expected<std::vector<Tensor>>;

struct Entry {
  std::string_view op;
  Kernel kernel;
};

// visit(T{}) for the C++ type of `dtype`, which must be one of `allowed` and has arithmetic: the arguments of
// a kernel have no types of storage (Kernel).
template <DTypes allowed, class F>
void with_arithmetic(DType dtype, F&& visit) {
  runtime::with_dtype<allowed.without(kStorageTypes)>(dtype, std::forward<F>(visit));
}

// A tensor of a type of storage in the type that kernels compute in.
Tensor widened(const Tensor& tensor);

// A name as a template argument, so that one template makes the kernels of many operators.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) { std::copy_n(name, n, text); }  // NOLINT: a literal is a name
  constexpr std::string_view view() const { return {text, n - 1}; }
};

// A kernel's view of its call. A failed access is recorded and reads as zero, so that a kernel reads all attributes,
// tests `ok()` once and computes.
class Call {
 public:
  Call(std::string_view op, const Attrs& attrs, std::span<const Tensor> inputs);

  // Exactly `count` inputs, all of them tensors.
  void expect_inputs(size_t count);
  void expect(bool condition, std::string_view what);
  void expect_dtype(size_t input, DTypes allowed);
  // All inputs have the dtype of the first.
  void expect_one_dtype();
  void expect_rank(size_t input, int64_t rank);
  // Refuses results that are too large for any machine, before they are allocated.
  void expect_size(std::span<const int64_t> shape);

  int64_t integer(std::string_view name, int64_t lo, int64_t hi);
  double real(std::string_view name);
  std::string string(std::string_view name);
  std::vector<int64_t> integers(std::string_view name, size_t count, int64_t lo, int64_t hi);  // count 0: any
  std::vector<double> reals(std::string_view name);
  int64_t axis(std::string_view name, int64_t rank);  // 0 .. rank - 1

  std::string_view op() const { return op_; }
  const Tensor& input(size_t i) const { return i < inputs_.size() ? inputs_[i] : none_; }
  int64_t dim(size_t input, size_t axis) const;
  size_t count() const { return inputs_.size(); }

  bool ok() const { return problem_.empty(); }
  std::unexpected<Diagnostic> fail() const { return error(problem_); }

 private:
  std::string_view op_;
  const Attrs& attrs_;
  std::span<const Tensor> inputs_;
  std::string problem_;
  static const Tensor none_;
};

inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

// Whether the value of a float attribute is one of the dtype; every float counts as representable in f32.
bool representable(DType dtype, double value);

// A dense tensor as three axes: the elements before, along and after one axis.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
};
AxisView view_axis(const Shape& shape, int64_t axis);

// Number of windows; 0 if none fits.
int64_t window_count(int64_t extent, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation,
                     bool ceil);

}  // namespace tenon::runtime::reference
