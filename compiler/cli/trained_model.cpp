#include "compiler/cli/trained_model.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "compiler/cli/model_options.h"
#include "compiler/cli/progress.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "runtime/run/samples.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::cli {

using runtime::NamedTensors;
using runtime::Tensor;

namespace {

// A number of the standard normal distribution (Box and Muller).
double normal(Random& random) {
  const auto uniform = [&] { return (static_cast<double>(random.next() >> 11) + 1) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// Random weights of variance 2 / fan-in (He et al., arXiv:1502.01852, 2015); added vectors become 0, and
// all other vectors keep their values.
Tensor initial(const std::string& name, const Tensor& model, Random& random) {
  Tensor tensor = model.clone();
  const bool added = name.ends_with(".b") || name.ends_with(".bias");
  if (tensor.shape().size() < 2 && !added) return tensor;
  double fan_in = 1;
  for (size_t axis = 1; axis < tensor.shape().size(); ++axis) fan_in *= static_cast<double>(tensor.shape()[axis]);
  const double scale = added ? 0 : std::sqrt(2 / std::max(1.0, fan_in));
  const auto fill = [&](auto values) {
    for (auto& value : values) value = static_cast<std::remove_reference_t<decltype(value)>>(scale * normal(random));
  };
  if (tensor.dtype() == runtime::DType::kF32) fill(tensor.data<float>());
  else if (tensor.dtype() == runtime::DType::kF64) fill(tensor.data<double>());
  return tensor;
}

}  // namespace

Status TrainedModel::load() {
  TENON_TRY_ASSIGN(open, compiler::read_model(model, {}));
  TENON_TRY(compiler::check_entry(*open, model));
  TENON_TRY_ASSIGN(sizes, sizes_of_batch(*open, training.shapes, training.batch));
  if (quantizes()) {
    TENON_TRY(quantize(*open));
    original_ = clone(open->module);
    TENON_TRY_ASSIGN(bound, compiler::bind_shapes(*open->context, std::move(open->module), open->entry, *sizes));
    model_ = std::move(*open);
    model_.module = std::move(*bound);
  } else {
    TENON_TRY_ASSIGN(bound, compiler::read_model(model, *sizes));
    model_ = std::move(*bound);
    original_ = std::move(open->module);
    original_context_ = std::move(open->context);
  }
  TENON_TRY_ASSIGN(parameters,
                   compiler::lift_parameters(*model_.context, model_.module, model_.entry, training.frozen));
  parameters_ = std::move(*parameters);
  // The model is written as it was read, where the same constants are the weights.
  compiler::Context& context = original_context();
  compiler::Module copy = clone(original_);
  TENON_TRY_ASSIGN(same, compiler::lift_parameters(context, copy, context.symbol("main"), training.frozen));
  for (const compiler::LiftedParameter& parameter : *same)
    original_weights_.emplace(parameter.name, parameter.constant);
  for (const compiler::LiftedParameter& parameter : parameters_) {
    if (original_weights_.contains(parameter.name)) continue;
    return error(fmt::format("the weight '{}' exists only for batches of {}", parameter.name, training.batch), model,
                 fmt::format("--freeze {} leaves it as it is", parameter.name));
  }
  Random random(seed);
  for (const compiler::LiftedParameter& parameter : parameters_) {
    const Tensor& tensor = model_.module.constant(parameter.constant);
    weights_.emplace(parameter.name, init == "random" ? initial(parameter.name, tensor, random) : tensor.clone());
  }
  return {};
}

Status TrainedModel::quantize(compiler::Model& open) const {
  StageLine stage(quiet);
  stage.show("calibrating");
  // The passes before quantization would remove what derivatives are told.
  std::string_view told;
  compiler::for_each_function(open.module, [&](compiler::Symbol, const compiler::Function& function) {
    if (function.gradient) told = "a function with a gradient of its own";
    compiler::for_each_binding(function.body, [&](const compiler::Binding& binding) {
      const auto* apply = std::get_if<compiler::Apply>(&binding.value);
      if (apply && apply->op->is(compiler::ops::kStopGradient)) told = "stop_gradient";
    });
  });
  if (!told.empty()) {
    return error(fmt::format("the model has {}, which quantization does not keep", told), model,
                 "train it without --calibrate, or without that part");
  }
  TENON_TRY_ASSIGN(simplified,
                   compiler::run_passes(*open.context, std::move(open.module), compiler::standard_passes()));
  open.module = std::move(*simplified);
  TENON_TRY_ASSIGN(ports, input_ports(open, Sizes::kAny));
  TENON_TRY_ASSIGN(samples, runtime::read_samples(*ports, quantization.calibration_data, divide, open.name));
  compiler::CompileOptions options;
  options.calibration = &*samples;
  TENON_TRY(quantization.apply(options, !samples->empty()));
  std::string notes;
  TENON_TRY_ASSIGN(layers, compiler::quantized_for_training(open, options, notes));
  open.module = std::move(*layers);
  if (!quiet) print_stderr("{}", notes);
  return {};
}

compiler::Context& TrainedModel::original_context() { return original_context_ ? *original_context_ : *model_.context; }

Expected<std::vector<runtime::Port>> TrainedModel::ports() const {
  std::vector<runtime::Port> ports;
  const compiler::Function& main = model_.main();
  for (size_t i = parameters_.size(); i < main.params.size(); ++i) {
    const compiler::VarInfo& info = main.info(main.params[i]);
    const std::string name(model_.context->name(info.name));
    const compiler::TensorType* tensor = info.type.tensor();
    if (!tensor || tensor->dims.empty()) {
      return error(fmt::format("the input '{}' is {}: training takes tensors whose first axis counts samples", name,
                               model_.context->str(info.type)),
                   model);
    }
    runtime::Port& port = ports.emplace_back(runtime::Port{.name = name, .dtype = tensor->dtype});
    for (const compiler::Dim dim : tensor->dims) {
      if (!dim.constant()) {
        return error(fmt::format("the input '{}' has the unknown size {}", name, model_.context->str(dim)), model,
                     "bind it with --shapes NAME=SIZE", Fault::kUsage);
      }
      port.shape.push_back(*dim.constant());
    }
  }
  return ports;
}

Expected<Tensor> TrainedModel::as_port(const Tensor& tensor, runtime::Port port) const {
  if (tensor.shape().empty() || tensor.shape()[0] == 0) return error("there is no sample", port.name);
  port.shape[0] = tensor.shape()[0];
  TENON_TRY_ASSIGN(parts, runtime::split_samples(tensor, port, divide));
  return std::move(parts->front());
}

Expected<runtime::TrainingData> TrainedModel::read(const std::vector<std::string>& sources,
                                                   const std::string& classes) const {
  TENON_TRY_ASSIGN(ports, this->ports());
  TENON_TRY_ASSIGN(
      tensors, runtime::read_inputs(runtime::input_slots(*ports), sources, {.where = model, .fault = Fault::kUsage}));
  runtime::TrainingData read;
  for (size_t i = 0; i < ports->size(); ++i) {
    TENON_TRY_ASSIGN(tensor, as_port((*tensors)[i], (*ports)[i]));
    read.inputs.push_back(std::move(*tensor));
  }
  if (training.step.loss == "cross_entropy") {
    TENON_TRY_ASSIGN(given, runtime::load_tensor(classes));
    TENON_TRY_ASSIGN(values, runtime::load_labels(classes, given->shape().empty() ? 0 : given->shape()[0]));
    read.labels = Tensor::of<int64_t>({static_cast<int64_t>(values->size())}, *values);
    return read;
  }
  TENON_TRY_ASSIGN(given, runtime::load_tensor(classes));
  const compiler::Type result = first_result();
  runtime::Port port{.name = "labels", .dtype = result.tensor()->dtype};
  for (const compiler::Dim dim : result.tensor()->dims) port.shape.push_back(dim.constant().value_or(1));
  TENON_TRY_ASSIGN(tensor, as_port(*given, port));
  read.labels = std::move(*tensor);
  return read;
}

compiler::Type TrainedModel::first_result() const {
  const compiler::Type result = model_.main().result;
  return result.tuple() && !result.tuple()->fields.empty() ? result.tuple()->fields[0] : result;
}

Status TrainedModel::save(const NamedTensors& weights, const std::string& output) {
  for (const auto& [name, weight] : weights)
    original_.constants[static_cast<size_t>(original_weights_.at(name))] = weight;
  compiler::Context& context = original_context();
  if (quantizes()) {
    TENON_TRY_ASSIGN(integers, compiler::with_integer_weights(context, std::move(original_)));
    original_ = std::move(*integers);
  }
  return compiler::save(context, original_, output);
}

}  // namespace tenon::cli
