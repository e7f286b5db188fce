// tenon tune: measures on this machine which kernels are fastest for a model, or the figures by which operators are
// assigned to targets, and keeps the measurements in a file.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "compiler/cli/model_options.h"
#include "compiler/cli/pass_options.h"
#include "compiler/cli/progress.h"
#include "compiler/pipeline/measure_costs.h"
#include "compiler/targets/targets.h"
#include "compiler/tune/search.h"
#include "runtime/native/native.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::tune::Tuned;

struct TuneCommand {
  ModelOptions model;
  std::string config, level, costs, mhz = "100";
  int64_t trials = 24;
  double seconds = 0;
  bool json = false, quiet = false;

  // None without --config.
  Expected<std::vector<compiler::AcceleratorOptions>> accelerators() const {
    std::vector<compiler::AcceleratorOptions> none;
    if (config.empty()) return none;
    return load_accelerators(config);
  }

  // The clocks of the accelerators by their targets' names: --mhz has one for all, or one for each.
  Expected<std::map<std::string, double>> clocks() const {
    TENON_TRY_ASSIGN(found, accelerators());
    TENON_TRY_ASSIGN(records, compiler::with_targets({}, *found));
    std::vector<double> values;
    for (const std::string& text : split_all(mhz)) {
      TENON_TRY_ASSIGN(value, read_number("--mhz", text, Bounds<double>{.least = 0, .most = 1e5, .above = true}));
      values.push_back(*value);
    }
    const size_t count = std::max<size_t>(found->size(), 1);
    if (values.size() != 1 && values.size() != count) {
      return error(fmt::format("--mhz '{}' has {} clocks, must have 1, or {}: one for each accelerator", mhz,
                               values.size(), count),
                   {}, "--config names the accelerators, as --config default,tiny --mhz 100,150", Fault::kUsage);
    }
    std::map<std::string, double> clocks;
    for (const compiler::TargetRecord& record : *records) {
      if (record.of_configuration) clocks.emplace(record.name, values[std::min(clocks.size(), values.size() - 1)]);
    }
    return clocks;
  }

  // The figures of this machine, and of accelerators beside it whose memory is the processor's.
  Status measure(const std::map<std::string, double>& clock_of) const {
    TENON_TRY(runtime::check_output(costs, "--costs", {}));
    TENON_TRY_ASSIGN(measured, compiler::measure_costs());
    for (const auto& [name, clock] : clock_of)
      measured->devices[name] = {.launch_ns = measured->call_ns, .gbytes = measured->gbytes, .mhz = clock};
    const std::string text = compiler::to_json(*measured);
    TENON_TRY(write_file(costs, text));
    print_stdout("{}", text);
    return {};
  }

