// A model over samples: compiled, run on a device, compared, measured.
#include "compiler/cli/run_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "compiler/cli/data.h"
#include "compiler/cli/json.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/progress.h"
#include "compiler/pipeline/compare.h"
#include "driver/accelerator.h"
#include "runtime/npy.h"
#include "runtime/profile/analysis.h"
#include "runtime/profile/report.h"
#include "runtime/vm/mismatch.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) return error("cannot write", path, "check the directory, its permissions and the free space");
  return {};
}

// How many samples a classifier gets right.
struct Score {
  size_t right = 0, samples = 0;
  double percent() const { return samples ? 100.0 * static_cast<double>(right) / static_cast<double>(samples) : 0; }
};

struct Runner : SamplesRun {
  // What is found out on the way.
  std::unique_ptr<driver::Accelerator> accelerator;
  std::optional<LoadedModel> loaded;  // none where the model is an executable
  std::optional<compiler::Compilation> compilation;
  runtime::Executable executable;
  std::vector<Tensor> samples;
  std::vector<int64_t> truth;
  int64_t batch_rows = 1;                                 // labels that belong to one sample
  std::vector<std::pair<std::string, std::string>> rows;  // for the report
  Json result;

  explicit Runner(const SamplesRun& run) : SamplesRun(run) {}

  Status run() {
    TENON_TRY(prepare());
    result.begin_object();
    if (!json && compilation)
      fmt::print("Operators of {}\n{}\n", executable.name,
                 compiler::explain(compilation->partitioned, compilation->placements));
    TENON_TRY(read_data());
    TENON_TRY(references());
    TENON_TRY(on_device());
    if (!verify.empty()) {
      TENON_TRY(verified());
    }
    if (json) fmt::print("{}", result.end().str());
    return {};
  }

 private:
  Status prepare() {
    constexpr double kLongest = 1e6;  // seconds
    if (!(seconds > 0 && seconds <= kLongest)) {
      return error(fmt::format("--launch-limit is {}, must be above 0 and at most {} seconds", seconds, kLongest), {},
                   {}, Fault::kUsage);
    }
    if (limit < 0 || verify_samples < 0)
      return error("--limit and --verify-samples are at least 0", {}, {}, Fault::kUsage);
    if (!output.empty()) {
      std::error_code failed;
      std::filesystem::create_directories(output, failed);
      if (failed) return error(fmt::format("cannot make the directory: {}", failed.message()), output);
    }
    if (!cpu) {
      TENON_TRY_ASSIGN(opened, driver::open(device));
      accelerator = std::move(*opened);
    }
    if (model.model.ends_with(".tnx")) {
      if (check)
        return error("--check needs the model, an executable has no reference", model.model,
                     "give the .onnx or .tn file", Fault::kUsage);
      TENON_TRY_ASSIGN(file, runtime::load(model.model));
      executable = std::move(*file);
      return {};
    }
    TENON_TRY_ASSIGN(model_file, load(model));
    loaded = std::move(*model_file);
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(compiled,
                     cli::compile(*loaded, model, accelerator ? &accelerator->info().config : nullptr, check));
    compilation = std::move(*compiled);
    executable = compilation->executable;
    return {};
  }

