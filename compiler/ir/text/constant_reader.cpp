// The reader of constants from the text or the side file.
#include "compiler/ir/text/constant_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/element_text.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Whether the token begins a number, which may be negative.
bool is_number(const Token& token) {
  return token.kind == Tok::kInteger || token.kind == Tok::kFloat ||
         (token.kind == Tok::kName && (token.text == "inf" || token.text == "nan"));
}

// Whether the token is the infinity or the NaN of a dtype, as inff32 or nanbf16.
bool special_dtype(const Token& token) {
  if (token.kind != Tok::kName || !(token.text.starts_with("inf") || token.text.starts_with("nan"))) return false;
  const auto dtype = runtime::parse_dtype(std::string_view(token.text).substr(3));
  return dtype && (runtime::kReals | runtime::kNarrowFloats).contains(*dtype);
}

// Reads a number token into element i of the tensor.
Status read_element(Cursor& cursor, const Token& token, size_t offset, bool negative, runtime::Tensor& tensor,
                    size_t i) {
  return runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), [&]<class T>(T) -> Status {
    const auto value = runtime::parse_element<T>((negative ? "-" : "") + token.text);
    if (value) {
      tensor.data<T>()[i] = *value;
      return {};
    }
    if (token.kind == Tok::kInteger && token.text.size() > 20)
      return cursor.error_at(offset, "the integer needs more than 64 bits");
    return cursor.error_at(offset, fmt::format("the value {}{} is not representable in {}", negative ? "-" : "",
                                               token.text, runtime::name(tensor.dtype())));
  });
}

}  // namespace

Expected<runtime::Tensor> read_constant(const Context& context, Cursor& cursor, const std::string& name, Type type,
                                        size_t type_at, const runtime::Npz& side) {
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
    if (!side.contains(member)) {
      const std::vector<std::string_view> names = side.names();
      return cursor.error_at(side_at, fmt::format("the side file has no member \"{}\"", member),
                             names.empty() ? "the module's first line names its side file: #[version = \"1\", side = "
                                             "\"weights.npz\"]"
                                           : suggest(member, names));
    }
    const auto unreadable = [&](const Diagnostic& problem) {
      return cursor.error_at(side_at, "the side file: " + problem.what, problem.help);
    };
    auto found = side.type(member);
    if (!found) return unreadable(found.error());
    if (found->dtype != tensor_type->dtype || found->shape != *shape) {
      return cursor.error_at(
          type_at, fmt::format("the side file's \"{}\" is Tensor[{}, {}], not {}", member,
                               runtime::to_string(found->shape), runtime::name(found->dtype), context.str(type)));
    }
    auto tensor = side.read(member);
    if (!tensor) return unreadable(tensor.error());
    return tensor;
  }
  const size_t list_at = cursor.offset();
  if (!cursor.is("[")) return cursor.fail("expected side or a list of values");
  // The elements are counted first, so that memory is allocated for no more than the text has.
  int64_t found = 0;
  const size_t begin = cursor.at() + 1;
  for (size_t ahead = 1; !cursor.is("]", ahead) && cursor.peek(ahead).kind != Tok::kEnd; ++ahead)
    found += is_number(cursor.peek(ahead)) ? 1 : 0;
  if (found != count) {
    return cursor.error_at(list_at,
                           fmt::format("expected {} values for {}, found {}", count, context.str(type), found));
  }
  runtime::Tensor tensor(tensor_type->dtype, *shape);
  cursor.go(begin);
  size_t i = 0;
  TENON_TRY(cursor.list("]", [&]() -> Status {
    const size_t offset = cursor.offset();
    const bool negative = cursor.accept("-");
    if (!is_number(cursor.peek())) return cursor.fail("expected a number");
    TENON_TRY(read_element(cursor, cursor.peek(), offset, negative, tensor, i++));
    cursor.skip();
    return {};
  }));
  return tensor;
}

bool at_scalar(const Cursor& cursor) {
  const Token& token = cursor.peek(cursor.is("-") ? 1 : 0);
  return token.kind == Tok::kInteger || token.kind == Tok::kFloat || special_dtype(token);
}

Expected<runtime::Tensor> read_scalar(Cursor& cursor) {
  const size_t offset = cursor.offset();
  const bool negative = cursor.accept("-");
  Token token = cursor.peek();
  std::string dtype_text;
  size_t dtype_at = token.offset + token.text.size();
  if (special_dtype(token)) {  // inff32 is one token
    dtype_text = token.text.substr(3);
    dtype_at = token.offset + 3;
    token.text.resize(3);
  } else {
    cursor.skip();
    if (cursor.peek().kind != Tok::kName || cursor.offset() != dtype_at)
      return cursor.fail("expected the number's dtype", "append it to the number, as 3i64 or 0.5f32");
    dtype_text = cursor.peek().text;
  }
  auto dtype = runtime::parse_dtype(dtype_text);
  if (!dtype) {
    const std::string suggestion = suggest_dtype(dtype_text);
    return cursor.error_at(dtype_at, dtype.error().what, suggestion.empty() ? dtype.error().help : suggestion);
  }
  cursor.skip();
  runtime::Tensor tensor(*dtype, {});
  TENON_TRY(read_element(cursor, token, offset, negative, tensor, 0));
  return tensor;
}

}  // namespace tenon::compiler
