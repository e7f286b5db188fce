// The lexer of the text form: tokens with their source offsets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler {

enum class Tok : uint8_t {
  kEnd,
  kName,      // abc
  kLocal,     // %abc, text without the sign
  kGlobal,    // @abc
  kConstant,  // $12
  kInteger,   // 12
  kFloat,     // 1.5, 1e-3
  kString,    // "abc", unescaped
  kPunct,     // ( ) [ ] { } , ; : = . + - * / < > | ~ ? -> => #[ == != <= >=
  kComment,   // "// abc", where the caller requests comments
};

struct Token {
  Tok kind = Tok::kEnd;
  std::string text;
  size_t offset = 0, end = 0;  // the token's half-open range of bytes in the source
};

class Source {
 public:
  Source(std::string_view text, std::string_view file);

  std::string_view text() const { return text_; }
  std::string_view file() const { return file_; }
  std::pair<int, int> location(size_t offset) const;  // line and column, from 1

  // "FILE:3:7: error: WHAT", followed by the line and a caret under the word at the offset.
  std::unexpected<Diagnostic> error_at(size_t offset, std::string what, std::string help = {}) const;

 private:
  std::string_view text_;
  std::string file_;
  std::vector<size_t> lines_;  // the offset of each line's first byte
};

// The tokens of the source; the last token is kEnd. With `comments`, comments are tokens too.
Expected<std::vector<Token>> tokenize(const Source& source, bool comments = false);

}  // namespace tenon::compiler
