// Instances of a model, one by one and in batches, for benchmarks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/cli/model_options.h"
#include "runtime/vm/session.h"
#include "support/random.h"

namespace tenon::cli {

// f32 numbers in [-scale, scale].
runtime::Tensor random_tensor(Random& random, runtime::Shape shape, double scale);

// A compiled model with a session of one thread that keeps no profile.
struct InstanceBench {
  std::optional<runtime::Executable> executable;
  std::optional<runtime::Session> session;

  Status compile(LoadedModel& loaded, const ModelOptions& model,
                 runtime::BatchPolicy policy = runtime::BatchPolicy::kHeight);
  // Runs the instances in groups of `size`; the tensors of their results.
  Expected<std::vector<runtime::Tensor>> results(std::span<const std::vector<runtime::Value>> all, size_t size);
  // The least CPU time of an instance of all rounds.
  Expected<double> seconds(std::span<const std::vector<runtime::Value>> all, size_t size, int64_t rounds);
};

}  // namespace tenon::cli
