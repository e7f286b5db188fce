// tenon train: new weights for a model, from samples and labels, on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <numbers>

#include "compiler/cli/command.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/progress.h"
#include "compiler/cli/trained_model.h"
#include "compiler/train/curves.h"
#include "runtime/run/inputs.h"
#include "runtime/run/limits.h"
#include "runtime/run/results.h"
#include "runtime/run/samples.h"
#include "runtime/train/trainer.h"
#include "support/clock.h"
#include "support/file_lock.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::DType, runtime::NamedTensors;
using runtime::Tensor;

template <class T>
Tensor scalar(T value) {
  return Tensor::of<T>({}, std::span<const T>(&value, 1));
}

// Set by SIGINT and SIGTERM: the step in progress ends, and the state is written. The second signal ends the process.
std::atomic<bool> interrupted = false;
void interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

struct TrainCommand : TrainedModel {
  std::string labels, eval_labels, output, state, metrics, page, step_file, schedule = "constant";
  std::vector<std::string> data, eval_data;
  runtime::BudgetOptions budget;
  int64_t epochs = 1, warmup = 0, threads = 0, save_every = 0;
  double rate = 0.001;
  bool json = false;

  Status run() {
    TENON_TRY(check_options());
    std::optional<FileLock> lock;
    if (!state.empty()) {
      lock.emplace(state + ".lock", FileLock::kTry);
      if (!lock->held()) {
        return error("another training writes this state, or its lock cannot be created", state,
                     "wait until it ends, or give another file");
      }
    }
    const Status done = train_model();
    if (lock) lock->remove();
    return done;
  }

 private:
  Status train_model() {
    TENON_TRY(load());
    if (data.empty()) return write_step();
    TENON_TRY(read_data());
    TENON_TRY(compile());
    TENON_TRY(resume());
    TENON_TRY(train());
    TENON_TRY(save(trainer_->weights(), output));
    if (!json) print_stdout("wrote {}\n", output);
    return {};
  }

  Status check_options() const {
    std::vector<std::string> inputs{model, labels, eval_labels};
    inputs.insert(inputs.end(), data.begin(), data.end());
    for (const std::string& samples : quantization.calibration_data) inputs.push_back(samples);
    if (training.step.optimizer.ends_with(".tn")) inputs.push_back(training.step.optimizer);
    inputs.insert(inputs.end(), eval_data.begin(), eval_data.end());
    for (const auto& [path, option] : {std::pair{output, "--output"},
                                       {state, "--state"},
                                       {metrics, "--metrics"},
                                       {page, "--report"},
                                       {step_file, "--step"}})
      TENON_TRY(runtime::check_output(path, option, inputs));
    if (data.empty() && (step_file.empty() || !labels.empty() || !output.empty())) {
      return error("--data is required", {}, "without --data, --labels and --output, --step alone writes the step",
                   Fault::kUsage);
    }
    if (!data.empty() && labels.empty()) return error("--labels is required", {}, {}, Fault::kUsage);
    if (!data.empty() && output.empty()) return error("--output is required", {}, {}, Fault::kUsage);
    if (!data.empty() && !output.ends_with(".tn") && !output.ends_with(".tnb"))
      return error("the trained model is written as .tn or .tnb", output, {}, Fault::kUsage);
    if (eval_data.empty() != eval_labels.empty())
      return error("--eval-data and --eval-labels belong together", {}, {}, Fault::kUsage);
    compiler::CompileOptions applied;
    TENON_TRY(quantization.apply(applied, quantizes()));
    if (quantizes() && init == "random") {
      return error("--calibrate needs the ranges of a trained model, and --init random has none", {},
                   "train in float first, then train the result with --calibrate", Fault::kUsage);
    }
    if (save_every > 0 && state.empty())
      return error("--save-every needs --state", {}, "name the file of the state", Fault::kUsage);
    return {};
  }

  Status read_data() {
    TENON_TRY_ASSIGN(samples, read(data, labels));
    training_ = std::move(*samples);
    if (training_.samples() < training.samples_of_step()) {
      return error(
          fmt::format("there are {} samples, less than a batch of {}", training_.samples(), training.samples_of_step()),
          {}, "give a smaller --batch", Fault::kUsage);
    }
    if (eval_data.empty()) return {};
    TENON_TRY_ASSIGN(held, read(eval_data, eval_labels));
    held_ = std::move(*held);
    return {};
  }

