// What is supported of a model on each target, before anything is compiled.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx_check.h"
#include "hw/spec/config.h"

namespace tenon::compiler {

// Where the operators of the representation run that nodes of one kind become.
struct TargetSupport {
  size_t accelerator = 0, native = 0, reference = 0;
  std::vector<std::string> reasons;  // why the accelerator has none of them; each once
};

struct ImportCheck {
  OnnxCheck nodes;
  std::map<std::string, TargetSupport> targets;  // by the model's operator; empty where a node is not supported
  // A float model is examined as if it were calibrated: whether the accelerator has a layer depends on its shape, and
  // seldom on ranges.
  bool assumes_calibration = false;
};

// Without `accelerator`, for the CPU alone.
Expected<ImportCheck> check_import(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                   const std::optional<spec::Config>& accelerator);

// A table of operators and the list of what is missing, for people.
std::string text(const ImportCheck& check);

}  // namespace tenon::compiler
