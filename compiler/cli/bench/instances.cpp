#include "compiler/cli/bench/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/cli/instances.h"
#include "compiler/lower/values.h"
#include "runtime/run/results.h"
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

Expected<Instances> read_instances(LoadedModel& loaded, const runtime::Executable& executable,
                                   const std::string& file) {
  compiler::Context& context = *loaded.model.context;
  const compiler::Function& main = loaded.model.main();
  std::vector<InstanceInput> inputs;
  for (const compiler::VarId param : main.params)
    inputs.push_back({std::string(context.name(main.info(param).name)), main.type(param)});
  TENON_TRY_ASSIGN(opened, InstanceFile::open(context, file, std::move(inputs)));
  compiler::RunValueReader reader(context, loaded.model.module);
  Instances all;
  while (auto instance = opened->next(context, reader)) {
    TENON_TRY(instance->inputs);
    std::vector<Value>& values = all.emplace_back();
    for (const compiler::RunValue& input : *instance->inputs) {
      TENON_TRY_ASSIGN(value, compiler::to_session(context, loaded.model.module, executable, input));
      values.push_back(std::move(*value));
    }
  }
  if (all.empty()) return error("there are no instances", file);
  return all;
}

Status check_results(std::span<const std::vector<Value>> expected, std::span<const std::vector<Value>> found,
                     const std::string& how, const std::string& model) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!runtime::first_difference(expected[i], found[i])) continue;
    return error(fmt::format("{}: instance {} has other results than its run alone", how, i), model, {},
                 Fault::kInternal);
  }
  return {};
}

Status InstanceBench::compile(LoadedModel& loaded, const ModelOptions& model, runtime::SessionOptions options) {
  TENON_TRY_ASSIGN(compiled, cli::compile(loaded, model, {}));
  executable.emplace(std::move(compiled->executable));
  functions = std::move(compiled->cpu_functions);
  options.profile = false;
  if (options.threads == 0) options.threads = 1;
  threads = options.threads;
  TENON_TRY_ASSIGN(made, runtime::Session::create(*executable, std::move(options)));
  session.emplace(std::move(*made));
  return {};
}

Expected<Instances> InstanceBench::results(std::span<const std::vector<Value>> all, size_t size) {
  Instances made;
  for (size_t begin = 0; begin < all.size(); begin += size) {
    for (auto& result : session->run_many(all.subspan(begin, std::min(size, all.size() - begin)))) {
      TENON_TRY(result);
      made.push_back(std::move(*result));
    }
  }
  return made;
}

Expected<double> InstanceBench::seconds(std::span<const std::vector<Value>> all, size_t size, int64_t rounds) {
  const auto now = [&] { return threads > 1 ? seconds_of(CLOCK_MONOTONIC) : thread_cpu_seconds(); };
  double least = INFINITY;
  for (int64_t round = 0; round < rounds; ++round) {
    const double begin = now();
    TENON_TRY(results(all, size));
    least = std::min(least, now() - begin);
  }
  return least / static_cast<double>(all.size());
}

}  // namespace tenon::cli
