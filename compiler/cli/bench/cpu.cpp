// tenon bench cpu: the CPU's kernels beside oneDNN's.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "compiler/bench/cpu_bench.h"
#include "compiler/cli/command.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::bench::CompileFigures;
using compiler::bench::Figures;

constexpr double kGoal = 0.02;  // seconds for a kernel and level

struct BenchCpu {
  std::string only;
  std::string level;
  std::string weights = "8bit";
  int64_t rounds = 11;
  bool compile = false;
  bool json = false;

  Status run() const {
    std::vector<compiler::bench::Problem> chosen;
    for (auto& problem : compiler::bench::problems()) {
      if (only.empty() || problem.name.find(only) != std::string::npos || problem.group.find(only) != std::string::npos)
        problem.weight_bits = weights == "7bit" ? 7 : 8, chosen.push_back(problem);
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

  static void print(const std::vector<Figures>& figures) {
    print_stdout(
        "CPU time of one thread, medians; f32 or u8 by i8 to i32, weights packed "
        "beforehand\n\n{:<36}{:>12}{:>10}{:>12}{:>8}\n",
        "", "compile ms", "GOP/s", "oneDNN", "ratio");
    std::map<std::string, std::pair<double, int>> ratios;  // sum of logarithms, count
    std::string group;
    for (const Figures& figure : figures) {
      if (figure.problem.group != group) print_stdout("{}\n", group = figure.problem.group);
      const double flops = figure.problem.flops() * 1e-9;
      print_stdout("  {:<34}{:>12.1f}{:>10.1f}", figure.problem.name, figure.compile_seconds * 1e3,
                   flops / figure.ours);
      if (figure.peer) {
        print_stdout("{:>12.1f}{:>8.2f}", flops / *figure.peer, *figure.peer / figure.ours);
        ratios[group].first += std::log(*figure.peer / figure.ours), ++ratios[group].second;
      }
      print_stdout("\n");
    }
    if (ratios.empty()) print_stdout("\nno peer: oneDNN was not found when this was built\n");
    else print_stdout("\nratio: oneDNN's time by ours, above 1 is faster than oneDNN in its preferred layouts\n");
    for (const auto& [name, sum] : ratios)
      print_stdout("  {:<34}geometric mean {:.2f}\n", name, std::exp(sum.first / sum.second));
  }

  static void print(const std::vector<CompileFigures>& figures) {
    print_stdout("CPU time of compilation in milliseconds, medians: loops, then code and link for each level\n\n");
    struct Worst {
      double seconds = 0;
      int kernels = 0, slow = 0;
      std::string name;
    };
    std::map<std::string, Worst> levels;
    for (const CompileFigures& figure : figures) {
      double sum = figure.loops;
      print_stdout("  {:<34}{:>8.1f}", figure.problem.name, figure.loops * 1e3);
      for (const auto& [level, seconds] : figure.levels) {
        print_stdout("  {} {:.1f}", level, seconds * 1e3);
        sum += seconds;
        Worst& worst = levels[level];
        ++worst.kernels;
        if (seconds > kGoal) ++worst.slow;
        if (seconds > worst.seconds) worst.seconds = seconds, worst.name = figure.problem.name;
      }
      print_stdout("  sum {:.1f}\n", sum * 1e3);
    }
    print_stdout("\n");
    for (const auto& [level, worst] : levels) {
      print_stdout("  {:<16}{} of {} kernels take more than {:.0f} ms; the longest {:.1f} ms: {}\n", level, worst.slow,
                   worst.kernels, kGoal * 1e3, worst.seconds * 1e3, worst.name);
    }
  }

  static void print_json(const std::vector<CompileFigures>& figures) {
    Json out;
    out.begin_object().key("problems").begin_array();
    for (const CompileFigures& figure : figures) {
      out.begin_object().field("group", figure.problem.group).field("name", figure.problem.name);
      out.field("loops_seconds", figure.loops).key("levels").begin_object();
      for (const auto& [level, seconds] : figure.levels) out.field(level, seconds);
      out.end().end();
    }
    print_stdout("{}", out.end().end().str());
  }

  static void print_json(const std::vector<Figures>& figures) {
    Json out;
    out.begin_object().field("peer", compiler::bench::has_peer() ? "oneDNN" : "").key("problems").begin_array();
    for (const Figures& figure : figures) {
      out.begin_object().field("group", figure.problem.group).field("name", figure.problem.name);
      out.field("compile_seconds", figure.compile_seconds).field("seconds", figure.ours);
      out.field("gflops", figure.problem.flops() * 1e-9 / figure.ours);
      if (figure.peer)
        out.field("peer_seconds", *figure.peer).field("ratio", *figure.peer / figure.ours).field("error", figure.error);
      out.end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_cpu(Options& options) {
  auto command = std::make_shared<BenchCpu>();
  options.option(command->only, "--only", "TEXT", "only problems with this text in their name or group");
  options.option(command->rounds, "--rounds", "N", "number of measurements of each", {1, 1'000'000});
  options.option(command->level, "--level", "NAME",
                 "instruction set level, as x86-64-v3; default: the best of this processor");
  options.choice(command->weights, "--weights", {"8bit", "7bit"},
                 "int8 weights: exact sums of 7 bits take fewer instructions without dot products");
  options.flag(command->compile, "--compile", "only compile the problems, for all levels, and print the compile times");
  options.flag(command->json, "--json", "figures as JSON");
  options.footer("tenon bench cpu --only ResNet");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
