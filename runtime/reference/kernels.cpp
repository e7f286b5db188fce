#include "runtime/reference/kernels.h"

#include <algorithm>
#include <optional>

#include "runtime/reference/support.h"
#include "support/try.h"

namespace tenon::runtime::reference {

std::vector<std::span<const Entry>> families();  // generated

namespace {

constexpr DTypes kComputed{DType::kF32, DType::kF64, DType::kI32, DType::kI64};

// The type of storage that the attribute `dtype` names.
std::optional<DType> storage_type(const Attrs& attrs) {
  const auto found = attrs.find("dtype");
  const auto* name = found == attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
  const auto dtype = name ? parse_dtype(*name) : error("");
  return dtype && kStorageTypes.contains(*dtype) ? std::optional(*dtype) : std::nullopt;
}

template <class From, class To>
void convert_elements(const Tensor& from, Tensor& to) {
  std::ranges::transform(from.data<From>(), to.data<To>().begin(), [](From x) { return static_cast<To>(x); });
}

// Computed results in a type of storage.
Tensor narrowed(const Tensor& tensor, DType dtype) {
  Tensor out = Tensor::for_overwrite(dtype, tensor.shape());
  runtime::with_dtype<kStorageTypes>(dtype, [&]<class To>(To) {
    runtime::with_dtype<kComputed>(tensor.dtype(), [&]<class From>(From) { convert_elements<From, To>(tensor, out); });
  });
  return out;
}

// The type of 32 or 64 bits in which the results of a type of storage are computed.
DType computed_type(DType dtype, bool in_64_bits) {
  if (kNarrowIntegers.contains(dtype)) return in_64_bits ? DType::kI64 : DType::kI32;
  return in_64_bits ? DType::kF64 : DType::kF32;
}

}  // namespace

Tensor widened(const Tensor& tensor) {
  Tensor out;
  runtime::with_dtype<kStorageTypes>(tensor.dtype(), [&]<class T>(T) {
    out = Tensor::for_overwrite(dtype_of<Wide<T>>, tensor.shape());
    convert_elements<T, Wide<T>>(tensor, out);
  });
  return out;
}

Result Kernel::operator()(const Attrs& attrs, std::span<const Tensor> inputs) const {
  const auto created = storage_type(attrs);
  const auto first =
      std::ranges::find_if(inputs, [](const Tensor& x) { return x && kStorageTypes.contains(x.dtype()); });
  if (any_dtype_ || (!created && first == inputs.end())) return function_(attrs, inputs);
  std::vector<Tensor> wide(inputs.begin(), inputs.end());
  for (Tensor& input : wide) {
    if (input && kStorageTypes.contains(input.dtype())) input = widened(input);
  }
  // An operator with the attribute `dtype` computes in 64 bits, in which its other attributes are.
  Attrs wide_attrs = attrs;
  if (created) wide_attrs.find("dtype")->second = std::string(name(computed_type(*created, true)));
  TENON_TRY_ASSIGN(results, function_(wide_attrs, wide));
  if (!created && attrs.contains("dtype")) return results;
  const DType dtype = created ? *created : first->dtype(), computed = computed_type(dtype, created.has_value());
  for (Tensor& result : *results) {
    if (result.dtype() == computed) result = narrowed(result, dtype);
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
