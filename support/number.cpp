#include "support/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

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

Expected<uint64_t> read_bytes(std::string_view name, std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"B", 1}};
  std::string_view digits = text;
  double factor = 1;
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.ends_with(unit)) continue;
    factor = bytes;
    digits.remove_suffix(unit.size());
    if (digits.ends_with(' ')) digits.remove_suffix(1);
    break;
  }
  const auto value = parse_number<double>(digits);
  if (value && *value * factor >= 1 && *value * factor <= 0x1p50) return static_cast<uint64_t>(*value * factor);
  return error(fmt::format("{} is '{}', must be a number of bytes, as 4096, 64MiB or 1.5GiB", name, text), {}, {},
               Fault::kUsage);
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
