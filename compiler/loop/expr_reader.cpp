#include "compiler/loop/expr_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMaxBlock = 1 << 20;

}  // namespace

Expected<Dim> ExprReader::sizes() {
  TENON_TRY(cursor_.expect("("));
  TENON_TRY_ASSIGN(dim, types_.dim(scope_));
  TENON_TRY(cursor_.expect(")"));
  return dim;
}

Expected<Symbol> ExprReader::variable() {
  TENON_TRY_ASSIGN(name, cursor_.take(Tok::kName, "a variable"));
  return context_.symbol(*name);
}

Status ExprReader::keyword(std::string_view keyword) {
  if (!cursor_.accept_name(keyword)) return cursor_.fail(fmt::format("expected '{}'", keyword));
  return {};
}

Status ExprReader::declarations(std::vector<BufferId>& ids) {
  TENON_TRY(cursor_.expect("("));
  return cursor_.list(")", [&]() -> Status {
    TENON_TRY_ASSIGN(id, declaration());
    ids.push_back(*id);
    // A size may be an element of any preceding parameter.
    if (&ids == &function_.params) scope_.functions.push_back(function_.buffer(*id).name);
    return {};
  });
}

Expected<BufferId> ExprReader::declaration() {
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(name, cursor_.take(Tok::kLocal, "a buffer, as %a: Tensor[(n, 4), f32]"));
  TENON_TRY(cursor_.expect(":"));
  Buffer buffer;
  buffer.name = context_.symbol(*name);
  TENON_TRY(keyword("Tensor"));
  TENON_TRY(cursor_.expect("["));
  TENON_TRY(cursor_.expect("("));
  const size_t outer_dims = scope_.dims.size();
  TENON_TRY(cursor_.list(")", [&]() -> Status {
    BufferAxis axis;
    if (cursor_.peek().kind == Tok::kName && cursor_.is(":", 1)) {
      TENON_TRY_ASSIGN(var, variable());
      axis.var = *var;
      cursor_.skip();
    }
    TENON_TRY_ASSIGN(extent, types_.dim(scope_));
    axis.extent = *extent;
    if (axis.var != Symbol{}) scope_.dims.push_back(axis.var);
    buffer.axes.push_back(axis);
    return {};
  }));
  scope_.dims.resize(outer_dims);
  TENON_TRY(cursor_.expect(","));
  TENON_TRY_ASSIGN(dtype, this->dtype());
  buffer.dtype = *dtype;
  TENON_TRY(cursor_.expect("]"));
  const auto id = static_cast<BufferId>(function_.buffers.size());
  if (!buffers_.emplace(*name, id).second)
    return cursor_.error_at(offset, fmt::format("the buffer %{} is declared already", *name));
  function_.buffers.push_back(std::move(buffer));
  return id;
}

Expected<DType> ExprReader::dtype() {
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(name, cursor_.take(Tok::kName, "an element type, as f32"));
  auto dtype = runtime::parse_dtype(*name);
  if (!dtype) return cursor_.error_at(offset, dtype.error().what, dtype.error().help);
  TENON_TRY(check_element_type(*dtype, offset));
  return dtype;
}

Status ExprReader::check_element_type(DType dtype, size_t offset) const {
  if (kElementTypes.contains(dtype)) return {};
  return cursor_.error_at(offset, fmt::format("{} is not supported in loop functions", runtime::name(dtype)),
                          "cast the tensor to f32 before the call, and the result back");
}

Expected<BufferId> ExprReader::buffer() {
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(name, cursor_.take(Tok::kLocal, "a buffer, as %a"));
  const auto found = buffers_.find(*name);
  if (found == buffers_.end()) return cursor_.error_at(offset, fmt::format("there is no buffer %{} in scope", *name));
  return found->second;
}

Expected<Dims> ExprReader::indices(BufferId id, size_t offset) {
  TENON_TRY(cursor_.expect("["));
  Dims dims;
  TENON_TRY(cursor_.list("]", [&]() -> Status {
    TENON_TRY_ASSIGN(dim, types_.dim(scope_));
    dims.push_back(*dim);
    return {};
  }));
  const size_t rank = function_.buffer(id).rank();
  if (dims.size() != rank)
    return cursor_.error_at(offset, fmt::format("the buffer has {} axes, {} indices are given", rank, dims.size()));
  return dims;
}

