#include "compiler/pipeline/layer_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/compare.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr std::array<double, 5> kEdges{0.5, 1, 2, 4, 8};
constexpr std::array<std::string_view, 6> kBins{"0.5", "1", "2", "4", "8", "more"};

// The value in the model's arithmetic: floats, or the integers of a model that comes quantized, which are u8 or i8.
double real_element(const Tensor& tensor, size_t i, const Scale& scale) {
  switch (tensor.dtype()) {
    case DType::kF32: return tensor.data<float>()[i];
    case DType::kU8: return scale.scale * (tensor.data<uint8_t>()[i] - 128 - scale.zero);
    case DType::kI8: return scale.scale * (tensor.data<int8_t>()[i] - scale.zero);
    default: return 0;
  }
}

std::string device_text(const LayerError& layer) {
  if (!layer.on_device) return "";
  if (layer.device_differing == 0) return "equal";
  return fmt::format("{} differ", layer.device_differing);
}

}  // namespace

double LayerError::decibels(double noise_power) const {
  constexpr double kMost = 99;  // without any error
  if (noise_power <= 0) return kMost;
  return signal <= 0 ? 0 : std::clamp(10 * std::log10(signal / noise_power), -kMost, kMost);
}

Expected<LayerErrors> LayerErrors::create(const Model& model, const Compilation& compilation) {
  LayerErrors errors(model, compilation);
  const Function* quantized = compilation.quantized.function(model.entry);
  if (!first_order(compilation.quantized, *quantized)) {
    return error("the model has control flow, so a layer may have several values in one run", model.name,
                 "compare each launch with tenon run --check, or give the function of the layers with --entry",
                 Fault::kUsage);
  }
  for_each_binding(quantized->body, [&](const Binding& binding) {
    const TensorType* type = quantized->type(binding.var).tensor();
    const std::string name(model.context->name(quantized->info(binding.var).name));
    const auto scale = compilation.scales.find(name);
    const bool known = std::ranges::find(errors.layers_, name, &LayerError::name) != errors.layers_.end();
    if (!type || type->dtype != DType::kI8 || scale == compilation.scales.end() || known) return;
    LayerError layer;
    layer.name = name;
    layer.step = scale->second.scale;
    errors.layers_.push_back(std::move(layer));
  });
  if (!errors.layers_.empty()) return errors;
  return error("the model has no quantized layer to compare", model.name,
               "quantize it with --calibrate, or give a model that comes quantized and an accelerator", Fault::kUsage);
}

Status LayerErrors::add(std::span<const Tensor> inputs) {
  const auto into = [&](Values& values) {
    values.clear();
    return [this, &values](const Function& function, VarId var, const RunValue& value) {
      if (!value.tensor()) return;
      const DType dtype = value.tensor().dtype();
      if (dtype != DType::kF32 && dtype != DType::kU8 && dtype != DType::kI8) return;
      values.insert_or_assign(std::string(model_->context->name(function.info(var).name)), value.tensor());
    };
  };
  const Module& real = compilation_->equalized ? *compilation_->equalized : model_->module;
  TENON_TRY(interpret(*model_->context, real, model_->entry, inputs, into(real_)));
  const auto keep = into(integers_);
  const auto keep_bytes = [&](const Function& function, VarId var, const RunValue& value) {
    if (value.tensor() && value.tensor().dtype() == DType::kI8) keep(function, var, value);
  };
  TENON_TRY(interpret(*model_->context, compilation_->quantized, model_->entry, inputs, keep_bytes));
  for (LayerError& layer : layers_) {
    const auto real = real_.find(layer.name), integers = integers_.find(layer.name);
    if (real == real_.end() || integers == integers_.end() || real->second.size() != integers->second.size()) continue;
    const Scale& scale = compilation_->scales.find(layer.name)->second;
    const double lo = scale.scale * (-129 - scale.zero), hi = scale.scale * (128 - scale.zero);
    const double quarter = scale.scale * (128 + std::abs(scale.zero)) / 4;
    const auto values = integers->second.data<int8_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double wanted = real_element(real->second, i, scale);
      const double error = scale.scale * (values[i] - scale.zero) - wanted, steps = std::abs(error) / scale.scale;
      layer.signal += wanted * wanted;
      layer.noise += error * error;
      layer.worst = std::max(layer.worst, steps);
      layer.clipped += wanted < lo || wanted > hi;
      layer.large += std::abs(wanted) > quarter;
      constexpr double kRounding = 1e-3;
      ++layer.histogram[static_cast<size_t>(std::ranges::lower_bound(kEdges, steps - kRounding) - kEdges.begin())];
    }
    layer.elements += static_cast<int64_t>(values.size());
  }
  return {};
}

runtime::Hook LayerErrors::hook() {
  return [this](const runtime::Step& step) -> Status {
    const auto* call = std::get_if<runtime::CallProgram>(&step.instruction->operation);
    if (call == nullptr) return {};
    const runtime::AcceleratorProgram& program = compilation_->executable.programs[call->program];
    for (const runtime::ProbeValue& probe : step.probes) device_value(probe.probe->name, probe.value);
    for (size_t i = 0; i < program.outputs.size(); ++i) device_value(program.outputs[i].name, step.results[i]);
    return {};
  };
}

