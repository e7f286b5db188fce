#include "compiler/ir/run_value_reader.h"

#include <algorithm>
#include <iterator>

#include "support/try.h"

namespace tenon::compiler {

Expected<RunValue> RunValueReader::read(compiler::Type type, std::string_view text, const runtime::TextOrigin& origin,
                                        Format format) {
  made_.clear();
  const auto read = format == Format::kJson ? runtime::read_value_json : runtime::read_value_text;
  TENON_TRY(read(text, origin, type.node, *this));
  return take(1)[0];
}

const RunValueReader::Parts& RunValueReader::parts(Handle handle) {
  auto& known = parts_[handle];
  if (known) return *known;
  const compiler::Type type = type_of(handle);
  auto parts = std::make_unique<Parts>();
  using Kind = runtime::ValueKind;
  if (const TensorType* tensor = type.tensor()) {
    parts->level = {.kind = Kind::kTensor, .dtype = tensor->dtype};
    for (const Dim dim : tensor->dims) parts->level.shape.push_back(dim.constant().value_or(-1));
  } else if (const TupleType* tuple = type.tuple()) {
    for (const compiler::Type field : tuple->fields) parts->fields.push_back(field.node);
    parts->level = {.kind = Kind::kTuple, .fields = parts->fields};
  } else if (const AdtType* data = type.adt()) {
    const Adt& adt = module_.adts.at(data->name);
    std::map<Symbol, compiler::Type> args;
    for (size_t i = 0; i < adt.params.size(); ++i) args.emplace(adt.params[i], data->args[i]);
    for (const compiler::Constructor& constructor : adt.constructors) {
      parts->names.push_back(constructor.name);
      std::vector<Handle>& fields = parts->constructors.emplace_back();
      for (const compiler::Type field : constructor.fields) fields.push_back(context_.substitute(field, {}, args).node);
    }
    parts->level = {.kind = Kind::kData};
  } else {
    parts->level = {.kind = type.reference() ? Kind::kReference : Kind::kFunction};
  }
  return *(known = std::move(parts));
}

std::optional<runtime::ValueTarget::Constructor> RunValueReader::constructor(Handle type, std::string_view name) {
  const Parts& parts = this->parts(type);
  for (size_t i = 0; i < parts.names.size(); ++i) {
    if (context_.name(parts.names[i]) == name) return Constructor{static_cast<uint32_t>(i), parts.constructors[i]};
  }
  return std::nullopt;
}

std::vector<std::string_view> RunValueReader::constructors(Handle type) {
  std::vector<std::string_view> names;
  for (const Symbol name : parts(type).names) names.push_back(context_.name(name));
  return names;
}

void RunValueReader::make_data(Handle type, uint32_t constructor, size_t fields) {
  made_.push_back(RunValue::data(parts(type).names[constructor], take(fields)));
}

std::vector<RunValue> RunValueReader::take(size_t count) {
  const auto first = made_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<RunValue> last(std::make_move_iterator(first), std::make_move_iterator(made_.end()));
  made_.erase(first, made_.end());
  return last;
}

}  // namespace tenon::compiler
