// Reference kernels: the semantics of every operator, naive and obvious. The compiler's interpreter runs models with
// them, the runtime falls back to them, and every back end is tested against them.
//
// A kernel checks its inputs and attributes itself (an executable may be hostile) and returns new tensors or views of
// its inputs. Integer arithmetic wraps unless an operator says otherwise; float sums are taken in f32 in memory order.
// The kernels of f16 and bf16 are those of f32: inputs are converted exactly, and each element of the result is rounded
// once, to the dtype of the attribute `dtype` where the operator has one, else to that of the first such input.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/attrs.h"
#include "runtime/tensor.h"

namespace tenon::runtime::reference {

class Kernel {
 public:
  using Function = Expected<std::vector<Tensor>> (*)(const Attrs& attrs, std::span<const Tensor> inputs);

  Kernel() = default;
  template <class F>
  requires std::is_convertible_v<F, Function>
  constexpr Kernel(F function) : function_(function) {}  // NOLINT: a function is a kernel, and nullptr is none
  // A kernel that handles types of storage itself.
  static constexpr Kernel of_any_dtype(Function function) {
    Kernel kernel(function);
    kernel.any_dtype_ = true;
    return kernel;
  }

  constexpr explicit operator bool() const { return function_ != nullptr; }
  Expected<std::vector<Tensor>> operator()(const Attrs& attrs, std::span<const Tensor> inputs) const;

 private:
  Function function_ = nullptr;
  bool any_dtype_ = false;
};

// The kernel of an operator; none if it has none.
Kernel find(std::string_view op);
std::vector<std::string_view> names();

}  // namespace tenon::runtime::reference
