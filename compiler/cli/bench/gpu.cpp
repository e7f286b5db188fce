// tenon bench gpu: a model on a GPU beside the CPU of the same machine: equal results, run times, launches; or alone,
// for scripts that measure it beside other systems.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/cli/model_options.h"
#include "compiler/cli/random_inputs.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/run/limits.h"
#include "runtime/vm/session.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

constexpr double kTolerance = 1e-3;  // of floats, relative to the largest element or 1

struct ModelTimes {
  std::vector<Tensor> results;
  std::vector<double> seconds;  // of a run, ascending
  std::vector<double> kernels;  // of a run's kernels by the GPU's clock, ascending
};

// The largest difference of two results, relative to the largest element or 1; infinite for integers that differ.
double difference(const Tensor& found, const Tensor& expected) {
  if (found.dtype() != runtime::DType::kF32 || expected.dtype() != runtime::DType::kF32)
    return found == expected ? 0 : std::numeric_limits<double>::infinity();
  double largest = 1, most = 0;
  const auto a = found.data<float>(), b = expected.data<float>();
  for (size_t i = 0; i < b.size(); ++i) {
    largest = std::max(largest, std::abs(double{b[i]}));
    const double error = std::abs(double{a[i]} - double{b[i]});
    most = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(most, error);
  }
  return most / largest;
}

struct BenchGpu {
  ModelOptions model;
  int64_t rounds = 21, threads = 0;
  std::string inputs, results;
  bool json = false, alone = false;

  Status run() {
    const auto gpu = runtime::cuda::Gpu::open(0, runtime::cuda::default_driver());
    if (!gpu)
      return error(fmt::format("nothing is measured: {}", gpu.error().what), gpu.error().where, gpu.error().help);
    model.for_this_machine = true;
    model.quiet = true;
    TENON_TRY_ASSIGN(loaded, load(model));
    model.targets = "cuda";
    TENON_TRY_ASSIGN(on_gpu, cli::compile(*loaded, model, {}));
    TENON_TRY_ASSIGN(values, bench_inputs(on_gpu->executable, inputs));
    TENON_TRY_ASSIGN(found, measure(on_gpu->executable, *values));
    if (!results.empty()) TENON_TRY(save_results(results, on_gpu->executable, found->results));
    if (alone) {
      print(*on_gpu, gpu->name(), *found, {}, 0);
      return {};
    }
    model.targets.clear();
    TENON_TRY_ASSIGN(on_cpu, cli::compile(*loaded, model, {}));
    TENON_TRY_ASSIGN(expected, measure(on_cpu->executable, *values));
    double most = 0;
    for (size_t i = 0; i < expected->results.size(); ++i)
      most = std::max(most, difference(found->results[i], expected->results[i]));
    print(*on_gpu, gpu->name(), *found, *expected, most);
    if (most <= kTolerance) return {};
    return error(fmt::format("the results differ from the CPU's by {:.3g}, at most {} is allowed", most, kTolerance),
                 on_gpu->executable.name, "tenon run --targets cuda:emulated --check finds races and wrong indices",
                 Fault::kInternal);
  }

 private:
  Expected<ModelTimes> measure(const runtime::Executable& executable, const std::vector<Tensor>& values) const {
    TENON_TRY_ASSIGN(session, runtime::Session::create(
                                  executable, {.threads = static_cast<unsigned>(std::min<int64_t>(threads, 1024))}));
    ModelTimes measured;
    TENON_TRY_ASSIGN(results, session->run(values));  // the first run copies constants and takes memory
    measured.results = std::move(*results);
    for (int64_t round = 0; round < rounds; ++round) {
      session->clear_profile();
      const Stopwatch stopwatch;
      TENON_TRY(session->run(values));
      measured.seconds.push_back(stopwatch.seconds());
      int64_t kernels = 0;
      for (const runtime::CallRecord& call : session->profile().calls) kernels += call.gpu_ns;
      measured.kernels.push_back(1e-9 * static_cast<double>(kernels));
    }
    std::ranges::sort(measured.seconds);
    std::ranges::sort(measured.kernels);
    return measured;
  }

  void print(const compiler::Compilation& compiled, const std::string& gpu, const ModelTimes& found,
             const ModelTimes& expected, double most) const {
    size_t launches = 0, operators = 0;
    for (const runtime::NativeCode& code : compiled.executable.natives)
      for (const runtime::NativeKernel& kernel : code.kernels) launches += kernel.launches.size();
    for (const compiler::Placement& placement : compiled.placements) operators += placement.target.empty() ? 0 : 1;
    const double on_gpu = median(found.seconds), on_cpu = alone ? 0 : median(expected.seconds);
    if (json) {
      Json out;
      out.begin_object()
          .field("model", compiled.executable.name)
          .field("shapes", fmt::format("{}", fmt::join(model.shapes, " ")))
          .field("gpu", gpu)
          .field("operators", compiled.placements.size());
      out.field("operators_on_gpu", operators).field("launches", launches);
      out.field("gpu_seconds", on_gpu).field("kernel_seconds", median(found.kernels));
      if (!alone) out.field("cpu_seconds", on_cpu).field("difference", most);
      print_stdout("{}", out.end().str());
      return;
    }
    print_stdout("{} on {}: wall time, with the copies of inputs and results\n", compiled.executable.name, gpu);
    print_stdout("  {:<28}{:>12.3f} ms, the median of {}; from {:.3f} to {:.3f}\n", "GPU", on_gpu * 1e3,
                 found.seconds.size(), found.seconds.front() * 1e3, found.seconds.back() * 1e3);
    print_stdout("  {:<28}{:>12.3f} ms by the GPU's clock\n", "of it kernels", median(found.kernels) * 1e3);
    if (!alone)
      print_stdout("  {:<28}{:>12.3f} ms, from {:.3f} to {:.3f}\n", "CPU", on_cpu * 1e3, expected.seconds.front() * 1e3,
                   expected.seconds.back() * 1e3);
    print_stdout("  {:<28}{:>12} of {}\n", "operators on the GPU", operators, compiled.placements.size());
    print_stdout("  {:<28}{:>12}\n", "kernels launched, at most", launches);
    if (!alone) print_stdout("  {:<28}{:>12.3g}\n", "largest difference", most);
  }
};

}  // namespace

Action bench_gpu(Options& options) {
  auto command = std::make_shared<BenchGpu>();
  command->model.declare(options);
  options.option(command->rounds, "--rounds", "N", "number of measurements", {1, 1'000'000});
  options.option(command->threads, "--threads", "N", "threads of native kernels; 0: all usable processors",
                 runtime::kThreadBounds);
  options.option(command->inputs, "--inputs", "FILE", "the inputs (npz, npy), instead of random ones");
  options.option(command->results, "--results", "FILE.npz", "where the results are written");
  options.flag(command->alone, "--alone", "without the CPU");
  options.flag(command->json, "--json", "figures as JSON");
  options.footer(
      "Without a GPU nothing is measured: an error says why, and the exit code is 1.\n\n"
      "tenon bench gpu resnet8.onnx --shapes N=1");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
