// Numbers in texts from outside, as command lines, URIs and files have them: the one reader, which checks bounds.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon {

// The number that the whole text is, in decimal, or of an integer in hexadecimal after 0x; nothing otherwise: where it
// is out of range, not finite, empty, or has anything before or after it. T is int64_t, uint64_t or double.
template <class T>
std::optional<T> parse_number(std::string_view text);

template <>
std::optional<int64_t> parse_number(std::string_view text);
template <>
std::optional<uint64_t> parse_number(std::string_view text);
template <>
std::optional<double> parse_number(std::string_view text);

// Both bounds are included, unless `above` excludes the lower one.
template <class T>
struct Bounds {
  T least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  bool above = false;

  bool contain(T value) const { return (above ? value > least : value >= least) && value <= most; }
  std::string str() const;  // "an integer from 1 to 9"
};

extern template struct Bounds<int64_t>;
extern template struct Bounds<uint64_t>;
extern template struct Bounds<double>;

// A number within the bounds, or the error of wrong usage that NAME is 'TEXT', and what it must be.
template <class T>
Expected<T> read_number(std::string_view name, std::string_view text, const Bounds<T>& bounds) {
  if (const auto value = parse_number<T>(text); value && bounds.contain(*value)) return *value;
  std::string what(name);
  what.append(" is '").append(text).append("', must be ").append(bounds.str());
  return error(std::move(what), {}, {}, Fault::kUsage);
}

// A number of bytes, with a unit or without: "4096", "64MiB", "1.5 GiB". The error of wrong usage says what NAME is.
Expected<uint64_t> read_bytes(std::string_view name, std::string_view text);

}  // namespace tenon
