// tenon-run: runs an executable where there is no compiler, as on a board.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/accelerator.h"
#include "runtime/native/functions.h"
#include "runtime/profile/analysis.h"
#include "runtime/profile/report.h"
#include "runtime/vm/mismatch.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model, device, output, report, trace, verify, bundle;
  std::vector<std::string> inputs;
  double limit_seconds = 600;
  uint64_t runs = 1;
  bool json = false, info = false, no_native = false;
  unsigned threads = 0;
  std::string native_level;
  std::vector<std::string> libraries;
};

Expected<NamedTensors> read_inputs(const Executable& executable, const std::vector<std::string>& args) {
  NamedTensors inputs;
  auto add = [&](std::string name, Tensor tensor) -> Status {
    if (!inputs.emplace(name, std::move(tensor)).second) return error(fmt::format("input '{}' was given twice", name));
    return {};
  };
  for (const std::string& arg : args) {
    auto equals = arg.find('=');
    std::filesystem::path path = equals == std::string::npos ? arg : arg.substr(equals + 1);
    if (path.extension() == ".npz") {
      TENON_TRY_ASSIGN(all, load_npz(path));
      for (auto& [name, tensor] : *all) {
        TENON_TRY(add(name, std::move(tensor)));
      }
      continue;
    }
    if (equals == std::string::npos && executable.main().params.size() != 1) {
      return error(fmt::format("'{}' names no input, and the model has {}", arg, executable.main().params.size()), {},
                   "write --input NAME=FILE.npy", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(tensor, load_npy(path));
    auto name = equals == std::string::npos ? executable.main().params[0].name : arg.substr(0, equals);
    TENON_TRY(add(name, std::move(*tensor)));
  }
  return inputs;
}

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
    Json info = {{"name", executable.name},
                 {"inputs", ports(main.params)},
                 {"outputs", ports(main.results)},
                 {"programs", programs},
                 {"natives", natives}};
    for (const auto& [key, value] : executable.facts) info["facts"][key] = value;
    fmt::print("{}\n", info.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}\n", executable.name);
  for (const auto& [key, value] : executable.facts) fmt::print("  {}: {}\n", key, value);
  for (const Port& port : main.params) fmt::print("  input   {}\n", to_string(port));
  for (const Port& port : main.results) fmt::print("  output  {}\n", to_string(port));
  for (const AcceleratorProgram& p : executable.programs) {
    fmt::print("  program {}: configuration {} ({:016x}), {} layers, {} slots, {} bytes of constants\n", p.name,
               p.config.name, spec::hash(p.config), p.layers.size(), p.instructions.size(), p.constants.size());
  }
  for (const NativeCode& n : executable.natives) {
    fmt::print("  native  {}: {} kernels, levels {}, {} bytes\n", n.triple, n.kernels.size(), fmt::join(n.levels, ", "),
               n.object.size());
  }
}

std::string command_of(const Options& options, const std::string& device) {
  std::string text = fmt::format("tenon-run {} --device {}", options.model, device);
  if (!options.verify.empty()) text += " --verify " + options.verify;
  for (const std::string& input : options.inputs) text += " --input " + input;
  return text;
}

std::vector<Tensor> ordered(const Executable& executable, const NamedTensors& inputs) {
  std::vector<Tensor> list;
  for (const Port& port : executable.main().params) {
    if (const auto it = inputs.find(port.name); it != inputs.end()) list.push_back(it->second);
  }
  return list;
}

std::unexpected<Diagnostic> with(Diagnostic reported, const std::string& kept) {
  if (!kept.empty()) reported.help += (reported.help.empty() ? "" : "\n  ") + kept;
  return std::unexpected(std::move(reported));
}

// Runs the model; what a device reports of a launch is kept as a bundle. `session` is left where the runs end well.
Expected<NamedTensors> run_on(const Executable& executable, const SessionOptions& session_options,
                              const NamedTensors& inputs, const Options& options, uint64_t runs,
                              std::optional<Session>& session) {
  TENON_TRY_ASSIGN(created, Session::create(executable, session_options));
  session.emplace(std::move(*created));
  Expected<NamedTensors> outputs;
  for (uint64_t i = 0; i < runs; ++i) {
    outputs = session->run(inputs);
    if (outputs) continue;
    session.reset();
    if (!session_options.accelerator) return forward_error(outputs);  // the CPU's: there is no launch to keep
    const MismatchNote note{command_of(options, session_options.accelerator->info().uri), outputs.error().what,
                            options.bundle};
    return with(std::move(outputs.error()),
                keep_failure(executable, session_options, ordered(executable, inputs), note));
  }
  return outputs;
}

Status run(const Options& options) {
  TENON_TRY_ASSIGN(executable, load(options.model));
  if (options.info) {
    print_info(*executable, options.json);
    return {};
  }
  std::unique_ptr<driver::Accelerator> accelerator, second;
  std::string uri = options.device;
  if (uri.empty() && !executable->programs.empty()) uri = "behavioral:" + executable->programs[0].config.name;
  if (!uri.empty()) {
    TENON_TRY_ASSIGN(opened, driver::open(uri));
    accelerator = std::move(*opened);
  }
  if (!options.verify.empty()) {
    TENON_TRY_ASSIGN(opened, driver::open(options.verify));
    second = std::move(*opened);
  }
  TENON_TRY_ASSIGN(inputs, read_inputs(*executable, options.inputs));

  for (const std::string& file : options.libraries) {
    TENON_TRY(open_functions(file));
  }
  SessionOptions session_options;
  session_options.accelerator = accelerator.get();
  session_options.timeline = !options.report.empty() || !options.trace.empty();
  session_options.native = !options.no_native;
  session_options.threads = options.threads;
  session_options.native_level = options.native_level;
  session_options.launch_limit = std::chrono::nanoseconds(static_cast<int64_t>(options.limit_seconds * 1e9));
  std::optional<Session> session;
  NamedTensors outputs;
  if (auto ran = run_on(*executable, session_options, *inputs, options, options.runs, session); !ran) {
    return forward_error(ran);
  } else {
    outputs = std::move(*ran);
  }
  if (second) {
    SessionOptions other = session_options;
    other.accelerator = second.get();
    other.timeline = false;
    std::optional<Session> there;
    TENON_TRY_ASSIGN(expected, run_on(*executable, other, *inputs, options, 1, there));
    for (const auto& [name, tensor] : *expected) {
      if (outputs.at(name) == tensor) continue;
      Diagnostic differs{fmt::format("output '{}' differs between {} and {}", name, uri, options.verify),
                         executable->name, "one of the two devices is wrong", Fault::kInternal};
      // The device's memory is for the runs that find the launch.
      there.reset();
      session.reset();
      const MismatchNote note{command_of(options, uri), differs.what, options.bundle};
      return with(std::move(differs), keep_difference(*executable, session_options, *second, *accelerator,
                                                      ordered(*executable, *inputs), note));
    }
  }

  if (!options.output.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(options.output, failed);
    if (failed) return error(fmt::format("cannot make the directory: {}", failed.message()), options.output);
    const std::vector<Port>& results = executable->main().results;
    const std::vector<std::string> names = file_names(results);
    for (size_t i = 0; i < results.size(); ++i) {
      const auto file = std::filesystem::path(options.output) / (names[i] + ".npy");
      TENON_TRY(save_npy(file, outputs.at(results[i].name)));
    }
  }
  ReportInput report{
      executable->name, {}, &*executable, &session->profile(), accelerator ? &accelerator->info() : nullptr};
  if (!options.report.empty()) {
    TENON_TRY(write_file(options.report, make_report(report)));
  }
  if (!options.trace.empty()) {
    TENON_TRY(write_file(options.trace, make_trace(report)));
  }

  Analysis figures = analyze(*executable, session->profile());
  if (options.json) {
    Json json = {{"runs", options.runs},
                 {"device", uri},
                 {"outputs", ports(executable->main().results)},
                 {"cycles", figures.cycles},
                 {"macs", figures.macs},
                 {"utilization", figures.utilization},
                 {"read_bytes", figures.read_bytes},
                 {"write_bytes", figures.write_bytes}};
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  for (const Port& port : executable->main().results) {
    fmt::print("{}{}\n", to_string(port), options.output.empty() ? "" : " -> " + options.output);
  }
  if (figures.launches > 0) {
    fmt::print("{}: {:.0f} cycles a run, {:.1f} % utilization, {:.0f} bytes read, {:.0f} written\n", uri,
               figures.cycles, 100 * figures.utilization, figures.read_bytes, figures.write_bytes);
  }
  return {};
}

int command(int argc, char** argv) {
  Options options;
  CLI::App app("Runs a compiled model (.tnx) on a device", "tenon-run");
  app.set_version_flag("--version", "tenon-run " TENON_VERSION);
  app.add_option("MODEL", options.model, "executable that tenon compile made")->required();
  app.add_option("--device", options.device, "URI of the accelerator; default: behavioral:CONFIG of the executable");
  app.add_option("--input", options.inputs, "NAME=FILE.npy for each input, or FILE.npz with all of them");
  app.add_option("--output", options.output, "directory for NAME.npy of each output");
  app.add_option("--report", options.report, "write a self-contained HTML report");
  app.add_option("--trace", options.trace, "write a trace for ui.perfetto.dev");
  app.add_option("--verify", options.verify, "URI of a second device, whose outputs must be the same");
  app.add_option("--bundle", options.bundle,
                 "directory for what repeats a launch that went wrong; default: mismatch-N here");
  app.add_option("--runs", options.runs, "run so often")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  app.add_option("--limit", options.limit_seconds, "seconds that one launch may take")->check(CLI::Range(0.0, 1e6));
  app.add_flag("--no-native", options.no_native, "refuse a model with native code, which runs with all your rights");
  app.add_option("--threads", options.threads, "threads of native kernels; default: the processors that are usable")
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--library", options.libraries,
                 "a shared object whose functions the model calls by name; again for more");
  app.add_option("--native-level", options.native_level, "of the processor, as x86-64-v3; default: the best there is");
  app.add_flag("--info", options.info, "print inputs, outputs and programs, and run nothing");
  app.add_flag("--json", options.json, "print figures as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // CLI11 prints help and version as "errors" of code 0; all others are wrong usage.
    return app.exit(e) == 0 ? 0 : static_cast<int>(Fault::kUsage);
  }
  auto status = run(options);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().str());
  return static_cast<int>(status.error().fault);
}

}  // namespace
}  // namespace tenon::runtime

int main(int argc, char** argv) {
  try {
    return tenon::runtime::command(argc, argv);
  } catch (const std::exception& e) {  // out of memory and what nobody thought of
    std::fprintf(stderr, "tenon-run: internal error: %s\n", e.what());
    return static_cast<int>(tenon::Fault::kInternal);
  }
}
