#include "compiler/ir/batching.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/batching/rules.h"

namespace tenon::compiler {

std::optional<Dim> sequence_length(const Module& module, const Function& unit) {
  const Function* batched = unit.batched ? module.function(*unit.batched) : nullptr;
  if (!batched || batched->params.size() != unit.params.size() + 1) return std::nullopt;
  for (const VarId param : unit.params) {
    const TensorType* type = unit.type(param).tensor();
    if (type && type->rank() > 0 && type->dims[0].variable()) return type->dims[0];
  }
  return std::nullopt;
}

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

Batching find_batching(OperatorId op) {
  for (const std::span<const BatchingRow> family : batching::batching_families()) {
    if (const auto row = std::ranges::find(family, op, &BatchingRow::op); row != family.end()) return row->batching;
  }
  return {};
}

namespace {

bool has_any_of(Dim dim, const std::set<Symbol>& names) {
  bool found = false;
  for_each_variable(dim, [&](Symbol name) { found |= names.contains(name); });
  return found;
}

// Whether the rows along the first `axes` dims of the result are independent.
bool are_rows(const RowsInput& input, const std::vector<Type>& results) {
  const Dims& dims = results[0].tensor()->dims;
  std::set<Symbol> rows;
  for (int64_t i = 0; i < input.axes; ++i) {
    if (dims[i].constant() == 1) continue;
    const auto name = dims[i].variable();
    if (!name || !rows.insert(*name).second) return false;
  }
  const auto fits = [&](Type type, bool own) {
    const Dims& others = type.tensor()->dims;
    const int64_t first = own ? input.axes : 0;
    if (std::ssize(others) < first || !std::equal(dims.begin(), dims.begin() + first, others.begin())) return false;
    return std::none_of(others.begin() + first, others.end(), [&](Dim dim) { return has_any_of(dim, rows); });
  };
  for (const Type type : results) {
    if (!fits(type, true)) return false;
  }
  for (size_t i = 0; i < input.args.size(); ++i) {
    if (!fits(input.args[i], input.own[i])) return false;
  }
  return input.op.rows(input);
}

}  // namespace

int64_t independent_rows(const Apply& apply, std::span<const Type> types, const std::vector<bool>& own, Type result,
                         int64_t most) {
  std::vector<Type> results{result};
  if (result.tuple()) results = result.tuple()->fields;
  const bool known = std::ranges::all_of(types, [](Type type) { return type.tensor() && !has_erased(type); }) &&
                     std::ranges::all_of(results, [](Type type) { return type.tensor() && !has_erased(type); });
  if (!apply.op->rows || results.empty() || !known || std::ranges::find(own, true) == own.end()) return 0;
  // The sizes of the result's type are those of a new shape.
  if (!apply.computed.empty() && apply.op->elements != Elements::kSame) return 0;
  for (const auto& [name, value] : apply.computed) {
    if (!std::holds_alternative<Dims>(value)) return 0;
  }
  for (int64_t axes = std::min(most, results[0].tensor()->rank()); axes > 0; --axes) {
    if (!results[0].tensor()->dims[axes - 1].variable()) continue;
    if (are_rows({*apply.op, apply.attrs, types, own, result, axes}, results)) return axes;
  }
  return 0;
}

}  // namespace tenon::compiler
