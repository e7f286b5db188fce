// The cursor over tokens, and the readers of numbers, attributes and annotations.
#include "compiler/base/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "support/try.h"

namespace tenon::compiler {

bool Cursor::accept(std::string_view punct) {
  if (!is(punct)) return false;
  skip();
  return true;
}

bool Cursor::accept_name(std::string_view name) {
  if (!is_name(name)) return false;
  skip();
  return true;
}

std::unexpected<Diagnostic> Cursor::fail(std::string what, std::string help) const {
  what += peek().kind == Tok::kEnd ? ", found the end" : fmt::format(", found '{}'", peek().text);
  return source_.error_at(offset(), std::move(what), std::move(help));
}

Status Cursor::expect(std::string_view punct) {
  if (accept(punct)) return {};
  return fail(fmt::format("expected '{}'", punct));
}

Expected<std::string> Cursor::take(Tok kind, std::string_view what) {
  if (peek().kind != kind) return fail(fmt::format("expected {}", what));
  std::string text = peek().text;
  skip();
  return text;
}

Expected<int64_t> Cursor::integer() {
  const bool negative = accept("-");
  const Token token = peek();
  if (token.kind != Tok::kInteger) return fail("expected an integer");
  skip();
  uint64_t size = 0;
  const auto [end, problem] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), size);
  const uint64_t limit = uint64_t{std::numeric_limits<int64_t>::max()} + (negative ? 1 : 0);
  if (problem != std::errc() || size > limit) return error_at(token.offset, "the integer needs more than 64 bits");
  return static_cast<int64_t>(negative ? 0 - size : size);
}

Expected<Attr> Cursor::number() {
  const size_t minus = is("-") ? 1 : 0;
  const Token& token = peek(minus);
  if (token.kind == Tok::kInteger) {
    TENON_TRY_ASSIGN(value, integer());
    return Attr{*value};
  }
  double value = 0;
  if (token.kind == Tok::kName && token.text == "inf") value = std::numeric_limits<double>::infinity();
  else if (token.kind == Tok::kName && token.text == "nan") value = std::numeric_limits<double>::quiet_NaN();
  else if (token.kind != Tok::kFloat) return fail("expected a number");
  else if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), value).ec != std::errc()) {
    return error_at(token.offset, "the number is beyond the range of a double");
  }
  skip(1 + minus);
  return Attr{minus ? -value : value};
}

Expected<Attr> Cursor::attribute() {
  if (peek().kind == Tok::kString) {
    Attr text{peek().text};
    skip();
    return text;
  }
  if (!accept("[")) return number();
  std::vector<int64_t> integers;
  std::vector<double> floats;
  bool real = false;
  TENON_TRY(list("]", [&]() -> Status {
    TENON_TRY_ASSIGN(value, number());
    real |= std::holds_alternative<double>(*value);
    if (auto* integer = std::get_if<int64_t>(&*value)) {
      integers.push_back(*integer);
      floats.push_back(static_cast<double>(*integer));
    } else {
      floats.push_back(std::get<double>(*value));
    }
    return {};
  }));
  return real ? Attr{std::move(floats)} : Attr{std::move(integers)};
}

Expected<std::map<std::string, Attr>> Cursor::annotations() {
  std::map<std::string, Attr> annotations;
  TENON_TRY(expect("#["));
  TENON_TRY(list("]", [&]() -> Status {
    TENON_TRY_ASSIGN(key, take(Tok::kName, "a name"));
    TENON_TRY(expect("="));
    TENON_TRY_ASSIGN(value, attribute());
    annotations.emplace(*key, std::move(*value));
    return {};
  }));
  return annotations;
}

}  // namespace tenon::compiler
