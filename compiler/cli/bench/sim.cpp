// tenon bench sim: how fast the simulators are on this machine.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "driver/accelerator.h"
#include "sim/bench/bench.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using sim::bench::Measurement;

struct BenchSim {
  std::string config = "default";
  std::vector<std::string> vta;
  int64_t runs = 7, tiles = 20;
  bool no_rtl = false, json = false;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    std::vector<Measurement> measurements;
    const auto add = [&](auto&& measured) -> Status {
      TENON_TRY(measured);
      measurements.insert(measurements.end(), measured->begin(), measured->end());
      return {};
    };
    const auto program = sim::bench::convolution(*loaded, static_cast<int>(tiles));
    TENON_TRY(add(sim::bench::behavioral(program, "conv3x3", static_cast<int>(runs))));
    for (const std::string& file : vta) {
      TENON_TRY(add(sim::bench::behavioral_vta(file, static_cast<int>(runs))));
    }
    std::string skipped;
    if (!no_rtl) {
      TENON_TRY(rtl(*loaded, measurements, skipped));
    }
    print(measurements, skipped);
    return {};
  }

  // The RTL is three orders of magnitude slower: a shorter program, fewer runs.
  Status rtl(const spec::Config& loaded, std::vector<Measurement>& measurements, std::string& skipped) const {
    for (const auto& transport : driver::transports()) {
      if (transport.scheme == "verilator") skipped = transport.missing();
    }
    if (!skipped.empty()) return {};
    const auto program = sim::bench::convolution(loaded, 1);
    TENON_TRY_ASSIGN(device, driver::open(fmt::format("verilator:{}?memory={}", config, program.memory.size())));
    TENON_TRY_ASSIGN(measured, sim::bench::measure(*(*device)->simulator(), program, "conv3x3", "verilator", 1));
    measurements.push_back(std::move(*measured));
    return {};
  }

  void print(const std::vector<Measurement>& measurements, const std::string& skipped) const {
    if (!json) {
      print_stdout("configuration {}, race detector on, CPU time of one core\n\n", config);
      print_stdout("{:<26}{:<28}{:>10}{:>14}\n", "program", "simulator", "GMAC/s", "kcycles/s");
      for (const Measurement& m : measurements) {
        print_stdout("{:<26}{:<28}{:>10.3f}{:>14.0f}\n", m.program, m.simulator, m.gmacs_per_second(),
                     m.kcycles_per_second());
      }
      if (!skipped.empty()) print_stdout("\nno RTL: {}\n", skipped);
      print_stdout("\nquoted: VTA's functional simulator 6.8 GMAC/s on one core, its Verilated RTL 600 kcycles/s\n");
      return;
    }
    Json out;
    out.begin_object().field("config", config).field("skipped", skipped).key("measurements").begin_array();
    for (const Measurement& m : measurements) {
      out.begin_object().field("program", m.program).field("simulator", m.simulator).field("macs", m.macs);
      out.field("cycles", m.cycles).field("cpu_seconds", m.cpu_seconds);
      out.field("gmacs_per_second", m.gmacs_per_second()).field("kcycles_per_second", m.kcycles_per_second()).end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_sim(Options& options) {
  auto command = std::make_shared<BenchSim>();
  options.option(command->config, "-c,--config", "NAME", "the configuration to simulate");
  options.option(command->vta, "--vta", "FILE", "VTA programs to run too, on configuration default");
  options.option(command->runs, "--runs", "N", "runs of each; the median counts", {1, 1'000'000});
  options.option(command->tiles, "--tiles", "N", "length of the convolution", {1, 1'000'000});
  options.flag(command->no_rtl, "--no-rtl", "leave out the Verilated RTL");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