Expected<Operand> ExprReader::block() {
  Operand operand;
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(id, buffer());
  operand.buffer = *id;
  TENON_TRY(cursor_.expect("["));
  TENON_TRY(cursor_.list("]", [&]() -> Status {
    Part part;
    TENON_TRY_ASSIGN(begin, types_.dim(scope_));
    part.begin = *begin;
    if (cursor_.accept(":")) {
      const size_t size_offset = cursor_.offset();
      TENON_TRY_ASSIGN(digits, cursor_.take(Tok::kInteger, "a size, as 16"));
      const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), part.size);
      if (read.ec != std::errc{} || part.size < 1 || part.size > kMaxBlock)
        return cursor_.error_at(size_offset, fmt::format("a size must be 1 to {}", kMaxBlock));
    }
    operand.parts.push_back(part);
    return {};
  }));
  const size_t rank = function_.buffer(*id).rank();
  if (operand.parts.size() != rank)
    return cursor_.error_at(offset,
                            fmt::format("the buffer has {} axes, {} indices are given", rank, operand.parts.size()));
  return operand;
}

Expected<Expr> ExprReader::expression(int depth, int above) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  TENON_TRY_ASSIGN(left, primary(depth));
  // The tree of a chain of operations is as deep as the chain is long, and everything that visits it recurs.
  constexpr size_t kMaxOperations = 10'000;
  for (size_t operations = 0;; ++operations) {
    const size_t offset = cursor_.offset();
    const BinaryOp* found = nullptr;
    for (const BinaryOp& op : binary_ops()) {
      if (precedence(op) > above && cursor_.peek().text == name(op) &&
          (cursor_.peek().kind == Tok::kPunct || cursor_.peek().kind == Tok::kName))
        found = &op;
    }
    if (!found) return left;
    if (operations == kMaxOperations)
      return cursor_.error_at(offset, fmt::format("the expression has more than {} operations", kMaxOperations),
                              "compute parts of it in stages of their own");
    cursor_.skip();
    TENON_TRY_ASSIGN(right, expression(depth + 1, precedence(*found)));
    if ((*left)->dtype != (*right)->dtype || !is_supported(*found, (*left)->dtype))
      return cursor_.error_at(offset,
                              fmt::format("'{}' does not support {} and {}", name(*found),
                                          runtime::name((*left)->dtype), runtime::name((*right)->dtype)),
                              "both operands must have the same type; convert as in f32(x)");
    left = binary(*found, *left, *right);
  }
}

Expected<Expr> ExprReader::primary(int depth) {
  const Token& token = cursor_.peek();
  const size_t offset = token.offset;
  if (token.kind == Tok::kLocal) {
    TENON_TRY_ASSIGN(id, buffer());
    TENON_TRY_ASSIGN(at_indices, indices(*id, offset));
    return load(function_, *id, std::move(*at_indices));
  }
  if (cursor_.accept("(")) {
    if (cursor_.accept_name("let")) return let(depth);
    TENON_TRY_ASSIGN(inner, expression(depth + 1));
    TENON_TRY(cursor_.expect(")"));
    return inner;
  }
  if (token.kind != Tok::kName)
    return cursor_.fail("expected an expression", "as %a[i], f32(0.5), index(i + 1) or max(x, y)");
  if (cursor_.accept_name("index")) {
    TENON_TRY_ASSIGN(dim, sizes());
    return index_value(*dim);
  }
  const std::string text = token.text;
  if (const auto type = runtime::parse_dtype(text)) {
    TENON_TRY(check_element_type(*type, token.offset));
    return typed(*type, depth);
  }
  cursor_.skip();
  TENON_TRY(cursor_.expect("("));
  std::vector<Expr> args;
  TENON_TRY(cursor_.list(")", [&]() -> Status {
    TENON_TRY_ASSIGN(arg, expression(depth + 1));
    args.push_back(*arg);
    return {};
  }));
  return applied(text, args, offset);
}