  Status read_data() {
    const runtime::Function& main = executable.main();
    if (main.params.size() != 1) {
      return error(fmt::format("the model has {} inputs; --data feeds exactly one", main.params.size()),
                   executable.name, "use tenon-run, which names inputs");
    }
    TENON_TRY_ASSIGN(batch, load_tensor(data));
    TENON_TRY_ASSIGN(split, split_samples(*batch, main.params[0], model.divide));
    samples = std::move(*split);
    if (samples.empty()) return error("the data has no sample", data);
    if (limit > 0 && static_cast<size_t>(limit) < samples.size()) samples.resize(static_cast<size_t>(limit));
    if (labels.empty()) return {};
    batch_rows = main.params[0].shape[0];
    if (main.results.empty() || main.results[0].shape.empty() || main.results[0].shape[0] != batch_rows) {
      return error(fmt::format("--labels wants one row of scores for each of {} rows of input, the first result is {}",
                               batch_rows, main.results.empty() ? "missing" : to_string(main.results[0])),
                   executable.name, "leave --labels out", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(read, load_labels(labels, samples.size() * static_cast<size_t>(batch_rows)));
    truth = std::move(*read);
    if (!json) fmt::print("Accuracy over {} samples\n", samples.size());
    return {};
  }

  void score(const std::string& what, const std::string& key, const Score& s) {
    if (truth.empty()) return;
    rows.emplace_back("accuracy, " + what, fmt::format("{:.2f} %", s.percent()));
    if (json) result.field(key, s.percent());
    else fmt::print("  {:<28} {:6.2f} %\n", what, s.percent());
  }

  void count(Score& s, const std::vector<Tensor>& results, size_t sample) const {
    if (truth.empty()) return;
    const auto best = arg_max(results[0], batch_rows);
    for (size_t row = 0; row < best.size(); ++row) s.right += best[row] == truth[sample * best.size() + row];
    s.samples += best.size();
  }

  // With labels: the model in the numbers that it came with. (--check runs the integer reference beside the device.)
  Status references() {
    if (!loaded || truth.empty()) return {};
    Score s;
    Progress progress("reference", samples.size(), quiet);
    for (size_t i = 0; i < samples.size(); ++i, progress.step()) {
      TENON_TRY_ASSIGN(results, compiler::interpret(*loaded->model.context, loaded->model.module, loaded->model.entry,
                                                    std::span<const Tensor>(&samples[i], 1)));
      count(s, *results, i);
    }
    score(compilation && !loaded->calibration.empty() ? "float model, reference" : "model, reference",
          "reference_accuracy", s);
    return {};
  }

  runtime::SessionOptions session_options(driver::Accelerator* on, compiler::Comparison* comparison) const {
    runtime::SessionOptions options;
    options.accelerator = on;
    options.native = !no_native;
    options.threads = static_cast<unsigned>(std::clamp<int64_t>(threads, 0, 1024));
    options.launch_limit = std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
    if (comparison) options.hook = comparison->hook();
    return options;
  }

  Expected<runtime::Session> session_on(driver::Accelerator* on, compiler::Comparison* comparison,
                                        bool timeline) const {
    runtime::SessionOptions options = session_options(on, comparison);
    options.timeline = timeline;
    return runtime::Session::create(executable, std::move(options));
  }

  static std::unexpected<Diagnostic> with(Diagnostic reported, const std::string& kept) {
    if (!kept.empty()) reported.help += (reported.help.empty() ? "" : "\n  ") + kept;
    return std::unexpected(std::move(reported));
  }

  // Keeps the launch that went wrong; adds to the error where it is.
  std::unexpected<Diagnostic> with_bundle(driver::Accelerator* on, Diagnostic reported, size_t sample,
                                          compiler::Comparison* comparison) const {
    if (on == nullptr) return std::unexpected(std::move(reported));
    const runtime::MismatchNote note{
        fmt::format("tenon run {} --device {} --data {}, sample {}", model.model, on->info().uri, data, sample),
        reported.what, bundle};
    const auto expected = [&](const driver::Launch& launch) -> std::optional<driver::Region> {
      if (!comparison || !comparison->mismatch()) return {};
      const auto& wrong = *comparison->mismatch();
      return driver::Region{wrong.name, launch.bases[static_cast<size_t>(wrong.base)] + wrong.offset, wrong.expected};
    };
    return with(std::move(reported), runtime::keep_failure(executable, session_options(on, comparison),
                                                           {&samples[sample], 1}, note, expected));
  }

  Status on_device() {
    std::optional<compiler::Comparison> comparison;
    if (check) comparison.emplace(loaded->model, *compilation);
    auto session =
        session_on(accelerator.get(), comparison ? &*comparison : nullptr, !report.empty() || !trace.empty());
    if (!session) return forward_error(session);
    Score reference, device_score;
    {
      Progress progress(cpu ? "cpu" : device, samples.size(), quiet);
      for (size_t i = 0; i < samples.size(); ++i, progress.step()) {
        std::vector<Tensor> expected;
        if (comparison) {
          TENON_TRY_ASSIGN(values, comparison->reference({&samples[i], 1}));
          expected = std::move(*values);
          count(reference, expected, i);
        }
        auto results = session->run({&samples[i], 1});
        if (!results) {
          return with_bundle(accelerator.get(), std::move(results.error()), i, comparison ? &*comparison : nullptr);
        }
        count(device_score, *results, i);
        if (comparison) {
          TENON_TRY(comparison->results(expected, *results));
        }
        TENON_TRY(write_results(*results, i));
      }
    }
    if (comparison)
      score(loaded->calibration.empty() ? "model, integer reference" : "int8 model, reference", "int8_accuracy",
            reference);
    score(cpu ? "cpu" : device, "device_accuracy", device_score);
    if (json) result.field("samples", samples.size());
    if (comparison) {
      const std::string text = fmt::format(
          "{} samples, {} layers, {} elements: {}", samples.size(), comparison->layers(), comparison->elements(),
          comparison->exact() ? "equal bit for bit"
                              : fmt::format("equal, integers bit for bit and results in floats to {:g} of their size",
                                            compiler::Comparison::kTolerance));
      rows.emplace_back("device against integer reference", text);
      if (json)
        result.field("layers_compared", comparison->layers()).field("elements_compared", comparison->elements());
      else fmt::print("\nDevice against integer reference\n  {}\n", text);
    }
    return figures(*session);
  }

  Status write_results(const std::vector<Tensor>& results, size_t sample) const {
    if (output.empty()) return {};
    const std::vector<std::string> names = runtime::file_names(executable.main().results);
    for (size_t i = 0; i < results.size(); ++i) {
      TENON_TRY(runtime::save_npy(fmt::format("{}/{}_{}.npy", output, names[i], sample), results[i]));
    }
    return {};
  }

  Status figures(runtime::Session& session) {
    const runtime::Analysis analysis = runtime::analyze(executable, session.profile());
    const runtime::MemoryRecord& memory = session.profile().memory;
    if (json) {
      result.field("peak_bytes", memory.peak_bytes)
          .field("arena_bytes", memory.arena_bytes)
          .field("allocations", memory.allocations);
    } else {
      fmt::print("\nMemory of the tensors, a run\n  {:<28} {} KiB, {} of it planned; {} results apart\n", "peak",
                 memory.peak_bytes >> 10, memory.arena_bytes >> 10, memory.allocations);
    }
    if (json) {
      result.field("cycles", analysis.cycles)
          .field("utilization", analysis.utilization)
          .field("read_bytes", analysis.read_bytes)
          .field("write_bytes", analysis.write_bytes)
          .field("launches", analysis.launches);
    } else if (analysis.launches > 0) {
      fmt::print("\nAccelerator {}, a sample\n", accelerator->info().config.name);
      fmt::print("  {:<28} {:.0f}{}\n", "cycles", analysis.cycles,
                 accelerator->info().cycle_accurate ? "" : "  (cycle model)");
      fmt::print("  {:<28} {:.1f} % of {} MACs a cycle\n", "utilization", 100 * analysis.utilization,
                 accelerator->info().config.macs_per_cycle());
      fmt::print("  {:<28} {:.0f} read, {:.0f} written\n", "DRAM bytes", analysis.read_bytes, analysis.write_bytes);
    }
    runtime::ReportInput input{.title = executable.name,
                               .facts = rows,
                               .executable = &executable,
                               .profile = &session.profile(),
                               .device = accelerator ? &accelerator->info() : nullptr};
    if (!report.empty()) {
      TENON_TRY(write_text(report, runtime::make_report(input)));
      if (!json) fmt::print("\nReport: {}\n", report);
    }
    if (!trace.empty()) {
      TENON_TRY(write_text(trace, runtime::make_trace(input)));
      if (!json) fmt::print("Trace: {}\n", trace);
    }
    return {};
  }

  // The first samples once more on a second device: its results must be those of the reference or of the first device.
  Status verified() {
    TENON_TRY_ASSIGN(second, driver::open(verify));
    std::optional<compiler::Comparison> comparison;
    if (check) comparison.emplace(loaded->model, *compilation);
    TENON_TRY_ASSIGN(session, session_on(second->get(), comparison ? &*comparison : nullptr, false));
    TENON_TRY_ASSIGN(first, session_on(accelerator.get(), nullptr, false));
    const size_t count_of = std::min(samples.size(), static_cast<size_t>(verify_samples));
    {
      Progress progress(verify, count_of, quiet);
      for (size_t i = 0; i < count_of; ++i, progress.step()) {
        if (comparison) {
          TENON_TRY(comparison->reference({&samples[i], 1}));
        }
        TENON_TRY_ASSIGN(expected, first->run({&samples[i], 1}));
        auto found = session->run({&samples[i], 1});
        if (!found) {
          return with_bundle(second->get(), std::move(found.error()), i, comparison ? &*comparison : nullptr);
        }
        for (size_t r = 0; r < found->size(); ++r) {
          if ((*found)[r] != (*expected)[r]) {
            Diagnostic differs{fmt::format("sample {}: result {} differs between {} and {}", i, r, verify, device),
                               executable.name, "this is a fault of the accelerator or its compiler: please report it",
                               Fault::kInternal};
            const runtime::MismatchNote note{fmt::format("tenon run {} --device {} --verify {} --data {}, sample {}",
                                                         model.model, device, verify, data, i),
                                             differs.what, bundle};
            return with(std::move(differs), runtime::keep_difference(executable, session_options(nullptr, nullptr),
                                                                     *accelerator, **second, {&samples[i], 1}, note));
          }
        }
      }
    }
    const runtime::Analysis analysis = runtime::analyze(executable, session->profile());
    if (json) result.field("verified_samples", count_of).field("verified_cycles", analysis.cycles);
    else
      fmt::print("\n{}\n  {} samples equal to {}{}; {:.0f} cycles a sample, utilization {:.1f} %\n", verify, count_of,
                 device, comparison ? fmt::format(", {} layers bit for bit", comparison->layers()) : "",
                 analysis.cycles, 100 * analysis.utilization);
    return {};
  }
};

}  // namespace

Status run_samples(const SamplesRun& run) { return Runner(run).run(); }

}  // namespace tenon::cli
