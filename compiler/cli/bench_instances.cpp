#include "compiler/cli/bench_instances.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "support/clock.h"
#include "support/try.h"

namespace tenon::cli {

using runtime::Tensor;
using runtime::Value;

Tensor random_tensor(Random& random, runtime::Shape shape, double scale) {
  Tensor tensor(runtime::DType::kF32, std::move(shape));
  for (float& x : tensor.data<float>())
    x = static_cast<float>(scale * static_cast<double>(random.between(-1'000'000, 1'000'000)) / 1'000'000);
  return tensor;
}

Status InstanceBench::compile(LoadedModel& loaded, const ModelOptions& model, runtime::BatchPolicy policy) {
  TENON_TRY_ASSIGN(compiled, cli::compile(loaded, model, nullptr));
  executable.emplace(std::move(compiled->executable));
  TENON_TRY_ASSIGN(made,
                   runtime::Session::create(*executable, {.profile = false, .threads = 1, .batch_policy = policy}));
  session.emplace(std::move(*made));
  return {};
}

Expected<std::vector<Tensor>> InstanceBench::results(std::span<const std::vector<Value>> all, size_t size) {
  std::vector<Tensor> tensors;
  for (size_t begin = 0; begin < all.size(); begin += size) {
    for (const auto& result : session->run_many(all.subspan(begin, std::min(size, all.size() - begin)))) {
      TENON_TRY(result);
      for (const Value& value : *result) tensors.push_back(value.tensor());
    }
  }
  return tensors;
}

Expected<double> InstanceBench::seconds(std::span<const std::vector<Value>> all, size_t size, int64_t rounds) {
  double least = INFINITY;
  for (int64_t round = 0; round < rounds; ++round) {
    const double begin = thread_cpu_seconds();
    TENON_TRY(results(all, size));
    least = std::min(least, thread_cpu_seconds() - begin);
  }
  return least / static_cast<double>(all.size());
}

}  // namespace tenon::cli