Expected<Expr> ExprReader::applied(const std::string& text, const std::vector<Expr>& args, size_t offset) {
  auto wrong = [&](std::string_view expected) {
    return cursor_.error_at(offset, fmt::format("'{}' expects {}", text, expected));
  };
  auto unsupported = [&](DType dtype) {
    return cursor_.error_at(offset, fmt::format("'{}' does not support {}", text, runtime::name(dtype)));
  };
  if (text == "select") {
    if (args.size() != 3 || args[0]->dtype != DType::kBool || args[1]->dtype != args[2]->dtype)
      return wrong("a bool and two values of the same type");
    return select(args[0], args[1], args[2]);
  }
  for (UnaryOp op : unary_ops()) {
    if (name(op) != text) continue;
    if (args.size() != 1) return wrong("one value");
    if (!is_supported(op, args[0]->dtype)) return unsupported(args[0]->dtype);
    return unary(op, args[0]);
  }
  for (BinaryOp op : binary_ops()) {
    if (name(op) != text || precedence(op) != 0) continue;
    if (args.size() != 2 || args[0]->dtype != args[1]->dtype) return wrong("two values of the same type");
    if (!is_supported(op, args[0]->dtype)) return unsupported(args[0]->dtype);
    return binary(op, args[0], args[1]);
  }
  return cursor_.error_at(offset, fmt::format("there is no function '{}'", text));
}

Expected<Expr> ExprReader::typed(DType dtype, int depth) {
  cursor_.skip();
  TENON_TRY(cursor_.expect("("));
  const bool negative = cursor_.is("-");
  const Token& token = cursor_.peek(negative ? 1 : 0);
  const bool is_number = token.kind == Tok::kInteger || token.kind == Tok::kFloat;
  const bool is_special = is_float(dtype) && token.kind == Tok::kName && (token.text == "inf" || token.text == "nan");
  if (!negative && !is_number && !is_special) {
    TENON_TRY_ASSIGN(value, expression(depth + 1));
    if (!is_convertible((*value)->dtype, dtype))
      return cursor_.error_at(
          token.offset, fmt::format("{} does not convert to {}", runtime::name((*value)->dtype), runtime::name(dtype)),
          "f16 and bf16 convert to and from f32 only");
    TENON_TRY(cursor_.expect(")"));
    return convert(dtype, *value);
  }
  TENON_TRY_ASSIGN(value, literal_of(dtype, token, negative));
  cursor_.skip(negative ? 2 : 1);
  TENON_TRY(cursor_.expect(")"));
  return value;
}

Expected<Expr> ExprReader::literal_of(DType dtype, const Token& token, bool negative) {
  const std::string text = (negative ? "-" : "") + token.text;
  const char *begin = text.data(), *end = begin + text.size();
  auto wrong = [&] {
    return cursor_.error_at(token.offset, fmt::format("'{}' is not a valid {}", text, runtime::name(dtype)));
  };
  if (is_float(dtype)) {
    if (token.text == "inf" || token.text == "nan") {
      const double value =
          token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      return literal(dtype, negative ? -value : value);
    }
    double value = 0;
    float narrow = 0;
    const auto read = dtype == DType::kF32 ? std::from_chars(begin, end, narrow) : std::from_chars(begin, end, value);
    if (read.ec != std::errc{} || read.ptr != end) return wrong();
    if (dtype == DType::kF16) value = static_cast<double>(runtime::Half(value));
    if (dtype == DType::kBF16) value = static_cast<double>(runtime::BFloat16(value));
    return literal(dtype, dtype == DType::kF32 ? narrow : value);
  }
  return runtime::with_dtype<kElementTypes.without(runtime::kReals)>(dtype, [&]<class T>(T) -> Expected<Expr> {
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> value{};
    const auto read = std::from_chars(begin, end, value);
    if (read.ec != std::errc{} || read.ptr != end || (std::is_same_v<T, bool> && value > 1)) return wrong();
    return integer_literal(dtype, static_cast<int64_t>(value));
  });
}

Expected<Expr> ExprReader::let(int depth) {
  TENON_TRY_ASSIGN(bound, bound_index(depth));
  TENON_TRY(cursor_.expect(";"));
  scope_.dims.push_back(bound->var);
  TENON_TRY_ASSIGN(result, expression(depth + 1));
  scope_.dims.pop_back();
  TENON_TRY(cursor_.expect(")"));
  return let_index(bound->var, bound->extent, bound->value, *result);
}

Expected<Let> ExprReader::bound_index(int depth) {
  Let let;
  TENON_TRY_ASSIGN(var, variable());
  let.var = *var;
  TENON_TRY(keyword("in"));
  TENON_TRY_ASSIGN(extent, sizes());
  let.extent = *extent;
  TENON_TRY(cursor_.expect("="));
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(value, expression(depth + 1));
  if (is_float((*value)->dtype) || (*value)->dtype == DType::kBool)
    return cursor_.error_at(offset, fmt::format("an index must be an integer, not {}", runtime::name((*value)->dtype)));
  let.value = *value;
  return let;
}

}  // namespace tenon::compiler::loop
