// The text of the interpreter's values, computed without recursion: a list may be as long as memory allows.
#include <fmt/format.h>

#include "compiler/ir/literal.h"
#include "compiler/ir/run_value.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMaxShownElements = 1000;  // the shown elements of a tensor
constexpr size_t kMaxParts = 2000;           // the shown parts of a value

template <class T>
std::string number(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  else if constexpr (!runtime::is_real<T>) return fmt::format("{}", static_cast<runtime::Wide<T>>(value));
  else if (value != value) return "nan";  // without the sign, which has no meaning
  else if constexpr (std::is_same_v<T, double>) return fmt::format("{}", value);
  else return fmt::format("{}", static_cast<float>(value));
}

template <class T>
std::string rows(const runtime::Tensor& tensor) {
  const auto values = tensor.data<T>();
  const runtime::Shape& shape = tensor.shape();
  std::string text(shape.size(), '[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int64_t>(i) == kMaxShownElements) return text + ", ...";
    // Each dim that ends before this element closes and opens a bracket.
    size_t ended = 0;
    auto period = static_cast<size_t>(1);
    for (size_t d = shape.size(); d-- > 0;) {
      period *= static_cast<size_t>(shape[d]);
      if (i == 0 || i % period != 0) break;
      ++ended;
    }
    if (i > 0) text += ended == 0 ? ", " : std::string(ended, ']') + ",\n" + std::string(shape.size() - ended, ' ');
    if (i > 0) text += std::string(ended, '[');
    text += number(values[i]);
  }
  return text + std::string(shape.size(), ']');
}

std::string tensor_text(const runtime::Tensor& tensor) {
  if (auto scalar = literal(tensor)) return *scalar;
  std::string text = fmt::format("Tensor[{}, {}] ", runtime::to_string(tensor.shape()), runtime::name(tensor.dtype()));
  return text + runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), [&]<class T>(T) { return rows<T>(tensor); });
}

}  // namespace

std::string str(const Context& context, const RunValue& value) {
  struct Part {
    const RunValue* value;  // nullptr: the part is the text only
    std::string text;
  };
  std::string out;
  std::vector<Part> open{{&value, ""}};
  for (size_t parts = 0; !open.empty(); ++parts) {
    const Part part = std::move(open.back());
    open.pop_back();
    out += part.text;
    if (!part.value) continue;
    if (parts > kMaxParts) return out + "...";
    const RunObject& object = *part.value->object;
    switch (object.kind) {
      case RunObject::Kind::kTensor: out += tensor_text(object.tensor); continue;
      case RunObject::Kind::kClosure: out += "a function"; continue;
      case RunObject::Kind::kReference: out += "a reference"; continue;
      case RunObject::Kind::kData: out += context.name(object.constructor); break;
      case RunObject::Kind::kTuple: break;
    }
    const bool tuple = object.kind == RunObject::Kind::kTuple;
    if (object.fields.empty() && !tuple) continue;
    open.push_back({nullptr, tuple && object.fields.size() == 1 ? ",)" : ")"});
    for (size_t i = object.fields.size(); i-- > 0;) open.push_back({&object.fields[i], i > 0 ? ", " : ""});
    out += "(";
  }
  return out;
}

}  // namespace tenon::compiler
