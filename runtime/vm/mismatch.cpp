#include "runtime/vm/mismatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "driver/bringup/keep.h"
#include "driver/bringup/recorder.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

std::string none(const Diagnostic& diagnostic) {
  return fmt::format("no reproducer could be kept: {}", diagnostic.str());
}

std::string keep(driver::Reproducer reproducer, driver::Accelerator& on, const MismatchNote& note) {
  reproducer.origin = note.origin;
  reproducer.reported = note.reported;
  return driver::keep_mismatch(std::move(reproducer), on, note.directory);
}

bool is_busy(driver::Accelerator* device) {
  const auto status = device->read_register(spec::reg::kStatus);
  return status && (*status & spec::kStatusBusy) != 0;
}

const CallProgram* program_of(const Step& step) { return std::get_if<CallProgram>(&step.instruction->operation); }

}  // namespace

std::string keep_failure(const Executable& executable, SessionOptions options, std::span<const Tensor> inputs,
                         const MismatchNote& note, const ExpectedBytes& expected) {
  if (options.accelerators.empty()) return {};
  const std::vector<driver::Accelerator*> devices = options.accelerators;
  const driver::Recorders recorders(devices);
  options.accelerators = recorders.accelerators();
  options.timeline = false;
  // The last launch that began is the one that fails, since nothing overlaps where a hook watches.
  if (!options.hook) options.hook = [](const Step&) { return Status(); };
  size_t ended = 0;  // number of launches that ended
  {
    auto session = Session::create(executable, std::move(options));
    if (!session) return none(session.error());
    if (session->run(inputs)) return "no reproducer could be kept: the second run succeeded; the fault comes and goes";
    ended = session->profile().launches.size();
  }  // the session's device memory is free for the replay
  const driver::Recorder* recorder = recorders.recorder();
  if (!recorder) {
    return std::ranges::any_of(devices, is_busy)
               ? "no reproducer could be kept: the device is still busy, and accepts no other launch"
               : "";
  }
  driver::Reproducer reproducer = *recorder->reproducer();
  if (auto region = expected ? expected(reproducer.launches[0]) : std::nullopt)
    reproducer.expected.push_back(std::move(*region));
  if (reproducer.expected.empty() && ended == recorders.launches()) return {};
  return keep(std::move(reproducer), recorder->inner(), note);
}

std::string keep_difference(const Executable& executable, const SessionOptions& options,
                            std::span<driver::Accelerator* const> good, std::span<driver::Accelerator* const> wrong,
                            std::span<const Tensor> inputs, const MismatchNote& note) {
  std::vector<std::vector<Tensor>> outputs;  // by launch
  const auto run = [&](std::span<driver::Accelerator* const> on, Hook hook) -> Status {
    SessionOptions hooked;
    hooked.accelerators.assign(on.begin(), on.end());
    hooked.launch_limit = options.launch_limit;
    hooked.hook = std::move(hook);
    TENON_TRY_ASSIGN(session, Session::create(executable, std::move(hooked)));
    TENON_TRY(session->run(inputs));
    return {};
  };
  const auto collect = [&](const Step& step) -> Status {
    if (program_of(step) != nullptr) outputs.emplace_back(step.results.begin(), step.results.end());
    return {};
  };
  if (auto status = run(good, collect); !status) return none(status.error());

  const driver::Recorders recorders(wrong);
  size_t launch = 0;
  const AcceleratorProgram* program = nullptr;  // whose outputs differ
  const auto compare = [&](const Step& step) -> Status {
    const CallProgram* const call = program_of(step);
    if (call == nullptr) return {};
    const size_t i = launch++;
    if (i < outputs.size() && std::ranges::equal(step.results, outputs[i])) return {};
    program = &executable.programs[call->program];
    return error("launch found");  // ends the run, so that this launch is the last one recorded
  };
  const auto status = run(recorders.accelerators(), compare);
  if (program == nullptr) {
    return status ? "no reproducer could be kept: in the second run all launches agreed; the fault comes and goes"
                  : none(status.error());
  }
  const driver::Recorder& recorder = *recorders.recorder();
  driver::Reproducer reproducer = *recorder.reproducer();
  for (size_t i = 0; launch <= outputs.size() && i < program->outputs.size(); ++i) {
    const auto bytes = outputs[launch - 1][i].bytes();
    reproducer.expected.push_back({program->outputs[i].name,
                                   reproducer.launches[0].bases[static_cast<size_t>(program->outputs[i].base)],
                                   {bytes.begin(), bytes.end()}});
  }
  return keep(std::move(reproducer), recorder.inner(), note);
}

}  // namespace tenon::runtime
