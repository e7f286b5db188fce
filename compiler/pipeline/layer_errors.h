// Float, quantized and device side by side: the error of every layer, over any number of samples, without labels.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/pipeline/pipeline.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {

// A quantized value beside the value of the same name in the model's own arithmetic.
struct LayerError {
  std::string name;
  double step = 1;  // its scale
  int64_t elements = 0;
  double signal = 0, noise = 0;  // sums of squares: of the values, of the quantized values' errors
  double worst = 0;              // largest error, in steps
  int64_t clipped = 0;           // values beyond the range of the format by more than a step
  int64_t large = 0;             // values beyond a quarter of the largest magnitude that the format holds
  // Errors of up to 0.5, 1, 2, 4, 8 steps and above.
  std::array<int64_t, 6> histogram{};
  bool on_device = false;
  double device_noise = 0;
  int64_t device_differing = 0;  // elements that are not those of the quantized module in the interpreter

  double snr() const { return decibels(noise); }  // signal to noise
  double device_snr() const { return decibels(device_noise); }

 private:
  double decibels(double noise_power) const;
};

class LayerErrors {
 public:
  // Both outlive it. An error where no value is quantized.
  static Expected<LayerErrors> create(const Model& model, const Compilation& compilation);

  // Runs the model and the quantized module on one sample, in the interpreter; the device runs it next.
  Status add(std::span<const runtime::Tensor> inputs);
  // For SessionOptions::hook: what the device computed of the last sample.
  runtime::Hook hook();

  const std::vector<LayerError>& layers() const { return layers_; }  // in the order of execution
  // The first layer whose error is large: below kGoodDecibels.
  static constexpr double kGoodDecibels = 20;
  std::optional<size_t> first_bad() const;
  std::string suggestion() const;  // a sentence
  std::string table() const;
  std::string html(const std::string& title) const;  // one self-contained page

 private:
  LayerErrors(const Model& model, const Compilation& compilation) : model_(&model), compilation_(&compilation) {}
  using Values = std::map<std::string, runtime::Tensor, std::less<>>;
  void device_value(const std::string& name, const runtime::Tensor& blocked);

  const Model* model_;
  const Compilation* compilation_;
  std::vector<LayerError> layers_;
  Values real_, integers_;  // of the last sample
};

}  // namespace tenon::compiler