  // The step as an executable, with the weights as the first values of its states.
  Status write_step() {
    TENON_TRY(ports());
    TENON_TRY(make_step());
    if (!json) print_stdout("wrote {}\n", step_file);
    return {};
  }
  Status make_step() {
    TENON_TRY(compiler::make_training_step(*model_.context, model_.module, parameters_, training.step));
    compiler::CompileOptions options;
    options.budget_required = false;
    if (!budget.budget.empty()) {
      TENON_TRY_ASSIGN(bytes, read_bytes("--budget", budget.budget));
      options.budget = static_cast<int64_t>(*bytes);
    }
    TENON_TRY_ASSIGN(made, compile_for_this_machine(model_, options));
    step_ = std::move(made->executable);
    TENON_TRY(runtime::add_states(step_, weights_));
    if (!step_file.empty()) TENON_TRY(runtime::save(step_, step_file));
    // Where the code itself stays within the budget, the machine need not see to it.
    if (made->memory && made->memory->bound && *made->memory->bound <= options.budget.value_or(0)) {
      planned_ = made->memory->repeated(made->memory->plan());
      bound_ = made->memory->bound;
    }
    return {};
  }

  Status compile() {
    const StageLine stage(quiet);
    stage.show("compile the step");
    const compiler::Type scores = first_result();
    if (scores.tensor() && scores.tensor()->rank() == 2) classes_ = scores.tensor()->dims[1].constant().value_or(0);
    if (!eval_data.empty()) {
      compiler::Model forward{
          .context = nullptr, .module = clone(model_.module), .entry = model_.entry, .name = "eval"};
      forward.context = std::move(model_.context);
      auto made = compile_for_this_machine(forward, {});
      model_.context = std::move(forward.context);
      TENON_TRY(made);
      forward_ = std::move(made->executable);
    }
    TENON_TRY(make_step());
    runtime::SessionOptions session;
    session.threads = static_cast<unsigned>(threads);
    session.profile = false;
    TENON_TRY(budget.apply(session));
    if (bound_) session.budget = 0;
    session.cancel = &interrupted;
    TENON_TRY_ASSIGN(trainer, runtime::Trainer::create(step_, session));
    trainer_.emplace(std::move(*trainer));
    TENON_TRY(trainer_->check(training_, classes_));
    if (eval_data.empty()) return {};
    TENON_TRY(trainer_->check(held_, classes_));
    TENON_TRY_ASSIGN(evaluation, runtime::Session::create(forward_, session));
    evaluation_.emplace(std::move(*evaluation));
    return {};
  }

  int64_t steps_of_epoch() const { return training_.samples() / training.samples_of_step(); }

  // What a state must agree with, so that the rest of the training is as if it had not been interrupted.
  NamedTensors settings() const {
    return {{"samples", scalar(training_.samples())},
            {"batch", scalar(training.samples_of_step())},
            {"seed", scalar(seed)}};
  }

  Status resume() {
    std::error_code ignored;
    if (state.empty() || !std::filesystem::exists(state, ignored)) return {};
    TENON_TRY_ASSIGN(others, trainer_->load(state));
    for (const auto& [name, value] : settings()) {
      const auto found = others->find(name);
      if (found != others->end() && found->second == value) continue;
      return error(fmt::format("the state was made with another '{}'", name), state,
                   "give the options and the data of the interrupted training, or another file");
    }
    if (!quiet) print_stderr("continues after step {}\n", trainer_->steps());
    return {};
  }

