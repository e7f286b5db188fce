#include "runtime/vm/launches.h"

#include <cmath>
#include <utility>
#include <variant>

#include "support/try.h"

namespace tenon::runtime {

Status Launches::execute(const CallSite& site, const CallProgram& call) {
  return operands_.compute(call.args, call.results, [&] { return invoke(site, call); });
}

Status Launches::invoke(const CallSite& site, const CallProgram& call) {
  const AcceleratorProgram& program = run_.executable.programs[call.program];
  return operands_.timed(site, program.name, program.device, [&]() -> Status {
    if (started_ && !started_->is(call.program, operands_.args)) abandon();
    if (!started_) {
      std::unique_lock device(run_.session.programs[call.program].device->mutex);
      TENON_TRY(start(call.program, std::move(device), std::launch::deferred));
    }
    return finish();
  });
}

// A hook is shown one instruction after another, and under a budget a call has its memory to itself. While another run
// has the device, the program waits for it at its call.
Status Launches::execute(const StartProgram& start) {
  if (run_.session.options.hook || run_.rematerializer || started_) return {};
  std::unique_lock device(run_.session.programs[start.program].device->mutex, std::try_to_lock);
  if (!device) return {};
  TENON_TRY(operands_.load(start.args));
  TENON_TRY(this->start(start.program, std::move(device), std::launch::async));
  operands_.release();
  return {};
}

Status Launches::execute(const CallSite& site, const CallNative& call, cuda::GpuLibrary& gpu) {
  return operands_.compute(call.args, call.results, [&] { return invoke(site, call, gpu); });
}

Status Launches::invoke(const CallSite& site, const CallNative& call, cuda::GpuLibrary& gpu) {
  const std::string& name = run_.executable.natives[call.code].kernels[call.kernel].name;
  return operands_.timed(site, name, "cuda", [&]() -> Status {
    operands_.memory.slots = call.slots;
    auto started = std::move(started_on_gpu_);
    if (started && !started->is(gpu, call.kernel, operands_.args)) started.reset();
    if (started) operands_.call_begin_ns = gpu_begin_ns_;
    TENON_TRY_ASSIGN(seconds, started ? gpu.finish(*started, operands_.args, operands_.made, operands_.memory)
                                      : gpu.call(call.kernel, operands_.args, operands_.made, operands_.memory));
    operands_.gpu_ns = std::llround(1e9 * *seconds);
    return {};
  });
}

Status Launches::execute(const StartNative& start) {
  auto* gpu = std::get_if<cuda::GpuLibrary>(&run_.session.natives[start.code]);
  if (!gpu || run_.session.options.hook || run_.rematerializer || started_on_gpu_) return {};
  TENON_TRY(operands_.load(start.args));
  gpu_begin_ns_ = run_.session.now();
  TENON_TRY_ASSIGN(started, gpu->try_start(start.kernel, operands_.args));
  started_on_gpu_ = std::move(*started);
  operands_.release();
  return {};
}

Status Launches::start(uint32_t program, std::unique_lock<std::mutex> device, std::launch how) {
  Session::State& session = run_.session;
  LoadedProgram& loaded = session.programs[program];
  const bool first = !std::exchange(loaded.launched, true);
  StartedProgram started{.device = std::move(device)};
  started.record.program = program;
  started.record.begin_ns = session.now();
  for (const Tensor& input : operands_.args) started.addresses.push_back(input.bytes().data());
  if (session.options.timeline && first) started.recorded = loaded.device->accelerator.simulator();
  if (started.recorded) started.recorded->record_timeline(true);
  ProgramOnDevice& launched = loaded.program;
  loaded.device->copies.begin(run_.number);
  if (Status status = launched.start(operands_.args, loaded.device->copies); !status) {
    if (started.recorded) started.recorded->record_timeline(false);
    return status;
  }
  started.end = std::async(how, [&session, &launched] {
    Status status = launched.finish(session.options.launch_limit);
    return StartedProgram::End{std::move(status), session.now()};
  });
  started_.emplace(std::move(started));
  return {};
}

void Launches::abandon() {
  started_on_gpu_.reset();
  operands_.call_begin_ns.reset();
  if (!started_) return;
  started_->end.wait();
  if (started_->recorded) started_->recorded->record_timeline(false);
  started_.reset();
}

Status Launches::finish() {
  Session::State& session = run_.session;
  StartedProgram started = std::move(*started_);
  started_.reset();
  auto [status, end_ns] = started.end.get();
  LaunchRecord& record = started.record;
  record.end_ns = end_ns;
  if (started.recorded) {
    const auto timeline = started.recorded->timeline();
    record.timeline.assign(timeline.begin(), timeline.end());
    started.recorded->record_timeline(false);
  }
  if (!status) return status;
  auto& [program, device, launched] = session.programs[record.program];
  TENON_TRY_ASSIGN(results, program.outputs(device->copies));
  operands_.made = std::move(*results);
  TENON_TRY_ASSIGN(counters, driver::read_counters(device->accelerator));
  record.counters = *counters;
  if (session.options.hook) {
    for (const Probe& probe : run_.executable.programs[record.program].probes) {
      TENON_TRY_ASSIGN(value, program.read(probe));
      operands_.probes.push_back({&probe, std::move(*value)});
    }
  }
  // A run that serves requests may never end.
  constexpr size_t kMostUnasked = 1 << 14;
  if (session.options.profile || run_.profile.launches.size() < kMostUnasked) {
    operands_.launch = static_cast<int32_t>(run_.profile.launches.size());
    run_.profile.launches.push_back(std::move(record));
  }
  return {};
}

}  // namespace tenon::runtime
