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

std::string Json::str() const {
  assert(state_->open.empty());
  return state_->root.dump(2, ' ', true, Value::error_handler_t::replace) + "\n";
}

}  // namespace tenon
