// tenon schedule: how the kernel of an operator comes to be: its loops as the operator's lowering gives them, the steps
// of its schedule, and the loops that they result in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "compiler/cli/model_options.h"
#include "compiler/ir/operator.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/lower/native.h"
#include "runtime/native/native.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct ScheduleCommand {
  using Binding = compiler::Binding;
  using Context = compiler::Context;
  using Function = compiler::Function;
  using Machine = compiler::Machine;
  using Module = compiler::Module;

  ModelOptions model;
  std::string op, level, steps;

  Status run() {
    if (level.empty() && !runtime::host_levels().empty()) level = runtime::host_levels().front();
    const Machine* machine = compiler::find_machine(level);
    if (!machine) return error(fmt::format("there is no level '{}'", level), {}, known_levels(), Fault::kUsage);
    std::string text;
    if (!steps.empty()) {
      TENON_TRY_ASSIGN(read, read_file(steps));
      text.assign(reinterpret_cast<const char*>(read->data()), read->size());
    }
    TENON_TRY_ASSIGN(loaded, load(model));
    ModelOptions reference = model;
    reference.kernels = "reference";  // groups are the same; nothing is compiled
    TENON_TRY_ASSIGN(compiled, cli::compile(*loaded, reference, nullptr));
    Context& context = *loaded->model.context;
    const Function& main = *compiled->kernels.function(loaded->model.entry);
    std::vector<std::string> names;
    size_t found = 0;
    for (const Binding& binding : main.body.bindings) {
      const auto group = group_of(context, compiled->kernels, main, binding);
      if (!group) continue;
      const std::vector<std::string> inside = names_in(context, *group, main, binding);
      names.insert(names.end(), inside.begin(), inside.end());
      if (std::ranges::find(inside, op) == inside.end()) continue;
      if (found++ > 0) fmt::print("\n");
      TENON_TRY(print(context, compiled->kernels, *group, *machine, text));
    }
    if (found > 0) return {};
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return error(fmt::format("no kernel of the CPU computes '{}'", op), model.model,
                 fmt::format("operators and values with kernels: {}", fmt::join(names, ", ")), Fault::kUsage);
  }

 private:
  static std::string known_levels() {
    std::vector<std::string_view> names;
    for (const std::string_view architecture : compiler::kCpuArchitectures)
      for (const Machine& machine : compiler::machines_of(architecture)) names.push_back(machine.name);
    return fmt::format("the levels are {}", fmt::join(names, ", "));
  }

  static std::optional<Function> group_of(Context& context, const Module& kernels, const Function& main,
                                          const Binding& binding) {
    if (std::holds_alternative<compiler::Apply>(binding.value))
      return compiler::single_operator(context, main, binding).function;
    const auto* call = std::get_if<compiler::Call>(&binding.value);
    const auto* symbol = call ? std::get_if<compiler::Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? kernels.function(*symbol) : nullptr;
    return callee && callee->composite == "fused" ? std::optional(*callee) : std::nullopt;
  }

  // The operators of a group, and the value that it computes.
  static std::vector<std::string> names_in(Context& context, const Function& group, const Function& main,
                                           const Binding& binding) {
    std::vector<std::string> names{std::string(context.name(main.info(binding.var).name))};
    for (const Binding& inner : group.body.bindings) {
      if (const auto* apply = std::get_if<compiler::Apply>(&inner.value)) names.emplace_back(apply->op->name);
    }
    return names;
  }

  // `text`: the steps of the user, one in a line, instead of the schedule.
  static Status print(Context& context, const Module& kernels, const Function& group, const Machine& machine,
                      const std::string& text) {
    auto kernel = compiler::kernels::make_kernel(context, kernels, "kernel", group, machine);
    if (!kernel) {
      fmt::print("// no native kernel: {}\n", kernel.error().what);
      return {};
    }
    for (const compiler::kernels::OperatorKnobs& knobs : kernel->knobs)
      fmt::print("// {}: {}\n", knobs.key, compiler::kernels::str(knobs.settings()));
    if (!kernel->refused.empty()) fmt::print("// a step was refused: {}\n", kernel->refused);
    fmt::print("// for {}\n{}\n", machine.name, compiler::loop::print(context, kernel->algorithm));
    compiler::kernels::Scheduled scheduled;
    if (text.empty()) {
      scheduled = compiler::kernels::schedule(context, std::move(kernel->function));
      scheduled.steps.insert(scheduled.steps.begin(), kernel->steps.begin(), kernel->steps.end());
    } else {
      compiler::loop::Schedule own(context, std::move(kernel->algorithm), std::move(kernel->constants));
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(" \t\r") != std::string::npos && !line.starts_with("//")) TENON_TRY(own.apply(line));
      }
      scheduled = {own.function(), own.steps()};
    }
    for (const std::string& step : scheduled.steps) fmt::print("{}\n", step);
    fmt::print("\n{}", compiler::loop::print(context, scheduled.function));
    return {};
  }
};

}  // namespace

Action print_schedule(Options& options) {
  auto command = std::make_shared<ScheduleCommand>();
  command->model.declare(options);
  options.required(command->op, "--op", "NAME", "the operator, as conv2d, or the value that the kernel computes");
  options.option(command->level, "--level", "NAME",
                 "instruction set level, as x86-64-v3, which need not be this machine's; default: its best");
  options.option(command->steps, "--steps", "FILE", "a schedule of your own: steps, one in a line");
  options.footer("tenon schedule model.onnx --shapes N=1 --op conv2d --level x86-64-v3");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
