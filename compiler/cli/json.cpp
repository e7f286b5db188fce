#include "compiler/cli/json.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>

namespace tenon::cli {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + '"';
}

}  // namespace

void Json::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) return;
  text_ += first_ ? "\n" : ",\n";
  text_.append(2 * open_.size(), ' ');
  first_ = false;
}

Json& Json::begin(char bracket) {
  separate();
  text_ += bracket;
  open_ += bracket == '{' ? '}' : ']';
  first_ = true;
  return *this;
}

Json& Json::end() {
  assert(!open_.empty());
  const char bracket = open_.back();
  open_.pop_back();
  if (!first_) text_ += '\n' + std::string(2 * open_.size(), ' ');
  text_ += bracket;
  first_ = false;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  text_ += quoted(name) + ": ";
  after_key_ = true;
  return *this;
}

Json& Json::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

Json& Json::value(std::string_view text) { return raw(quoted(text)); }
Json& Json::value(double number) { return raw(std::isfinite(number) ? fmt::format("{}", number) : "null"); }

}  // namespace tenon::cli
