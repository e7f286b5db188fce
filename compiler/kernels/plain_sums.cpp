#include "compiler/kernels/plain_sums.h"

#include "compiler/base/dim_prover.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

// A sum without terms, which no point initializes, is its initial value.
Expr defined(Context& context, const PlainSums& sums, const Dims& extents, const Expr& sum) {
  Expr result = sum;
  for (const Dim size : extents) {
    if (DimProver(context).less(context.dim(0), size) == Answer::kYes) continue;
    result = select(less(loop::index_value(context.dim(0)), loop::index_value(size)), result, sums.init);
  }
  return result;
}

}  // namespace

PlainStages emit_plain_sums(Emitter& emit, const PlainSums& sums, const std::vector<TileResult>& results) {
  Context& context = emit.context();
  std::vector<For> loops;
  std::vector<Axis> axes;
  Dims at, terms, sizes;
  const auto add = [&](const PlainSums::Range& range, AxisKind kind, Dims& indices) {
    const Symbol var = context.symbol(emit.unique(range.first));
    loops.push_back({.var = var, .extent = range.second, .kind = LoopKind::kSerial, .body = {}});
    axes.push_back({.var = var, .extent = range.second, .kind = kind, .value = context.dim(var)});
    indices.push_back(context.dim(var));
  };
  for (const PlainSums::Range& range : sums.axes) add(range, AxisKind::kSpatial, at), sizes.push_back(range.second);
  const std::vector<Axis> steps = emit.builder().step_axes();
  axes.insert(axes.begin(), steps.begin(), steps.end());
  const std::vector<For> outer = loops;
  const std::vector<Axis> points = axes;
  Dims extents;
  if (sums.extents_of_terms) extents = sums.extents_of_terms(at);
  for (const PlainSums::Range& range : sums.terms) {
    if (!sums.extents_of_terms) extents.push_back(range.second);
    add({range.first, extents[terms.size()]}, AxisKind::kReduce, terms);
  }

  const BufferId buffer = emit.local(sums.name + "_sums", sizes, sums.init->dtype);
  const Expr sum = emit.builder().load(buffer, at);
  loop::Stage add_terms{
      .name = emit.builder().stage_name(sums.name), .axes = axes, .where = {}, .init = {}, .body = {}};
  add_terms.init.push_back({loop::Store{buffer, at, sums.init}});
  add_terms.body.push_back({loop::Store{buffer, at, sums.step(sum, at, terms)}});
  loop::Stage store{.name = {}, .axes = points, .where = {}, .init = {}, .body = {}};
  const Dims result_at = sums.result_index ? sums.result_index(at) : at;
  for (const TileResult& result : results) {
    if (store.body.empty())
      store.name = emit.builder().stage_name(context.name(emit.builder().function().buffer(result.buffer).name));
    store.body.push_back(
        {loop::Store{result.buffer, result_at, result.value(result_at, defined(context, sums, extents, sum))}});
  }
  PlainStages stages{.body = {}, .sums = add_terms.name, .results = store.name};
  loop::Body body;
  body.push_back(loop::nest(loops, Stmt{std::move(add_terms)}));
  body.push_back(loop::nest(outer, Stmt{std::move(store)}));
  stages.body.push_back({loop::Alloc{.buffer = buffer, .scope = loop::Scope::kHeap, .body = std::move(body)}});
  return stages;
}

}  // namespace tenon::compiler::kernels
