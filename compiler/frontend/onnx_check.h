// What the importer supports of a model, node by node, without stopping at the first that it does not.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct OnnxProblem {
  std::string node, op;
  Diagnostic diagnostic;
};

struct OnnxCheck {
  std::map<std::string, size_t> operators;  // of the main graph: how many nodes
  std::vector<OnnxProblem> problems;        // nodes that cannot be imported
  std::vector<OnnxProblem> unexamined;      // nodes that read the result of one, whose type the model does not state
  std::optional<Module> module;             // where neither is there
};

// An error where the model is none, or its inputs or outputs are not supported.
Expected<OnnxCheck> check_onnx(Context& context, const std::filesystem::path& path,
                               const std::map<std::string, int64_t>& shapes = {});

}  // namespace tenon::compiler
