// The reader of constants from the text or the side file.
#include "compiler/ir/text/constant_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

template <class T>
bool fill_as(runtime::Tensor& tensor, const std::vector<int64_t>* integers, const std::vector<double>& reals) {
  auto out = tensor.data<T>();
  for (size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = integers ? static_cast<T>((*integers)[i]) : static_cast<T>(reals[i]);
    } else {
      if (!integers) return false;
      out[i] = static_cast<T>((*integers)[i]);
      if (static_cast<int64_t>(out[i]) != (*integers)[i]) return false;
    }
  }
  return true;
}

// Returns false where a value is not representable in the dtype.
bool fill(runtime::Tensor& tensor, const std::vector<int64_t>* integers, const std::vector<double>& reals) {
  switch (tensor.dtype()) {
    case DType::kBool: return fill_as<bool>(tensor, integers, reals);
    case DType::kI8: return fill_as<int8_t>(tensor, integers, reals);
    case DType::kU8: return fill_as<uint8_t>(tensor, integers, reals);
    case DType::kI16: return fill_as<int16_t>(tensor, integers, reals);
    case DType::kU16: return fill_as<uint16_t>(tensor, integers, reals);
    case DType::kI32: return fill_as<int32_t>(tensor, integers, reals);
    case DType::kI64: return fill_as<int64_t>(tensor, integers, reals);
    case DType::kF32: return fill_as<float>(tensor, integers, reals);
    case DType::kF64: return fill_as<double>(tensor, integers, reals);
  }
  return false;
}

}  // namespace

Expected<runtime::Tensor> read_constant(const Context& context, Cursor& cursor, const std::string& name, Type type,
                                        size_t type_at, const runtime::NamedTensors& side) {
  const TensorType* tensor_type = type.tensor();
  const auto shape = tensor_type ? tensor_type->shape() : std::nullopt;
  if (!shape) return cursor.error_at(type_at, "a constant must be a tensor of constant sizes");
  // The size is compared with the available values before memory is allocated.
  int64_t count = 1;
  for (int64_t size : *shape) {
    count *= std::max<int64_t>(size, 0);
    if (count > (int64_t{1} << 40)) return cursor.error_at(type_at, "the constant is too large");
  }
  if (cursor.is_name("side")) {
    const size_t side_at = cursor.offset();
    cursor.skip();
    std::string member = name;
    if (cursor.accept("(")) {
      TENON_TRY_ASSIGN(text, cursor.take(Tok::kString, "the member's name, as side(\"w\")"));
      member = std::move(*text);
      TENON_TRY(cursor.expect(")"));
    }
    auto found = side.find(member);
    if (found == side.end()) {
      std::vector<std::string_view> names;
      for (const auto& [key, tensor] : side) names.push_back(key);
      return cursor.error_at(side_at, fmt::format("the side file has no member \"{}\"", member),
                             side.empty() ? "the module's first line names its side file: #[version = \"1\", side = "
                                            "\"weights.npz\"]"
                                          : suggest(member, names));
    }
    if (found->second.dtype() != tensor_type->dtype || found->second.shape() != *shape) {
      return cursor.error_at(type_at, fmt::format("the side file's \"{}\" is Tensor[{}, {}], not {}", member,
                                                  runtime::to_string(found->second.shape()),
                                                  runtime::name(found->second.dtype()), context.str(type)));
    }
    return found->second;
  }
  const size_t list_at = cursor.offset();
  if (!cursor.is("[")) return cursor.fail("expected side or a list of values");
  TENON_TRY_ASSIGN(list, cursor.attribute());
  std::vector<double> reals;
  auto* integers = std::get_if<std::vector<int64_t>>(&*list);
  if (auto* values = std::get_if<std::vector<double>>(&*list)) reals = *values;
  const size_t found = integers ? integers->size() : reals.size();
  if (static_cast<int64_t>(found) != count) {
    return cursor.error_at(list_at,
                           fmt::format("expected {} values for {}, found {}", count, context.str(type), found));
  }
  runtime::Tensor tensor(tensor_type->dtype, *shape);
  if (!fill(tensor, integers, reals)) {
    return cursor.error_at(list_at, fmt::format("a value is not representable in {}", runtime::name(tensor.dtype())));
  }
  return tensor;
}

Expected<runtime::Tensor> make_scalar(const Cursor& cursor, size_t at, const Attr& value, DType dtype) {
  std::vector<int64_t> integers;
  std::vector<double> reals;
  if (auto* integer = std::get_if<int64_t>(&value)) integers.push_back(*integer);
  else reals.push_back(std::get<double>(value));
  runtime::Tensor tensor(dtype, {});
  if (fill(tensor, integers.empty() ? nullptr : &integers, reals)) return tensor;
  return cursor.error_at(at, fmt::format("the value is not representable in {}", runtime::name(dtype)));
}

}  // namespace tenon::compiler
