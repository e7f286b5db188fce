#include "compiler/cli/data_sizes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/cli/model_options.h"
#include "runtime/run/inputs.h"
#include "runtime/run/samples.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Dim;
using compiler::DimValues;

// The variable that is the first dim of all inputs that have dims.
std::optional<compiler::Symbol> batch_of(const std::vector<std::span<const Dim>>& inputs) {
  std::optional<compiler::Symbol> batch;
  for (const std::span<const Dim> dims : inputs) {
    if (dims.empty()) continue;
    const auto first = dims[0].variable();
    if (!first || (batch && *batch != *first)) return std::nullopt;
    batch = first;
  }
  return batch;
}

}  // namespace

Expected<std::map<std::string, int64_t>> sizes_of_data(const compiler::Model& model,
                                                       std::span<const runtime::Tensor> data) {
  TENON_TRY_ASSIGN(ports, input_ports(model, Sizes::kAny));
  const compiler::Function& main = model.main();
  std::vector<std::span<const Dim>> inputs;
  for (size_t i = 0; i < data.size(); ++i) {
    inputs.emplace_back(main.type(main.params[i]).tensor()->dims);
    const size_t rank = inputs.back().size();
    if (rank > 0 && data[i].shape().size() != rank) TENON_TRY(runtime::split_samples(data[i], (*ports)[i], 1));
  }
  DimValues values;
  if (const auto batch = batch_of(inputs)) values.emplace(*batch, 1);
  // A dim of several variables is solved once all but one of them are known.
  for (size_t known = values.size() + 1; known != values.size();) {
    known = values.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t axis = 0; axis < inputs[i].size(); ++axis)
        compiler::solve_for_variable(inputs[i][axis], data[i].shape()[axis], values);
    }
  }
  std::map<std::string, int64_t> sizes;
  for (const auto& [variable, value] : values) sizes.emplace(model.context->name(variable), value);
  return sizes;
}

Expected<std::map<std::string, int64_t>> sizes_of_data(const compiler::Model& model,
                                                       std::span<const std::string> arguments) {
  TENON_TRY_ASSIGN(ports, input_ports(model, Sizes::kAny));
  TENON_TRY_ASSIGN(data, runtime::read_inputs(runtime::input_slots(*ports), arguments,
                                              {.where = model.name, .help = {}, .fault = Fault::kUsage}));
  return sizes_of_data(model, *data);
}

}  // namespace tenon::cli
