#include "support/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tenon {
namespace {

// The code point at the beginning of the text and its length; length 0 where the bytes are not UTF-8.
std::pair<uint32_t, size_t> decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {0, 0};
  uint32_t code = lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {0, 0};
  return {code, length};
}

// Unicode's controls, separators of lines, and controls of direction.
bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

std::string escaped(std::string_view text, std::string_view kept) {
  const auto plain = [&](char c) { return (c >= 0x20 && c < 0x7f) || kept.contains(c); };
  if (std::ranges::all_of(text, plain)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [code, length] = decode(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (length == 0) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (!is_control(code) || (code < 0x80 && kept.contains(static_cast<char>(code))))
      result += text.substr(0, taken);
    else if (code == '\n') result += "\\n";
    else if (code == '\r') result += "\\r";
    else if (code == '\t') result += "\\t";
    else result += fmt::format(fmt::runtime(code < 0x100 ? "\\x{:02x}" : "\\u{:04x}"), code);
    text.remove_prefix(taken);
  }
  return result;
}

// The text, or its beginning and its end; characters of UTF-8 are not divided.
std::string cut(std::string_view text, size_t longest, std::string_view kept) {
  if (text.size() <= longest) return escaped(text, kept);
  const auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t begin = longest / 3 * 2, end = text.size() - (longest - begin);
  for (int i = 0; i < 3 && begin > 0 && inside(begin); ++i) --begin;
  for (int i = 0; i < 3 && end < text.size() && inside(end); ++i) ++end;
  return fmt::format("{} ...({} bytes)... {}", escaped(text.substr(0, begin), kept), end - begin,
                     escaped(text.substr(end), kept));
}

}  // namespace

std::string printable(std::string_view text, size_t longest) { return cut(text, longest, ""); }

std::string printable_text(std::string_view text) { return escaped(text, "\n\t"); }

std::string printable_lines(std::string_view text) {
  constexpr size_t kLongestLine = 4000, kMostLines = 1000;
  std::string result;
  for (size_t lines = 0;; ++lines) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (lines > 0) result += line.empty() || line.starts_with(' ') ? "\n" : "\n  ";
    if (lines == kMostLines) return result + fmt::format("...({} bytes)...", text.size());
    result += cut(line, kLongestLine, "\t");
    if (end == std::string_view::npos) return result;
    text.remove_prefix(end + 1);
  }
}

std::string html_text(std::string_view text, size_t longest) {
  std::string result;
  for (const char c : printable(text, longest)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace tenon
