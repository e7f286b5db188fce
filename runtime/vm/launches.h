// Work of devices beside the CPU's: accelerator programs, and native kernels of a GPU, which may be started before the
// instruction that waits for them. Each device may have work of the run at the same time.
#pragma once

#include <memory>
#include <vector>

#include "runtime/vm/call_operands.h"
#include "runtime/vm/device.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

// By function of the executable: whether it, or one that it can reach, launches a program of an accelerator. Of a
// function that takes no closures, as units do.
std::vector<bool> launching_functions(const Executable& executable);

class Launches {
 public:
  Launches(RunState& run, CallOperands& operands) : run_(run), operands_(operands) {}

  Status execute(const CallSite& site, const CallProgram& call);
  Status execute(const CallSite& site, const CallNative& call);
  // The call alone, on the arguments that are loaded.
  Status invoke(const CallSite& site, const CallProgram& call);
  Status invoke(const CallSite& site, const CallNative& call);
  Status execute(const StartProgram& start);
  Status execute(const StartNative& start);
  // Waits for work whose results nothing wants: the run failed before it came to the call.
  void abandon();

 private:
  Status start(uint32_t device, const Work& work, const Registers& args);
  // The results of the work, which was started, or is now.
  Status finish(uint32_t device, const Work& work);
  // Waits for the device, where it is not free.
  Expected<std::unique_ptr<StartedWork>> start_now(Device& device, const Work& work);

  RunState& run_;
  CallOperands& operands_;
  std::vector<std::unique_ptr<StartedWork>> started_;  // by device of the session
};

}  // namespace tenon::runtime
