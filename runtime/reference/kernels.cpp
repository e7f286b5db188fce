#include "runtime/reference/kernels.h"

#include <algorithm>
#include <optional>

#include "runtime/reference/support.h"
#include "support/try.h"

namespace tenon::runtime::reference {

std::vector<std::span<const Entry>> families();  // generated

namespace {

// The short float type that the attribute `dtype` names.
std::optional<DType> short_float(const Attrs& attrs) {
  const auto found = attrs.find("dtype");
  const auto* name = found == attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
  const auto dtype = name ? parse_dtype(*name) : error("");
  return dtype && kShortFloats.contains(*dtype) ? std::optional(*dtype) : std::nullopt;
}

// The tensor in another type of real numbers.
Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor out = Tensor::for_overwrite(dtype, tensor.shape());
  runtime::with_dtype<kReals>(tensor.dtype(), [&]<class From>(From) {
    runtime::with_dtype<kReals>(dtype, [&]<class To>(To) {
      std::ranges::transform(tensor.data<From>(), out.data<To>().begin(), [](From x) { return static_cast<To>(x); });
    });
  });
  return out;
}

}  // namespace

Result Kernel::operator()(const Attrs& attrs, std::span<const Tensor> inputs) const {
  const auto created = short_float(attrs);
  const auto first =
      std::ranges::find_if(inputs, [](const Tensor& x) { return x && kShortFloats.contains(x.dtype()); });
  if (any_dtype_ || (!created && first == inputs.end())) return function_(attrs, inputs);
  std::vector<Tensor> wide(inputs.begin(), inputs.end());
  for (Tensor& input : wide) {
    if (input && kShortFloats.contains(input.dtype())) input = converted(input, DType::kF32);
  }
  // An operator with the attribute `dtype` computes in f64, in which its other attributes are.
  Attrs wide_attrs = attrs;
  if (created) wide_attrs.find("dtype")->second = std::string(name(DType::kF64));
  TENON_TRY_ASSIGN(results, function_(wide_attrs, wide));
  if (!created && attrs.contains("dtype")) return results;
  const DType computed = created ? DType::kF64 : DType::kF32;
  for (Tensor& result : *results) {
    if (result.dtype() == computed) result = converted(result, created ? *created : first->dtype());
  }
  return results;
}

Kernel find(std::string_view op) {
  for (auto family : families()) {
    for (const Entry& entry : family) {
      if (entry.op == op) return entry.kernel;
    }
  }
  return nullptr;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> ops;
  for (auto family : families()) {
    for (const Entry& entry : family) ops.push_back(entry.op);
  }
  return ops;
}

}  // namespace tenon::runtime::reference
