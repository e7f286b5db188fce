// Values of the C interface: tensors, tuples, data.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/c_api/handles.h"
#include "runtime/dlpack.h"
#include "runtime/packed.h"
#include "support/try.h"

namespace tenon::runtime::c_api {
namespace {

static_assert(TENON_BOOL == int(DType::kBool) && TENON_I8 == int(DType::kI8) && TENON_U8 == int(DType::kU8) &&
              TENON_I16 == int(DType::kI16) && TENON_U16 == int(DType::kU16) && TENON_I32 == int(DType::kI32) &&
              TENON_I64 == int(DType::kI64) && TENON_F32 == int(DType::kF32) && TENON_F64 == int(DType::kF64) &&
              TENON_U32 == int(DType::kU32) && TENON_U64 == int(DType::kU64) && TENON_F16 == int(DType::kF16) &&
              TENON_BF16 == int(DType::kBF16) && TENON_F8E4M3FN == int(DType::kF8E4M3FN) &&
              TENON_I4 == int(DType::kI4) && TENON_U2 == int(DType::kU2));

void give(Value value, tenon_value** out) { *out = new tenon_value{std::move(value)}; }

Expected<std::vector<Value>> values_of(const char* function, const tenon_value* const* fields, size_t count) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    if (!fields || !fields[i]) {
      return error(fmt::format("field {} of {} is NULL", i, count), function, "see its declaration", Fault::kUsage);
    }
    values.push_back(fields[i]->value);
  }
  return values;
}

Status create_tensor(tenon_dtype dtype, uint32_t rank, const int64_t* sizes, const void* data, tenon_value** out) {
  TENON_TRY(require("tenon_tensor_create", {{"out", out}}));
  if (static_cast<uint32_t>(dtype) >= kDTypeCount) {
    return error(fmt::format("the dtype is {}, must be less than {}", static_cast<uint32_t>(dtype), kDTypeCount),
                 "tenon_tensor_create", "take an enumerator of tenon_dtype", Fault::kUsage);
  }
  if (rank > 0) TENON_TRY(require("tenon_tensor_create", {{"sizes", sizes}}));
  if (rank > runtime::kMaxRank) {
    return error(fmt::format("the rank is {}, must be at most {}", rank, runtime::kMaxRank), "tenon_tensor_create", {},
                 Fault::kUsage);
  }
  Shape shape(sizes, sizes + rank);
  const auto type = static_cast<DType>(dtype);
  if (!checked_bytes(type, shape)) {
    return error(
        fmt::format("the shape is {}, must have sizes of at least 0 and less than 2^48 bytes", to_string(shape)),
        "tenon_tensor_create", {}, Fault::kUsage);
  }
  Tensor tensor = data ? Tensor::for_overwrite(type, std::move(shape)) : Tensor(type, std::move(shape));
  if (data && !tensor.bytes().empty()) std::memcpy(tensor.bytes().data(), data, tensor.bytes().size());
  give(std::move(tensor), out);
  return {};
}

Status create_data(const tenon_program* program, const char* constructor, const tenon_value* const* fields,
                   size_t count, tenon_value** out) {
  constexpr char kFunction[] = "tenon_data_create";
  TENON_TRY(require(kFunction, {{"program", program}, {"constructor", constructor}, {"out", out}}));
  const auto found = find_constructor(*program->executable, constructor);
  if (!found) {
    return error(fmt::format("{} has no constructor {}", program->executable->name, constructor), kFunction,
                 "the types of the inputs have their names: tenon_port_type()", Fault::kUsage);
  }
  const uint32_t expected = program->executable->types[found->type].constructors[found->constructor].fields;
  if (expected != count) {
    return error(fmt::format("{} fields were given, {} has {}", count, constructor, expected), kFunction, {},
                 Fault::kUsage);
  }
  TENON_TRY_ASSIGN(values, values_of(kFunction, fields, count));
  give(Value::data(found->type, found->constructor, std::move(*values)), out);
  return {};
}

const Tensor& tensor_of(const tenon_value* value) { return value->value.tensor(); }

