#include "compiler/kernels/product.h"

#include <algorithm>

#include "compiler/kernels/plain_sums.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kRowsToRepayPacking = 64;  // rows that read the panels

}  // namespace

loop::Body product_loops(Emitter& emit, std::string_view name, const Product& product, DType dtype,
                         size_t operator_index, const std::vector<TileResult>& results) {
  PlainSums sums{.name = std::string(name), .init = loop::literal(dtype, 0), .axes = {}, .terms = {}, .step = nullptr};
  for (const Dim size : product.batch) sums.axes.emplace_back("b", size);
  sums.axes.emplace_back("i", product.rows), sums.axes.emplace_back("j", product.columns);
  for (const Dim size : product.terms) sums.terms.emplace_back("k", size);
  sums.step = [&](const Expr& sum, const Dims& at, const Dims& terms) {
    return sum + product.term(Dims(at.begin(), at.end() - 2), at[at.size() - 2], terms, at.back());
  };
  if (product.terms_of) {
    sums.extents_of_terms = [&](const Dims& at) { return product.terms_of(Dims(at.begin(), at.end() - 2)); };
  }
  sums.result_index = product.result_index;
  PlainStages plain = emit_plain_sums(emit, sums, results);
  schedules::ProductStages stages{.sums = plain.sums, .results = plain.results};
  const auto name_of = [&](const LazyTensor& value) { return emit.builder().function().buffer(*value.buffer).name; };
  if (product.panels) stages.panels = name_of(*product.panels);
  if (product.row_panels) stages.row_panels = name_of(*product.row_panels);
  emit.add_template(product.template_stages ? product.template_stages(stages) : stages, operator_index);
  return std::move(plain.body);
}

LazyTensor multiply(const OperatorCall& op, std::string_view name, const Product& product) {
  const Dims dims = product.result_index ? product.dims : op.dims();
  if (is_empty(dims) || is_empty(product.terms))
    return op.emit.expression(dims, op.dtype(), [zero = loop::literal(op.dtype(), 0)](const Dims&) { return zero; });
  return op.emit.contract(name, dims, op.dtype(),
                          [&emit = op.emit, name = std::string(name), product, dtype = op.dtype(),
                           index = op.emit.operator_index()](const std::vector<TileResult>& results) {
                            return product_loops(emit, name, product, dtype, index, results);
                          });
}

Columns columns_of(const OperatorCall& op, const LazyTensor& operand, Dim rows, Dim columns, bool contiguous) {
  const bool repays_packing = rows.constant().value_or(0) >= kRowsToRepayPacking;
  const bool packed = operand.constant || !contiguous || columns.constant().value_or(1) % lanes_of(op.dtype()) != 0 ||
                      op.emit.choose_option("weights", {{"in_place", repays_packing ? 2.0 : 1.0},
                                                        {"packed", repays_packing ? 1.0 : 2.0}}) == 1;
  return {packed ? op.emit.stored("columns", operand) : operand, packed};
}

}  // namespace tenon::compiler::kernels
