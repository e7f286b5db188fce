// The options of quantization, shared by compilation and training.
#pragma once

#include <string>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/pipeline/pipeline.h"

namespace tenon::cli {

// How a model is quantized.
struct QuantizationOptions {
  std::vector<std::string> calibration_data;  // "[NAME=]FILE" of each input
  std::string method = "minmax";
  double percentile = 0.9999;
  bool correct_biases = false, equalize = false;
  bool symmetric = false;
  std::vector<std::string> keep;  // nodes that stay in float
  double accuracy = 0;            // required of the quantized model; 0: none
  std::string agreement = "cosine";
  std::string weights = "8bit";  // of quantized models

  void declare(Options& options);
  // Sets the options of quantization, but for the samples of the calibration, which are there or not.
  Status apply(compiler::CompileOptions& options, bool has_samples) const;
};

}  // namespace tenon::cli
