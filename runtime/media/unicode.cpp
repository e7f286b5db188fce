#include "runtime/media/unicode.h"

#include <algorithm>
#include <array>

namespace tenon::runtime {
namespace {

// The last entry that begins at or before the code point; the end where there is none.
template <class T>
const T* entry_before(std::span<const T> entries, char32_t code, char32_t T::*first) {
  const auto after = std::ranges::upper_bound(entries, code, {}, first);
  return after == entries.begin() ? nullptr : &*(after - 1);
}

bool is_in(std::span<const CodeRange> ranges, char32_t code) {
  const CodeRange* range = entry_before(ranges, code, &CodeRange::first);
  return range && code <= range->last;
}

constexpr CodeRange kSpaces[] = {{0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                                 {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                 {0x205f, 0x205f}, {0x3000, 0x3000}};
constexpr CodeRange kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
                                     {0x2a700, 0x2b73f}, {0x2b740, 0x2ceaf}, {0x2f800, 0x2fa1f}};

// Syllables of Hangul are composed of parts by arithmetic (Unicode, section 3.12).
constexpr char32_t kSyllables = 0xac00, kSyllablesEnd = 0xd7a4, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11a7,
                   kVowelCount = 21, kTrailingCount = 28;

void append_stripped(std::u32string& to, char32_t code) {
  const UnicodeTables& tables = unicode_tables();
  if (is_in(tables.accents, code)) return;
  if (code >= kSyllables && code < kSyllablesEnd) {
    const char32_t index = code - kSyllables, trailing = index % kTrailingCount;
    to += kLeading + index / kTrailingCount / kVowelCount;
    to += kVowels + index / kTrailingCount % kVowelCount;
    if (trailing) to += kTrailing + trailing;
    return;
  }
  if (const auto* text = entry_before(tables.stripped, code, &CodeText::first);
      text && code - text->first < text->text.size()) {
    to += text->text[code - text->first];
    return;
  }
  if (const auto* found = entry_before(tables.expanded, code, &CodeExpansion::from); found && found->from == code) {
    for (const char32_t part : found->to) {
      if (part) to += part;
    }
    return;
  }
  to += code;
}

// The code point that begins at `at`, and the position after it.
char32_t decode_one(std::string_view text, size_t& at) {
  constexpr char32_t kReplacement = 0xfffd;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at++);
  if (lead < 0x80) return lead;
  const size_t more = lead >= 0xf0 && lead < 0xf5   ? 3
                      : lead >= 0xe0 && lead < 0xf0 ? 2
                      : lead >= 0xc2 && lead < 0xe0 ? 1
                                                    : 0;
  if (more == 0 || text.size() - at < more) return kReplacement;
  char32_t code = lead & (0x3fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return kReplacement;
    code = code << 6 | (byte(at + i) & 0x3fu);
  }
  constexpr std::array<char32_t, 4> kSmallest = {0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kSmallest[more] || code > 0x10ffff || is_surrogate) return kReplacement;
  at += more;
  return code;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string codes;
  for (size_t at = 0; at < text.size();) codes += decode_one(text, at);
  return codes;
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  const auto put = [&](char32_t value) { bytes += static_cast<char>(value); };
  for (const char32_t code : text) {
    if (code < 0x80) {
      put(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    put((0xf0u << (3 - more) & 0xffu) | code >> 6 * more);
    for (int i = more - 1; i >= 0; --i) put(0x80u | (code >> 6 * i & 0x3fu));
  }
  return bytes;
}

bool is_space(char32_t code) { return is_in(kSpaces, code); }
bool is_punctuation(char32_t code) { return is_in(unicode_tables().punctuation, code); }
bool is_removed(char32_t code) { return is_in(unicode_tables().removed, code); }
bool is_ideograph(char32_t code) { return is_in(kIdeographs, code); }

std::u32string lowered(std::u32string_view text) {
  constexpr char32_t kDottedI = 0x130;  // the only one that becomes two
  std::u32string result;
  for (const char32_t code : text) {
    const CodeRun* run = entry_before(unicode_tables().lower, code, &CodeRun::first);
    const bool changes =
        run && code <= run->last && (code - run->first) % static_cast<char32_t>(run->step) == 0 && code != kDottedI;
    if (code == kDottedI) result += U"i\u0307";
    else result += changes ? static_cast<char32_t>(static_cast<int32_t>(code) + run->difference) : code;
  }
  return result;
}

std::u32string stripped(std::u32string_view text) {
  std::u32string result;
  for (const char32_t code : text) append_stripped(result, code);
  return result;
}

}  // namespace tenon::runtime
