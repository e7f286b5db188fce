// A model over samples: compiled, run on a device, compared, measured.
#include "compiler/cli/run_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "compiler/cli/progress.h"
#include "compiler/cli/samples_output.h"
#include "compiler/pipeline/compare.h"
#include "compiler/pipeline/node_prices.h"
#include "compiler/pipeline/work.h"
#include "compiler/plugin/child.h"
#include "runtime/library/library.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "runtime/run/runner.h"
#include "runtime/run/samples.h"
#include "runtime/vm/program_on_device.h"
#include "runtime/vm/session.h"
#include "support/function_ref.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Comparison;
using runtime::Accuracy;
using runtime::Runner;
using runtime::Sample;
using runtime::Tensor;

class SamplesCommand {
 public:
  explicit SamplesCommand(const SamplesRun& run) : options_(run), output_(run.json) {}

  Status run() {
    TENON_TRY(check_options());
    return_freed_memory();
    TENON_TRY(load_model());
    TENON_TRY(read_labels());
    TENON_TRY(run_reference());
    TENON_TRY(run_device());
    if (!options_.verify.empty()) TENON_TRY(verify());
    output_.finish();
    return {};
  }

 private:
  Status check_options() const {
    std::vector<std::string> inputs{options_.model.model, options_.labels, options_.model.records};
    inputs.insert(inputs.end(), options_.data.begin(), options_.data.end());
    inputs.insert(inputs.end(), options_.model.calibration_data.begin(), options_.model.calibration_data.end());
    TENON_TRY(runtime::check_output(options_.output, "--output", inputs));
    TENON_TRY(runtime::check_output(options_.report, "--report", inputs));
    TENON_TRY(runtime::check_output(options_.trace, "--trace", inputs));
    if (!options_.labels.empty()) TENON_TRY(runtime::load_tensor(options_.labels));
    if (options_.output.empty() || writes_archive()) return {};
    return runtime::create_directory(options_.output);
  }
  bool writes_archive() const { return options_.output.ends_with(".npz"); }

  // A device that computed nothing was not checked.
  Status check_compared(int64_t layers) const {
    if (!options_.check || devices_.empty() || layers > 0) return {};
    return error(
        "--check compares nothing: no operator of the model runs on the accelerator", options_.model.model,
        has_integers()
            ? "check the CPU with --cpu; tenon compile --explain says of each operator what the accelerator lacks"
            : "quantize the model with --calibrate, or check the CPU with --cpu",
        Fault::kUsage);
  }

  // With --calibrate, or as the file has it.
  bool has_integers() const {
    if (!loaded_->calibration.empty()) return true;
    bool found = false;
    compiler::for_each_binding(loaded_->model.main().body, [&](const compiler::Binding& binding) {
      const auto* apply = std::get_if<compiler::Apply>(&binding.value);
      if (apply && apply->op->is_one_of({compiler::ops::kQuantize, compiler::ops::kDequantize})) found = true;
    });
    return found;
  }

  // Of a model without inputs there is no data.
  Status check_data(size_t inputs) const {
    if (inputs == 0 || !options_.data.empty()) return {};
    return error("--data is required", "tenon run",
                 "samples for the model's inputs: [NAME=]FILE.npy or FILE.npz:MEMBER", Fault::kUsage);
  }

  // An accelerator's programs are for fixed sizes.
  Sizes sizes() const { return sizes_of_inputs(options_.model, !options_.cpu); }

  // Of an executable, by default, simulators of its configurations.
  Status open_devices(bool is_executable) {
    if (options_.cpu) {
      options_.devices.clear();
    } else if (options_.devices.empty()) {
      if (is_executable) options_.devices = runtime::default_devices(executable_);
      if (options_.devices.empty()) options_.devices.emplace_back("behavioral:default");
    }
    device_names_ = options_.cpu ? "cpu" : fmt::format("{}", fmt::join(options_.devices, ", "));
    TENON_TRY_ASSIGN(opened, runtime::open_devices(options_.devices));
    devices_ = std::move(*opened);
    return {};
  }

