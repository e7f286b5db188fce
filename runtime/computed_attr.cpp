#include "runtime/computed_attr.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/dtype.h"

namespace tenon::runtime {

Expected<Attr> computed_attr(std::string_view name, ComputedKind kind, std::span<const Tensor> parts) {
  const bool integral = kind == ComputedKind::kInteger || kind == ComputedKind::kIntegers;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  for (const Tensor& part : parts) {
    if (!(integral ? DTypes{DType::kI64} : kReals).contains(part.dtype()))
      return error(fmt::format("the value of '{}' is of {}, must be of {}", name, runtime::name(part.dtype()),
                               integral ? "i64" : kReals.str()));
    if (integral) {
      integers.insert(integers.end(), part.data<int64_t>().begin(), part.data<int64_t>().end());
      continue;
    }
    with_dtype<kReals>(part.dtype(), [&]<class T>(T) {
      for (const T value : part.data<T>()) reals.push_back(static_cast<double>(value));
    });
  }
  for (const double value : reals) {
    if (std::isnan(value)) return error(fmt::format("the value of '{}' is NaN", name));
  }
  const bool scalar = kind == ComputedKind::kInteger || kind == ComputedKind::kReal;
  const size_t count = integral ? integers.size() : reals.size();
  if (scalar && count != 1) return error(fmt::format("'{}' has {} values, must have one", name, count));
  switch (kind) {
    case ComputedKind::kInteger: return Attr{integers[0]};
    case ComputedKind::kReal: return Attr{reals[0]};
    case ComputedKind::kIntegers: return Attr{std::move(integers)};
    case ComputedKind::kReals: break;
  }
  return Attr{std::move(reals)};
}

}  // namespace tenon::runtime
