// Code points of text, as tokenizers go by them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tenon::runtime {

struct CodeRange {
  char32_t first = 0, last = 0;
};
// Every `step`th code point from first to last becomes itself plus `difference`.
struct CodeRun {
  char32_t first = 0, last = 0;
  int32_t step = 1, difference = 0;
};
// The code point first + i becomes text[i].
struct CodeText {
  char32_t first = 0;
  std::u32string_view text;
};
struct CodeExpansion {
  char32_t from = 0;
  char32_t to[3] = {};  // ends with 0
};

// Sorted. `stripped` and `expanded` are canonical decompositions without accents, except those of Hangul syllables.
struct UnicodeTables {
  std::span<const CodeRange> removed;  // control, format and private characters
  std::span<const CodeRange> accents;  // and other non-spacing characters
  std::span<const CodeRange> punctuation;
  std::span<const CodeRun> lower;
  std::span<const CodeText> stripped;
  std::span<const CodeExpansion> expanded;
};
const UnicodeTables& unicode_tables();

// Bytes that are not UTF-8 become U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

bool is_space(char32_t code);
bool is_punctuation(char32_t code);  // and ASCII's symbols
bool is_removed(char32_t code);      // neither seen nor a space: control characters, and U+FFFD
bool is_ideograph(char32_t code);    // of Chinese, in the blocks that the models of BERT split into words

std::u32string lowered(std::u32string_view text);
// Without accents.
std::u32string stripped(std::u32string_view text);

}  // namespace tenon::runtime
