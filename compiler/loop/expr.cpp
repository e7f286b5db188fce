#include "compiler/loop/expr.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>

namespace tenon::compiler::loop {
namespace {

constexpr UnaryOp kUnary[] = {UnaryOp::kNegate, UnaryOp::kNot,   UnaryOp::kAbs,  UnaryOp::kSqrt, UnaryOp::kExp,
                              UnaryOp::kLog,    UnaryOp::kTanh,  UnaryOp::kErf,  UnaryOp::kSin,  UnaryOp::kCos,
                              UnaryOp::kAtan,   UnaryOp::kFloor, UnaryOp::kCeil, UnaryOp::kRound};
constexpr BinaryOp kBinary[] = {
    BinaryOp::kAdd,       BinaryOp::kSubtract,  BinaryOp::kMultiply,   BinaryOp::kDivide,  BinaryOp::kRemainder,
    BinaryOp::kMin,       BinaryOp::kMax,       BinaryOp::kPower,      BinaryOp::kEqual,   BinaryOp::kLess,
    BinaryOp::kLessEqual, BinaryOp::kAnd,       BinaryOp::kOr,         BinaryOp::kBitAnd,  BinaryOp::kBitOr,
    BinaryOp::kBitXor,    BinaryOp::kShiftLeft, BinaryOp::kShiftRight, BinaryOp::kByteDot, BinaryOp::kByteDotSaturating,
    BinaryOp::kInt16Dot};

Expr make(DType dtype, decltype(ExprNode::form) form) {
  return std::make_shared<const ExprNode>(ExprNode{dtype, std::move(form)});
}

}  // namespace

bool is_float(DType dtype) { return runtime::kReals.contains(dtype); }

std::span<const UnaryOp> unary_ops() { return kUnary; }
std::span<const BinaryOp> binary_ops() { return kBinary; }

std::string_view name(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate: return "neg";
    case UnaryOp::kNot: return "not";
    case UnaryOp::kAbs: return "abs";
    case UnaryOp::kSqrt: return "sqrt";
    case UnaryOp::kExp: return "exp";
    case UnaryOp::kLog: return "log";
    case UnaryOp::kTanh: return "tanh";
    case UnaryOp::kErf: return "erf";
    case UnaryOp::kSin: return "sin";
    case UnaryOp::kCos: return "cos";
    case UnaryOp::kAtan: return "atan";
    case UnaryOp::kFloor: return "floor";
    case UnaryOp::kCeil: return "ceil";
    case UnaryOp::kRound: return "round";
  }
  return {};
}

std::string_view name(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSubtract: return "-";
    case BinaryOp::kMultiply: return "*";
    case BinaryOp::kDivide: return "/";
    case BinaryOp::kRemainder: return "rem";
    case BinaryOp::kMin: return "min";
    case BinaryOp::kMax: return "max";
    case BinaryOp::kPower: return "pow";
    case BinaryOp::kEqual: return "==";
    case BinaryOp::kLess: return "<";
    case BinaryOp::kLessEqual: return "<=";
    case BinaryOp::kAnd: return "and";
    case BinaryOp::kOr: return "or";
    case BinaryOp::kBitAnd: return "bit_and";
    case BinaryOp::kBitOr: return "bit_or";
    case BinaryOp::kBitXor: return "bit_xor";
    case BinaryOp::kShiftLeft: return "shift_left";
    case BinaryOp::kShiftRight: return "shift_right";
    case BinaryOp::kByteDot: return "byte_dot";
    case BinaryOp::kByteDotSaturating: return "byte_dot_saturating";
    case BinaryOp::kInt16Dot: return "int16_dot";
  }
  return {};
}

int precedence(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr: return 1;
    case BinaryOp::kAnd: return 2;
    case BinaryOp::kEqual:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual: return 3;
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract: return 4;
    case BinaryOp::kMultiply:
    case BinaryOp::kDivide: return 5;
    case BinaryOp::kRemainder:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kPower:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: return 0;
  }
  return 0;
}

bool is_dot(BinaryOp op) {
  return op == BinaryOp::kByteDot || op == BinaryOp::kByteDotSaturating || op == BinaryOp::kInt16Dot;
}

bool is_convertible(DType from, DType to) {
  if (from == to) return true;
  const auto is_partner = [](DType narrow, DType other) {
    return !runtime::kShortFloats.contains(narrow) || other == DType::kF32;
  };
  return is_partner(from, to) && is_partner(to, from);
}

