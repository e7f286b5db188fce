// Devices beside the processor, on which calls of a session run: accelerators and GPUs. The processor itself is none:
// its kernels run where they are called, and nothing is copied for them.
//
// Semantics: a device does one call's work at a time, and has it for a run from its start to its end; other runs wait
// for it. Work is started and waited for in two steps, between which the run does other things, on other devices too. A
// run never waits for a device while it has another one, so that runs do not wait for each other in a circle: it gives
// up the work that it has started, which starts again at its call. Arguments and results are tensors of the host; what
// a device keeps of them is its own concern. All devices' times are those of the session's clock, beside which a record
// has what the device itself has counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

class CallOperands;
struct RunState;

// A call of the executable: an accelerator program, or a kernel of native code.
struct Work {
  uint32_t code = 0;    // the program, or the native code
  uint32_t kernel = 0;  // of the native code
  bool operator==(const Work&) const = default;
};

// Work that was started. Destroying it waits until the device is free.
class StartedWork {
 public:
  StartedWork(const Work& work, std::span<const Tensor> args) : work_(work) {
    for (const Tensor& arg : args) addresses_.push_back(arg.bytes().data());
  }
  StartedWork(const StartedWork&) = delete;
  StartedWork& operator=(const StartedWork&) = delete;
  virtual ~StartedWork() = default;

  // Whether it is this work with these arguments, which have kept their memory since.
  bool is(const Work& work, std::span<const Tensor> args) const;
  // Waits for its end, and puts the results and the times into the operands of the call.
  virtual Status finish(CallOperands& operands) = 0;

 protected:
  const Work& work() const { return work_; }

 private:
  Work work_;
  std::vector<const std::byte*> addresses_;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // kAsync: only if the device is free, else the result is nothing; the run may do other things until finish(). kSync:
  // waits for the device, and finish() follows at once.
  enum class Start : uint8_t { kAsync, kSync };
  // Copies the arguments that the device does not have, and starts the work on them.
  virtual Expected<std::unique_ptr<StartedWork>> start(RunState& run, const Work& work, std::span<const Tensor> args,
                                                       Start how) = 0;
  // The profile begins anew.
  virtual void clear_profile() {}
};

}  // namespace tenon::runtime