  // The learning rate of a step, which counts from 0.
  double rate_at(int64_t at) const {
    const int64_t total = epochs * steps_of_epoch();
    if (at < warmup) return rate * static_cast<double>(at + 1) / static_cast<double>(warmup);
    const double done = static_cast<double>(at - warmup) / static_cast<double>(std::max<int64_t>(1, total - warmup));
    if (schedule == "cosine") return rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0)));
    if (schedule == "linear") return rate * std::max(0.0, 1 - done);
    if (schedule == "steps") return rate * (done < 0.5 ? 1 : done < 0.75 ? 0.1 : 0.01);
    return rate;
  }

  Status train() {
    TENON_TRY(read_epochs());
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, interrupt);
    for (int64_t epoch = trainer_->steps() / steps_of_epoch(); epoch < epochs; ++epoch) {
      const auto begin = std::chrono::steady_clock::now();
      const double cpu = cpu_seconds();
      const std::vector<int64_t> order = runtime::shuffled(training_.samples(), seed, epoch);
      const int64_t first = trainer_->steps() % steps_of_epoch();
      double sum = 0;
      {
        Progress progress(fmt::format("epoch {} of {}", epoch + 1, epochs), steps_of_epoch() - first, quiet);
        for (int64_t i = first; i < steps_of_epoch(); ++i) {
          const auto samples = std::span(order).subspan(i * training.samples_of_step(), training.samples_of_step());
          auto loss = trainer_->step(training_, samples, rate_at(trainer_->steps()));
          if (!loss) {
            if (trainer_->is_lost()) {
              loss.error().help = state.empty() ? "with --state FILE.npz and --save-every, training could go on"
                                                : fmt::format("the same command goes on from {}", state);
              return std::unexpected(std::move(loss.error()));
            }
            if (!state.empty()) TENON_TRY(trainer_->save(state, settings()));
            if (interrupted) return interruption();
            return std::unexpected(std::move(loss.error()));
          }
          sum += *loss;
          progress.step();
          if (save_every > 0 && trainer_->steps() % save_every == 0) TENON_TRY(trainer_->save(state, settings()));
        }
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      TENON_TRY(
          report(epoch, sum / static_cast<double>(steps_of_epoch() - first), seconds.count(), cpu_seconds() - cpu));
      if (!state.empty()) TENON_TRY(trainer_->save(state, settings()));
    }
    return {};
  }

  // What the user is told who ended the training.
  Status interruption() const {
    return error(fmt::format("the training was interrupted after step {}", trainer_->steps()), {},
                 state.empty() ? "with --state FILE.npz, it could go on from there"
                               : fmt::format("the same command goes on from {}", state));
  }

  Status report(int64_t epoch, double loss, double seconds, double cpu) {
    std::optional<double> accuracy;
    if (evaluation_ && training.step.loss == "cross_entropy") {
      TENON_TRY_ASSIGN(found, evaluate());
      accuracy = *found;
    }
    Json line;
    line.begin_object().field("epoch", epoch + 1).field("steps", trainer_->steps()).field("loss", loss);
    if (accuracy) line.field("accuracy", *accuracy);
    const runtime::MemoryRecord& memory = trainer_->memory();
    line.field("peak_bytes", memory.peak_bytes);
    if (bound_) line.field("most_bytes", *bound_).field("again", planned_);
    else if (!budget.budget.empty()) line.field("given_up", memory.evictions).field("again", memory.repeated_calls);
    const std::string text = line.field("rate", rate_at(trainer_->steps() - 1))
                                 .field("seconds", seconds)
                                 .field("cpu_seconds", cpu)
                                 .end()
                                 .str();
    std::string flat;
    for (const char c : text) {
      if (c != '\n') flat += c;
      else if (!flat.empty()) flat += ' ';
    }
    while (flat.ends_with(' ')) flat.pop_back();
    if (!metrics.empty()) {
      std::ofstream file(metrics, std::ios::app);
      file << flat << '\n';
      file.flush();
      if (!file) return error("the metrics cannot be written", metrics);
    }
    if (!page.empty()) {
      epochs_.push_back({epoch + 1, loss, accuracy, rate_at(trainer_->steps() - 1), seconds});
      TENON_TRY(write_file(page, compiler::curves_page(fmt::format("Training of {}", model_.name), facts(), epochs_)));
    }
    if (json) print_stdout("{}\n", flat);
    else
      print_stdout("epoch {}: loss {:.4f}{}, {:.1f} s{}\n", epoch + 1, loss,
                   accuracy ? fmt::format(", accuracy {:.2f} %", *accuracy) : "", seconds,
                   budget.budget.empty() ? ""
                   : bound_ ? fmt::format(", a step by its plan: {} of at most {} bytes, {} calls executed again",
                                          memory.peak_bytes, *bound_, planned_)
                            : ", a step: " + runtime::describe(memory));
    return flush_output();  // an epoch may take long
  }

  std::vector<std::pair<std::string, std::string>> facts() const {
    return {{"optimizer", training.step.optimizer},
            {"loss", training.step.loss},
            {"samples", fmt::format("{}, {} in a step", training_.samples(), training.samples_of_step())},
            {"rate", fmt::format("{}, {}", rate, schedule)},
            {"seed", fmt::format("{}", seed)}};
  }

  // The epochs before this run, as the file of metrics has them.
  Status read_epochs() {
    if (page.empty() || metrics.empty()) return {};
    TENON_TRY_ASSIGN(known, compiler::read_metrics(metrics));
    const int64_t first = trainer_->steps() / steps_of_epoch();
    for (const compiler::EpochMetrics& epoch : *known) {
      if (epoch.epoch > first) continue;
      std::erase_if(epochs_, [&](const compiler::EpochMetrics& other) { return other.epoch >= epoch.epoch; });
      epochs_.push_back(epoch);
    }
    return {};
  }

  // The share of held-out samples whose class is right, in percent; a last batch is filled up with its first
  // sample.
  Expected<double> evaluate() {
    runtime::Accuracy accuracy;
    const NamedTensors weights = trainer_->weights();
    for (int64_t begin = 0; begin < held_.samples(); begin += training.batch) {
      std::vector<int64_t> samples;
      for (int64_t i = begin; i < begin + training.batch; ++i) samples.push_back(i < held_.samples() ? i : begin);
      std::vector<Tensor> inputs;
      for (const compiler::LiftedParameter& parameter : parameters_) inputs.push_back(weights.at(parameter.name));
      for (const Tensor& tensor : held_.inputs) inputs.push_back(runtime::rows(tensor, samples));
      TENON_TRY_ASSIGN(results, evaluation_->run(inputs));
      const std::vector<int64_t> found = runtime::arg_max(results->front(), training.batch);
      for (int64_t i = 0; i < training.batch && begin + i < held_.samples(); ++i) {
        ++accuracy.rows;
        accuracy.right += found[static_cast<size_t>(i)] == held_.labels.data<int64_t>()[begin + i];
      }
    }
    return accuracy.percent();
  }

  runtime::TrainingData training_, held_;
  runtime::Executable step_, forward_;
  std::optional<runtime::Trainer> trainer_;
  std::optional<runtime::Session> evaluation_;
  std::vector<compiler::EpochMetrics> epochs_;  // of the report
  int64_t classes_ = 0;
  // Where the step keeps the budget by its plan: what it takes at most, and its calls that are executed again.
  std::optional<int64_t> bound_;
  size_t planned_ = 0;
};

}  // namespace

