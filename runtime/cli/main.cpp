// tenon-run: runs an executable where there is no compiler, as on a board.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "driver/accelerator.h"
#include "runtime/library/library.h"
#include "runtime/native/functions.h"
#include "runtime/profile/analysis.h"
#include "runtime/run/inputs.h"
#include "runtime/run/limits.h"
#include "runtime/run/requests.h"
#include "runtime/run/results.h"
#include "runtime/run/runner.h"
#include "runtime/run/samples.h"
#include "support/command_line.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string model, output, report, trace, reproducer, requests;
  std::vector<std::string> inputs, devices, verify;
  double limit_seconds = 600;
  RunLimits limits;
  uint64_t runs = 1, max_batch = 64, max_wait_us = 0, max_queue = 1024;
  bool json = false, info = false, no_native = false;
  int64_t threads = 0;
  std::string native_level;
  std::vector<std::string> libraries, plugins;
};

Json ports(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& p : ports) list.push_back({{"name", p.name}, {"dtype", name(p.dtype)}, {"shape", p.shape}});
  return list;
}

void print_info(const Executable& executable, bool json) {
  const Function& main = executable.main();
  if (json) {
    Json programs = Json::array();
    for (const AcceleratorProgram& p : executable.programs) {
      programs.push_back({{"name", p.name},
                          {"config", p.config.name},
                          {"config_hash", fmt::format("{:016x}", spec::hash(p.config))},
                          {"layers", p.layers.size()},
                          {"slots", p.instructions.size()},
                          {"constant_bytes", p.constants.size()},
                          {"workspace_bytes", p.workspace_bytes}});
    }
    Json natives = Json::array();
    for (const NativeCode& n : executable.natives) {
      natives.push_back(
          {{"triple", n.triple}, {"levels", n.levels}, {"kernels", n.kernels.size()}, {"bytes", n.object.size()}});
    }
    Json compiled;
    if (executable.compiled)
      compiled = {{"triple", executable.compiled->triple}, {"bytes", executable.compiled->object.size()}};
    Json info = {{"name", executable.name}, {"inputs", ports(main.params)}, {"outputs", ports(main.results)},
                 {"programs", programs},    {"natives", natives},           {"compiled", compiled}};
    for (const auto& [key, value] : executable.facts) info["facts"][key] = value;
    print_stdout("{}\n", info.dump(2, ' ', true, Json::error_handler_t::replace));
    return;
  }
  print_stdout("{}\n", executable.name);
  for (const auto& [key, value] : executable.facts) print_stdout("  {}: {}\n", key, value);
  for (const Port& port : main.params) print_stdout("  input   {}\n", to_string(port));
  for (const Port& port : main.results) print_stdout("  output  {}\n", to_string(port));
  for (const AcceleratorProgram& p : executable.programs) {
    print_stdout("  program {}: configuration {} ({:016x}), {} layers, {} slots, {} bytes of constants\n", p.name,
                 p.config.name, spec::hash(p.config), p.layers.size(), p.instructions.size(), p.constants.size());
  }
  for (const NativeCode& n : executable.natives) {
    print_stdout("  native  {}: {} kernels, levels {}, {} bytes\n", n.triple, n.kernels.size(),
                 fmt::join(n.levels, ", "), n.object.size());
  }
  if (executable.compiled) {
    print_stdout("  native  {}: {} functions of the machine, compiled ahead of time, {} bytes\n",
                 executable.compiled->triple, executable.functions.size(), executable.compiled->object.size());
  }
}

std::string command_of(const Arguments& options, std::span<driver::Accelerator* const> devices) {
  std::string text = "tenon-run " + options.model;
  for (const driver::Accelerator* device : devices) text += " --device " + device->info().uri;
  for (const std::string& second : options.verify) text += " --verify " + second;
  for (const std::string& input : options.inputs) text += " --input " + input;
  return text;
}

// The comparison of --verify: the same inputs on other devices, whose results are the reference.
Status verify(const Executable& executable, SessionOptions session, const Arguments& options,
              std::span<driver::Accelerator* const> judges, const Sample& inputs, std::span<const Value> outputs,
              Runner& runner) {
  const std::vector<driver::Accelerator*> devices = session.accelerators;
  session.accelerators.assign(judges.begin(), judges.end());
  session.timeline = false;
  TENON_TRY_ASSIGN(second, Runner::create(executable, std::move(session), options.reproducer));
  TENON_TRY_ASSIGN(expected, second->run(inputs, [&] { return command_of(options, judges); }));
  const auto differing = first_difference(*expected, outputs);
  if (!differing) return {};
  Diagnostic differs{fmt::format("output '{}' differs between {} and {}", executable.main().results[*differing].name,
                                 uris(devices), uris(judges)),
                     executable.name, "one of the two devices is wrong", Fault::kInternal};
  return std::unexpected(
      Runner::keep_difference(std::move(differs), *second, runner, inputs, command_of(options, devices)));
}

