#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/interpreter.h"
#include "compiler/quantize/distributions.h"
#include "compiler/quantize/layers.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using Visit = std::function<void(Symbol function, VarId var, const Tensor& value)>;

bool is_real(const Type& type) { return type.tensor() && type.tensor()->dtype == runtime::DType::kF32; }

// The observed variables of each function that may run.
std::map<Symbol, std::set<VarId>> observed_variables(const Context& context, const Module& module, Symbol entry) {
  std::map<Symbol, std::set<VarId>> observed;
  for (const Symbol name : reachable_globals(module, entry)) {
    const Function* function = module.function(name);
    if (!function) continue;
    for (const VarId param : function->params) observed[name].insert(param);
  }
  for (const Layer& layer : find_layers(context, module, entry)) {
    observed[layer.function].insert(layer.root);
    observed[layer.function].insert(layer.operands.begin(), layer.operands.end());
  }
  for (auto& [name, vars] : observed) {
    const Function& function = *module.function(name);
    std::erase_if(vars, [&](VarId var) { return !is_real(function.type(var)); });
  }
  return observed;
}

// The module with a tuple of the variables as the result of the entry.
Module with_results(Context& context, const Module& module, Symbol entry, const std::vector<VarId>& vars) {
  Module changed = clone(module);
  Function& function = *changed.function(entry);
  Tuple tuple;
  std::vector<Type> types;
  for (const VarId var : vars) {
    tuple.fields.emplace_back(var);
    types.push_back(function.type(var));
  }
  function.result = context.tuple(std::move(types));
  const auto result = static_cast<VarId>(function.vars.size());
  function.vars.push_back({.type = function.result, .name = {}, .span = {}});
  function.body.bindings.push_back({result, std::move(tuple)});
  function.body.result = result;
  return changed;
}

// Runs a function on samples, and visits what is observed. Straight-line functions are run by the runner, with the
// observed values as their results.
class Observation {
 public:
  static Expected<Observation> create(Context& context, const Module& module, Symbol entry,
                                      const CalibrationOptions& options) {
    Observation made(context, module, entry, options);
    const Function& function = *module.function(entry);
    const bool elsewhere = std::ranges::any_of(made.observed_, [&](const auto& of_function) {
      return of_function.first != entry && !of_function.second.empty();
    });
    if (!options.runner || elsewhere || !first_order(module, function)) return made;
    for (const VarId var : made.observed_[entry]) {
      if (std::ranges::find(function.params, var) == function.params.end()) made.results_.push_back(var);
    }
    if (!made.results_.empty()) {
      made.changed_ = std::make_unique<Module>(with_results(context, module, entry, made.results_));
      TENON_TRY_ASSIGN(run, options.runner(*made.changed_, entry));
      made.run_ = std::move(*run);
    }
    return made;
  }

  Status run(const Samples& samples, std::string_view step, const Visit& visit) const {
    for (size_t i = 0; i < samples.size(); ++i) {
      if (options_->progress) options_->progress(step, i, samples.size());
      TENON_TRY(run_ ? run_compiled(samples[i], visit) : run_interpreted(samples[i], visit));
    }
    if (options_->progress) options_->progress(step, samples.size(), samples.size());
    return {};
  }

 private:
  Observation(Context& context, const Module& module, Symbol entry, const CalibrationOptions& options)
      : context_(&context),
        module_(&module),
        entry_(entry),
        options_(&options),
        observed_(observed_variables(context, module, entry)) {}

  Status run_compiled(const std::vector<Tensor>& inputs, const Visit& visit) const {
    TENON_TRY_ASSIGN(values, run_(inputs));
    const Function& function = *module_->function(entry_);
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (is_real(function.type(function.params[i]))) visit(entry_, function.params[i], inputs[i]);
    }
    for (size_t i = 0; i < results_.size(); ++i) visit(entry_, results_[i], (*values)[i]);
    return {};
  }

  Status run_interpreted(const std::vector<Tensor>& inputs, const Visit& visit) const {
    std::map<const Function*, Symbol> names;
    for_each_function(*module_, [&](Symbol name, const Function& function) { names.emplace(&function, name); });
    const auto observe = [&](const Function& running, VarId var, const RunValue& value) {
      const Symbol name = names.at(&running);
      if (observed_.at(name).contains(var)) visit(name, var, value.tensor());
    };
    TENON_TRY(interpret(*context_, *module_, entry_, std::span<const Tensor>(inputs), observe));
    return {};
  }

  Context* context_;
  const Module* module_;
  Symbol entry_;
  const CalibrationOptions* options_;
  std::map<Symbol, std::set<VarId>> observed_;
  std::vector<VarId> results_;       // of the entry, in the order of what `run_` results in
  std::unique_ptr<Module> changed_;  // the module that `run_` runs
  RunFunction run_;
};

