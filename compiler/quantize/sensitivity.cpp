#include "compiler/quantize/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "compiler/ir/operator.h"
#include "compiler/quantize/results.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// The module with a further parameter of the entry for each layer, whose value is added to the layer's result.
Module with_errors(Context& context, const Module& module, Symbol entry, const std::vector<Layer>& layers) {
  Module changed = clone(module);
  Function& function = *changed.function(entry);
  std::map<VarId, VarId> parameter, sum;  // by root
  const auto declare = [&](const VarInfo& like, std::string_view name) {
    function.vars.push_back({.type = like.type, .name = context.symbol(name), .span = like.span});
    return static_cast<VarId>(function.vars.size() - 1);
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const VarInfo root = function.info(layers[i].root);
    parameter[layers[i].root] = declare(root, fmt::format("error.{}", i));
    sum[layers[i].root] = declare(root, fmt::format("with_error.{}", i));
    function.params.push_back(parameter[layers[i].root]);
  }
  const auto replace = [&](Atom& atom) {
    const auto* var = std::get_if<VarId>(&atom);
    if (const auto found = var ? sum.find(*var) : sum.end(); found != sum.end()) atom = found->second;
  };
  std::vector<Binding> bindings;
  for (Binding& binding : function.body.bindings) {
    for_each_operand(binding.value, replace);
    const VarId var = binding.var;
    bindings.push_back(std::move(binding));
    if (!sum.contains(var)) continue;
    bindings.push_back(
        {sum[var], Apply{.op = &context.op(ops::kAdd), .attrs = {}, .args = {var, parameter[var]}, .computed = {}}});
  }
  function.body.bindings = std::move(bindings);
  replace(function.body.result);
  return changed;
}

std::vector<Tensor> zeros_like(std::span<const Tensor> tensors) {
  std::vector<Tensor> zeros;
  for (const Tensor& tensor : tensors) {
    zeros.emplace_back(runtime::DType::kF32, tensor.shape());
    std::ranges::fill(zeros.back().data<float>(), 0.0f);
  }
  return zeros;
}

}  // namespace

Expected<std::vector<Sensitivity>> sensitivities(Context& context, const Module& module, Symbol entry,
                                                 const Samples& samples, const Ranges& ranges,
                                                 const QuantizeOptions& quantization,
                                                 const CalibrationOptions& calibration) {
  std::vector<Layer> layers;
  TENON_TRY_ASSIGN(isolated, isolated_errors(context, module, entry, ranges, quantization, layers));
  std::vector<Sensitivity> found;
  for (const Layer& layer : layers) found.push_back({layer, 0});
  if (layers.empty()) return found;
  const Runner runner = calibration.runner ? calibration.runner : interpreter(context);
  TENON_TRY_ASSIGN(errors_of, runner(*isolated, entry));
  const Module disturbed = with_errors(context, module, entry, layers);
  TENON_TRY_ASSIGN(results_of, runner(disturbed, entry));
  const size_t count = std::min(samples.size(), kMeasuredSamples);
  std::vector<RelativeError> sums(layers.size());
  for (size_t i = 0; i < count; ++i) {
    if (calibration.progress) calibration.progress("measuring layers", i, count);
    TENON_TRY_ASSIGN(errors, (*errors_of)(samples[i]));
    const std::vector<Tensor> zeros = zeros_like(*errors);
    std::vector<Tensor> inputs = samples[i];
    inputs.insert(inputs.end(), zeros.begin(), zeros.end());
    TENON_TRY_ASSIGN(expected, (*results_of)(inputs));
    for (size_t k = 0; k < layers.size(); ++k) {
      inputs[samples[i].size() + k] = (*errors)[k];
      TENON_TRY_ASSIGN(results, (*results_of)(inputs));
      inputs[samples[i].size() + k] = zeros[k];
      sums[k].add(*results, *expected);
    }
  }
  if (calibration.progress) calibration.progress("measuring layers", count, count);
  for (size_t k = 0; k < layers.size(); ++k) found[k].error = sums[k].value();
  std::ranges::stable_sort(found, std::greater(), &Sensitivity::error);
  return found;
}

}  // namespace tenon::compiler