Status print_figures(const Executable& executable, const Arguments& options, const ReportInput& report,
                     std::span<const Value> outputs) {
  const Analysis figures = analyze(executable, *report.profile);
  const auto uri = [&](const AcceleratorCost& cost) { return device_of(report, *cost.config)->uri; };
  const std::vector<Port>& results = executable.main().results;
  if (options.json) {
    std::vector<std::string> devices;
    Json accelerators = Json::array();
    for (const driver::Info* device : report.devices) devices.push_back(device->uri);
    for (const AcceleratorCost& cost : figures.accelerators) {
      accelerators.push_back({{"device", uri(cost)},
                              {"config", cost.config->name},
                              {"cycles", cost.cycles},
                              {"macs", cost.macs},
                              {"utilization", cost.utilization},
                              {"read_bytes", cost.read_bytes},
                              {"write_bytes", cost.write_bytes}});
    }
    Json json = {{"runs", options.runs},
                 {"device", fmt::format("{}", fmt::join(devices, ", "))},
                 {"outputs", ports(results)},
                 {"cycles", figures.cycles},
                 {"macs", figures.macs},
                 {"utilization", figures.utilization},
                 {"read_bytes", figures.read_bytes},
                 {"write_bytes", figures.write_bytes},
                 {"accelerators", std::move(accelerators)}};
    print_stdout("{}\n", json.dump(2, ' ', true, Json::error_handler_t::replace));
    return {};
  }
  for (size_t i = 0; i < results.size(); ++i) {
    print_stdout("{}{}\n", to_string(results[i]),
                 !options.output.empty()  ? " -> " + options.output
                 : results[i].is_tensor() ? std::string()
                                          : " = " + text_of(executable, outputs[i]));
  }
  for (const AcceleratorCost& cost : figures.accelerators) {
    if (cost.launches == 0) continue;
    print_stdout("{}: {:.0f} cycles a run, {:.1f} % utilization, {:.0f} bytes read, {:.0f} written\n", uri(cost),
                 cost.cycles, 100 * cost.utilization, cost.read_bytes, cost.write_bytes);
  }
  return {};
}

Status write_outputs(const Executable& executable, const std::string& output, std::span<const Value> outputs) {
  if (output.ends_with(".npz")) {
    TENON_TRY_ASSIGN(tensors, tensors_by_name(executable, outputs));
    return save_npz(output, *tensors);
  }
  TENON_TRY(create_directory(output));
  return write_results(output, executable, outputs);
}

Status serve(const Executable& executable, SessionOptions session, const Arguments& options) {
  if (!options.inputs.empty() || !options.output.empty() || !options.report.empty() || !options.trace.empty() ||
      !options.verify.empty() || !options.reproducer.empty() || options.json || options.runs != 1) {
    return error(
        "--input, --output, --report, --trace, --verify, --reproducer, --json and --runs are not supported with "
        "--requests",
        "tenon-run", "a request has its inputs in its line, and so has its answer", Fault::kUsage);
  }
  session.profile = false;
  session.max_batch = options.max_batch;
  session.max_wait = std::chrono::microseconds(options.max_wait_us);
  session.max_queue = options.max_queue;
  TENON_TRY_ASSIGN(created, Session::create(executable, std::move(session)));
  return serve_requests(executable, *created, options.requests, options.max_queue);
}

Status run(const Arguments& options) {
  TENON_TRY_ASSIGN(executable, load(options.model));
  if (options.info) {
    print_info(*executable, options.json);
    return {};
  }
  TENON_TRY_ASSIGN(devices, open_devices(options.devices.empty() ? default_devices(*executable) : options.devices));
  TENON_TRY_ASSIGN(judges, open_devices(options.verify));
  for (const std::string& file : options.libraries) {
    TENON_TRY(open_functions(file));
  }
  for (const std::string& file : options.plugins) TENON_TRY(use_library(file));
  SessionOptions session;
  session.accelerators = accelerators(*devices);
  session.timeline = !options.report.empty() || !options.trace.empty();
  session.native = !options.no_native;
  session.threads = static_cast<unsigned>(options.threads);
  session.native_level = options.native_level;
  session.launch_limit = std::chrono::nanoseconds(static_cast<int64_t>(options.limit_seconds * 1e9));
  TENON_TRY(options.limits.apply(session));
  if (!options.requests.empty()) return serve(*executable, std::move(session), options);
  TENON_TRY(check_output(options.output, "--output", options.inputs));
  TENON_TRY_ASSIGN(runner, Runner::create(*executable, session, options.reproducer));
  TENON_TRY_ASSIGN(inputs, read_inputs(input_slots(executable->main().params), options.inputs,
                                       {.where = executable->name, .help = {}, .fault = Fault::kInput}));
  std::vector<Value> outputs;
  for (uint64_t i = 0; i < options.runs; ++i) {
    TENON_TRY_ASSIGN(results, runner->run(*inputs, [&] { return command_of(options, session.accelerators); }));
    outputs = std::move(*results);
  }
  if (!judges->empty())
    TENON_TRY(verify(*executable, session, options, accelerators(*judges), *inputs, outputs, *runner));
  if (!options.output.empty()) TENON_TRY(write_outputs(*executable, options.output, outputs));
  const ReportInput report{executable->name, {}, &*executable, &runner->profile(), infos(session.accelerators)};
  TENON_TRY(write_profile(report, options.report, options.trace));
  return print_figures(*executable, options, report, outputs);
}

