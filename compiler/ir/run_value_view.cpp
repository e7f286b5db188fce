// The interpreter's values level by level, for text and files.
#include "compiler/ir/run_value.h"

namespace tenon::compiler {

runtime::ValueView<RunValue> view(const Context& context, const RunValue& value) {
  using Kind = runtime::ValueKind;
  const RunObject& object = *value.object;
  switch (object.kind) {
    case RunObject::Kind::kTensor: return {.kind = Kind::kTensor, .tensor = &object.tensor};
    case RunObject::Kind::kTuple: return {.kind = Kind::kTuple, .fields = object.fields};
    case RunObject::Kind::kData:
      return {.kind = Kind::kData, .constructor = context.name(object.constructor), .fields = object.fields};
    case RunObject::Kind::kClosure: return {.kind = Kind::kFunction};
    case RunObject::Kind::kReference: return {.kind = Kind::kReference, .fields = object.fields};
  }
  return {};
}

std::string str(const Context& context, const RunValue& value) {
  return runtime::value_text(value, [&](const RunValue& part) { return view(context, part); });
}

}  // namespace tenon::compiler
