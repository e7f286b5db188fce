// Construction and traversal of scalar expressions.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "compiler/loop/loop.h"
#include "support/function_ref.h"

namespace tenon::compiler::loop {

bool is_float(DType dtype);

// Types are the caller's responsibility (asserted): both operands of an operation have the same type.
Expr literal(DType dtype, double value);  // exact in the type
Expr integer_literal(DType dtype, int64_t value);
Expr index_value(Dim value);
Expr load(const Function& function, BufferId buffer, Dims indices);
Expr unary(UnaryOp op, Expr value);
Expr binary(BinaryOp op, Expr left, Expr right);
Expr select(Expr condition, Expr then, Expr otherwise);
Expr convert(DType dtype, Expr value);
Expr let_index(Symbol var, Dim extent, Expr value, Expr body);

// The name in the text form: "+", "min". Operations with a precedence are infix operators, the others functions.
std::string_view name(UnaryOp op);
std::string_view name(BinaryOp op);
std::span<const UnaryOp> unary_ops();
std::span<const BinaryOp> binary_ops();
// Precedence of an infix operator, a larger one binds closer; 0: a function.
int precedence(BinaryOp op);
// Whether it multiplies packed integers.
bool is_dot(BinaryOp op);
// Whether the operation is defined for the type.
bool is_supported(UnaryOp op, DType dtype);
bool is_supported(BinaryOp op, DType dtype);
// Whether values of one type convert to the other: f16 and bf16 to and from f32 only, so that each conversion rounds
// once.
bool is_convertible(DType from, DType to);

bool equal(const Expr& a, const Expr& b);

// A value that is an element of a buffer where all conditions hold, the outermost first, and else zero.
struct CopiedElement {
  const Load* element = nullptr;
  std::vector<Expr> conditions;
};
std::optional<CopiedElement> copied_element(const Expr& value);

std::vector<Expr> operands(const ExprNode& node);  // in order
// Visits each node in post-order: operands before their users.
void for_each_node(const Expr& expr, FunctionRef<void(const ExprNode&)> visit);
// Whether the value depends on elements of buffers.
bool has_loads(const Expr& value);
// The expression with each node replaced by the result of `step`, operands first; nullptr keeps a node. A node with
// several users is replaced once and stays shared.
Expr rewrite(const Expr& expr, FunctionRef<Expr(const ExprNode&)> step);
// The expression with the variables in its dims replaced.
Expr substitute(TypeContext& context, const Expr& expr, const std::map<Symbol, Dim>& values);

}  // namespace tenon::compiler::loop
