#include "compiler/fuzz/strip.h"

namespace tenon::compiler::fuzz {
namespace {

// The end of a type that starts at `at`: the first of `ends` outside all brackets. "->" is part of a function type.
size_t type_end(std::string_view text, size_t at, std::string_view ends) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0 && ends.find(c) != std::string_view::npos) return at;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
  }
  return at;
}

// The offset after a name like %x_1.
size_t name_end(std::string_view text, size_t at) {
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '%'))
    ++at;
  return at;
}

}  // namespace

std::string without_annotations(std::string_view text, bool lambdas) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view tail = text.substr(at);
    if (tail.starts_with("let %")) {
      const size_t end = name_end(text, at + 4);
      out += text.substr(at, end - at);
      at = end;
      if (text.substr(at).starts_with(": ")) {
        at = type_end(text, at + 2, "=");
        out += ' ';
      }
    } else if (lambdas && (tail.starts_with("fn (%") || tail.starts_with("fn(%"))) {
      const size_t open = tail.find('(') + 1;
      out += tail.substr(0, open);
      at += open;
      while (at < text.size() && text[at] != ')') {
        const size_t end = name_end(text, at);
        out += text.substr(at, end - at);
        at = end;
        if (text.substr(at).starts_with(": ")) at = type_end(text, at + 2, ",)");
        if (text.substr(at).starts_with(", ")) out += ", ", at += 2;
      }
      if (text.substr(at).starts_with(") -> ")) {
        out += ") ";
        at = type_end(text, at + 5, "{");
      }
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace tenon::compiler::fuzz