// `what` is the message of a tensor that is none.
Status require_tensor(const tenon_value* value, std::string what, const char* function) {
  if (tensor_of(value)) return {};
  return error(std::move(what), function, "ask tenon_value_kind() first", Fault::kUsage);
}

// The error as one of the function that was called.
std::unexpected<Diagnostic> error_of(Diagnostic found, const char* function) {
  found.where = function;
  found.fault = Fault::kUsage;
  return std::unexpected(std::move(found));
}

Status give_parts(Expected<std::vector<Tensor>> made, tenon_value** parts, const char* function) {
  if (!made) return error_of(std::move(made.error()), function);
  std::vector<std::unique_ptr<tenon_value>> handles;
  for (Tensor& part : *made) handles.push_back(std::make_unique<tenon_value>(Value(std::move(part))));
  for (size_t i = 0; i < handles.size(); ++i) parts[i] = handles[i].release();
  return {};
}

Status unpack(const tenon_value* packed, uint32_t axis, const int64_t* lengths, size_t count, tenon_value** parts) {
  constexpr char kFunction[] = "tenon_tensor_unpack";
  TENON_TRY(require(kFunction, {{"packed", packed}}));
  if (count > 0) TENON_TRY(require(kFunction, {{"lengths", lengths}, {"parts", parts}}));
  TENON_TRY(require_tensor(packed, "the value is not a tensor", kFunction));
  return give_parts(runtime::unpack(tensor_of(packed), axis, {lengths, count}, "lengths"), parts, kFunction);
}

Status unpack_offsets(const tenon_value* packed, uint32_t axis, const int64_t* offsets, size_t count,
                      tenon_value** parts) {
  constexpr char kFunction[] = "tenon_tensor_unpack_offsets";
  TENON_TRY(require(kFunction, {{"packed", packed}, {"offsets", offsets}}));
  if (count > 0) TENON_TRY(require(kFunction, {{"parts", parts}}));
  TENON_TRY(require_tensor(packed, "the value is not a tensor", kFunction));
  return give_parts(runtime::unpack_offsets(tensor_of(packed), axis, {offsets, count + 1}, "offsets"), parts,
                    kFunction);
}

Status pack(const tenon_value* const* parts, size_t count, uint32_t axis, tenon_value** out) {
  constexpr char kFunction[] = "tenon_tensor_pack";
  TENON_TRY(require(kFunction, {{"parts", parts}, {"out", out}}));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    if (!parts[i])
      return error(fmt::format("part {} of {} is NULL", i, count), kFunction, "see its declaration", Fault::kUsage);
    TENON_TRY(require_tensor(parts[i], fmt::format("part {} of {} is not a tensor", i, count), kFunction));
    tensors.push_back(tensor_of(parts[i]));
  }
  auto packed = runtime::pack(tensors, axis);
  if (!packed) return error_of(std::move(packed.error()), kFunction);
  give(std::move(*packed), out);
  return {};
}

tenon_kind kind_of(const Value& value) {
  switch (value.object->kind) {
    case ValueObject::Kind::kTensor: return TENON_TENSOR;
    case ValueObject::Kind::kData: return value.object->type == kTupleType ? TENON_TUPLE : TENON_DATA;
    case ValueObject::Kind::kFunction: return TENON_FUNCTION;
    case ValueObject::Kind::kReference: return TENON_REFERENCE;
  }
  __builtin_unreachable();
}

}  // namespace
}  // namespace tenon::runtime::c_api

using namespace tenon;           // NOLINT: the definitions below are the C interface of what these namespaces hold
using namespace tenon::runtime;  // NOLINT
using c_api::guarded;
using c_api::require;
using c_api::tensor_of;

tenon_error* tenon_tensor_create(tenon_dtype dtype, uint32_t rank, const int64_t* sizes, const void* data,
                                 tenon_value** out) {
  return guarded([&] { return c_api::create_tensor(dtype, rank, sizes, data, out); });
}

