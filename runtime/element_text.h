// One element of a tensor from its text: what value_view.cpp prints, constants of modules, and literals of command
// lines.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/dtype.h"

namespace tenon::runtime {

// The value that the whole text is; nothing where T does not represent it. An integer has no fraction and no exponent;
// a bool is true, false, 1 or 0; a float is rounded once, and a number beyond the range of its dtype is no infinity:
// these are written inf, -inf and nan.
template <class T>
std::optional<T> parse_element(std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  const auto read = [&]<class Number>(Number number) -> std::optional<Number> {
    const auto [at, fault] = std::from_chars(begin, end, number);
    return fault == std::errc{} && at == end ? std::optional(number) : std::nullopt;
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "1") return true;
    return text == "false" || text == "0" ? std::optional(false) : std::nullopt;
  } else if constexpr (!is_real<T>) {
    if (text.size() > 1 && text[0] == '-' && text.find_first_not_of('0', 1) == std::string_view::npos) return T(0);
    if constexpr (std::is_integral_v<T>) {
      return read(T{});
    } else {  // of less than a byte
      const auto value = read(int32_t{});
      return value && static_cast<int32_t>(T(*value)) == *value ? std::optional(T(*value)) : std::nullopt;
    }
  } else {
    using Parsed = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const std::string_view magnitude = text.substr(text.starts_with('-') ? 1 : 0);
    const bool special = magnitude == "inf" || magnitude == "nan";
    if (!special && (magnitude.empty() || magnitude[0] < '0' || magnitude[0] > '9')) return std::nullopt;
    const auto value = read(Parsed{});
    if (!value) return std::nullopt;
    const T element(*value);
    return special || std::isfinite(static_cast<double>(element)) ? std::optional(element) : std::nullopt;
  }
}

}  // namespace tenon::runtime
