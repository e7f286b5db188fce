// One ONNX backend node test: a folder with model.onnx and, in test_data_set_N, the inputs and expected outputs.
#pragma once

#include <filesystem>
#include <string>

namespace tenon::compiler {

// How a test ended on one of the two paths. A test that failed has its reason in one line.
struct Outcome {
  enum class State : char {
    kNotRun,  // the path was not requested, or an earlier step failed
    kPassed,
    kRefused,  // an error of the importer, the compiler or the run instead of results
    kWrong,    // results of other values, types or shapes; a crash
  };
  State state = State::kNotRun;
  std::string reason;  // empty where the test passed

  bool ran() const { return state != State::kNotRun; }
  bool passed() const { return state == State::kPassed; }
};

struct NodeTestResult {
  Outcome interpreted;  // imported, and run by the interpreter
  Outcome compiled;     // simplified, compiled for the CPU, and run by the virtual machine
};

// What the results of a test must be equal to.
enum class Expectation {
  // Those of each data set; floats within a relative tolerance of 1e-3 and an absolute one of 1e-7, which are ONNX's
  // own
  // (onnx/backend/test/runner).
  kEachDataSet,
  // Those of any data set, each of which is the opinion of one judge; floats within a relative tolerance by their
  // precision, and an absolute one by the largest finite element, to which sums of other orders cancel.
  kAnyDataSet,
};

// Results are equal to the expected ones in dtype, shape and name.
NodeTestResult run_node_test(const std::filesystem::path& folder, bool compiled, Expectation expectation);

// The operator that a test is about: that of its only node; of a function that is expanded into several nodes, the
// operator of the test `unexpanded`. Empty where there is neither.
std::string tested_operator(const std::filesystem::path& folder);

}  // namespace tenon::compiler