  // Those of a session: without those that the model was compiled for, and that have no program of it.
  std::vector<driver::Accelerator*> accelerators_of_session(const runtime::Devices& devices) const {
    std::vector<driver::Accelerator*> all = runtime::accelerators(devices);
    if (!compilation_) return all;
    std::set<uint64_t> unused;  // configurations
    for (const auto& device : devices_) {
      if (!runtime::is_used(executable_.programs, *device)) unused.insert(spec::hash(device->info().config));
    }
    std::erase_if(
        all, [&](const driver::Accelerator* device) { return unused.contains(spec::hash(device->info().config)); });
    return all;
  }

  Status load_model() {
    ModelOptions& model = options_.model;
    const bool is_executable = model.model.ends_with(".tnx");
    if (is_executable && options_.check) {
      return error("--check needs the model, an executable has no reference", model.model, "give the .onnx or .tn file",
                   Fault::kUsage);
    }
    if (is_executable) {
      TENON_TRY(model.plugins.use_kernels());
      TENON_TRY_ASSIGN(file, runtime::load(model.model));
      executable_ = std::move(*file);
      TENON_TRY(check_data(executable_.main().params.size()));
    } else {
      model.quiet = options_.quiet;
      TENON_TRY_ASSIGN(file, load(model, {}, sizes(), options_.data));
      loaded_ = std::move(*file);
      TENON_TRY(check_data(loaded_->model.main().params.size()));
    }
    TENON_TRY(open_devices(is_executable));
    if (is_executable) return read_data(executable_.main().params, executable_.name);
    TENON_TRY_ASSIGN(ports, input_ports(loaded_->model, sizes()));
    TENON_TRY(read_data(*ports, loaded_->model.name));
    model.for_this_machine = true;
    model.executable_only = !options_.check && options_.labels.empty();
    TENON_TRY(compile_model());
    TENON_TRY(leave_out_failing_kernels());
    if (executable_.programs.empty()) TENON_TRY(check_compared(0));
    warn_about_devices();
    output_.operators(executable_.name, options_.verbose
                                            ? compiler::explain(compilation_->partitioned, compilation_->placements)
                                            : compiler::summarize(compilation_->partitioned, compilation_->placements));
    output_.work(compiler::macs_by_target(compilation_->partitioned));
    return {};
  }

