// tenon bench model: a whole model on the CPU: its compile time, run time and memory, and the slowest kernels. With
// --serve another program triggers the runs, so that both are measured interleaved.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "compiler/cli/model_options.h"
#include "compiler/cli/random_inputs.h"
#include "runtime/run/limits.h"
#include "runtime/vm/session.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

struct KernelTime {
  std::string name;
  size_t calls = 0;    // a run
  double seconds = 0;  // a run: calls times the median call, so that a call that other processes delay does not count
};

struct BenchModel {
  ModelOptions model;
  std::string inputs, results, level;
  int64_t rounds = 11, threads = 1, top = 10;
  bool json = false, serve = false;

  runtime::Executable executable;
  double compile_seconds = 0, load_seconds = 0;
  runtime::MemoryRecord memory;

  Status run() {
    double begin = cpu_seconds();
    TENON_TRY_ASSIGN(loaded, load(model));
    TENON_TRY(check_host_level(level));
    model.levels = level;
    model.for_this_machine = level.empty();
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, model, {}));
    executable = std::move(compiled->executable);
    compile_seconds = cpu_seconds() - begin;
    TENON_TRY_ASSIGN(values, bench_inputs(executable, inputs));
    begin = cpu_seconds();
    TENON_TRY_ASSIGN(
        session, runtime::Session::create(executable, {.profile = !serve, .threads = static_cast<unsigned>(threads)}));
    load_seconds = cpu_seconds() - begin;
    TENON_TRY_ASSIGN(first, session->run(*values));
    if (!results.empty()) TENON_TRY(save_results(results, executable, *first));
    return serve ? answer(*session, *values) : measure(*session, *values);
  }

 private:
  // Seconds of CPU a run.
  static Expected<double> time(runtime::Session& session, const std::vector<Tensor>& values, int64_t calls) {
    session.clear_profile();
    const double begin = cpu_seconds();
    for (int64_t i = 0; i < calls; ++i) {
      TENON_TRY(session.run(values));
    }
    return (cpu_seconds() - begin) / static_cast<double>(calls);
  }

  // Prints one line when the session is ready, then one for each line of standard input, which holds a count of runs.
  Status answer(runtime::Session& session, const std::vector<Tensor>& values) const {
    print_stdout("ready {:.6f} {:.6f}\n", compile_seconds, load_seconds);
    std::fflush(stdout);
    for (int64_t calls = 0; std::cin >> calls;) {
      if (calls < 1) return error(fmt::format("the count of runs is {}, must be at least 1", calls), "standard input");
      const Stopwatch watch;
      TENON_TRY_ASSIGN(seconds, time(session, values, calls));
      print_stdout("{:.9f} {:.9f}\n", *seconds, watch.seconds() / static_cast<double>(calls));
      std::fflush(stdout);
    }
    if (!std::cin.eof()) return error("a line is not a count of runs", "standard input");
    return {};
  }

  Status measure(runtime::Session& session, const std::vector<Tensor>& values) {
    TENON_TRY_ASSIGN(once, time(session, values, 1));
    const auto calls = std::clamp<int64_t>(static_cast<int64_t>(0.02 / (*once + 1e-9)), 1, 1000);
    std::vector<double> times;
    std::map<std::string_view, std::vector<double>> kernels;  // the names are the executable's
    for (int64_t round = 0; round < rounds; ++round) {
      TENON_TRY_ASSIGN(seconds, time(session, values, calls));
      times.push_back(*seconds);
      for (const auto& call : session.profile().calls)
        kernels[call.name].push_back(1e-9 * static_cast<double>(call.end_ns - call.begin_ns));
    }
    std::ranges::sort(times);
    std::vector<KernelTime> slowest;
    for (const auto& [name, seconds] : kernels) {
      const size_t in_run = seconds.size() / static_cast<size_t>(rounds * calls);
      slowest.push_back({std::string(name), in_run, static_cast<double>(in_run) * median(seconds)});
    }
    std::ranges::stable_sort(slowest, std::greater(), &KernelTime::seconds);
    memory = session.profile().memory;
    if (json) print_json(times, slowest);
    else print(times, slowest);
    return {};
  }

  void print(const std::vector<double>& times, const std::vector<KernelTime>& kernels) const {
    double total = 0;
    for (const KernelTime& kernel : kernels) total += kernel.seconds;
    print_stdout("{}: CPU time, {} thread{}\n", executable.name, threads, threads == 1 ? "" : "s");
    print_stdout("  {:<28}{:>12.3f} s\n  {:<28}{:>12.3f} ms\n", "compile", compile_seconds, "load", load_seconds * 1e3);
    print_stdout("  {:<28}{:>12.3f} ms, the median of {}; from {:.3f} to {:.3f}\n", "run", median(times) * 1e3,
                 times.size(), times.front() * 1e3, times.back() * 1e3);
    print_stdout("  {:<28}{:>12.1f} KiB, {:.1f} of it planned; {} results allocated separately\n", "tensors, at most",
                 static_cast<double>(memory.peak_bytes) / 1024, static_cast<double>(memory.arena_bytes) / 1024,
                 memory.allocations);
    if (top == 0) return;
    print_stdout("\n  {:<36}{:>8}{:>14}{:>9}\n", "kernels, the slowest", "calls", "ms a run", "share");
    for (size_t i = 0; i < kernels.size() && i < static_cast<size_t>(top); ++i) {
      print_stdout("  {:<36}{:>8}{:>14.4f}{:>7.1f} %\n", kernels[i].name, kernels[i].calls, kernels[i].seconds * 1e3,
                   100 * kernels[i].seconds / total);
    }
  }

  void print_json(const std::vector<double>& times, const std::vector<KernelTime>& kernels) const {
    Json out;
    out.begin_object().field("model", executable.name).field("threads", threads);
    out.field("compile_seconds", compile_seconds).field("load_seconds", load_seconds);
    out.field("seconds", median(times)).field("fastest", times.front()).field("slowest", times.back());
    out.field("peak_bytes", memory.peak_bytes).field("arena_bytes", memory.arena_bytes);
    out.field("allocations", memory.allocations).key("kernels").begin_array();
    for (const KernelTime& kernel : kernels) {
      out.begin_object().field("name", kernel.name).field("calls", kernel.calls).field("seconds", kernel.seconds);
      out.end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_model(Options& options) {
  auto command = std::make_shared<BenchModel>();
  command->model.declare(options);
  options.option(command->inputs, "--inputs", "FILE.npz", "the model's inputs by name; default: random values");
  options.option(command->results, "--results", "FILE.npz", "file for the first run's results, by name");
  options.option(command->level, "--level", "NAME",
                 "instruction set level, as x86-64-v3; default: the best of this processor");
  options.option(command->rounds, "--rounds", "N", "number of measurements", {1, 1'000'000});
  options.option(command->threads, "--threads", "N", "threads of native kernels; 0: all usable processors",
                 runtime::kThreadBounds);
  options.option(command->top, "--top", "N", "number of slowest kernels to list", {.least = 0});
  options.flag(
      command->serve, "--serve",
      "print 'ready' with the compile and load times in seconds; then, for each line of standard input, run as "
      "many times as it says, and print the seconds a run, of CPU time and of the clock");
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon bench model resnet8.onnx --shapes N=1");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
