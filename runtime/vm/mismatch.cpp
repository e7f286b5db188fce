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

std::string none(const Diagnostic& diagnostic) { return fmt::format("no bundle could be kept: {}", diagnostic.str()); }

std::string keep(driver::Bundle bundle, driver::Accelerator& on, const MismatchNote& note) {
  bundle.origin = note.origin;
  bundle.reported = note.reported;
  return driver::keep_mismatch(std::move(bundle), on, note.directory);
}

const CallProgram* program_of(const Step& step) { return std::get_if<CallProgram>(&step.instruction->operation); }

}  // namespace

std::string keep_failure(const Executable& executable, SessionOptions options, std::span<const Tensor> inputs,
                         const MismatchNote& note, const ExpectedBytes& expected) {
  if (options.accelerator == nullptr) return {};
  driver::Accelerator& on = *options.accelerator;
  driver::Recorder recorder(on);
  options.accelerator = &recorder;
  options.timeline = false;
  size_t ended = 0;  // number of launches that ended
  {
    auto session = Session::create(executable, std::move(options));
    if (!session) return none(session.error());
    if (session->run(inputs)) return "no bundle could be kept: the second run succeeded; the fault comes and goes";
    ended = session->profile().launches.size();
  }  // the session's device memory is free for the replay
  if (!recorder.bundle()) {
    const auto status = on.read_register(spec::reg::kStatus);
    const bool hangs = status && (*status & spec::kStatusBusy) != 0;
    return hangs ? "no bundle could be kept: the device is still busy, and accepts no other launch" : "";
  }
  driver::Bundle bundle = *recorder.bundle();
  if (auto region = expected ? expected(bundle.launches[0]) : std::nullopt)
    bundle.expected.push_back(std::move(*region));
  if (bundle.expected.empty() && ended == recorder.launches()) return {};
  return keep(std::move(bundle), on, note);
}

std::string keep_difference(const Executable& executable, const SessionOptions& options, driver::Accelerator& good,
                            driver::Accelerator& wrong, std::span<const Tensor> inputs, const MismatchNote& note) {
  std::vector<std::vector<Tensor>> outputs;  // by launch
  const auto run = [&](driver::Accelerator& on, Hook hook) -> Status {
    SessionOptions hooked;
    hooked.accelerator = &on;
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

  driver::Recorder recorder(wrong);
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
  const auto status = run(recorder, compare);
  if (program == nullptr) {
    return status ? "no bundle could be kept: in the second run all launches agreed; the fault comes and goes"
                  : none(status.error());
  }
  driver::Bundle bundle = *recorder.bundle();
  for (size_t i = 0; launch <= outputs.size() && i < program->outputs.size(); ++i) {
    const auto bytes = outputs[launch - 1][i].bytes();
    bundle.expected.push_back({program->outputs[i].name,
                               bundle.launches[0].bases[static_cast<size_t>(program->outputs[i].base)],
                               {bytes.begin(), bytes.end()}});
  }
  return keep(std::move(bundle), wrong, note);
}

}  // namespace tenon::runtime
