#include "compiler/kernels/product.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kRowsToRepayPacking = 64;  // rows that read the panels

class PlainProduct {
 public:
  PlainProduct(Emitter& emit, std::string name, Product product, DType dtype)
      : emit_(emit), context_(emit.context()), name_(std::move(name)), product_(std::move(product)), dtype_(dtype) {}

  // The sums, and the stage that stores the results computed from them.
  loop::Body run(const std::vector<TileResult>& results, size_t op) const {
    std::vector<For> loops;
    std::vector<Axis> axes;
    Dims at, terms;
    const auto add = [&](const std::string& name, Dim extent, AxisKind kind, Dims& indices) {
      const Symbol var = context_.symbol(emit_.unique(name));
      loops.push_back({.var = var, .extent = extent, .kind = LoopKind::kSerial, .body = {}});
      axes.push_back({.var = var, .extent = extent, .kind = kind, .value = context_.dim(var)});
      indices.push_back(context_.dim(var));
    };
    for (const Dim size : product_.batch) add("b", size, AxisKind::kSpatial, at);
    add("i", product_.rows, AxisKind::kSpatial, at), add("j", product_.columns, AxisKind::kSpatial, at);
    const std::vector<For> outer = loops;
    const std::vector<Axis> points = axes;
    Dims sizes = product_.batch;
    sizes.push_back(product_.rows), sizes.push_back(product_.columns);
    for (const Dim size : product_.terms) add("k", size, AxisKind::kReduce, terms);

    const BufferId sums = emit_.local(name_ + "_sums", sizes, dtype_);
    const Expr sum = emit_.builder().load(sums, at), zero = loop::literal(dtype_, 0);
    const Dims batch(at.begin(), at.end() - 2);
    loop::Stage add_terms{.name = emit_.builder().stage_name(name_), .axes = axes, .where = {}, .init = {}, .body = {}};
    add_terms.init.push_back({loop::Store{sums, at, zero}});
    add_terms.body.push_back({loop::Store{sums, at, sum + product_.term(batch, at[at.size() - 2], terms, at.back())}});
    loop::Stage store{.name = {}, .axes = points, .where = {}, .init = {}, .body = {}};
    const Dims result_at = product_.result_index ? product_.result_index(at) : at;
    for (const TileResult& result : results) {
      if (store.body.empty())
        store.name = emit_.builder().stage_name(context_.name(emit_.builder().function().buffer(result.buffer).name));
      store.body.push_back({loop::Store{result.buffer, result_at, result.value(result_at, defined(sum, zero))}});
    }
    schedules::ProductStages stages{.sums = add_terms.name, .results = store.name};
    if (product_.panels) stages.panels = emit_.builder().function().buffer(*product_.panels->buffer).name;
    emit_.add_product(stages, op);
    loop::Body body;
    body.push_back(loop::nest(loops, Stmt{std::move(add_terms)}));
    body.push_back(loop::nest(outer, Stmt{std::move(store)}));
    loop::Body result;
    result.push_back({loop::Alloc{.buffer = sums, .scope = loop::Scope::kHeap, .body = std::move(body)}});
    return result;
  }

 private:
  // A sum without terms, which no point initializes, is zero.
  Expr defined(const Expr& sum, const Expr& zero) const {
    Expr result = sum;
    for (const Dim size : product_.terms) {
      if (DimProver(context_).less(context_.dim(0), size) == Answer::kYes) continue;
      result = select(less(loop::index_value(context_.dim(0)), loop::index_value(size)), result, zero);
    }
    return result;
  }

  Emitter& emit_;
  Context& context_;
  const std::string name_;
  const Product product_;
  const DType dtype_;
};

}  // namespace

LazyTensor multiply(const OperatorCall& op, std::string_view name, const Product& product) {
  const Dims dims = product.result_index ? product.dims : op.dims();
  if (is_empty(dims) || is_empty(product.terms))
    return op.emit.expression(dims, op.dtype(), [zero = loop::literal(op.dtype(), 0)](const Dims&) { return zero; });
  const auto plain = std::make_shared<PlainProduct>(op.emit, std::string(name), product, op.dtype());
  return op.emit.contract(name, dims, op.dtype(),
                          [plain, index = op.emit.operator_index()](const std::vector<TileResult>& results) {
                            return plain->run(results, index);
                          });
}

TileShape tile_of(const OperatorCall& op, Dim rows, Dim columns) {
  const int64_t vector = lanes_of(op.dtype());
  return choose_tile(op.emit, rows.constant().value_or(0),
                     std::max<int64_t>(columns.constant().value_or(2 * vector), 1), vector, {.strided_rows = true});
}

Columns columns_of(const OperatorCall& op, const LazyTensor& operand, Dim rows, Dim columns, bool contiguous) {
  const bool repays_packing = rows.constant().value_or(0) >= kRowsToRepayPacking;
  const bool packed = operand.constant || !contiguous || columns.constant().value_or(1) % lanes_of(op.dtype()) != 0 ||
                      op.emit.choose_option("weights", {{"in_place", repays_packing ? 2.0 : 1.0},
                                                        {"packed", repays_packing ? 1.0 : 2.0}}) == 1;
  return {packed ? op.emit.stored("columns", operand) : operand, packed};
}

}  // namespace tenon::compiler::kernels
