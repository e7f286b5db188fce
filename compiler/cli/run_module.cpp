// Inputs from files and literals, one run of the compiled module, and results as text, files or a comparison; or
// instances from a file, and a line of text or JSON for each.
#include "compiler/cli/run_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "compiler/cli/instances.h"
#include "compiler/gradient/differentiate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/values.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "runtime/run/runner.h"
#include "runtime/vm/session.h"
#include "support/json.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Context;
using compiler::Function;
using compiler::RunValue;
using runtime::Tensor;

// "%x: Tensor[(n,), f32], %steps: Tensor[(), i64]"
std::string signature(const Context& context, const Function& function) {
  std::vector<std::string> params;
  for (compiler::VarId param : function.params) {
    const compiler::VarInfo& info = function.info(param);
    params.push_back(fmt::format("%{}: {}", context.name(info.name), context.str(info.type)));
  }
  return params.empty() ? "no inputs" : fmt::format("{}", fmt::join(params, ", "));
}

// The tensors of a parameter: the parameter itself as NAME, those of a tuple by their path, as NAME.0 and NAME.1.0.
Status add_slots(const Context& context, compiler::Type type, const std::string& name, const std::string& where,
                 std::vector<runtime::InputSlot>& slots) {
  if (const compiler::TensorType* tensor = type.tensor()) {
    slots.push_back({name, context.str(type), tensor->rank() == 0 ? std::optional(tensor->dtype) : std::nullopt});
    return {};
  }
  if (!type.tuple()) {
    return error(fmt::format("input '{}' is {}: --input gives tensors and tuples of them", name, context.str(type)),
                 where, "--instances FILE gives values of any type, a line for each run");
  }
  for (size_t i = 0; i < type.tuple()->fields.size(); ++i)
    TENON_TRY(add_slots(context, type.tuple()->fields[i], fmt::format("{}.{}", name, i), where, slots));
  return {};
}

// A value of the type, of the next tensors.
RunValue assembled(compiler::Type type, std::vector<Tensor>::iterator& next) {
  if (!type.tuple()) return *next++;
  std::vector<RunValue> fields;
  for (const compiler::Type field : type.tuple()->fields) fields.push_back(assembled(field, next));
  return RunValue::tuple(std::move(fields));
}

// NAME=FILE.npz of a tuple is each of its tensors, which are in the file by their paths, as results are.
std::vector<std::string> with_members(const std::vector<std::string>& arguments,
                                      const std::vector<runtime::InputSlot>& slots) {
  std::vector<std::string> expanded;
  for (const std::string& argument : arguments) {
    const size_t begin = argument.starts_with('%') ? 1 : 0, equals = argument.find('=');
    const size_t before = expanded.size();
    if (equals != std::string::npos && argument.ends_with(".npz")) {
      const std::string prefix = argument.substr(begin, equals - begin) + ".";
      for (const runtime::InputSlot& slot : slots) {
        if (slot.name.starts_with(prefix))
          expanded.push_back(slot.name + argument.substr(equals) + ":" + slot.name.substr(prefix.size()));
      }
    }
    if (expanded.size() == before) expanded.push_back(argument);
  }
  return expanded;
}

// The values of these parameters.
Expected<std::vector<RunValue>> read_inputs(const Context& context, const Function& function,
                                            const std::vector<compiler::VarId>& params, const ModuleRun& run) {
  std::vector<runtime::InputSlot> slots;
  for (const compiler::VarId param : params) {
    const compiler::VarInfo& info = function.info(param);
    TENON_TRY(add_slots(context, info.type, std::string(context.name(info.name)), run.model.model, slots));
  }
  TENON_TRY_ASSIGN(
      tensors,
      runtime::read_inputs(slots, with_members(run.inputs, slots),
                           {.where = run.model.model,
                            .help = fmt::format("{} takes {}", "@" + run.model.entry, signature(context, function)),
                            .fault = Fault::kUsage}));
  std::vector<RunValue> inputs;
  auto next = tensors->begin();
  for (const compiler::VarId param : params) inputs.push_back(assembled(function.type(param), next));
  return inputs;
}