bool is_supported(UnaryOp op, DType dtype) {
  if (!kComputedTypes.contains(dtype)) return false;
  switch (op) {
    case UnaryOp::kNot: return dtype == DType::kBool;
    case UnaryOp::kNegate:
    case UnaryOp::kAbs: return dtype != DType::kBool;
    case UnaryOp::kSqrt:
    case UnaryOp::kExp:
    case UnaryOp::kLog:
    case UnaryOp::kTanh:
    case UnaryOp::kErf:
    case UnaryOp::kSin:
    case UnaryOp::kCos:
    case UnaryOp::kAtan:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRound: return is_float(dtype);
  }
  return false;
}

bool is_supported(BinaryOp op, DType dtype) {
  if (!kComputedTypes.contains(dtype)) return false;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSubtract:
    case BinaryOp::kMultiply:
    case BinaryOp::kDivide:
    case BinaryOp::kRemainder:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kPower:
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual: return dtype != DType::kBool;
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight: return dtype != DType::kBool && !is_float(dtype);
    case BinaryOp::kByteDot:
    case BinaryOp::kByteDotSaturating:
    case BinaryOp::kInt16Dot: return dtype == DType::kI32;
    case BinaryOp::kEqual: return true;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return dtype == DType::kBool;
  }
  return false;
}

Expr literal(DType dtype, double value) {
  if (is_float(dtype)) return make(dtype, Literal{.real = value});
  const bool wide = dtype == DType::kU64 && value >= 0x1p63;
  return make(dtype, Literal{.integer = wide ? static_cast<int64_t>(static_cast<uint64_t>(value))
                                             : static_cast<int64_t>(value)});
}
Expr integer_literal(DType dtype, int64_t value) {
  assert(!is_float(dtype));
  return make(dtype, Literal{.integer = value});
}
Expr index_value(Dim value) { return make(DType::kI64, IndexValue{value}); }
Expr load(const Function& function, BufferId buffer, Dims indices) {
  assert(indices.size() == function.buffer(buffer).rank());
  return make(function.buffer(buffer).dtype, Load{buffer, std::move(indices)});
}
Expr unary(UnaryOp op, Expr value) {
  assert(is_supported(op, value->dtype));
  const DType dtype = value->dtype;
  return make(dtype, Unary{op, std::move(value)});
}
Expr binary(BinaryOp op, Expr left, Expr right) {
  assert(left->dtype == right->dtype && is_supported(op, left->dtype));
  const bool compares = op == BinaryOp::kEqual || op == BinaryOp::kLess || op == BinaryOp::kLessEqual;
  const DType dtype = compares ? DType::kBool : left->dtype;
  return make(dtype, Binary{op, std::move(left), std::move(right)});
}
Expr select(Expr condition, Expr then, Expr otherwise) {
  assert(condition->dtype == DType::kBool && then->dtype == otherwise->dtype);
  const DType dtype = then->dtype;
  return make(dtype, Select{std::move(condition), std::move(then), std::move(otherwise)});
}
Expr convert(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  assert(is_convertible(value->dtype, dtype));
  return make(dtype, Convert{std::move(value)});
}
Expr let_index(Symbol var, Dim extent, Expr value, Expr body) {
  assert(!is_float(value->dtype) && value->dtype != DType::kBool);
  const DType dtype = body->dtype;
  return make(dtype, LetIndex{var, extent, std::move(value), std::move(body)});
}

std::optional<CopiedElement> copied_element(const Expr& value) {
  CopiedElement copied;
  const Expr* inner = &value;
  while (const auto* select = std::get_if<Select>(&(*inner)->form)) {
    const auto* zero = std::get_if<Literal>(&select->otherwise->form);
    if (!zero || zero->integer != 0 || std::bit_cast<uint64_t>(zero->real) != 0) return std::nullopt;
    copied.conditions.push_back(select->condition);
    inner = &select->then;
  }
  copied.element = std::get_if<Load>(&(*inner)->form);
  return copied.element ? std::optional(std::move(copied)) : std::nullopt;
}

