#include "compiler/lower/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/try.h"

namespace tenon::compiler {

using runtime::ValueObject;
using SessionValue = runtime::Value;

Expected<runtime::Value> to_session(const Context& context, const Module& module, const runtime::Executable& executable,
                                    const RunValue& value) {
  std::unordered_map<const RunObject*, SessionValue> made;
  SessionValue result;
  std::vector<std::pair<const RunValue*, SessionValue*>> open{{&value, &result}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (!*from) return error("a value is missing");
    const RunObject& object = *from->object;
    if (const auto before = made.find(&object); before != made.end()) {
      *to = before->second;
      continue;
    }
    switch (object.kind) {
      case RunObject::Kind::kTensor: *to = object.tensor; break;
      case RunObject::Kind::kTuple: *to = SessionValue::tuple({}); break;
      case RunObject::Kind::kData: {
        const auto decl = module.constructor(object.constructor);
        const auto type = !decl
                              ? executable.types.end()
                              : std::ranges::find(executable.types, context.name(decl->name), &runtime::DataType::name);
        if (type == executable.types.end())
          return error(fmt::format("the executable has no type with {}", context.name(object.constructor)));
        *to = SessionValue::data(static_cast<uint32_t>(type - executable.types.begin()),
                                 static_cast<uint32_t>(decl->index), {});
        break;
      }
      case RunObject::Kind::kClosure:
      case RunObject::Kind::kReference: return error("an input holds a function or a reference");
    }
    made.emplace(&object, *to);
    auto& fields = to->object->fields;
    fields.resize(from->fields().size());
    for (size_t i = 0; i < fields.size(); ++i) open.emplace_back(&from->fields()[i], &fields[i]);
  }
  return result;
}

RunValue from_session(Context& context, const runtime::Executable& executable, const runtime::Value& value) {
  std::unordered_map<const ValueObject*, RunValue> made;
  RunValue result;
  std::vector<std::pair<const SessionValue*, RunValue*>> open{{&value, &result}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (!*from) continue;
    const ValueObject& object = *from->object;
    if (const auto before = made.find(&object); before != made.end()) {
      *to = before->second;
      continue;
    }
    *to = RunValue::tuple({});
    switch (object.kind) {
      case ValueObject::Kind::kTensor: *to = object.tensor; break;
      case ValueObject::Kind::kFunction: to->object->kind = RunObject::Kind::kClosure; break;
      case ValueObject::Kind::kReference: to->object->kind = RunObject::Kind::kReference; break;
      case ValueObject::Kind::kData:
        if (object.type == runtime::kTupleType) break;
        to->object->kind = RunObject::Kind::kData;
        to->object->constructor = context.symbol(executable.types[object.type].constructors[object.constructor].name);
        break;
    }
    made.emplace(&object, *to);
    auto& fields = to->object->fields;
    fields.resize(object.fields.size());
    for (size_t i = 0; i < fields.size(); ++i) open.emplace_back(&object.fields[i], &fields[i]);
  }
  return result;
}

}  // namespace tenon::compiler
