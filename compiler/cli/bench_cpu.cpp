// tenon bench cpu: the CPU's kernels beside oneDNN's.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "compiler/bench/cpu_bench.h"
#include "compiler/cli/command.h"
#include "compiler/cli/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::bench::CompileFigures;
using compiler::bench::Figures;

constexpr double kGoal = 0.02;  // seconds for a kernel and level

struct BenchCpu {
  std::string only;
  std::string level;
  int64_t rounds = 11;
  bool compile = false;
  bool json = false;

  Status run() const {
    if (rounds < 1) return error("--rounds is at least 1", {}, {}, Fault::kUsage);
    std::vector<compiler::bench::Problem> chosen;
    for (auto& problem : compiler::bench::problems()) {
      if (only.empty() || problem.name.find(only) != std::string::npos || problem.group.find(only) != std::string::npos)
        chosen.push_back(problem);
    }
    if (chosen.empty()) return error(fmt::format("no problem has \"{}\" in its name", only), {}, {}, Fault::kUsage);
    if (compile) {
      TENON_TRY_ASSIGN(figures, compiler::bench::measure_compilation(chosen, static_cast<int>(rounds)));
      if (json) print_json(*figures);
      else print(*figures);
      return {};
    }
    TENON_TRY_ASSIGN(figures, compiler::bench::measure(chosen, static_cast<int>(rounds), level));
    if (json) print_json(*figures);
    else print(*figures);
    return {};
  }

  static void print(const std::vector<Figures>& all) {
    fmt::print(
        "CPU time of one thread, medians; f32 or u8 by i8 to i32, weights packed "
        "beforehand\n\n{:<36}{:>12}{:>10}{:>12}{:>8}\n",
        "", "compile ms", "GOP/s", "oneDNN", "ratio");
    std::map<std::string, std::pair<double, int>> ratios;  // sum of logarithms, number
    std::string group;
    for (const Figures& one : all) {
      if (one.problem.group != group) fmt::print("{}\n", group = one.problem.group);
      const double flops = one.problem.flops() * 1e-9;
      fmt::print("  {:<34}{:>12.1f}{:>10.1f}", one.problem.name, one.compile_seconds * 1e3, flops / one.ours);
      if (one.peer) {
        fmt::print("{:>12.1f}{:>8.2f}", flops / *one.peer, *one.peer / one.ours);
        ratios[group].first += std::log(*one.peer / one.ours), ++ratios[group].second;
      }
      fmt::print("\n");
    }
    if (ratios.empty()) fmt::print("\nno peer: oneDNN was not found when this was built\n");
    else fmt::print("\nratio: oneDNN's time by ours, above 1 is faster than oneDNN in the layouts that it asks for\n");
    for (const auto& [name, sum] : ratios)
      fmt::print("  {:<34}geometric mean {:.2f}\n", name, std::exp(sum.first / sum.second));
  }

  static void print(const std::vector<CompileFigures>& all) {
    fmt::print("CPU time of compilation in milliseconds, medians: loops, then code and link for each level\n\n");
    struct Worst {
      double seconds = 0;
      int kernels = 0, slow = 0;
      std::string name;
    };
    std::map<std::string, Worst> levels;
    for (const CompileFigures& one : all) {
      double sum = one.loops;
      fmt::print("  {:<34}{:>8.1f}", one.problem.name, one.loops * 1e3);
      for (const auto& [level, seconds] : one.levels) {
        fmt::print("  {} {:.1f}", level, seconds * 1e3);
        sum += seconds;
        Worst& worst = levels[level];
        ++worst.kernels;
        if (seconds > kGoal) ++worst.slow;
        if (seconds > worst.seconds) worst.seconds = seconds, worst.name = one.problem.name;
      }
      fmt::print("  sum {:.1f}\n", sum * 1e3);
    }
    fmt::print("\n");
    for (const auto& [level, worst] : levels) {
      fmt::print("  {:<16}{} of {} kernels take more than {:.0f} ms; the longest {:.1f} ms: {}\n", level, worst.slow,
                 worst.kernels, kGoal * 1e3, worst.seconds * 1e3, worst.name);
    }
  }

  static void print_json(const std::vector<CompileFigures>& all) {
    Json out;
    out.begin_object().key("problems").begin_array();
    for (const CompileFigures& one : all) {
      out.begin_object().field("group", one.problem.group).field("name", one.problem.name);
      out.field("loops_seconds", one.loops).key("levels").begin_object();
      for (const auto& [level, seconds] : one.levels) out.field(level, seconds);
      out.end().end();
    }
    fmt::print("{}", out.end().end().str());
  }

  static void print_json(const std::vector<Figures>& all) {
    Json out;
    out.begin_object().field("peer", compiler::bench::has_peer() ? "oneDNN" : "").key("problems").begin_array();
    for (const Figures& one : all) {
      out.begin_object().field("group", one.problem.group).field("name", one.problem.name);
      out.field("compile_seconds", one.compile_seconds).field("seconds", one.ours);
      out.field("gflops", one.problem.flops() * 1e-9 / one.ours);
      if (one.peer) out.field("peer_seconds", *one.peer).field("ratio", *one.peer / one.ours).field("error", one.error);
      out.end();
    }
    fmt::print("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_cpu(Options& options) {
  auto command = std::make_shared<BenchCpu>();
  options.option(command->only, "--only", "TEXT", "only what has this in its name or its group's");
  options.option(command->rounds, "--rounds", "N", "how often each is measured");
  options.option(command->level, "--level", "NAME", "of the processor, as x86-64-v3; default: the best there is");
  options.flag(command->compile, "--compile", "only compile them, for all levels, and print how long that takes");
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon bench cpu --only ResNet");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
