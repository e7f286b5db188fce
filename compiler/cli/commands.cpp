// The list of commands, and the way from the command line to one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/cli/command.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "support/printable.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::cli {

Action run_model(Options&);
Action import_model(Options&);
Action plan_memory(Options&);
Action check_plugin(Options&);
Action train_model(Options&);
Action compile_model(Options&);
Action compare_model(Options&);
Action opt(Options&);
Action list_operators(Options&);
Action list_passes(Options&);
Action convert(Options&);
Action format_text(Options&);
Action hw_estimate(Options&);
Action hw_generate(Options&);
Action hw_package(Options&);
Action hw_list(Options&);
Action hw_show(Options&);
Action hw_overlay(Options&);
Action board_list(Options&);
Action board_build(Options&);
Action board_flash(Options&);
Action assemble(Options&);
Action disassemble(Options&);
Action inspect(Options&);
Action list_devices(Options&);
Action serve_devices(Options&);
Action doctor(Options&);
Action dtr_sim(Options&);
Action dtr_linear(Options&);
Action tune_model(Options&);
Action prepare(Options&);
Action decode(Options&);
Action print_schedule(Options&);
Action bench_accel(Options&);
Action bench_batching(Options&);
Action bench_ragged(Options&);
Action bench_serve(Options&);
Action bench_sim(Options&);
Action bench_compile(Options&);
Action bench_cpu(Options&);
Action bench_gpu(Options&);
Action bench_launch(Options&);
Action bench_transfer(Options&);
Action bench_model(Options&);
Action bench_vm(Options&);
Action fuzz_accel(Options&);
Action fuzz_ir(Options&);
Action fuzz_ragged(Options&);
Action fuzz_partition(Options&);
Action selftest(Options&);
Action debug(Options&);
Action replay(Options&);
Action xclbin_write(Options&);
Action xclbin_show(Options&);
Action xclbin_annotate(Options&);

