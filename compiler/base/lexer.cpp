// The lexer, and the messages that show a source line with a caret.
#include "compiler/base/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/try.h"

namespace tenon::compiler {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_start(c) || is_digit(c); }

int hex(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

class Lexer {
 public:
  Lexer(const Source& source, bool comments) : source_(source), text_(source.text()), comments_(comments) {}

  Expected<std::vector<Token>> run() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark, as some editors write it
    while (true) {
      skip_blank();
      const size_t start = at_;
      if (at_ == text_.size()) {
        tokens_.push_back({Tok::kEnd, "", start, start});
        return std::move(tokens_);
      }
      const char c = text_[at_];
      if (in_sizes_ > 0 && (c == '%' || text_.substr(at_, 2) == "//")) {
        const std::string op = c == '%' ? "%" : "//";
        at_ += op.size();
        push(Tok::kPunct, op, start);
      } else if (in_sizes_ > 0 && c == '?') {
        ++at_;
        push(Tok::kPunct, "?", start);
      } else if (c == '%' || c == '@' || c == '$') {
        ++at_;
        // The name of a global may contain dots, as in @main.region; a dot after a local is a projection.
        const std::string name = take([&](char next) { return is_name(next) || (c == '@' && next == '.'); });
        if (name.empty()) return source_.error_at(start, fmt::format("'{}' must be followed by a name", c));
        push(c == '%' ? Tok::kLocal : c == '@' ? Tok::kGlobal : Tok::kConstant, name, start);
      } else if (is_start(c)) {
        push(Tok::kName, take(is_name), start);
      } else if (is_digit(c)) {
        number(start);
      } else if (c == '"') {
        TENON_TRY(string(start));
      } else if (const std::string_view two = text_.substr(at_, 2); is_pair(two)) {
        at_ += 2;
        push(Tok::kPunct, std::string(two), start);
      } else if (std::string_view("()[]{},;:=.+-*/<>|~?").find(c) != std::string_view::npos) {
        ++at_;
        push(Tok::kPunct, std::string(1, c), start);
      } else {
        const auto byte = static_cast<unsigned char>(c);
        return source_.error_at(start, byte > 0x20 && byte < 0x7f ? fmt::format("unexpected '{}'", c)
                                                                  : fmt::format("unexpected byte 0x{:02x}", byte));
      }
    }
  }

 private:
  static bool is_pair(std::string_view two) {
    static constexpr std::string_view kPairs[] = {"->", "=>", "#[", "==", "!=", "<=", ">="};
    return std::ranges::find(kPairs, two) != std::end(kPairs);
  }
  void push(Tok kind, std::string text, size_t start) {
    // Inside sizes and indices, % and // are operators.
    if (kind == Tok::kPunct && (text == "(" || text == "[")) {
      if (in_sizes_ > 0 || begins_sizes(text)) ++in_sizes_;
    } else if (kind == Tok::kPunct && (text == ")" || text == "]") && in_sizes_ > 0) {
      --in_sizes_;
    }
    tokens_.push_back({kind, std::move(text), start, at_});
    if (kind == Tok::kComment) return;
    before_last_ = std::move(last_);
    last_ = tokens_.back();
  }

  // Sizes begin at `Tensor[(`, `size(`, an attribute's `shape=[` and, in loop functions, at `%a[`, `in (`, `at (`,
  // `where (`, `below (` and `index(`.
  bool begins_sizes(std::string_view bracket) const {
    if (bracket == "[") return last_.kind == Tok::kLocal || (last_.text == "=" && before_last_.kind == Tok::kName);
    static constexpr std::string_view kWords[] = {"in", "at", "where", "below", "index", "size"};
    if (last_.kind == Tok::kName) return std::ranges::find(kWords, last_.text) != std::end(kWords);
    return last_.text == "[" && before_last_.kind == Tok::kName && before_last_.text == "Tensor";
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') ++at_;
      else if (text_.substr(at_, 2) == "//" && in_sizes_ == 0) comment();
      else return;
    }
  }
  void comment() {
    const size_t start = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    if (!comments_) return;
    std::string_view text = text_.substr(start, at_ - start);
    text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
    push(Tok::kComment, std::string(text), start);
  }
  template <class F>
  std::string take(F&& accept) {
    const size_t start = at_;
    while (at_ < text_.size() && accept(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  void number(size_t start) {
    std::string digits = take(is_digit);
    Tok kind = Tok::kInteger;
    // The number after a local and a dot is the index of a field: %x.1 is not a float.
    const bool field = last_.text == "." && last_.kind == Tok::kPunct && before_last_.kind != Tok::kEnd;
    if (!field && at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {
      kind = Tok::kFloat;
      ++at_;
      digits += "." + take(is_digit);
    }
    size_t exponent = at_ + 1;
    if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
    if (at_ < text_.size() && text_[at_] == 'e' && exponent < text_.size() && is_digit(text_[exponent])) {
      kind = Tok::kFloat;
      digits += text_.substr(at_, exponent - at_);
      at_ = exponent;
      digits += take(is_digit);
    }
    push(kind, std::move(digits), start);
  }
  Status string(size_t start) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const char c = text_[at_];
      if (c == '\n') break;
      if (c != '\\') {
        value += c;
        continue;
      }
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (next == '"' || next == '\\') {
        value += next;
        ++at_;
      } else if (next == 'x' && at_ + 3 < text_.size() && hex(text_[at_ + 2]) >= 0 && hex(text_[at_ + 3]) >= 0) {
        value += static_cast<char>(hex(text_[at_ + 2]) * 16 + hex(text_[at_ + 3]));
        at_ += 3;
      } else {
        return source_.error_at(at_, "unknown escape", "the supported escapes are \\\", \\\\ and \\x0a");
      }
    }
    if (at_ >= text_.size() || text_[at_] != '"') return source_.error_at(start, "the string has no end");
    ++at_;
    push(Tok::kString, std::move(value), start);
    return {};
  }

  const Source& source_;
  std::string_view text_;
  bool comments_;
  size_t at_ = 0;
  int in_sizes_ = 0;  // the number of open brackets around sizes and indices
  std::vector<Token> tokens_;
  Token last_, before_last_;  // the last two tokens that are not comments
};

}  // namespace