Action train_model(Options& options) {
  auto command = std::make_shared<TrainCommand>();
  options.argument(command->model, "MODEL", "the model: .onnx, .tn or .tnb; its constants of floats are the weights");
  options.repeated(command->data, "--data", "[NAME=]FILE",
                   "samples for an input: FILE.npy, FILE.npz:MEMBER, or FILE.npz with members of the inputs' names");
  options.option(command->labels, "--labels", "FILE", "classes of the samples, or for mse the wanted results");
  options.option(command->output, "-o,--output", "FILE", "the trained model: .tn or .tnb");
  command->training.declare(options);
  command->quantization.declare(options);
  options.option(command->rate, "--rate", "R", "learning rate", {.least = 0});
  options.choice(command->schedule, "--schedule", {"constant", "cosine", "linear", "steps"},
                 "how the rate falls over all steps; steps: to a tenth after a half and after three quarters");
  options.option(command->warmup, "--warmup", "STEPS", "steps in which the rate rises to R first", {.least = 0});
  options.option(command->epochs, "--epochs", "N", "passes over the samples", {1, 1'000'000});
  options.option(command->seed, "--seed", "N", "of the order of samples and of --init random", {});
  options.choice(command->init, "--init", {"model", "random"}, "first weights: the model's, or random ones");
  options.repeated(command->eval_data, "--eval-data", "[NAME=]FILE", "samples that accuracy is measured on");
  options.option(command->eval_labels, "--eval-labels", "FILE", "their classes");
  options.option(command->divide, "--divide", "D", "divide integer data by D", {.least = 0});
  options.option(command->state, "--state", "FILE.npz",
                 "file of weights, optimizer and position, written after each epoch; training continues from it if it "
                 "exists");
  options.option(command->save_every, "--save-every", "STEPS", "write the state also after so many steps; 0: no",
                 {.least = 0});
  options.option(command->step_file, "--step", "FILE.tnx",
                 "write the step, with the first weights, as an executable that other programs train with (tenon.h); "
                 "alone, without --data");
  options.option(command->metrics, "--metrics", "FILE.jsonl", "append a line of JSON for each epoch");
  options.option(
      command->page, "--report", "FILE.html",
      "write the curves of loss, accuracy and rate as a self-contained page after each epoch; with --metrics, "
      "of the epochs before an interruption too");
  command->budget.declare(options);
  options.option(command->threads, "--threads", "N", "threads of native kernels; 0: all usable processors",
                 runtime::kThreadBounds);
  options.flag(command->json, "--json", "figures as JSON");
  options.flag(command->quiet, "--quiet", "no progress bar");
  options.footer(
      "tenon train digits.onnx --init random --data d.npz:x --labels d.npz:y --divide 255 --epochs 5 -o trained.tnb");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
