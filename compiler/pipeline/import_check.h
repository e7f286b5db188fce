// What is supported of a model on each target, before anything is compiled.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/frontend/onnx_check.h"
#include "compiler/partition/target_record.h"

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

// Without accelerators, for the CPU and the added targets. An error where the code generator of one has failed.
Expected<ImportCheck> check_import(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                   std::span<const AcceleratorOptions> accelerators,
                                   std::span<const TargetRecord> added = {});

// The matches of a pattern (partition/pattern_text.h) in the module that the targets would receive, each by its root
// and its named values, and the near misses: the values at which the pattern begins to match, and what is missing.
struct PatternCheck {
  struct Line {
    std::string node, op;  // of the root: the model's node, and the operator
    std::string found;     // the operators and the named values of a match; what a near miss lacks
  };
  std::string pattern;
  std::vector<Line> matches, near_misses;
};
Expected<PatternCheck> check_pattern(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                     std::span<const AcceleratorOptions> accelerators, std::string_view pattern,
                                     std::span<const TargetRecord> added = {});

// For people.
std::string text(const PatternCheck& check);

// A table of operators and the list of what is missing, for people.
std::string text(const ImportCheck& check);

}  // namespace tenon::compiler
