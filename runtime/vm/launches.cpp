#include "runtime/vm/launches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {

// A closure is called by what makes it, or by a function that gets it from there.
std::vector<bool> launching_functions(const Executable& executable) {
  std::vector<bool> launching(executable.functions.size());
  std::vector<std::vector<uint32_t>> users(
      launching.size());  // by function: those that call it or make a closure of it
  std::vector<uint32_t> found;
  const auto add = [&](uint32_t function) {
    if (!launching[function]) found.push_back(function);
    launching[function] = true;
  };
  for (uint32_t i = 0; i < launching.size(); ++i) {
    for (const auto& [operation, layer] : executable.functions[i].code) {
      if (std::holds_alternative<CallProgram>(operation)) add(i);
      if (const auto* call = std::get_if<CallFunction>(&operation)) users[call->function].push_back(i);
      if (const auto* tail = std::get_if<TailCall>(&operation)) users[tail->function].push_back(i);
      if (const auto* closure = std::get_if<MakeClosure>(&operation)) users[closure->function].push_back(i);
    }
  }
  while (!found.empty()) {
    const uint32_t function = found.back();
    found.pop_back();
    for (const uint32_t user : users[function]) add(user);
  }
  return launching;
}

Status Launches::execute(const CallSite& site, const CallProgram& call) {
  return operands_.compute(call.args, call.results, [&] { return invoke(site, call); });
}

Status Launches::invoke(const CallSite& site, const CallProgram& call) {
  const AcceleratorProgram& program = run_.executable.programs[call.program];
  return operands_.timed(site, program.name, program.device,
                         [&] { return finish(run_.session.device_of_program[call.program], {call.program}); });
}

Status Launches::execute(const StartProgram& start) {
  return this->start(run_.session.device_of_program[start.program], {start.program}, start.args);
}

Status Launches::execute(const CallSite& site, const CallNative& call) {
  return operands_.compute(call.args, call.results, [&] { return invoke(site, call); });
}

Status Launches::invoke(const CallSite& site, const CallNative& call) {
  const std::string& name = run_.executable.natives[call.code].kernels[call.kernel].name;
  return operands_.timed(site, name, "cuda", [&]() -> Status {
    operands_.memory.slots = call.slots;
    return finish(run_.session.device_of_native[call.code].value(), {call.code, call.kernel});
  });
}

Status Launches::execute(const StartNative& start) {
  const auto device = run_.session.device_of_native[start.code];
  return device ? this->start(*device, {start.code, start.kernel}, start.args) : Status();
}

// A hook is shown one instruction after another, and under a budget a call has its memory to itself. While another run
// has the device, the work waits for it at its call.
Status Launches::start(uint32_t device, const Work& work, const Registers& args) {
  started_.resize(run_.session.devices.size());
  if (run_.session.options.hook || run_.rematerializer || started_[device]) return {};
  TENON_TRY(operands_.load(args));
  TENON_TRY_ASSIGN(started, run_.session.devices[device]->start(run_, work, operands_.args, Device::Start::kAsync));
  started_[device] = std::move(*started);
  operands_.release();
  return {};
}

Status Launches::finish(uint32_t device, const Work& work) {
  started_.resize(run_.session.devices.size());
  std::unique_ptr<StartedWork> started = std::move(started_[device]);
  if (started && !started->is(work, operands_.args)) started.reset();
  if (!started) {
    TENON_TRY_ASSIGN(made, start_now(*run_.session.devices[device], work));
    started = std::move(*made);
  }
  return started->finish(operands_);
}

Expected<std::unique_ptr<StartedWork>> Launches::start_now(Device& device, const Work& work) {
  const auto has_device = [](const auto& started) { return started != nullptr; };
  if (std::ranges::any_of(started_, has_device)) {
    TENON_TRY_ASSIGN(started, device.start(run_, work, operands_.args, Device::Start::kAsync));
    if (*started) return started;
    for (auto& other : started_) other.reset();  // see device.h
  }
  return device.start(run_, work, operands_.args, Device::Start::kSync);
}

void Launches::abandon() {
  started_.clear();
  operands_.call_begin_ns.reset();
}

}  // namespace tenon::runtime
