// tenon run on a module of the language: compiled for the CPU, or for accelerators beside it, and run once with inputs
// by name, or for each of the instances of a file.
#pragma once

#include <string>
#include <vector>

#include "compiler/cli/model_options.h"
#include "runtime/run/limits.h"

namespace tenon::cli {

struct ModuleRun {
  ModelOptions model;
  runtime::RunLimits limits;
  unsigned threads = 0;             // of native kernels; 0: all usable processors
  std::vector<std::string> inputs;  // "[NAME=]FILE" or "[NAME=]LITERAL"
  std::string output, expect;       // .npy, or .npz for a tuple
  double tolerance = 1e-5;          // of floats, relative to the largest element expected or 1
  bool json = false;
  bool interpret = false;            // by the interpreter, which defines what the compiled code computes
  std::string instances;             // file of instances; empty: one run
  size_t batch = 64;                 // instances that are read, run and printed together
  std::vector<std::string> shared;   // names of inputs that all instances share
  std::vector<std::string> devices;  // URIs of accelerators, of different configurations; none: the CPU alone
};

// Whether the file is a module of the language, by its ending.
bool is_module(const std::string& path);

Status run_module(const ModuleRun& run);

}  // namespace tenon::cli
