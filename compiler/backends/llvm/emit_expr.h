// Scalar expressions, or vectors of them in a vector loop.
//
// Parts of an expression that are mentioned repeatedly are computed once. Of a select or a condition only the required
// side is evaluated, unless the other one can be evaluated speculatively.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_memory.h"
#include "compiler/backends/llvm/emit_quantize.h"
#include "support/function_ref.h"

namespace tenon::compiler::native {

class ExprEmitter : EmitterPart {
 public:
  ExprEmitter(FrameEmitter& frames, IndexEmitter& indices, ControlEmitter& control, MemoryEmitter& memory)
      : EmitterPart(frames),
        indices_(indices),
        control_(control),
        memory_(memory),
        quantization_(frames.builder(), frames.unit().level) {}

  // A whole expression of a statement.
  Value* root_expression(const Expr& expr);
  // Binds a computed index, after a check that it is inside the extent, while run() emits its users. The expression is
  // a whole one.
  void bind_root_index(Symbol var, Dim extent, const Expr& expr, FunctionRef<void()> run);

 private:
  Value* expression(const Expr& expr);
  Value* form(const loop::ExprNode& node, const loop::Literal& form);
  Value* form(const loop::ExprNode& node, const loop::IndexValue& form);
  Value* form(const loop::ExprNode& node, const loop::Load& form);
  Value* form(const loop::ExprNode& node, const loop::Unary& form);
  Value* form(const loop::ExprNode& node, const loop::Binary& form);
  Value* form(const loop::ExprNode& node, const loop::Select& form);
  Value* form(const loop::ExprNode& node, const loop::Convert& form);
  Value* form(const loop::ExprNode& node, const loop::LetIndex& form);

  Value* binary_operation(const loop::Binary& form, Value* a, Value* b);
  Value* fused_multiply_add(const loop::Binary& form);
  Value* dot_sum(const loop::Binary& form);
  Value* byte_words(const loop::ExprNode& node);
  Value* divide(loop::BinaryOp op, DType dtype, Value* left, Value* right);
  Value* min_or_max(bool max, DType dtype, Value* left, Value* right);
  Value* shift(bool right, DType dtype, Value* value, Value* distance);
  Value* convert(DType from, DType to, Value* value);
  Value* to_integer(DType from, DType to, Value* value);

  void bind_index(Symbol var, Dim extent, const Expr& expr, FunctionRef<void()> run);
  Value* select_value(Value* condition, const Expr& then, const Expr& otherwise);
  Value* select_branch(Value* condition, const Expr& then, const Expr& otherwise);
  Value* select_side(Value* mask, bool is_speculatable, const Expr& expr);
  Value* load_under_condition(Value* condition, const Expr& then, const Expr& otherwise);
  bool speculatable(const Expr& expr);  // may be evaluated where its value is not needed
  bool speculatable(Dim dim);
  bool is_in_bounds(const loop::Load& load);  // at every point of the stage
  void record_loads(const Expr& expr);        // the loads that are always evaluated with it

  IndexEmitter& indices_;
  ControlEmitter& control_;
  MemoryEmitter& memory_;
  QuantizationEmitter quantization_;
  // Shared parts of the current expression, in the blocks that they dominate.
  std::unordered_map<Expr, Value*> subexpressions_;
  std::map<std::tuple<loop::BinaryOp, Value*, Value*>, llvm::Constant*> folded_conditions_;  // of constant operands
  std::vector<std::pair<BufferId, Dims>> known_loads_;  // elements that a condition has loaded: they are in bounds
};

}  // namespace tenon::compiler::native