tenon_error* tenon_tuple_create(const tenon_value* const* fields, size_t count, tenon_value** out) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_tuple_create", {{"out", out}}));
    TENON_TRY_ASSIGN(values, c_api::values_of("tenon_tuple_create", fields, count));
    c_api::give(Value::tuple(std::move(*values)), out);
    return {};
  });
}

tenon_error* tenon_data_create(const tenon_program* program, const char* constructor, const tenon_value* const* fields,
                               size_t count, tenon_value** out) {
  return guarded([&] { return c_api::create_data(program, constructor, fields, count, out); });
}

void tenon_value_free(tenon_value* value) { delete value; }

tenon_kind tenon_value_kind(const tenon_value* value) { return c_api::kind_of(value->value); }

tenon_dtype tenon_tensor_dtype(const tenon_value* value) {
  const Tensor& tensor = tensor_of(value);
  return tensor ? static_cast<tenon_dtype>(tensor.dtype()) : TENON_BOOL;
}
uint32_t tenon_tensor_rank(const tenon_value* value) { return static_cast<uint32_t>(tensor_of(value).shape().size()); }
const int64_t* tenon_tensor_sizes(const tenon_value* value) {
  const Tensor& tensor = tensor_of(value);
  return tensor ? tensor.shape().data() : nullptr;
}
const void* tenon_tensor_data(const tenon_value* value) { return tensor_of(value).bytes().data(); }
size_t tenon_tensor_bytes(const tenon_value* value) { return tensor_of(value).bytes().size(); }

size_t tenon_value_field_count(const tenon_value* value) { return value->value.fields().size(); }

tenon_error* tenon_value_field(const tenon_value* value, size_t index, tenon_value** out) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_value_field", {{"value", value}, {"out", out}}));
    const auto fields = value->value.fields();
    if (index >= fields.size()) {
      return error(fmt::format("the index is {}, the value has {} fields", index, fields.size()), "tenon_value_field",
                   {}, Fault::kUsage);
    }
    c_api::give(fields[index], out);
    return {};
  });
}

const char* tenon_value_constructor(const tenon_program* program, const tenon_value* value) {
  const ValueObject& object = *value->value.object;
  const std::vector<DataType>& types = program->executable->types;
  if (object.kind != ValueObject::Kind::kData || object.type >= types.size()) return nullptr;
  const auto& constructors = types[object.type].constructors;
  return object.constructor < constructors.size() ? constructors[object.constructor].name.c_str() : nullptr;
}

tenon_error* tenon_tensor_unpack(const tenon_value* packed, uint32_t axis, const int64_t* lengths, size_t count,
                                 tenon_value** parts) {
  return guarded([&] { return c_api::unpack(packed, axis, lengths, count, parts); });
}

tenon_error* tenon_tensor_unpack_offsets(const tenon_value* packed, uint32_t axis, const int64_t* offsets, size_t count,
                                         tenon_value** parts) {
  return guarded([&] { return c_api::unpack_offsets(packed, axis, offsets, count, parts); });
}

tenon_error* tenon_tensor_pack(const tenon_value* const* parts, size_t count, uint32_t axis, tenon_value** out) {
  return guarded([&] { return c_api::pack(parts, count, axis, out); });
}

tenon_error* tenon_tensor_from_dlpack(DLManagedTensor* tensor, tenon_value** out) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_tensor_from_dlpack", {{"tensor", tensor}, {"out", out}}));
    auto made = std::make_unique<tenon_value>();  // first, since the tensor belongs to the caller if this throws
    made->value = Value(Tensor(DType::kBool, {}));
    TENON_TRY_ASSIGN(imported, from_dlpack(*tensor));
    made->value.object->tensor = std::move(*imported);
    *out = made.release();
    return {};
  });
}

tenon_error* tenon_tensor_to_dlpack(const tenon_value* value, DLManagedTensor** out) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_tensor_to_dlpack", {{"value", value}, {"out", out}}));
    TENON_TRY(c_api::require_tensor(value, "the value is not a tensor", "tenon_tensor_to_dlpack"));
    TENON_TRY_ASSIGN(exported, to_dlpack(tensor_of(value)));
    *out = *exported;
    return {};
  });
}
