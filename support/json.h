// JSON: a writer in the order of the calls, for --json, and a reader by events. The JSON library is hidden in them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/function_ref.h"

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

  // The complete text with a final newline; every begun object and array must have ended. `line`: without other ones.
  std::string str(bool line = false) const;

 private:
  Json& boolean(bool flag);
  Json& integer(int64_t value);
  Json& natural(uint64_t value);

  struct State;
  std::unique_ptr<State> state_;
};

// A part of a JSON text, in the order of the text.
struct JsonEvent {
  enum class Kind : uint8_t {
    kNull,
    kBoolean,
    kNumber,
    kString,
    kKey,
    kBeginObject,
    kEndObject,
    kBeginArray,
    kEndArray
  };
  Kind kind = Kind::kNull;
  std::string_view text = {};  // of a number in decimal, of a string or a key its bytes, of a boolean true or false
  size_t offset = 0;           // of the first byte in the text
};
struct JsonFault {
  size_t offset = 0;
  std::string problem;
};
// Calls `visit` with each event, without recursion, until it returns false. The fault of a text that is no JSON.
std::optional<JsonFault> read_json(std::string_view text, FunctionRef<bool(const JsonEvent&)> visit);

}  // namespace tenon