void LayerErrors::device_value(const std::string& name, const Tensor& blocked) {
  const auto layer = std::ranges::find(layers_, name, &LayerError::name);
  const auto real = real_.find(name), integers = integers_.find(name);
  if (layer == layers_.end() || real == real_.end() || integers == integers_.end()) return;
  const Scale& scale = compilation_->scales.find(name)->second;
  const auto found = blocked.data<int8_t>();
  const std::span<const int8_t> expected = integers->second.data<int8_t>();
  if (real->second.size() != integers->second.size()) return;
  layer->on_device |= for_each_element(blocked.shape(), integers->second.shape(), [&](const ElementPosition& at) {
    const double error = scale.scale * (found[at.blocked] - scale.zero) - real_element(real->second, at.plain, scale);
    layer->device_noise += error * error;
    layer->device_differing += found[at.blocked] != expected[at.plain];
  });
}

std::optional<size_t> LayerErrors::first_bad() const {
  const auto bad = std::ranges::find_if(
      layers_, [](const LayerError& layer) { return layer.elements > 0 && layer.snr() < kGoodDecibels; });
  return bad == layers_.end() ? std::nullopt : std::optional(static_cast<size_t>(bad - layers_.begin()));
}

std::string LayerErrors::suggestion() const {
  const auto bad = first_bad();
  if (!bad) return fmt::format("No layer has an error above {:.0f} dB below its values.", kGoodDecibels);
  const LayerError& layer = layers_[*bad];
  const auto share = [&](int64_t count) {
    return 100 * static_cast<double>(count) / static_cast<double>(layer.elements);
  };
  const std::string first =
      fmt::format("The first layer with a large error is {} ({:.1f} dB): ", layer.name, layer.snr());
  constexpr double kManyClipped = 0.5, kFewLarge = 0.5;  // percent
  if (share(layer.clipped) > kManyClipped) {
    return first +
           fmt::format("{:.1f} % of its values are beyond the calibrated range; calibrate with more data like these.",
                       share(layer.clipped));
  }
  if (share(layer.large) < kFewLarge) {
    return first + fmt::format(
                       "only {:.2f} % of its values take more than a quarter of its range; --calibration percentile "
                       "cuts such outliers.",
                       share(layer.large));
  }
  return first + "its values fill their range, so eight bits are too few for it; look at its weights and its inputs.";
}

std::string LayerErrors::table() const {
  size_t width = 5;
  for (const LayerError& layer : layers_) width = std::max(width, layer.name.size());
  std::string text = fmt::format("  {:<{}}  {:>9}  {:>9}  {:>11}  {:>9}  {}\n", "layer", width, "int8, dB",
                                 "device, dB", "worst, steps", "clipped", "device");
  const auto bad = first_bad();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerError& layer = layers_[i];
    if (layer.elements == 0) continue;
    text += fmt::format("  {:<{}}  {:>9.1f}  {:>10}  {:>12.1f}  {:>9}  {}{}\n", layer.name, width, layer.snr(),
                        layer.on_device ? fmt::format("{:.1f}", layer.device_snr()) : "", layer.worst, layer.clipped,
                        device_text(layer), bad == i ? "  <- first" : "");
  }
  const LayerError* shown = bad ? &layers_[*bad] : nullptr;
  for (const LayerError& layer : layers_) {
    if (!bad && layer.elements > 0 && (!shown || layer.snr() < shown->snr())) shown = &layer;
  }
  if (!shown) return text;
  text += fmt::format("\nErrors of {}, in steps of {:.3g}\n", shown->name, shown->step);
  for (size_t i = 0; i < kBins.size(); ++i) {
    const double share = static_cast<double>(shown->histogram[i]) / static_cast<double>(shown->elements);
    text += fmt::format("  {:<5} {:6.2f} %  {:#<{}}\n", kBins[i], 100 * share, "", static_cast<size_t>(50 * share));
  }
  return text;
}

std::string LayerErrors::html(const std::string& title) const {
  std::string rows;
  const auto bad = first_bad();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerError& layer = layers_[i];
    if (layer.elements == 0) continue;
    std::string bars;
    for (size_t k = 0; k < kBins.size(); ++k) {
      const double share = static_cast<double>(layer.histogram[k]) / static_cast<double>(layer.elements);
      bars += fmt::format("<i style=\"height:{:.1f}px\" title=\"up to {}: {:.2f} %\"></i>", 1 + 23 * share, kBins[k],
                          100 * share);
    }
    rows += fmt::format(
        "<tr{}><td>{}</td><td>{:.1f}</td><td>{}</td><td>{:.1f}</td><td>{}</td><td "
        "class=\"h\">{}</td><td>{}</td></tr>\n",
        bad == i ? " class=\"bad\"" : "", html_text(layer.name), layer.snr(),
        layer.on_device ? fmt::format("{:.1f}", layer.device_snr()) : "", layer.worst, layer.clipped, bars,
        device_text(layer));
  }
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{0}</title><style>
body {{ font: 14px sans-serif; margin: 2em }} td, th {{ padding: 2px 10px; text-align: right }}
td:first-child, th:first-child {{ text-align: left }} .bad {{ background: #fdd }}
.h {{ white-space: nowrap }} i {{ display: inline-block; width: 7px; margin-right: 1px; background: #47a; vertical-align: bottom }}
</style></head><body><h1>{0}</h1><p>{1}</p>
<p>Signal to noise against the model's own arithmetic, in dB; errors in steps of each layer's scale, as a histogram of errors up
to 0.5, 1, 2, 4, 8 steps and more.</p>
<table><tr><th>layer</th><th>int8, dB</th><th>device, dB</th><th>worst</th><th>clipped</th><th>errors</th><th>device</th></tr>
{2}</table></body></html>
)",
                     html_text(title), html_text(suggestion()), rows);
}

}  // namespace tenon::compiler