Status command(std::vector<std::string> words) {
  Arguments arguments;
  tenon::Options options("tenon-run", "Runs a compiled model (.tnx) on a device");
  options.version("tenon-run " TENON_VERSION);
  options.argument(arguments.model, "MODEL", "executable (.tnx), as tenon compile writes it");
  options.repeated(arguments.devices, "--device", "URI",
                   "URI of the accelerator; may be repeated, one for each configuration that the executable has "
                   "programs for; default: behavioral:CONFIG for each");
  options.option(arguments.inputs, "--input", "[NAME=]FILE",
                 "NAME=FILE.npy or FILE.npz:MEMBER for each input, in order without NAME; or FILE.npz with members of "
                 "their names");
  options.option(arguments.output, "--output", "PATH",
                 "FILE.npz: all outputs by name; or a directory for NAME.npy of each, or NAME.json of one that is no "
                 "tensor");
  options.option(arguments.report, "--report", "FILE.html", "write a self-contained HTML report");
  options.option(arguments.trace, "--trace", "FILE.json", "write a trace for ui.perfetto.dev");
  options.repeated(arguments.verify, "--verify", "URI",
                   "URI of a second device, whose outputs must be equal; may be repeated as --device");
  options.option(
      arguments.reproducer, "--reproducer", "DIR",
      "directory for the reproducer that repeats a failed launch; default: mismatch-N in the working directory");
  options.option(arguments.runs, "--runs", "N", "number of runs", {1, uint64_t{1} << 32});
  options.option(
      arguments.requests, "--requests", "FILE",
      "answer requests, lines of JSON as {\"id\": 1, \"inputs\": {\"x\": [1, 2]}}, by lines on standard output "
      "in the order in which they end; -: standard input");
  options.option(arguments.max_batch, "--max-batch", "N", "--requests: so many run together", {1, uint64_t{1} << 20});
  options.option(arguments.max_wait_us, "--max-wait-us", "US",
                 "--requests: longest wait of the first request for others, where none runs", {0, uint64_t{1} << 40});
  options.option(arguments.max_queue, "--max-queue", "N", "--requests: read at most so many before their answers",
                 {1, uint64_t{1} << 32});
  options.option(arguments.limit_seconds, "--limit", "SECONDS", "longest wait for one launch", kLaunchSecondsBounds);
  arguments.limits.declare(options);
  options.flag(arguments.no_native, "--no-native",
               "refuse a model with native code, which runs with all rights of the user");
  options.option(arguments.threads, "--threads", "N", "threads of native kernels; 0: all usable processors",
                 kThreadBounds);
  options.option(arguments.libraries, "--library", "FILE",
                 "shared object whose functions the model calls by name; may be repeated");
  options.option(arguments.plugins, "--plugin", "FILE",
                 "shared object with the kernels of a plugin that the model was compiled with; may be repeated");
  options.option(arguments.native_level, "--native-level", "LEVEL",
                 "instruction set level of native kernels, as x86-64-v3; default: the best that the processor has");
  options.flag(arguments.info, "--info", "print inputs, outputs and programs, and run nothing");
  options.flag(arguments.json, "--json", "print figures as JSON");
  TENON_TRY_ASSIGN(parsed, options.parse(std::move(words)));
  return *parsed ? run(arguments) : Status{};
}

}  // namespace
}  // namespace tenon::runtime

int main(int argc, char** argv) {
  try {
    return tenon::exit_code_of(tenon::runtime::command({argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return tenon::exit_code_of(tenon::error("there is not enough memory", "tenon-run",
                                            "free some, or raise the limit of the process (ulimit -v)",
                                            tenon::Fault::kInternal));
  } catch (const std::exception& fault) {  // expected failures are Diagnostics
    return tenon::exit_code_of(tenon::error(fault.what(), "tenon-run",
                                            "this is Tenon's fault or the machine's; please report it",
                                            tenon::Fault::kInternal));
  }
}
