#include "support/json.h"

#include <cassert>
#include <nlohmann/json.hpp>
#include <vector>

namespace tenon {

using Value = nlohmann::ordered_json;

std::string json_problem(std::string_view exception) {
  if (exception.starts_with('[')) exception.remove_prefix(std::min(exception.find("] "), exception.size() - 2) + 2);
  constexpr std::string_view kError = "parse error ";
  if (exception.starts_with(kError)) exception.remove_prefix(kError.size());
  return std::string(exception);
}

struct Json::State {
  Value root;
  std::vector<Value*> open;  // outermost first; only the innermost grows, so that pointers to the others stay valid
  std::string key;           // of the next value in an object

  Value& put(Value value) {
    if (open.empty()) return root = std::move(value);
    Value& inner = *open.back();
    if (inner.is_object()) return inner[std::exchange(key, {})] = std::move(value);
    inner.push_back(std::move(value));
    return inner.back();
  }
};

Json::Json() : state_(std::make_unique<State>()) {}
Json::~Json() = default;

Json& Json::begin_object() {
  Value& value = state_->put(Value::object());
  state_->open.push_back(&value);
  return *this;
}
Json& Json::begin_array() {
  Value& value = state_->put(Value::array());
  state_->open.push_back(&value);
  return *this;
}
Json& Json::end() {
  assert(!state_->open.empty());
  state_->open.pop_back();
  return *this;
}
Json& Json::key(std::string_view name) {
  state_->key = name;
  return *this;
}
Json& Json::value(std::string_view text) { return state_->put(std::string(text)), *this; }
Json& Json::value(double real) { return state_->put(real), *this; }
Json& Json::boolean(bool flag) { return state_->put(flag), *this; }
Json& Json::integer(int64_t value) { return state_->put(value), *this; }
Json& Json::natural(uint64_t value) { return state_->put(value), *this; }

std::string Json::str(bool line) const {
  assert(state_->open.empty());
  return state_->root.dump(line ? -1 : 2, ' ', true, Value::error_handler_t::replace) + "\n";
}

namespace {

// A position in the text that the library reads; the furthest one tells where an event is.
class CountedByte {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedByte(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  CountedByte& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountedByte operator++(int) {
    CountedByte before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedByte& other) const { return at_ == other.at_; }
  bool operator!=(const CountedByte& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

class JsonVisitor {
 public:
  using number_integer_t = Value::number_integer_t;
  using number_unsigned_t = Value::number_unsigned_t;
  using number_float_t = Value::number_float_t;
  using string_t = Value::string_t;
  using binary_t = Value::binary_t;
  using Kind = JsonEvent::Kind;

  JsonVisitor(std::string_view text, const char** at, FunctionRef<bool(const JsonEvent&)> visit)
      : text_(text), at_(at), visit_(visit) {}

  bool null() { return word(Kind::kNull, {}); }
  bool boolean(bool value) { return word(Kind::kBoolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return word(Kind::kNumber, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) { return word(Kind::kNumber, std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) { return word(Kind::kNumber, text); }
  bool string(const string_t& text) { return quoted(Kind::kString, text); }
  bool key(const string_t& text) { return quoted(Kind::kKey, text); }
  bool binary(const binary_t& /*bytes*/) { return false; }  // JSON has none
  bool start_object(size_t /*count*/) { return event(Kind::kBeginObject, {}, end() - 1); }
  bool end_object() { return event(Kind::kEndObject, {}, end() - 1); }
  bool start_array(size_t /*count*/) { return event(Kind::kBeginArray, {}, end() - 1); }
  bool end_array() { return event(Kind::kEndArray, {}, end() - 1); }
  bool parse_error(size_t /*position*/, const std::string& /*token*/, const nlohmann::detail::exception& problem) {
    // The library's text names a line and a column in its own count, up to the first colon.
    std::string what = json_problem(problem.what());
    if (const size_t colon = what.find(": "); colon != std::string::npos) what.erase(0, colon + 2);
    fault = JsonFault{std::min(end() - std::min<size_t>(end(), 1), text_.size()), std::move(what)};
    return false;
  }

  std::optional<JsonFault> fault;

 private:
  // Bytes that the library has read. Behind a number it has read one byte more, unless the text ends.
  size_t end() const { return static_cast<size_t>(*at_ - text_.data()); }
  static bool in_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '.' || c == '-' || c == '+';
  }

  bool word(Kind kind, std::string_view text) {
    size_t begin = end();
    while (begin > 0 && !in_word(text_[begin - 1])) --begin;
    while (begin > 0 && in_word(text_[begin - 1])) --begin;
    return event(kind, text, begin);
  }
  bool quoted(Kind kind, std::string_view text) {
    // The opening quote is the last one before the closing quote that no backslash precedes: JSON escapes the others.
    size_t begin = end() - 1;
    const auto escaped = [&](size_t at) {
      size_t first = at;
      while (first > 0 && text_[first - 1] == '\\') --first;
      return (at - first) % 2 == 1;
    };
    do --begin;
    while (begin > 0 && (text_[begin] != '"' || escaped(begin)));
    return event(kind, text, begin);
  }
  bool event(Kind kind, std::string_view text, size_t offset) { return visit_({kind, text, offset}); }

  std::string_view text_;
  const char** at_;
  FunctionRef<bool(const JsonEvent&)> visit_;
};

}  // namespace

std::optional<JsonFault> read_json(std::string_view text, FunctionRef<bool(const JsonEvent&)> visit) {
  const char* at = text.data();
  JsonVisitor visitor(text, &at, visit);
  Value::sax_parse(CountedByte(text.data(), &at), CountedByte(text.data() + text.size(), &at), &visitor);
  return std::move(visitor.fault);
}

}  // namespace tenon