  Status compile_model() {
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded_, options_.model, accelerators_of(infos())));
    compilation_ = std::move(*compiled);
    executable_ = compilation_->executable;
    return {};
  }

  bool calls_plugins() const {
    const auto is_of_plugin = [&](const compiler::Placement& placement) {
      return std::ranges::find(options_.model.plugins.files, placement.target, runtime::library_name) !=
             options_.model.plugins.files.end();
    };
    return std::ranges::any_of(compilation_->placements, is_of_plugin);
  }

  // With --fallback interpreter, the first sample is tried in a process of its own: where a kernel of a plugin crashes,
  // does not return, or has a result of another type, the model is compiled without this plugin. Not where there are
  // devices, which have threads that such a process lacks. Other errors are those of the run that follows.
  Status leave_out_failing_kernels() {
    PluginOptions& plugins = options_.model.plugins;
    if (options_.model.fallback != "interpreter" || !devices_.empty() || samples_.empty()) return {};
    while (calls_plugins()) {
      const auto answer = try_first_sample();
      if (!answer && answer.error().fault == Fault::kInternal) return std::unexpected(answer.error());
      const std::string& what = answer ? *answer : answer.error().what;
      const auto failed = plugin_named_in(answer ? *answer : answer.error().where);
      if (failed == plugins.files.end()) return {};
      if (!options_.quiet)
        print_stderr("the model is compiled without a plugin\n{}\n", error(what, *failed).error().str());
      plugins.left_out.push_back(runtime::library_name(*failed));
      plugins.files.erase(failed);
      TENON_TRY(compile_model());
    }
    return {};
  }

  static std::string kernel_text(std::string_view kernel) { return fmt::format("the kernel {}", kernel); }
  // The file of a plugin one of whose kernels the text names.
  std::vector<std::string>::const_iterator plugin_named_in(std::string_view text) const {
    return std::ranges::find_if(options_.model.plugins.files, [&](const std::string& file) {
      return text.contains(kernel_text(runtime::library_name(file) + "."));
    });
  }

  // The error, which names the kernel that it is of; empty: none.
  Expected<std::string> try_first_sample() const {
    return compiler::plugin::call_in_child(
        [&](compiler::plugin::ChildOutput& output) {
          const auto around = [&](std::string_view kernel, FunctionRef<Status()> call) -> Status {
            const std::string text = kernel_text(kernel);
            if (plugin_named_in(text) == options_.model.plugins.files.end()) return call();
            output.step(text);
            Status status = call();
            output.own_step("the first sample");
            if (!status && !status.error().what.contains(text))
              status.error().what = fmt::format("{}: {}", text, status.error().what);
            return status;
          };
          runtime::watch_library_kernels(around);
          output.own_step("the first sample");
          auto session = runtime::Session::create(executable_, {.threads = 1});
          auto results = session
                             ? session->run_values(std::vector<runtime::Value>(samples_[0].begin(), samples_[0].end()))
                             : std::unexpected(session.error());
          output.answer(results ? "" : results.error().what);
        },
        options_.model.plugins.limits());
  }

  void warn_about_devices() const {
    if (options_.quiet) return;
    for (const auto& device : devices_) {
      if (runtime::is_used(executable_.programs, *device)) continue;
      print_stderr("warning: nothing runs on the accelerator {}: {}\n", device->info().config.name,
                   has_integers() ? "--verbose has the reason for each operator"
                                  : "it computes in int8; quantize the model with --calibrate, or say --cpu");
    }
  }

  std::map<std::string, std::vector<runtime::NodePrice>> prices() const {
    if (!compilation_) return {};
    return compiler::node_prices(compilation_->partitioned, compilation_->placements, executable_.graph);
  }

  std::vector<const driver::Info*> infos() const { return runtime::infos(runtime::accelerators(devices_)); }

  // Before the model is compiled.
  Status read_data(const std::vector<runtime::Port>& ports, const std::string& model) {
    TENON_TRY_ASSIGN(samples, runtime::read_samples(ports, options_.data, options_.model.divide, model));
    samples_ = std::move(*samples);
    if (samples_.empty()) return error("the data has no sample", fmt::format("{}", fmt::join(options_.data, ", ")));
    if (options_.limit > 0) samples_.resize(std::min(samples_.size(), static_cast<size_t>(options_.limit)));
    return {};
  }

  Status read_labels() {
    if (options_.labels.empty()) return {};
    TENON_TRY_ASSIGN(labels, runtime::Labels::load(options_.labels, executable_.main(), executable_.name, samples_));
    labels_ = std::move(*labels);
    output_.heading(samples_.size());
    return {};
  }

  void print_accuracy(const std::string& label, const std::string& key, const Accuracy& accuracy) {
    if (labels_) output_.accuracy(label, key, accuracy);
  }

  bool is_quantized() const { return !loaded_->calibration.empty(); }

  // With labels: the model in the numeric types that it came with. (--check runs the integer reference beside the
  // device.)
  Status run_reference() {
    if (!loaded_ || !labels_) return {};
    Accuracy accuracy;
    Progress progress("reference", samples_.size(), options_.quiet);
    for (size_t i = 0; i < samples_.size(); ++i, progress.step()) {
      TENON_TRY_ASSIGN(results, compiler::interpret(*loaded_->model.context, loaded_->model.module,
                                                    loaded_->model.entry, std::span<const Tensor>(samples_[i])));
      labels_.count(accuracy, *results, i);
    }
    print_accuracy(is_quantized() ? "float model, reference" : "model, reference", "reference_accuracy", accuracy);
    return {};
  }

  Expected<Runner> runner_on(const runtime::Devices& devices, Comparison* comparison, bool timeline) const {
    runtime::SessionOptions session;
    session.accelerators = accelerators_of_session(devices);
    session.timeline = timeline;
    session.native = !options_.no_native;
    session.threads = static_cast<unsigned>(options_.threads);
    session.launch_limit = std::chrono::nanoseconds(static_cast<int64_t>(options_.seconds * 1e9));
    TENON_TRY(options_.limits.apply(session));
    if (comparison) session.hook = comparison->hook();
    return Runner::create(executable_, std::move(session), options_.reproducer);
  }

  std::optional<Comparison> make_comparison() const {
    if (!options_.check) return std::nullopt;
    return std::optional<Comparison>(std::in_place, loaded_->model, *compilation_);
  }

  // The command that repeats a run, for the reproducer.
  std::string command(std::span<const std::string> devices, std::span<const std::string> seconds, size_t sample) const {
    std::string text = "tenon run " + options_.model.model;
    for (const auto& [option, values] :
         {std::pair(" --device ", devices), {" --verify ", seconds}, {" --data ", std::span(options_.data)}}) {
      for (const std::string& value : values) text += option + value;
    }
    return fmt::format("{}, sample {}", text, sample);
  }

  Expected<std::vector<runtime::Value>> run_sample(Runner& runner, size_t sample, std::span<const std::string> devices,
                                                   const std::optional<Comparison>& comparison) const {
    const auto expected = [&](const driver::Launch& launch) -> std::optional<driver::Region> {
      if (!comparison || !comparison->mismatch()) return {};
      const Comparison::Mismatch& wrong = *comparison->mismatch();
      return driver::Region{wrong.name, launch.bases[static_cast<size_t>(wrong.base)] + wrong.offset, wrong.expected};
    };
    return runner.run(
        samples_[sample], [&] { return command(devices, {}, sample); }, expected);
  }

  Status run_device() {
    std::optional<Comparison> comparison = make_comparison();
    TENON_TRY_ASSIGN(runner, runner_on(devices_, comparison ? &*comparison : nullptr,
                                       !options_.report.empty() || !options_.trace.empty()));
    Accuracy reference, device;
    TENON_TRY(run_all(*runner, comparison, reference, device));
    if (comparison) TENON_TRY(check_compared(comparison->layers()));
    if (comparison)
      print_accuracy(is_quantized() ? "int8 model, reference" : "model, integer reference", "int8_accuracy", reference);
    print_accuracy(device_names_, "device_accuracy", device);
    TENON_TRY(show_results());
    output_.samples(samples_.size());
    output_.time(seconds_, runtime::infos(runtime::used_accelerators(executable_, devices_)));
    if (comparison) output_.comparison(samples_.size(), *comparison);
    return print_profile(runner->profile());
  }

  Status run_all(Runner& runner, std::optional<Comparison>& comparison, Accuracy& reference, Accuracy& device) {
    Progress progress(device_names_, samples_.size(), options_.quiet);
    for (size_t i = 0; i < samples_.size(); ++i, progress.step()) {
      std::vector<Tensor> expected;
      if (comparison) {
        TENON_TRY_ASSIGN(values, comparison->reference(samples_[i]));
        expected = std::move(*values);
        labels_.count(reference, expected, i);
      }
      const auto begin = std::chrono::steady_clock::now();
      TENON_TRY_ASSIGN(results, run_sample(runner, i, options_.devices, comparison));
      seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      std::vector<Tensor> tensors;  // an empty one for each result that is no tensor
      for (const runtime::Value& result : *results) tensors.push_back(result.tensor());
      labels_.count(device, tensors, i);
      if (comparison) TENON_TRY(comparison->results(expected, tensors));
      if (prints_results() && i < kPrintedSamples) {
        for (size_t k = 0; k < results->size(); ++k) texts_[i].push_back(runtime::text_of(executable_, (*results)[k]));
      }
      if (writes_archive()) {
        TENON_TRY_ASSIGN(named, runtime::tensors_by_name(executable_, *results));
        for (auto& [name, tensor] : *named) tensor = tensor.clone();  // the next run may overwrite it
        results_.push_back(std::move(*named));
      } else if (!options_.output.empty()) {
        TENON_TRY(runtime::write_results(options_.output, executable_, *results, i));
      }
    }
    return {};
  }

  // Without labels and without a file for them, the results themselves are what is wanted: the first ones.
  static constexpr size_t kPrintedSamples = 3;
  bool prints_results() const { return !labels_ && options_.output.empty() && !options_.json; }

  Status show_results() const {
    if (writes_archive()) return runtime::write_results(options_.output, runtime::stacked(results_));
    if (!prints_results()) return {};
    const std::vector<runtime::Port>& ports = executable_.main().results;
    for (size_t i = 0; i < texts_.size(); ++i) {
      for (size_t k = 0; k < texts_[i].size(); ++k) output_.result(i, ports[k].name, texts_[i][k]);
    }
    if (samples_.size() > kPrintedSamples) {
      print_stdout("  ... {} more samples; --output FILE.npz writes them all\n", samples_.size() - kPrintedSamples);
    }
    return {};
  }

  Status print_profile(const runtime::Profile& profile) {
    const runtime::ReportInput input{.title = executable_.name,
                                     .facts = output_.rows(),
                                     .executable = &executable_,
                                     .profile = &profile,
                                     .devices = infos(),
                                     .prices = prices()};
    output_.figures(runtime::analyze(executable_, profile), input);
    TENON_TRY(runtime::write_profile(input, options_.report, options_.trace));
    output_.file("\nReport", options_.report);
    output_.file("Trace", options_.trace);
    return {};
  }

  // The first samples once more on other devices: their results must be those of the first ones, and with --check their
  // layers those of the reference.
  Status verify() {
    TENON_TRY_ASSIGN(second, runtime::open_devices(options_.verify));
    const std::string second_names = fmt::format("{}", fmt::join(options_.verify, ", "));
    std::optional<Comparison> comparison = make_comparison();
    TENON_TRY_ASSIGN(checked, runner_on(*second, comparison ? &*comparison : nullptr, false));
    TENON_TRY_ASSIGN(good, runner_on(devices_, nullptr, false));
    const size_t count = std::min(samples_.size(), static_cast<size_t>(options_.verify_samples));
    {
      Progress progress(second_names, count, options_.quiet);
      for (size_t i = 0; i < count; ++i, progress.step()) {
        TENON_TRY_ASSIGN(expected, run_sample(*good, i, options_.devices, std::nullopt));
        TENON_TRY_ASSIGN(found, run_sample(*checked, i, options_.verify, comparison));
        const auto differing = runtime::first_difference(*expected, *found);
        if (!differing) continue;
        Diagnostic differs{
            fmt::format("sample {}: result {} differs between {} and {}", i, *differing, second_names, device_names_),
            executable_.name, "this is a fault of the accelerator or its compiler: please report it", Fault::kInternal};
        return std::unexpected(Runner::keep_difference(std::move(differs), *good, *checked, samples_[i],
                                                       command(options_.devices, options_.verify, i)));
      }
    }
    const runtime::Analysis analysis = runtime::analyze(executable_, checked->profile());
    output_.verified(second_names, device_names_, count, analysis.cycles, analysis.utilization,
                     comparison ? &*comparison : nullptr);
    return {};
  }

  SamplesRun options_;
  SamplesOutput output_;
  std::string device_names_;           // for people
  runtime::Devices devices_;           // none: everything runs on the CPU
  std::optional<LoadedModel> loaded_;  // none where the model is an executable
  std::optional<compiler::Compilation> compilation_;
  runtime::Executable executable_;
  std::vector<Sample> samples_;
  runtime::Labels labels_;
  std::vector<double> seconds_;                                  // of each run
  std::array<std::vector<std::string>, kPrintedSamples> texts_;  // of the results of the samples that are printed
  std::vector<runtime::NamedTensors> results_;                   // of all samples, for one file
};

}  // namespace

Status run_samples(const SamplesRun& run) { return SamplesCommand(run).run(); }

}  // namespace tenon::cli
