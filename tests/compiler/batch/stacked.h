// The values of several instances as one with a leading axis, and comparisons of their bits.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/run_value.h"
#include "runtime/dtype.h"

namespace tenon::compiler::batch {

// `own`: of each tensor, which else is the same in all values; an empty one stands for all.
inline RunValue stacked(std::span<const RunValue> values, std::vector<bool>& own) {
  if (!values[0].tensor()) {
    std::vector<RunValue> fields;
    for (size_t i = 0; i < values[0].fields().size(); ++i) {
      std::vector<RunValue> parts;
      for (const RunValue& value : values) parts.push_back(value.fields()[i]);
      fields.push_back(stacked(parts, own));
    }
    return RunValue::tuple(std::move(fields));
  }
  const bool each = own.empty() || own.front();
  if (!own.empty()) own.erase(own.begin());
  if (!each) return values[0];
  runtime::Shape shape = values[0].tensor().shape();
  shape.insert(shape.begin(), static_cast<int64_t>(values.size()));
  runtime::Tensor all = runtime::Tensor::for_overwrite(values[0].tensor().dtype(), shape);
  const size_t bytes = values[0].tensor().bytes().size();
  for (size_t i = 0; i < values.size(); ++i)
    std::ranges::copy(values[i].tensor().bytes(), all.bytes().subspan(i * bytes).begin());
  return all;
}

inline RunValue stacked_all(std::span<const RunValue> values) {
  std::vector<bool> all;
  return stacked(values, all);
}

// Equal bits, but that every NaN is one.
inline bool equal_bits(const RunValue& a, const RunValue& b) {
  if (!a.tensor() || !b.tensor()) {
    return a.fields().size() == b.fields().size() &&
           std::ranges::equal(a.fields(), b.fields(),
                              [](const RunValue& x, const RunValue& y) { return equal_bits(x, y); });
  }
  const runtime::Tensor &x = a.tensor(), &y = b.tensor();
  if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
  if (x == y) return true;
  bool equal = true;
  runtime::with_dtype<runtime::kAnyDType>(x.dtype(), [&]<class T>(T) {
    if constexpr (runtime::is_real<T>) {
      for (size_t i = 0; i < x.data<T>().size(); ++i) {
        const T one = x.data<T>()[i], other = y.data<T>()[i];
        const bool nan = static_cast<double>(one) != static_cast<double>(one);
        const bool both = nan && static_cast<double>(other) != static_cast<double>(other);
        equal &= both || std::memcmp(&one, &other, sizeof(T)) == 0;
      }
    } else {
      equal = false;
    }
  });
  return equal;
}

// The shapes of the tensors of a value, as text.
inline std::string shapes_of(const RunValue& value) {
  if (value.tensor()) return runtime::to_string(value.tensor().shape());
  std::string text = "(";
  for (const RunValue& field : value.fields()) text += shapes_of(field) + ",";
  return text + ")";
}

}  // namespace tenon::compiler::batch
