// Work of devices beside the CPU's: accelerator programs, and native kernels of a GPU, which may be started before the
// instruction that waits for them.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/vm/call_operands.h"
#include "runtime/vm/run_state.h"
#include "runtime/vm/started_program.h"

namespace tenon::runtime {

class Launches {
 public:
  Launches(RunState& run, CallOperands& operands) : run_(run), operands_(operands) {}

  Status execute(const CallSite& site, const CallProgram& call);
  Status invoke(const CallSite& site, const CallProgram& call);  // on the arguments that are loaded
  Status execute(const StartProgram& start);
  Status execute(const CallSite& site, const CallNative& call, cuda::GpuLibrary& gpu);
  Status invoke(const CallSite& site, const CallNative& call, cuda::GpuLibrary& gpu);  // likewise
  Status execute(const StartNative& start);
  // Waits for a launch whose results nothing wants: the run failed before it came to the call.
  void abandon();

 private:
  // Launches the program with the loaded arguments; `how`: it is waited for by a thread of its own, or by this one.
  Status start(uint32_t program, std::unique_lock<std::mutex> device, std::launch how);
  // The results of the launch that was started, and the values of the program's probes for the hook.
  Status finish();

  RunState& run_;
  CallOperands& operands_;
  std::optional<StartedProgram> started_;
  std::unique_ptr<cuda::StartedCall> started_on_gpu_;
  int64_t gpu_begin_ns_ = 0;  // when it was started
};

}  // namespace tenon::runtime
