#include "support/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <type_traits>

namespace tenon {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text, auto... base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [next, fault] = std::from_chars(text.data(), end, value, base...);
  return fault == std::errc() && next == end ? std::optional(value) : std::nullopt;
}

template <class T>
std::optional<T> parse_integer(std::string_view text) {
  if (!text.starts_with("0x")) return parse_whole<T>(text);
  if (text.substr(2).starts_with('-')) return std::nullopt;
  return parse_whole<T>(text.substr(2), 16);
}

}  // namespace

template <>
std::optional<int64_t> parse_number(std::string_view text) {
  return parse_integer<int64_t>(text);
}
template <>
std::optional<uint64_t> parse_number(std::string_view text) {
  return parse_integer<uint64_t>(text);
}
template <>
std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

template <class T>
std::string Bounds<T>::str() const {
  const bool from = std::is_unsigned_v<T> || least != std::numeric_limits<T>::lowest();
  const bool to = most != std::numeric_limits<T>::max();
  std::string text = std::is_integral_v<T> ? "an integer" : "a number";
  if (above) text += fmt::format(" above {}{}", least, to ? fmt::format(" and at most {}", most) : "");
  else if (from && to) text += fmt::format(" from {} to {}", least, most);
  else if (from) text += fmt::format(" of at least {}", least);
  else if (to) text += fmt::format(" of at most {}", most);
  return text;
}

template struct Bounds<int64_t>;
template struct Bounds<uint64_t>;
template struct Bounds<double>;

}  // namespace tenon
