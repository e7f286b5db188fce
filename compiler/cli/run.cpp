// tenon run: a model over samples, or once with inputs by name, or for each instance of a file.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "compiler/cli/run_module.h"
#include "compiler/cli/run_samples.h"
#include "runtime/run/limits.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct RunCommand {
  SamplesRun samples;
  std::string output, expect, instances, entry = "@main";
  std::vector<std::string> inputs, shared;
  int64_t batch = 64;
  double tolerance = 1e-5;
  bool json = false, interpret = false;

  Status run() {
    const std::string& model = samples.model.model;
    if ((is_module(model) || !instances.empty()) && samples.data.empty()) {
      samples.model.entry = entry.starts_with('@') ? entry.substr(1) : entry;
      samples.model.quiet = true;
      samples.model.for_this_machine = true;
      if (samples.cpu) samples.devices.clear();
      return run_module({samples.model, samples.limits, static_cast<unsigned>(samples.threads), inputs, output, expect,
                         tolerance, json, interpret, instances, static_cast<size_t>(batch), shared, samples.devices});
    }
    if (!instances.empty()) {
      return error("--instances and --data both give inputs", model, "give one of them", Fault::kUsage);
    }
    if (!inputs.empty() || !expect.empty()) {
      return error("--input and --expect are for modules in the text form or the binary form, .tn or .tnb", model,
                   "give a model's samples with --data, or instances of other sizes each with --instances",
                   Fault::kUsage);
    }
    samples.output = output;
    samples.json = json;
    return run_samples(samples);
  }
};

}  // namespace

Action run_model(Options& options) {
  auto command = std::make_shared<RunCommand>();
  command->samples.model.declare(options);
  options.repeated(
      command->samples.devices, "--device", "URI",
      "device of the accelerator programs, for whose configuration the model is compiled; may be repeated, "
      "for accelerators beside each other, the preferred first; default: behavioral:default, or simulators of the "
      "configurations of an executable; --input, --instances: none");
  options.flag(command->samples.cpu, "--cpu", "run everything on the CPU, without a device");
  options.repeated(
      command->samples.data, "--data", "[NAME=]FILE",
      "samples for an input: FILE.npy, FILE.npz:MEMBER, or FILE.npz with members of the inputs' names; may be "
      "repeated");
  options.option(command->inputs, "-i,--input", "[NAME=]FILE",
                 "an input of a .tn module, which runs once: FILE.npy, FILE.npz:MEMBER, or a scalar");
  options.option(
      command->instances, "--instances", "FILE",
      "the inputs of many runs of a module or model: a line of text for each (3i64, Cons(1i64, Nil)), or of JSON in "
      "a .jsonl, or tensors in an .npz; prints a line for each");
  options.option(command->batch, "--batch", "N",
                 "--instances: run so many together, in batches of their operators; 1: one after another",
                 {.least = 1});
  options.repeated(command->shared, "--shared", "NAME",
                   "--instances: an input that all instances share, given by --input; may be repeated");
  options.option(command->entry, "--entry", "@NAME", "--input, --instances: the function to run");
  options.flag(command->interpret, "--interpret",
               "--input, --instances: run in the interpreter, which defines the results of the compiled code");
  options.option(command->expect, "--expect", "FILE", "--input: file of the expected results, .npy or .npz");
  options.option(command->tolerance, "--tolerance", "T",
                 "--expect: tolerance of floats, relative to the largest element or 1; integers must be equal",
                 {.least = 0});
  options.option(command->samples.labels, "--labels", "FILE",
                 "true classes of the samples, for the first result: prints accuracies");
  options.option(command->samples.limit, "--limit", "N", "only the first N samples; 0: all", {.least = 0});
  options.flag(command->samples.check, "--check",
               "compare every layer whose results are in memory (with --no-fuse all) with the integer reference, bit "
               "for bit, and find races and wrong indices in the "
               "kernels of cuda:emulated");
  options.repeated(command->samples.verify, "--verify", "URI",
                   "also run the first samples on a second device, as lockstep:default; may be repeated as --device");
  options.option(command->samples.verify_samples, "--verify-samples", "N", "number of samples of --verify",
                 {.least = 0});
  options.option(command->output, "--output", "PATH",
                 "FILE.npz: all results by name; --data: or a directory for an .npy of each; --input: or an .npy");
  options.option(command->samples.reproducer, "--reproducer", "DIR",
                 "directory for the reproducer that repeats a mismatch; default: mismatch-N in the working directory");
  options.option(command->samples.report, "--report", "FILE.html", "write a self-contained report");
  options.option(command->samples.trace, "--trace", "FILE.json", "write a timeline for Perfetto");
  options.option(command->samples.seconds, "--launch-limit", "SECONDS", "longest wait for one launch",
                 runtime::kLaunchSecondsBounds);
  command->samples.limits.declare(options);
  options.option(command->samples.threads, "--threads", "N", "threads of native kernels; 0: all usable processors",
                 runtime::kThreadBounds);
  options.flag(command->samples.no_native, "--no-native", "refuse native code, which runs with all rights of the user");
  options.flag(command->json, "--json", "figures as JSON");
  options.flag(command->samples.quiet, "--quiet", "no progress bar");
  options.flag(command->samples.verbose, "--verbose", "a row for each operator: where it runs, and why");
  options.footer(
      "A model over samples is compiled and runs on the device; a .tn module with --input, or without inputs, is\n"
      "compiled for the CPU, and the devices of --device beside it, and runs once, with every feature of the "
      "language.\n"
      "Either runs once for each instance of --instances, whose sizes may differ, many of them together.\n\n"
      "tenon run model.onnx --shapes N=1 --calibrate d.npz:calib --data d.npz:x --labels d.npz:y --divide 255 --check\n"
      "tenon run model.tn --input x=x.npy --input steps=20 --expect y.npy\n"
      "tenon run tests/examples/tree_lstm.tn --entry @classify --instances tests/examples/trees.txt");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
