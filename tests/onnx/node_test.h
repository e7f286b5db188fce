// One ONNX backend node test: a folder with model.onnx and, in test_data_set_N, the inputs and expected outputs.
#pragma once

#include <filesystem>
#include <string>

namespace tenon::compiler {

// How a test ended on one of the two paths. A test that failed has its reason in one line.
struct Outcome {
  bool ran = false;    // false: the path was not requested, or an earlier step failed
  std::string reason;  // empty: passed

  bool passed() const { return ran && reason.empty(); }
};

struct NodeTestResult {
  Outcome interpreted;  // imported, and run by the interpreter
  Outcome compiled;     // simplified, compiled for the CPU, and run by the virtual machine
};

// Results are equal to the expected ones in dtype, shape and name; floats within a relative tolerance of 1e-3 and an
// absolute one of 1e-7, which are ONNX's own (onnx/backend/test/runner).
NodeTestResult run_node_test(const std::filesystem::path& folder, bool compiled);

// The operator that a test is about: that of its only node; of a function that is expanded into several nodes, the
// operator of the test `unexpanded`. Empty where there is neither.
std::string tested_operator(const std::filesystem::path& folder);

}  // namespace tenon::compiler