// A tensor, or a tuple's fields by their indices: 0, 1.0, 1.1.
Expected<runtime::NamedTensors> tensors_by_path(const Context& context, const RunValue& value) {
  runtime::NamedTensors tensors;
  std::string other;
  runtime::for_each_leaf(
      value, [&](const RunValue& part) { return view(context, part); },
      [&](const std::string& path, const RunValue& leaf) {
        if (leaf.tensor()) tensors.emplace(path.empty() ? "0" : path, leaf.tensor());
        else if (other.empty()) other = fmt::format("{} is {}", path, compiler::describe(context, leaf));
      });
  if (other.empty()) return tensors;
  return error(fmt::format("the result {}: files hold tensors and tuples of them", other), {},
               "--json prints it with all its parts");
}

// The module as it is in the file, for the interpreter.
Expected<LoadedModel> read(const ModelOptions& options) {
  TENON_TRY(open_libraries(options));
  TENON_TRY_ASSIGN(model,
                   compiler::read_model(options.model, {}, {.strict_shapes = options.strict_shapes}, options.entry));
  TENON_TRY(compiler::check_entry(*model, options.model));
  TENON_TRY_ASSIGN(module, compiler::differentiate(*model->context, std::move(model->module)));
  model->module = std::move(*module);
  return LoadedModel{std::move(*model), {}};
}

// A module that is ready to run: a session of the executable, or the interpreter.
class Program {
 public:
  static Expected<std::unique_ptr<Program>> make(LoadedModel& loaded, const ModuleRun& run,
                                                 runtime::SessionOptions options) {
    auto program = std::unique_ptr<Program>(new Program(loaded.model));
    if (run.interpret) return program;
    ModelOptions how = run.model;
    if (!run.instances.empty() && run.batch > 1) how.batch = run.shared;
    TENON_TRY_ASSIGN(devices, runtime::open_devices(run.devices));
    program->devices_ = std::move(*devices);
    const auto infos = runtime::infos(runtime::accelerators(program->devices_));
    auto compiled = compile(loaded, how, accelerators_of(infos));
    if (!compiled) {
      if (compiled.error().fault != Fault::kInput || run.limits.any() || !run.devices.empty())
        return std::unexpected(compiled.error());
      print_stderr("note: the module does not compile and runs in the interpreter: {}\n", compiled.error().what);
      return program;
    }
    program->executable_ = std::move(compiled->executable);
    options.accelerators = runtime::used_accelerators(*program->executable_, program->devices_);
    options.profile = !options.accelerators.empty();  // whose cycles are printed
    TENON_TRY_ASSIGN(session, runtime::Session::create(*program->executable_, std::move(options)));
    program->session_ = std::move(*session);
    return program;
  }

  // What the accelerators have computed.
  void print_cycles() const {
    for (const auto& device : devices_) {
      const spec::Config& config = device->info().config;
      const auto found = work_.find(spec::hash(config));
      const Work work = found == work_.end() ? Work{} : found->second;
      print_stderr("{}: {} launches, {} cycles\n", config.name, work.launches, work.cycles);
    }
  }

  // The result of each instance, or its error.
  std::vector<Expected<RunValue>> run(std::span<const std::vector<RunValue>> instances) {
    std::vector<Expected<RunValue>> results;
    if (!session_) {
      for (const std::vector<RunValue>& inputs : instances)
        results.push_back(compiler::interpret(*model_.context, model_.module, model_.entry, inputs));
      return results;
    }
    std::vector<std::vector<runtime::Value>> values;  // of the instances whose results have no error yet
    for (const std::vector<RunValue>& inputs : instances) {
      auto converted = session_values(inputs);
      results.emplace_back(converted ? Expected<RunValue>() : std::unexpected(std::move(converted.error())));
      if (converted) values.push_back(std::move(*converted));
    }
    auto result = results.begin();
    std::vector<Expected<std::vector<runtime::Value>>> all = session_->run_many(values);
    add_work();
    for (auto& made : all) {
      while (!*result) ++result;
      *result++ = made ? result_of(*made) : std::unexpected(std::move(made.error()));
    }
    return results;
  }

 private:
  struct Work {
    uint64_t launches = 0, cycles = 0;
  };

  explicit Program(compiler::Model& model) : model_(model) {}

  // The records of one batch are gone before the next one: a file may have any number of instances.
  void add_work() {
    for (const runtime::LaunchRecord& launch : session_->profile().launches) {
      Work& work = work_[spec::hash(executable_->programs[launch.program].config)];
      ++work.launches;
      work.cycles += launch.counters.cycles;
    }
    session_->clear_profile();
  }