  Status run() const {
    TENON_TRY_ASSIGN(clock_of, clocks());
    if (!costs.empty() && model.model.empty()) return measure(*clock_of);
    if (!costs.empty() || model.model.empty() || model.records.empty()) {
      return error("tenon tune measures a MODEL into --records FILE, or the machine into --costs FILE", {},
                   "tenon tune --help has an example of each", Fault::kUsage);
    }
    TENON_TRY(check_host_level(level));
    // An unusable file of records is reported before the model is compiled.
    TENON_TRY_ASSIGN(records, compiler::tune::Records::open(model.records));
    ModelOptions plain = model;
    plain.records.clear();  // groups do not depend on them
    TENON_TRY_ASSIGN(loaded, load(plain));
    TENON_TRY_ASSIGN(found, accelerators());
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, plain, *std::move(found)));
    compiler::tune::TuneOptions options{.trials = trials,
                                        .seconds = seconds,
                                        .level = level.empty() ? std::string(runtime::host_levels().front()) : level};
    const bool shows = !quiet && isatty(STDERR_FILENO) != 0;
    if (shows) {
      options.progress = [](size_t done, size_t of, const std::string& key) {
        write_stderr(kClearLine);
        print_stderr("{}/{} {}", done, of, key.substr(0, 90));
        std::fflush(stderr);
      };
    }
    auto tuned =
        compiler::tune::tune(*loaded->model.context, compiled->kernels, loaded->model.entry, *records, options);
    if (shows) write_stderr(kClearLine);
    TENON_TRY(tuned);
    if (json) print_json(*tuned, options.level);
    else print(*tuned, options.level);
    return {};
  }

  void print(const std::vector<Tuned>& tuned, const std::string& level) const {
    if (tuned.empty()) return print_stdout("no operator of the model on the CPU has tuning knobs\n");
    double before = 0, after = 0;
    size_t missing = 0;
    print_stdout("CPU time of a call on one thread of {}, medians\n\n{:>12}{:>12}{:>8}{:>8}{:>14}  {}\n", level,
                 "default us", "best us", "ratio", "uses", "measured of", "operator");
    for (const Tuned& result : tuned) {
      if (!result.record) {
        ++missing;
        print_stdout("{:>12}{:>12}{:>8}{:>8}{:>14}  {}\n", "-", "-", "-", result.uses, "-", result.key);
        continue;
      }
      const auto& [settings, best, by_default] = *result.record;
      before += static_cast<double>(result.uses) * by_default, after += static_cast<double>(result.uses) * best;
      const std::string measured =
          result.candidates == 0 ? "known" : fmt::format("{} of {}", result.measured, result.candidates);
      print_stdout("{:>12.1f}{:>12.1f}{:>8.2f}{:>8}{:>14}  {}: {}\n", by_default * 1e6, best * 1e6, by_default / best,
                   result.uses, measured, result.key, compiler::kernels::str(settings));
    }
    if (after > 0) {
      print_stdout("\nall of these: {:.1f} us by default, {:.1f} us as measured, ratio {:.2f}\n", before * 1e6,
                   after * 1e6, before / after);
    }
    if (missing > 0)
      print_stdout("{} operators were not measured in time: run again without --time, or with more\n", missing);
    print_stdout("tenon compile and tenon run use the measurements with --records {}\n", model.records);
  }

  static void print_json(const std::vector<Tuned>& tuned, const std::string& level) {
    Json out;
    out.begin_object().field("level", level).key("operators").begin_array();
    for (const Tuned& result : tuned) {
      out.begin_object()
          .field("operator", result.key)
          .field("uses", result.uses)
          .field("candidates", result.candidates);
      out.field("measured", result.measured);
      if (result.record) {
        out.field("choice", compiler::kernels::str(result.record->settings)).field("seconds", result.record->seconds);
        out.field("default_seconds", result.record->default_seconds);
      }
      out.end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action tune_model(Options& options) {
  auto command = std::make_shared<TuneCommand>();
  command->model.declare(options, ModelOptions::Records::kTuned);
  options.option(command->config, "--config", "NAME,...",
                 "leave out the operators that these accelerators support; default: everything runs on the CPU. With "
                 "--costs: the accelerators of the file; default: one of any configuration");
  options.option(command->costs, "--costs", "FILE",
                 "measure the figures of this machine that tenon compile --costs reads, without a model: seconds");
  options.option(command->mhz, "--mhz", "MHZ,...",
                 "clock of all accelerators, or of each of --config, for the file of --costs");
  options.option(command->level, "--level", "LEVEL",
                 "instruction set level, as x86-64-v3, that this processor has; default: its best. Each level has "
                 "separate records");
  options.option(command->trials, "--trials", "N", "number of kernels to measure for an operator", {.least = 1});
  options.option(command->seconds, "--time", "SECONDS", "start no new program after this time; 0: no limit", {0, 1e9});
  options.flag(command->json, "--json", "figures as JSON");
  options.flag(command->quiet, "--quiet", "no progress");
  options.footer(
      "What was measured stays in FILE: the next call goes on from there, other models share it, and\n"
      "several may write it at a time. Results do not depend on it, only times do.\n\n"
      "tenon tune model.onnx --shapes N=1 --records model.records\n"
      "tenon run model.onnx --shapes N=1 --cpu --records model.records --data d.npz:x\n"
      "tenon tune --costs machine.json --mhz 100\n"
      "tenon tune --costs machine.json --config default,tiny --mhz 100,150");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
