#include "compiler/ir/batching.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/batching/rules.h"

namespace tenon::compiler {

Dims BatchBuilder::result_dims() const {
  Dims dims = result_type_.tensor()->dims;
  dims.insert(dims.begin(), batch_);
  return dims;
}

Term BatchBuilder::as_own(size_t i) {
  if (own(i)) return arg(i);
  Dims dims = arg(i).dims();
  dims.insert(dims.begin(), batch_);
  return arg(i).broadcast_to(dims);
}

Term BatchBuilder::of_rank(size_t i, int64_t rank) const {
  if (!own(i) || this->rank(i) >= rank) return arg(i);
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis <= rank - this->rank(i); ++axis) axes.push_back(axis);
  return arg(i).expand_dims(std::move(axes));
}

Term BatchBuilder::reshaped(const Term& term, const Dims& dims) {
  expect(!ok() || proved_sizes(dims) == dims, fmt::format("{} is not batched where sizes are not proved", op().name));
  return term.reshape_to(dims);
}

void BatchBuilder::expect_own(size_t i) {
  expect(own(i), fmt::format("{} is not batched where all instances share {}", op().name, op().inputs[i].name));
}

void BatchBuilder::expect_shared(size_t i) {
  expect(!own(i), fmt::format("{} is not batched where each instance has its own {}", op().name, op().inputs[i].name));
}

Diagnostic BatchBuilder::located(std::string what, std::string help) const {
  return {std::move(what), builder().module().span(builder().span()).str(), std::move(help), Fault::kInput, {}};
}

BatchingRule find_batching(OperatorId op) {
  for (const std::span<const BatchingRow> family : batching::batching_families()) {
    if (const auto row = std::ranges::find(family, op, &BatchingRow::op); row != family.end()) return row->rule;
  }
  return nullptr;
}

}  // namespace tenon::compiler
