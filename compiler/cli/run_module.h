// tenon run on a module of the language with inputs by name: the interpreter.
#pragma once

#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::cli {

struct ModuleRun {
  std::string model, entry = "@main";
  std::vector<std::string> inputs;  // "[NAME=]FILE" or "[NAME=]LITERAL"
  std::string output, expect;       // .npy, or .npz for a tuple
  double tolerance = 1e-5;          // of floats, relative to the largest element expected or 1
  bool json = false;
  bool strict_shapes = false;
};

// Whether the file is a module of the language, by its ending.
bool is_module(const std::string& path);

Status run_module(const ModuleRun& run);

}  // namespace tenon::cli