  Expected<std::vector<runtime::Value>> session_values(const std::vector<RunValue>& inputs) const {
    std::vector<runtime::Value> values;
    for (const RunValue& input : inputs) {
      TENON_TRY_ASSIGN(value, compiler::to_session(*model_.context, model_.module, *executable_, input));
      values.push_back(std::move(*value));
    }
    return values;
  }
  // The results of a function whose result is a tuple are its fields.
  Expected<RunValue> result_of(const std::vector<runtime::Value>& made) const {
    std::vector<RunValue> fields;
    for (const runtime::Value& value : made)
      fields.push_back(compiler::from_session(*model_.context, *executable_, value));
    return model_.main().result.tuple() ? RunValue::tuple(std::move(fields)) : std::move(fields.at(0));
  }

  compiler::Model& model_;
  runtime::Devices devices_;
  std::optional<runtime::Executable> executable_;  // none: the interpreter
  std::optional<runtime::Session> session_;
  std::map<uint64_t, Work> work_;  // by the hash of an accelerator's configuration
};

// The results of the instances in a file, in its order.
class InstancesRun {
 public:
  InstancesRun(LoadedModel& loaded, const ModuleRun& run)
      : run_(run), model_(loaded.model), context_(*loaded.model.context), reader_(context_, loaded.model.module) {}

  Status run(Program& program) {
    TENON_TRY(share());
    TENON_TRY_ASSIGN(file, InstanceFile::open(context_, run_.instances, own_));
    for (bool more = true; more;) {
      std::vector<Instance> batch;
      std::vector<std::vector<RunValue>> inputs;  // of the instances without mistakes
      while (batch.size() < run_.batch) {
        auto instance = file->next(context_, reader_);
        if (!instance) break;
        if (instance->inputs) inputs.push_back(arguments(*instance->inputs));
        batch.push_back(std::move(*instance));
      }
      more = batch.size() == run_.batch;
      auto results = program.run(inputs);
      size_t next = 0;
      for (Instance& instance : batch) {
        Expected<RunValue> result =
            instance.inputs ? std::move(results[next++]) : std::unexpected(std::move(instance.inputs.error()));
        if (!result && instance.inputs) {
          std::string& where = result.error().where;
          where = fmt::format("{}: instance {}{}{}", instance.where, done_, where.empty() ? "" : ": ", where);
        }
        TENON_TRY(finish(result));
        ++done_;
      }
    }
    if (!run_.output.empty()) TENON_TRY(runtime::write_results(run_.output, tensors_));
    if (failed_ == 0) return {};
    return error(fmt::format("{} of {} instances failed", failed_, done_), run_.instances,
                 "the others have their results; the errors are above");
  }

 private:
  // Which parameters all instances share, and the values of these.
  Status share() {
    const Function& main = model_.main();
    std::vector<compiler::VarId> shared;
    std::vector<std::string_view> unknown(run_.shared.begin(), run_.shared.end());
    for (const compiler::VarId param : main.params) {
      const std::string name(context_.name(main.info(param).name));
      if (std::erase(unknown, name) + std::erase(unknown, "%" + name) > 0) shared.push_back(param);
      else own_.push_back({name, main.type(param)});
      is_shared_.push_back(!shared.empty() && shared.back() == param);
    }
    if (!unknown.empty()) {
      return error(fmt::format("no input is named '{}'", unknown[0]), run_.model.model,
                   fmt::format("@{} takes {}", run_.model.entry, signature(context_, main)), Fault::kUsage);
    }
    if (shared.empty() && !run_.inputs.empty()) {
      return error("--input with --instances is for inputs that all instances share", run_.model.model,
                   "name the input with --shared NAME", Fault::kUsage);
    }
    if (shared.empty()) return {};
    TENON_TRY_ASSIGN(values, read_inputs(context_, main, shared, run_));
    shared_ = std::move(*values);
    return {};
  }

  std::vector<RunValue> arguments(const std::vector<RunValue>& own) const {
    std::vector<RunValue> values;
    size_t next_own = 0, next_shared = 0;
    for (const bool shared : is_shared_) values.push_back(shared ? shared_[next_shared++] : own[next_own++]);
    return values;
  }

