// Matrix products with arbitrary terms.
#pragma once

#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {

// A factor of a product in the type of the sum: i32 for bytes, f32 for f16 and bf16, else the operand's own type.
inline Expr factor(const Expr& x) {
  const bool is_short = runtime::kShortFloats.contains(x->dtype),
             is_byte = x->dtype == DType::kI8 || x->dtype == DType::kU8;
  return loop::convert(is_byte ? DType::kI32 : is_short ? DType::kF32 : x->dtype, x);
}

// For row i and column j of each matrix of the batch the sum over k of term(batch, i, k, j).
struct Product {
  Dims batch;
  Dim rows, columns;
  Dims terms;
  // Where they depend on the batch; `terms` are the most then.
  std::function<Dims(const Dims& batch)> terms_of = nullptr;
  std::function<Expr(const Dims& batch, Dim i, const Dims& k, Dim j)> term;
  // The operand whose columns are packed into panels, and the one whose rows are; they must have buffers.
  std::optional<LazyTensor> panels = {}, row_panels = {};
  // The stages as those of another template than that of products.
  std::function<schedules::TemplateStages(const schedules::ProductStages& stages)> template_stages = nullptr;
  // Where the result is not [batch, rows, columns]: its dims, and its indices from [batch, row, column].
  Dims dims = {};
  std::function<Dims(const Dims& at)> result_index = nullptr;
};
// Plain loops; a template (compiler/schedules/product.h) turns them into register tiles.
LazyTensor multiply(const OperatorCall& op, std::string_view name, const Product& product);
// The loops alone, which store `results`; there is an element, and a term.
loop::Body product_loops(Emitter& emit, std::string_view name, const Product& product, DType dtype,
                         size_t operator_index, const std::vector<TileResult>& results);

// The operand, in a buffer where its columns are packed into panels first: always where it is a constant, or its
// columns are not contiguous whole vectors, else by the knob "weights".
struct Columns {
  LazyTensor value;
  bool packed = false;
};
Columns columns_of(const OperatorCall& op, const LazyTensor& operand, Dim rows, Dim columns, bool contiguous);

}  // namespace tenon::compiler::kernels
