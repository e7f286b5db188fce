// Nested values for readers and files: the values of the interpreter and those of a session as text, as JSON, and as
// the values of tuples by path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tensor.h"
#include "support/json.h"

namespace tenon::runtime {

enum class ValueKind : uint8_t { kTensor, kTuple, kData, kFunction, kReference };

// One level of a value of type V; the writers below get it from their argument `view`, a function of a const V&.
template <class V>
struct ValueView {
  ValueKind kind = ValueKind::kTensor;
  const Tensor* tensor = nullptr;     // kTensor
  std::string_view constructor = {};  // kData
  std::span<const V> fields = {};     // kTuple, kData; of kReference, the content
};

// What of a value is printed. A text that value_reader.h can read is whole.
struct TextLimits {
  size_t parts = 2000;      // of a value; what follows is abbreviated to three dots
  int64_t elements = 1000;  // of a tensor
  bool one_line = false;    // false: a line for each row of a tensor
};
inline constexpr TextLimits kWhole{SIZE_MAX, INT64_MAX, true};

// In the syntax of the compiler's text form: 3i64, Tensor[(2,), f32] [1, 2].
std::string str(const Tensor& tensor, const TextLimits& limits = {});
// {"dtype", "shape", "data"}; the infinities are "inf" and "-inf", and NaN is null.
void write_json(tenon::Json& out, const Tensor& tensor);

// As str(): (true, Cons(1i64, Nil)). Computed without recursion, since a list may be as long as memory allows.
template <class V, class View>
std::string value_text(const V& value, const View& view, const TextLimits& limits = {}) {
  struct Part {
    const V* value;  // nullptr: the part is the text only
    std::string text;
  };
  std::string out;
  std::vector<Part> open{{&value, ""}};
  for (size_t parts = 0; !open.empty(); ++parts) {
    const Part part = std::move(open.back());
    open.pop_back();
    out += part.text;
    if (!part.value) continue;
    if (parts > limits.parts) return out + "...";
    const ValueView<V> level = view(*part.value);
    switch (level.kind) {
      case ValueKind::kTensor: out += str(*level.tensor, limits); continue;
      case ValueKind::kFunction: out += "a function"; continue;
      case ValueKind::kReference: out += "a reference"; continue;
      case ValueKind::kData: out += level.constructor; break;
      case ValueKind::kTuple: break;
    }
    const bool tuple = level.kind == ValueKind::kTuple;
    if (level.fields.empty() && !tuple) continue;
    open.push_back({nullptr, tuple && level.fields.size() == 1 ? ",)" : ")"});
    for (size_t i = level.fields.size(); i-- > 0;) open.push_back({&level.fields[i], i > 0 ? ", " : ""});
    out += "(";
  }
  return out;
}

// A tuple as a list, a constructed value as {"constructor", "fields"}, a reference as {"ref"}; values that are nested
// too deeply, and functions, as text.
template <class V, class View>
void write_json(tenon::Json& out, const V& value, const View& view, int depth = 0) {
  constexpr int kDeepest = 200;
  const ValueView<V> level = view(value);
  const auto write_fields = [&] {
    out.begin_array();
    for (const V& field : level.fields) write_json(out, field, view, depth + 1);
    out.end();
  };
  if (depth > kDeepest || level.kind == ValueKind::kFunction) {
    out.value(value_text(value, view, kWhole));
  } else if (level.kind == ValueKind::kTensor) {
    write_json(out, *level.tensor);
  } else if (level.kind == ValueKind::kTuple) {
    write_fields();
  } else if (level.kind == ValueKind::kReference) {
    out.begin_object().key("ref");
    write_json(out, level.fields[0], view, depth + 1);
    out.end();
  } else {
    out.begin_object().field("constructor", level.constructor).key("fields");
    write_fields();
    out.end();
  }
}

// Calls visit(path, value) with each value of a tuple that is no tuple itself, by its indices from the outermost, as
// "1.0"; other values have the path "".
template <class V, class View, class F>
void for_each_leaf(const V& value, const View& view, const F& visit, const std::string& path = {}) {
  const ValueView<V> level = view(value);
  if (level.kind != ValueKind::kTuple) return visit(path, value);
  for (size_t i = 0; i < level.fields.size(); ++i)
    for_each_leaf(level.fields[i], view, visit, (path.empty() ? "" : path + ".") + std::to_string(i));
}

}  // namespace tenon::runtime