Source::Source(std::string_view text, std::string_view file) : text_(text), file_(file), lines_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines_.push_back(i + 1);
  }
}

std::pair<int, int> Source::location(size_t offset) const {
  const auto after = std::ranges::upper_bound(lines_, offset);
  return {static_cast<int>(after - lines_.begin()), static_cast<int>(offset - *(after - 1)) + 1};
}

std::unexpected<Diagnostic> Source::error_at(size_t offset, std::string what, std::string help) const {
  const auto [line, column] = location(offset);
  std::string_view shown = text_.substr(offset - (column - 1));
  shown = shown.substr(0, shown.find_first_of("\r\n"));
  size_t caret = column - 1;
  constexpr size_t kWide = 100;
  if (shown.size() > kWide) {  // a window of the line around the offset
    const size_t start = caret > kWide / 2 ? caret - kWide / 2 : 0;
    shown = shown.substr(start, kWide);
    caret -= start;
  }
  size_t word = caret;
  if (word < shown.size() && std::string_view("%@$").find(shown[word]) != std::string_view::npos) ++word;
  while (word < shown.size() && is_name(shown[word])) ++word;
  // A tab of the line is a tab in the caret's line too, so that the caret is aligned for every tab width. A character
  // of UTF-8 has one column.
  std::string below;
  for (const char c : shown.substr(0, caret)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) below += c == '\t' ? '\t' : ' ';
  }
  below += "^" + std::string(word > caret ? word - caret - 1 : 0, '~');
  return error(fmt::format("{}\n  {}\n  {}", what, shown, below), fmt::format("{}:{}:{}", file_, line, column),
               std::move(help));
}

Expected<std::vector<Token>> tokenize(const Source& source, bool comments) { return Lexer(source, comments).run(); }

}  // namespace tenon::compiler
