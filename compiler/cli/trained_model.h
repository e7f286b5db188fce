// The model that is trained: its weights as parameters, the samples that it takes, and the file that it becomes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/cli/quantization_options.h"
#include "compiler/cli/training_step.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/train/lift.h"
#include "runtime/train/trainer.h"

namespace tenon::cli {

struct TrainedModel {
  std::string model, init = "model";  // file; whether the first weights are the model's or "random"
  TrainingStepOptions training;
  QuantizationOptions quantization;
  uint64_t seed = 1;
  double divide = 1;  // of samples of integers
  bool quiet = false;

 protected:
  // Reads the model, with the size of a batch in place of the inputs' first dim where it is unknown.
  Status load();
  // Whether the layers are integers that are trained.
  bool quantizes() const { return !quantization.calibration_data.empty(); }
  // The inputs that samples are given to, as ports with any number of samples.
  Expected<std::vector<runtime::Port>> ports() const;
  // The samples of the inputs, and the labels: classes, or results where the loss compares with them.
  Expected<runtime::TrainingData> read(const std::vector<std::string>& sources, const std::string& classes) const;
  compiler::Type first_result() const;
  // Writes the model as it was read, with its new weights; or its integers, which the passes make of the weights.
  Status save(const runtime::NamedTensors& weights, const std::string& output);

  compiler::Model model_;
  compiler::Module original_;                            // which is written
  std::unique_ptr<compiler::Context> original_context_;  // empty: that of model_
  std::vector<compiler::LiftedParameter> parameters_;
  std::map<std::string, compiler::ConstId, std::less<>> original_weights_;
  runtime::NamedTensors weights_;

 private:
  // Makes the layers of the model integers that can be trained.
  Status quantize(compiler::Model& open) const;
  compiler::Context& original_context();
  Expected<runtime::Tensor> as_port(const runtime::Tensor& tensor, runtime::Port port) const;
};

}  // namespace tenon::cli