  // Prints the result, or the error and a line instead of the result.
  Status finish(const Expected<RunValue>& result) {
    const auto view_of = [&](const RunValue& part) { return view(context_, part); };
    if (!result) {
      ++failed_;
      print_stderr("{}\n", result.error().str());
      if (run_.json) {
        Json out;
        out.begin_object().key("error").begin_object().field("instance", done_).field("what", result.error().what);
        out.field("where", result.error().where).field("help", result.error().help);
        print_stdout("{}", out.end().end().str(true));
      } else if (run_.output.empty()) {
        print_stdout("// instance {} failed\n", done_);
      }
      return {};
    }
    if (!run_.output.empty()) {
      TENON_TRY_ASSIGN(tensors, tensors_by_path(context_, *result));
      for (auto& [path, tensor] : *tensors) tensors_.emplace(fmt::format("{}_{}", path, done_), std::move(tensor));
    }
    if (run_.json) {
      Json out;
      runtime::write_json(out, *result, view_of);
      print_stdout("{}", out.str(true));
    } else if (run_.output.empty()) {
      print_stdout("{}\n", runtime::value_text(*result, view_of, runtime::kWhole));
    }
    return {};
  }

  const ModuleRun& run_;
  const compiler::Model& model_;
  Context& context_;
  compiler::RunValueReader reader_;
  std::vector<InstanceInput> own_;
  std::vector<bool> is_shared_;  // of each parameter
  std::vector<RunValue> shared_;
  runtime::NamedTensors tensors_;  // of all results, for --output
  size_t done_ = 0, failed_ = 0;
};

}  // namespace

bool is_module(const std::string& path) { return path.ends_with(".tn") || path.ends_with(".tnb"); }

Status run_module(const ModuleRun& run) {
  std::vector<std::string> files{run.model.model, run.expect};
  files.push_back(run.instances);
  files.insert(files.end(), run.inputs.begin(), run.inputs.end());
  TENON_TRY(runtime::check_output(run.output, "--output", files));
  if (run.instances.empty() && !run.shared.empty()) {
    return error("--shared is for the instances of --instances", run.model.model, "give a file with --instances",
                 Fault::kUsage);
  }
  if (!run.instances.empty() && !run.expect.empty()) {
    return error("--expect is for one run", run.model.model, "compare the lines that --instances prints",
                 Fault::kUsage);
  }
  if (!run.instances.empty() && !run.output.empty() && !run.output.ends_with(".npz")) {
    return error("--output of instances ends in .npz", run.output, "its members are 0_0, 0_1, ...", Fault::kUsage);
  }
  if (run.interpret && run.limits.any()) {
    return error("--max-memory, --max-steps, --max-stack, --max-seconds and --budget are limits of compiled code", {},
                 "leave --interpret out", Fault::kUsage);
  }
  if (run.interpret && !run.devices.empty()) {
    return error("--device is for compiled code", {}, "leave --interpret out", Fault::kUsage);
  }
  runtime::SessionOptions session;
  session.threads = run.threads;
  TENON_TRY(run.limits.apply(session));
  TENON_TRY_ASSIGN(loaded, run.interpret ? read(run.model) : load(run.model));
  Context& context = *loaded->model.context;
  const Function& main = loaded->model.main();
  if (!run.instances.empty()) {
    TENON_TRY_ASSIGN(program, Program::make(*loaded, run, std::move(session)));
    const Status done = InstancesRun(*loaded, run).run(**program);
    (*program)->print_cycles();
    return done;
  }
  TENON_TRY_ASSIGN(inputs, read_inputs(context, main, main.params, run));
  auto program = Program::make(*loaded, run, std::move(session));
  auto result = program ? std::move((*program)->run({&*inputs, 1})[0]) : std::unexpected(std::move(program.error()));
  if (!result && result.error().where.empty()) result.error().where = run.model.model;
  TENON_TRY(result);
  (*program)->print_cycles();
  if (!run.output.empty() || !run.expect.empty()) {
    TENON_TRY_ASSIGN(tensors, tensors_by_path(context, *result));
    if (!run.output.empty()) TENON_TRY(runtime::write_results(run.output, *tensors));
    if (!run.expect.empty()) {
      TENON_TRY(runtime::compare_results(*tensors, run.expect, run.tolerance));
      if (!run.json) print_stdout("as expected: {} result{}\n", tensors->size(), tensors->size() == 1 ? "" : "s");
    }
  }
  if (run.json) {
    Json out;
    out.begin_object().key("result");
    runtime::write_json(out, *result, [&](const RunValue& part) { return view(context, part); });
    print_stdout("{}", out.end().str());
  } else if (run.output.empty() && run.expect.empty()) {
    print_stdout("{}\n", compiler::str(context, *result));
  }
  return {};
}

}  // namespace tenon::cli