struct Row {
  float lo = HUGE_VALF, hi = -HUGE_VALF;
  double sum = 0;
};

// In lanes, for vector instructions.
Row row_of(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> lo, hi, sum{};
  lo.fill(HUGE_VALF), hi.fill(-HUGE_VALF);
  size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const float value = values[at + i];
      lo[i] = value < lo[i] ? value : lo[i];
      hi[i] = value > hi[i] ? value : hi[i];
      sum[i] += value;
    }
  }
  Row row{.lo = std::ranges::min(lo), .hi = std::ranges::max(hi), .sum = 0};
  for (const float part : sum) row.sum += part;
  for (; at < values.size(); ++at) {
    row.lo = std::min(row.lo, values[at]), row.hi = std::max(row.hi, values[at]);
    row.sum += values[at];
  }
  return row;
}

bool has_nan(const Tensor& constant) {
  return constant.dtype() == runtime::DType::kF32 &&
         std::ranges::any_of(constant.data<float>(), [](float value) { return std::isnan(value); });
}

}  // namespace

void ChannelStatistics::add(const Tensor& tensor) {
  if (tensor.size() == 0) return;
  const size_t channels = tensor.shape().size() < 2 ? 1 : static_cast<size_t>(tensor.shape()[1]);
  const size_t planes = tensor.shape().size() < 2 ? 1 : static_cast<size_t>(tensor.shape()[0]) * channels;
  const auto values = tensor.data<float>();
  const size_t area = values.size() / planes;
  if (lo.empty()) lo.assign(channels, HUGE_VALF), hi.assign(channels, -HUGE_VALF), sums.resize(channels);
  for (size_t plane = 0; plane < planes; ++plane) {
    const size_t channel = plane % channels;
    const Row row = row_of(values.subspan(plane * area, area));
    lo[channel] = std::min(lo[channel], row.lo), hi[channel] = std::max(hi[channel], row.hi);
    sums[channel] += row.sum;
  }
  count += static_cast<int64_t>(planes / channels * area);
}

Expected<Distributions> observe(Context& context, const Module& module, Symbol entry, const Samples& samples,
                                const CalibrationOptions& options) {
  if (!module.function(entry)) {
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  }
  if (samples.empty())
    return error("calibration requires at least one sample", {}, "use data like the model's later inputs");
  TENON_TRY_ASSIGN(observation, Observation::create(context, module, entry, options));
  Distributions found;
  for (const Symbol name : reachable_globals(module, entry)) {
    const Function* function = module.function(name);
    if (!function) continue;
    found.ranges[name].resize(function->vars.size());
    found.channels[name].resize(function->vars.size());
  }
  std::string not_finite;
  const auto widen = [&](Symbol name, VarId var, const Tensor& tensor) {
    ChannelStatistics& channels = found.channels[name][index(var)];
    channels.add(tensor);
    if (!not_finite.empty() || channels.is_finite()) return;
    const auto values = tensor.data<float>();
    const auto value = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
    if (value == values.end()) return;  // the sum alone is not
    not_finite = fmt::format("a value of %{} is {}", context.name(module.function(name)->info(var).name), *value);
  };
  TENON_TRY(observation->run(samples, "calibrating", widen));
  if (!not_finite.empty()) {
    const bool damaged = std::ranges::any_of(module.constants, has_nan);
    return error(
        not_finite + " during calibration", {},
        damaged ? "a constant of the model has NaN: its weights are damaged" : "check the data and its normalization");
  }
  for (auto& [name, ranges] : found.ranges) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      const ChannelStatistics& channels = found.channels[name][i];
      if (channels.count > 0) ranges[i] = {std::ranges::min(channels.lo), std::ranges::max(channels.hi), true};
    }
  }
  if (options.method == Calibration::kMinMax) return found;
  for (const auto& [name, ranges] : found.ranges) found.histograms[name].resize(ranges.size());
  const auto count = [&](Symbol name, VarId var, const Tensor& tensor) {
    Histogram& histogram = found.histograms[name][index(var)];
    const Range range = found.ranges[name][index(var)];
    for (const float value : tensor.data<float>()) histogram.add(value, range);
  };
  TENON_TRY(observation->run(samples, "taking distributions", count));
  return found;
}

}  // namespace tenon::compiler
