// tenon tune: measures on this machine which kernels are fastest for a model, and keeps that in a file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "compiler/cli/json.h"
#include "compiler/cli/model_options.h"
#include "compiler/tune/search.h"
#include "runtime/native/native.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::tune::Tuned;

struct TuneCommand {
  ModelOptions model;
  std::string config, level;
  int64_t trials = 24;
  double seconds = 0;
  bool json = false, quiet = false;

  Status run() const {
    if (trials < 1) return error("--trials is at least 1", {}, {}, Fault::kUsage);
    if (seconds < 0) return error("--time is not below 0", {}, {}, Fault::kUsage);
    const auto levels = runtime::host_levels();
    if (!level.empty() && std::ranges::find(levels, level) == levels.end()) {
      return error(fmt::format("this processor has no level '{}'", level), {},
                   fmt::format("it has {}", fmt::join(levels, ", ")), Fault::kUsage);
    }
    // Before the model is compiled: whether there can be records.
    TENON_TRY_ASSIGN(records, compiler::tune::Records::open(model.records));
    ModelOptions plain = model;
    plain.records.clear();  // groups do not depend on them
    TENON_TRY_ASSIGN(loaded, load(plain));
    std::optional<spec::Config> accelerator;
    if (!config.empty()) {
      TENON_TRY_ASSIGN(found, spec::load_config(config));
      accelerator = std::move(*found);
    }
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, plain, accelerator ? &*accelerator : nullptr, false));
    compiler::tune::TuneOptions options{
        .trials = trials, .seconds = seconds, .level = level.empty() ? std::string(levels.front()) : level};
    const bool shows = !quiet && isatty(STDERR_FILENO) != 0;
    if (shows) {
      options.progress = [](size_t done, size_t of, const std::string& key) {
        fmt::print(stderr, "\r\033[K{}/{} {}", done, of, key.substr(0, 90));
        std::fflush(stderr);
      };
    }
    auto all = compiler::tune::tune(*loaded->model.context, compiled->kernels, loaded->model.entry, *records, options);
    if (shows) fmt::print(stderr, "\r\033[K");
    if (!all) return forward_error(all);
    if (json) print_json(*all, options.level);
    else print(*all, options.level);
    return {};
  }

  void print(const std::vector<Tuned>& all, const std::string& level) const {
    if (all.empty()) return fmt::print("no operator of the model leaves anything open on the CPU\n");
    double before = 0, after = 0;
    size_t missing = 0;
    fmt::print("CPU time of a call on one thread of {}, medians\n\n{:>12}{:>12}{:>8}{:>8}{:>14}  {}\n", level,
               "default us", "best us", "ratio", "uses", "measured of", "operator");
    for (const Tuned& one : all) {
      if (!one.record) {
        ++missing;
        fmt::print("{:>12}{:>12}{:>8}{:>8}{:>14}  {}\n", "-", "-", "-", one.uses, "-", one.key);
        continue;
      }
      const auto& [choice, best, by_default] = *one.record;
      before += static_cast<double>(one.uses) * by_default, after += static_cast<double>(one.uses) * best;
      const std::string measured =
          one.candidates == 0 ? "known" : fmt::format("{} of {}", one.measured, one.candidates);
      fmt::print("{:>12.1f}{:>12.1f}{:>8.2f}{:>8}{:>14}  {}: {}\n", by_default * 1e6, best * 1e6, by_default / best,
                 one.uses, measured, one.key, compiler::kernels::str(choice));
    }
    if (after > 0) {
      fmt::print("\nall of these: {:.1f} us by default, {:.1f} us as measured, ratio {:.2f}\n", before * 1e6,
                 after * 1e6, before / after);
    }
    if (missing > 0) fmt::print("{} operators were not reached in time: again, without --time or with more\n", missing);
    fmt::print("tenon compile and tenon run take them with --records {}\n", model.records);
  }

  static void print_json(const std::vector<Tuned>& all, const std::string& level) {
    Json out;
    out.begin_object().field("level", level).key("operators").begin_array();
    for (const Tuned& one : all) {
      out.begin_object().field("operator", one.key).field("uses", one.uses).field("candidates", one.candidates);
      out.field("measured", one.measured);
      if (one.record) {
        out.field("choice", compiler::kernels::str(one.record->choice)).field("seconds", one.record->seconds);
        out.field("default_seconds", one.record->default_seconds);
      }
      out.end();
    }
    fmt::print("{}", out.end().end().str());
  }
};

}  // namespace

Action tune_model(Options& options) {
  auto command = std::make_shared<TuneCommand>();
  command->model.declare(options, ModelOptions::Records::kNeeded);
  options.option(command->config, "--config", "NAME",
                 "what this accelerator takes is left out; without: everything runs on the CPU");
  options.option(command->level, "--level", "LEVEL",
                 "of the processor, as x86-64-v3, one that is here; without: the best. Each has records of its own");
  options.option(command->trials, "--trials", "N", "kernels that are measured for an operator");
  options.option(command->seconds, "--time", "SECONDS", "begin nothing after so long; 0: no limit");
  options.flag(command->json, "--json", "figures as JSON");
  options.flag(command->quiet, "--quiet", "no progress");
  options.footer(
      "What was measured stays in FILE: the next call goes on from there, other models share it, and\n"
      "several may write it at a time. Results do not depend on it, only times do.\n\n"
      "tenon tune model.onnx --shapes N=1 --records here.records\n"
      "tenon run model.onnx --shapes N=1 --cpu --records here.records --data d.npz:x");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
