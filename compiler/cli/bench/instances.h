// Instances of a model, one by one and in batches, for benchmarks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cli/model_options.h"
#include "runtime/vm/session.h"
#include "support/random.h"

namespace tenon::cli {

// f32 numbers in [-scale, scale].
runtime::Tensor random_tensor(Random& random, runtime::Shape shape, double scale);

// The inputs of instances, or their results.
using Instances = std::vector<std::vector<runtime::Value>>;

// The inputs of a file of instances, as `tenon run --instances` has it, at least one.
Expected<Instances> read_instances(LoadedModel& loaded, const runtime::Executable& executable, const std::string& file);

// An error where the results of an instance are not those of its run alone, bit for bit. `how`: "batches of 7".
Status check_results(std::span<const std::vector<runtime::Value>> expected,
                     std::span<const std::vector<runtime::Value>> found, const std::string& how,
                     const std::string& model);

// A compiled model with a session that keeps no profile, of one thread unless its options say otherwise.
struct InstanceBench {
  std::optional<runtime::Executable> executable;
  std::vector<compiler::loop::Function> functions;  // of native kernels, with ModelOptions::keep_functions
  std::optional<runtime::Session> session;
  unsigned threads = 1;

  Status compile(LoadedModel& loaded, const ModelOptions& model, runtime::SessionOptions options = {});
  // Runs the instances in groups of `size`; their results.
  Expected<Instances> results(std::span<const std::vector<runtime::Value>> all, size_t size);
  // The least time of an instance of all rounds: CPU time, of several threads wall time.
  Expected<double> seconds(std::span<const std::vector<runtime::Value>> all, size_t size, int64_t rounds);
};

}  // namespace tenon::cli
