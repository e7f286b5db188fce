// tenon debug: steps through an accelerator program on a simulator, and looks at scratchpads, queues and tokens.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>

#include "compiler/cli/command.h"
#include "driver/bringup/debugger.h"
#include "driver/bringup/recorder.h"
#include "driver/bringup/replay.h"
#include "runtime/executable/executable.h"
#include "runtime/run/samples.h"
#include "runtime/temporary.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using driver::Reproducer;

// Memory of an assembled program: base register i is at (i + 1) times this.
constexpr uint64_t kBaseStep = 1 << 20;
constexpr uint64_t kStream = 0x1000;

struct Debug {
  std::string program, device;
  std::vector<std::string> commands, loads, data;
  int64_t launch = 0;
  double divide = 1;

  std::unique_ptr<driver::Accelerator> accelerator;
  driver::Debugger::Notes notes;

  Status run() {
    std::error_code ignored;
    TENON_TRY_ASSIGN(reproducer, std::filesystem::is_directory(program, ignored) ? driver::load_reproducer(program)
                                 : program.ends_with(".tnx")                     ? of_executable()
                                                                                 : of_assembly());
    for (const std::string& load : loads) {
      TENON_TRY(add(*reproducer, load));
    }
    const runtime::TemporaryDirectory scratch;
    if (!accelerator) {
      TENON_TRY_ASSIGN(opened,
                       driver::open_for(*reproducer, device.empty() ? reproducer->device : device, scratch.path()));
      accelerator = std::move(*opened);
    }
    TENON_TRY_ASSIGN(machine, driver::Machine::create(*accelerator, std::move(*reproducer)));
    driver::Debugger debugger(**machine, std::move(notes));
    return talk(debugger);
  }

