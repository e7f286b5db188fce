// JSON for --json, written in the order of the calls; the JSON library is hidden in it.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tenon {

// The reason of a failure to read JSON, from the text of the library's exception, without what only its authors know.
std::string json_problem(std::string_view exception);

class Json {
 public:
  Json();
  ~Json();

  // In an object, key() comes before each value; in an array it does not.
  Json& begin_object();
  Json& begin_array();
  Json& end();
  Json& key(std::string_view name);
  Json& value(std::string_view text);  // all but ASCII is written as escapes, bytes that are not UTF-8 are replaced
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(std::same_as<bool> auto flag) { return boolean(flag); }
  Json& value(double real);  // null where it is not finite
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json& value(T whole) {
    if constexpr (std::unsigned_integral<T>) return natural(whole);
    else return integer(whole);
  }
  template <class T>
  Json& field(std::string_view name, const T& x) {
    return key(name).value(x);
  }

  // The complete text with a final newline; every begun object and array must have ended.
  std::string str() const;

 private:
  Json& boolean(bool flag);
  Json& integer(int64_t value);
  Json& natural(uint64_t value);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
