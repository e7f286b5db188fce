// tenon run over samples: accuracy, comparison, cycles and report of a model or an executable on a device.
#pragma once

#include <string>
#include <vector>

#include "compiler/cli/model_options.h"
#include "runtime/run/limits.h"

namespace tenon::cli {

struct SamplesRun {
  ModelOptions model;
  runtime::RunLimits limits;
  std::string labels, output, report, trace, reproducer;
  std::vector<std::string> devices;  // URIs, of different configurations; none: the default
  std::vector<std::string> verify;   // URIs of the devices of a second run
  std::vector<std::string> data;     // "[NAME=]FILE" of each input, see runtime/run/inputs.h
  int64_t limit = 0, verify_samples = 20;
  double seconds = 600;
  int64_t threads = 0;  // of native kernels; 0: all usable processors
  bool check = false, cpu = false, json = false, quiet = false, no_native = false;
  bool verbose = false;  // a row for each operator
};

Status run_samples(const SamplesRun& run);

}  // namespace tenon::cli