namespace {

void for_each_operand(const ExprNode& node, auto&& visit) {
  std::visit(
      [&](const auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        if constexpr (std::same_as<Form, Unary> || std::same_as<Form, Convert>) {
          visit(form.value);
        } else if constexpr (std::same_as<Form, Binary>) {
          visit(form.left), visit(form.right);
        } else if constexpr (std::same_as<Form, Select>) {
          visit(form.condition), visit(form.then), visit(form.otherwise);
        } else if constexpr (std::same_as<Form, LetIndex>) {
          visit(form.value), visit(form.body);
        } else {
          static_assert(std::same_as<Form, Literal> || std::same_as<Form, IndexValue> || std::same_as<Form, Load>);
        }
      },
      node.form);
}

ExprNode with_operands(const ExprNode& node, std::vector<Expr> operands) {
  ExprNode copy = node;
  std::visit(
      [&](auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        if constexpr (std::same_as<Form, Unary> || std::same_as<Form, Convert>) {
          form.value = operands[0];
        } else if constexpr (std::same_as<Form, Binary>) {
          form.left = operands[0], form.right = operands[1];
        } else if constexpr (std::same_as<Form, Select>) {
          form.condition = operands[0], form.then = operands[1], form.otherwise = operands[2];
        } else if constexpr (std::same_as<Form, LetIndex>) {
          form.value = operands[0], form.body = operands[1];
        }
      },
      copy.form);
  return copy;
}

bool same_form(const ExprNode& a, const ExprNode& b) {
  if (a.dtype != b.dtype || a.form.index() != b.form.index()) return false;
  return std::visit(
      [&](const auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        const Form& other = std::get<Form>(b.form);
        if constexpr (std::same_as<Form, Literal>) {
          return std::bit_cast<uint64_t>(form.real) == std::bit_cast<uint64_t>(other.real) &&
                 form.integer == other.integer;
        } else if constexpr (std::same_as<Form, IndexValue>) {
          return form.value == other.value;
        } else if constexpr (std::same_as<Form, Load>) {
          return form.buffer == other.buffer && form.indices == other.indices;
        } else if constexpr (std::same_as<Form, Unary> || std::same_as<Form, Binary>) {
          return form.op == other.op;
        } else if constexpr (std::same_as<Form, LetIndex>) {
          return form.var == other.var && form.extent == other.extent;
        } else {
          return true;
        }
      },
      a.form);
}

}  // namespace

bool equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (!same_form(*a, *b)) return false;
  return std::ranges::equal(operands(*a), operands(*b), [](const Expr& x, const Expr& y) { return equal(x, y); });
}

std::vector<Expr> operands(const ExprNode& node) {
  std::vector<Expr> operands;
  for_each_operand(node, [&](const Expr& operand) { operands.push_back(operand); });
  return operands;
}

void for_each_node(const Expr& expr, FunctionRef<void(const ExprNode&)> visit) {
  for_each_operand(*expr, [&](const Expr& operand) { for_each_node(operand, visit); });
  visit(*expr);
}

bool has_loads(const Expr& value) {
  bool found = false;
  for_each_node(value, [&](const ExprNode& node) { found |= std::holds_alternative<Load>(node.form); });
  return found;
}

Expr rewrite(const Expr& expr, FunctionRef<Expr(const ExprNode&)> step) {
  std::unordered_map<const ExprNode*, Expr> replaced_nodes;
  const std::function<Expr(const Expr&)> replaced = [&](const Expr& node) {
    if (const auto found = replaced_nodes.find(node.get()); found != replaced_nodes.end()) return found->second;
    std::vector<Expr> inner = operands(*node);
    bool changed = false;
    for (Expr& operand : inner) {
      Expr next = replaced(operand);
      changed |= next != operand;
      operand = std::move(next);
    }
    const Expr self = changed ? std::make_shared<const ExprNode>(with_operands(*node, std::move(inner))) : node;
    Expr result = step(*self);
    if (!result) result = self;
    if (node.use_count() > 2) replaced_nodes.emplace(node.get(), result);  // shared: beside this user
    return result;
  };
  return replaced(expr);
}

namespace {

// Visits each dim of the node itself.
void for_each_dim(ExprNode& node, auto&& visit) {
  std::visit(
      [&](auto& form) {
        using Form = std::remove_cvref_t<decltype(form)>;
        if constexpr (std::same_as<Form, IndexValue>) {
          visit(form.value);
        } else if constexpr (std::same_as<Form, Load>) {
          for (auto& index : form.indices) visit(index);
        } else if constexpr (std::same_as<Form, LetIndex>) {
          visit(form.extent);
        } else {
          static_assert(std::same_as<Form, Literal> || std::same_as<Form, Unary> || std::same_as<Form, Binary> ||
                        std::same_as<Form, Select> || std::same_as<Form, Convert>);
        }
      },
      node.form);
}

}  // namespace

Expr substitute(TypeContext& context, const Expr& expr, const std::map<Symbol, Dim>& values) {
  return rewrite(expr, [&](const ExprNode& node) -> Expr {
    ExprNode copy = node;
    bool changed = false;
    for_each_dim(copy, [&](Dim& dim) {
      const Dim next = context.substitute(dim, values);
      changed |= next != dim;
      dim = next;
    });
    return changed ? std::make_shared<const ExprNode>(std::move(copy)) : nullptr;
  });
}

}  // namespace tenon::compiler::loop