  // Commands of --command, or lines of standard input. A script ends at its first error; a terminal session goes on.
  Status talk(driver::Debugger& debugger) const {
    const bool interactive = commands.empty() && isatty(STDIN_FILENO) != 0;
    if (interactive) print_stdout("help lists the commands\n");
    size_t next = 0;
    std::string line;
    while (!debugger.over()) {
      if (interactive) print_stdout("(tenon) ");
      std::fflush(stdout);
      if (!commands.empty()) {
        if (next == commands.size()) return {};
        line = commands[next++];
      } else if (!std::getline(std::cin, line)) {
        return {};
      }
      if (!interactive && line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (!interactive) print_stdout("(tenon) {}\n", line);
      auto answer = debugger.run(line);
      if (!answer && interactive) {
        print_stdout("{}\n", answer.error().str());
        continue;
      }
      TENON_TRY(answer);
      print_stdout("{}", *answer);
    }
    return {};
  }

  // "ADDRESS=FILE": the file's bytes at this address.
  static Status add(Reproducer& reproducer, const std::string& load) {
    const size_t equals = load.find('=');
    if (equals == std::string::npos)
      return error(fmt::format("--load is '{}', must be ADDRESS=FILE", load), {}, {}, Fault::kUsage);
    TENON_TRY_ASSIGN(read, read_number<uint64_t>("the address of --load", load.substr(0, equals), {}));
    const uint64_t address = *read;
    TENON_TRY_ASSIGN(bytes, read_file(load.substr(equals + 1)));
    if (address > reproducer.memory_bytes || bytes->size() > reproducer.memory_bytes - address) {
      return error(fmt::format("{} bytes at {:#x} are beyond the program's memory of {} bytes", bytes->size(), address,
                               reproducer.memory_bytes),
                   load);
    }
    reproducer.memory.push_back({"", address, {bytes->begin(), bytes->end()}});
    return {};
  }

  Expected<Reproducer> of_assembly() {
    if (!data.empty() || launch != 0) {
      return error("--data and --launch are for an executable (.tnx)", program, "--load puts bytes into memory",
                   Fault::kUsage);
    }
    TENON_TRY_ASSIGN(bytes, read_file(program));
    if (device.empty()) device = "behavioral:default";
    TENON_TRY_ASSIGN(opened, driver::open(device));  // its configuration is the program's
    accelerator = std::move(*opened);
    Reproducer reproducer;
    reproducer.config = accelerator->info().config;
    reproducer.device = device;
    const spec::Isa isa(reproducer.config);
    TENON_TRY_ASSIGN(instructions,
                     isa.assemble_all({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, program));
    if (instructions->empty()) return error("there is no instruction", program);
    std::vector<spec::Slot> slots;
    for (const auto& instruction : *instructions) {
      if (spec::profile_of(instruction) != spec::profile_of(instructions->front())) {
        return error("the program mixes instructions of both profiles", program);
      }
      TENON_TRY(isa.encode(instruction, slots));
    }
    driver::Launch launch_of_stream{.profile = spec::profile_of(instructions->front()),
                                    .instructions = kStream,
                                    .count = static_cast<uint32_t>(slots.size())};
    const uint64_t first = (kStream + slots.size() * spec::kSlotBytes + kBaseStep - 1) / kBaseStep * kBaseStep;
    for (size_t i = 0; i < launch_of_stream.bases.size(); ++i) launch_of_stream.bases[i] = first + i * kBaseStep;
    reproducer.launches.push_back(launch_of_stream);
    reproducer.memory_bytes = first + launch_of_stream.bases.size() * kBaseStep;
    driver::add_contents(reproducer, kStream, std::as_bytes(std::span(slots)));
    return reproducer;
  }

  // Runs the model once on the behavioral simulator and records the launch with its inputs.
  Expected<Reproducer> of_executable() {
    TENON_TRY_ASSIGN(executable, runtime::load(program));
    if (executable->programs.empty()) return error("the executable has no program for the accelerator", program);
    if (data.empty() && !executable->main().params.empty())
      return error("a model needs data: --data [NAME=]FILE.npy or FILE.npz:MEMBER", program, {}, Fault::kUsage);
    TENON_TRY_ASSIGN(samples, runtime::read_samples(executable->main().params, data, divide, executable->name));
    if (samples->empty()) return error("there is no sample", program);
    const runtime::TemporaryDirectory scratch;
    std::vector<std::unique_ptr<driver::Accelerator>> opened;
    std::vector<driver::Accelerator*> devices;
    for (const spec::Config* config : runtime::configurations(*executable)) {
      Reproducer wanted;
      wanted.config = *config;
      wanted.memory_bytes = uint64_t{256} << 20;
      TENON_TRY_ASSIGN(device, driver::open_for(wanted, "behavioral:" + config->name, scratch.path()));
      devices.push_back(device->get());
      opened.push_back(*std::move(device));
    }
    const driver::Recorders recorders(devices, static_cast<size_t>(launch));
    runtime::SessionOptions options;
    options.accelerators = recorders.accelerators();
    TENON_TRY_ASSIGN(session, runtime::Session::create(*executable, options));
    auto results = session->run(samples->front());
    const driver::Recorder* recorder = recorders.recorder();
    if (!recorder) {
      TENON_TRY(results);
      return error(
          fmt::format("the model launches {} programs, launch {} does not exist", recorders.launches(), launch),
          program);
    }
    Reproducer reproducer = *recorder->reproducer();
    reproducer.device = "behavioral:" + reproducer.config.name;
    for (const auto& candidate : executable->programs) {  // the notes are those of the program with these instructions
      const auto bytes = std::as_bytes(std::span(candidate.instructions));
      const auto kept = driver::contents(reproducer, reproducer.launches[0].instructions, bytes.size());
      if (reproducer.launches[0].count != candidate.instructions.size() || !std::ranges::equal(kept, bytes)) continue;
      for (const auto& note : candidate.notes) {
        const std::string layer = note.layer < candidate.layers.size() ? candidate.layers[note.layer].name : "";
        notes[note.slot] = layer + ": " + note.tile;
      }
      break;
    }
    return reproducer;
  }
};

}  // namespace

Action debug(Options& options) {
  auto command = std::make_shared<Debug>();
  options.argument(command->program, "PROGRAM", "an executable (.tnx), assembly text, or the reproducer of a mismatch");
  options.option(command->device, "--device", "URI",
                 "any simulator; default: the reproducer's device, or behavioral: with the program's configuration");
  options.repeated(command->data, "--data", "[NAME=]FILE",
                   "for an executable: an input, [NAME=]FILE.npy or FILE.npz:MEMBER; the first sample is run");
  options.option(command->divide, "--divide", "X", "integers of --data are divided by this", {});
  options.option(command->launch, "--launch", "N", "for an executable: index of the launch in the run", {.least = 0});
  options.option(command->loads, "--load", "ADDRESS=FILE", "puts a file's bytes into memory");
  options.option(command->commands, "-x,--command", "COMMAND", "commands instead of standard input");
  options.footer(
      "Commands come from standard input; help lists them. An assembled program's base register i holds "
      "(i + 1) MiB.\nExample: tenon debug program.txt --device verilator:tiny -x 'step 3' -x 'print acc'");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
