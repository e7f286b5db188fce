// JSON for --json: written in the order of the calls, with commas, indentation and escapes taken care of.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

class Json {
 public:
  // In an object, key() comes before each value; in an array it does not.
  Json& begin_object() { return begin('{'); }
  Json& begin_array() { return begin('['); }
  Json& end();
  Json& key(std::string_view name);
  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  Json& value(double number);
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json& value(T number) { return raw(std::to_string(number)); }
  template <class T>
  Json& field(std::string_view name, const T& x) {
    return key(name).value(x);
  }

  std::string str() const { return text_ + "\n"; }

 private:
  Json& begin(char bracket);
  Json& raw(std::string_view text);
  void separate();

  std::string text_;
  std::string open_;  // the closing brackets that are due
  bool first_ = true, after_key_ = false;
};

}  // namespace tenon::cli