namespace {

constexpr Command kCommands[] = {
    {"run", "run a model over data on a device: accuracy, cycles, comparison, report", run_model},
    {"plan", "print the memory plan of an executable, or what a model or its training step costs within less memory",
     plan_memory},
    {"train", "train a model's weights on samples and labels", train_model},
    {"import", "check a model: its operators, their support per target, and what is missing", import_model},
    {"compile", "compile a model into an executable", compile_model},
    {"plugin check", "check a code generator of your own on samples of its patterns", check_plugin},
    {"prepare", "pictures, recordings and sentences as the samples of a model", prepare},
    {"decode", "results of a model as text: names of classes, lines of recognizers", decode},
    {"compare", "float, quantized and device side by side, layer by layer", compare_model},
    {"tune", "measure which kernels are fastest for a model on this machine, and record them", tune_model},
    {"schedule", "print the loops of an operator's kernel, the steps of its schedule, and what they result in",
     print_schedule},
    {"opt", "run passes on a module, and print it, also before and after each pass", opt},
    {"ops", "list the operators, or explain the named ones", list_operators},
    {"passes", "list the passes", list_passes},
    {"convert", "write a module in its other forms: text, binary", convert},
    {"fmt", "format modules in the text form", format_text},
    {"hw generate", "write the accelerator of a configuration: RTL, register map, references", hw_generate},
    {"hw package", "write a configuration as a kernel for Vitis, with its build scripts", hw_package},
    {"hw list", "list the named configurations", hw_list},
    {"hw show", "explain one configuration", hw_show},
    {"hw estimate", "cells and clock of a configuration, and whether it fits on a board", hw_estimate},
    {"hw overlay", "write the device tree overlay for a Zynq board", hw_overlay},
    {"board list", "list the boards that bitstreams are built for", board_list},
    {"board build", "build a board's bitstream, or its project for the vendor's tools", board_build},
    {"board flash", "write a bitstream to its board, and check that the accelerator answers", board_flash},
    {"asm", "assemble instructions", assemble},
    {"disasm", "print the instructions of a program", disassemble},
    {"inspect", "print what an executable is made of: signature, code, memory, kernels, programs", inspect},
    {"dtr-sim", "replay logs of training steps under budgets of memory: how much longer the step takes", dtr_sim},
    {"dtr-linear", "count the operators of a linear network under the budget of the rematerialization theorem",
     dtr_linear},
    {"devices", "list the kinds of devices and what each needs, or the devices of a server", list_devices},
    {"serve", "lend devices of this machine to clients on others", serve_devices},
    {"doctor", "list tools and devices, and which tool is missing for which purpose", doctor},
    {"bench accel", "measure a model on accelerators, beside the cycle model and the roofline", bench_accel},
    {"bench batching", "measure instances of a dynamic model in batches, and policies of batching", bench_batching},
    {"bench ragged", "measure a transformer's layer on sentences of different lengths", bench_ragged},
    {"bench serve", "measure requests that come at random times, one by one and in batches that they join",
     bench_serve},
    {"bench sim", "measure how fast the simulators are", bench_sim},
    {"bench launch", "measure the cost of a launch on a device", bench_launch},
    {"bench transfer", "measure how fast a device's buffers are written and read", bench_transfer},
    {"bench compile", "measure how the compiler's work grows with the module", bench_compile},
    {"bench cpu", "measure the CPU's kernels beside oneDNN's", bench_cpu},
    {"bench gpu", "measure a model on a GPU beside the CPU", bench_gpu},
    {"bench model", "measure a model on the CPU: its compilation, its run, its kernels", bench_model},
    {"bench vm", "measure the virtual machine's instructions", bench_vm},
    {"fuzz accel", "run random programs on RTL and behavioral simulator, compared write by write", fuzz_accel},
    {"fuzz ir", "run random modules through text, inference, interpreter and passes", fuzz_ir},
    {"fuzz ragged", "run random loops over batches of different lengths under random schedules", fuzz_ragged},
    {"fuzz partition", "partition random modules for synthetic targets", fuzz_partition},
    {"selftest", "check a device: registers, memory, loopback, clock, a product", selftest},
    {"debug", "step through an accelerator program on a simulator", debug},
    {"replay", "repeat a mismatch from its reproducer", replay},
    {"xclbin write", "write an xclbin file, the form in which XRT loads a design", xclbin_write},
    {"xclbin show", "list the contents of an xclbin file", xclbin_show},
    {"xclbin annotate", "record the configuration of a design in its xclbin file", xclbin_annotate},
};

constexpr std::string_view kTail =
    "\nEach command explains itself: tenon COMMAND --help\n"
    "Exit codes: 0 done, 1 the input's fault, 2 wrong usage, 3 Tenon's own or the machine's.\n";

std::string overview(std::string_view group) {
  std::string text = "Usage: tenon COMMAND [OPTIONS]\n\n";
  size_t width = 0;
  for (const Command& command : kCommands) width = std::max(width, command.name.size());
  for (const Command& command : kCommands) {
    if (command.name.starts_with(group)) text += fmt::format("  {:<{}}  {}\n", command.name, width, command.doc);
  }
  return text + std::string(kTail);
}

// The command whose words the arguments start with, and the count of words.
std::pair<const Command*, size_t> find(const std::vector<std::string>& arguments) {
  for (const size_t words : {size_t{2}, size_t{1}}) {
    if (arguments.size() < words) continue;
    const std::string name = words == 2 ? arguments[0] + " " + arguments[1] : arguments[0];
    const auto* command = std::ranges::find(kCommands, name, &Command::name);
    if (command != std::end(kCommands)) return {command, words};
  }
  return {nullptr, 0};
}

Status run_one(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == "--version") {
    print_stdout("tenon {} (instruction set {}, register map {})\n", TENON_VERSION, spec::kIsaVersion,
                 spec::kRegisterMapVersion);
    return {};
  }
  if (first == "--help" || first == "-h" || first == "help") {
    print_stdout("Tenon: from a model and a configuration to an accelerator that runs it.\n\n{}", overview(""));
    return {};
  }
  const auto [command, words] = find(arguments);
  if (command == nullptr) {
    const std::string group = first + " ";
    const bool is_group = std::ranges::any_of(kCommands, [&](const Command& c) { return c.name.starts_with(group); });
    const bool help = arguments.size() == 2 && (arguments[1] == "--help" || arguments[1] == "-h");
    if (is_group && help) {
      print_stdout("{}", overview(group));
      return {};
    }
    std::vector<std::string_view> names;
    for (const Command& c : kCommands) {
      if (!is_group || c.name.starts_with(group)) names.push_back(c.name);
    }
    const std::string given = is_group && arguments.size() > 1 ? first + " " + arguments[1] : first;
    std::string what = fmt::format("unknown command \"{}\"", printable(given));
    if (arguments.empty()) what = "no command is given";
    if (is_group && arguments.size() < 2) what = "\"" + first + "\" needs a second word";
    const std::string meant = suggest(given, names, "tenon ");
    return error(what, "tenon",
                 fmt::format("{}{}the commands are: {}", meant, meant.empty() ? "" : " ", fmt::join(names, ", ")),
                 Fault::kUsage);
  }
  Options options(fmt::format("tenon {}", command->name), command->doc);
  const Action action = command->declare(options);
  TENON_TRY_ASSIGN(parsed, options.parse({arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()}));
  return *parsed ? action() : Status{};
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run(const std::vector<std::string>& arguments) { return exit_code_of(run_one(arguments)); }

}  // namespace tenon::cli
