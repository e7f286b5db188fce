#include "runtime/value_view.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "runtime/dtype.h"

namespace tenon::runtime {
namespace {

template <class T>
std::string number(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  else if constexpr (!is_real<T>) return fmt::format("{}", static_cast<Wide<T>>(value));
  else if (value != value) return "nan";  // without the sign, which has no meaning
  else if constexpr (std::is_same_v<T, double>) return fmt::format("{}", value);
  else return fmt::format("{}", static_cast<float>(value));
}

template <class T>
std::string rows(const Tensor& tensor, const TextLimits& limits) {
  const auto values = tensor.data<T>();
  const Shape& shape = tensor.shape();
  std::string text(shape.size(), '[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int64_t>(i) == limits.elements) return text + ", ...";
    // Each dim that ends before this element closes and opens a bracket.
    size_t ended = 0;
    auto period = static_cast<size_t>(1);
    for (size_t d = shape.size(); d-- > 0;) {
      period *= static_cast<size_t>(shape[d]);
      if (i == 0 || i % period != 0) break;
      ++ended;
    }
    if (ended > 0) text += std::string(ended, ']');
    if (ended > 0 && !limits.one_line) text += ",\n" + std::string(shape.size() - ended, ' ');
    else if (i > 0) text += ", ";
    if (i > 0) text += std::string(ended, '[');
    text += number(values[i]);
  }
  return text + std::string(shape.size(), ']');
}

}  // namespace

std::string str(const Tensor& tensor, const TextLimits& limits) {
  const std::string text =
      with_dtype<kAnyDType>(tensor.dtype(), [&]<class T>(T) -> std::string { return rows<T>(tensor, limits); });
  if (!tensor.shape().empty())
    return fmt::format("Tensor[{}, {}] {}", to_string(tensor.shape()), name(tensor.dtype()), text);
  return tensor.dtype() == DType::kBool ? text : text + std::string(name(tensor.dtype()));
}

void write_json(tenon::Json& out, const Tensor& tensor) {
  out.begin_object().field("dtype", name(tensor.dtype())).key("shape").begin_array();
  for (const int64_t size : tensor.shape()) out.value(size);
  out.end().key("data").begin_array();
  with_dtype<kAnyDType>(tensor.dtype(), [&]<class T>(T) {
    for (const T x : tensor.data<T>()) {
      const auto real = static_cast<double>(x);
      if (is_real<T> && std::isinf(real)) out.value(real > 0 ? "inf" : "-inf");
      else if constexpr (is_real<T>) out.value(real);
      else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint64_t>) out.value(x);
      else out.value(static_cast<int64_t>(x));
    }
  });
  out.end().end();
}

}  // namespace tenon::runtime
