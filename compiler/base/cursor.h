// The parser's position in the token stream, and the parts of the grammar that need no other state: numbers, attributes
// and annotations.
#pragma once

#include <map>

#include "compiler/base/lexer.h"
#include "runtime/attrs.h"
#include "support/try.h"

namespace tenon::compiler {

using runtime::Attr;
using runtime::Attrs;

inline constexpr int kMaxNesting = 200;

class Cursor {
 public:
  Cursor(const Source& source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  const Source& source() const { return source_; }
  size_t at() const { return at_; }
  void go(size_t at) { at_ = at; }
  void skip(size_t tokens = 1) { at_ = std::min(at_ + tokens, tokens_.size() - 1); }

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  size_t offset() const { return peek().offset; }
  bool is(std::string_view punct, size_t ahead = 0) const {
    return peek(ahead).kind == Tok::kPunct && peek(ahead).text == punct;
  }
  bool is_name(std::string_view name) const { return peek().kind == Tok::kName && peek().text == name; }
  bool accept(std::string_view punct);
  bool accept_name(std::string_view name);
  Status expect(std::string_view punct);
  Expected<std::string> take(Tok kind, std::string_view what);
  // The error "WHAT, found 'x'" at the current token.
  std::unexpected<Diagnostic> fail(std::string what, std::string help = {}) const;
  std::unexpected<Diagnostic> error_at(size_t offset, std::string what, std::string help = {}) const {
    return source_.error_at(offset, std::move(what), std::move(help));
  }
  // Reads a list whose items are separated by commas, up to `end`. The callable `read_item` reads one item.
  template <class F>
  Status list(std::string_view end, F&& read_item) {
    while (!accept(end)) {
      TENON_TRY(read_item());
      if (!accept(",") && !is(end)) return fail("expected ',' or '" + std::string(end) + "'");
    }
    return {};
  }

  Expected<int64_t> integer();
  Expected<Attr> number();                              // an integer or a float
  Expected<Attr> attribute();                           // a number, a string or a list of numbers
  Expected<std::map<std::string, Attr>> annotations();  // #[key = value, ...]

 private:
  const Source& source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace tenon::compiler
