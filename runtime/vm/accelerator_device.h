// An accelerator as a device of a session, with the programs of its configuration.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "driver/accelerator.h"
#include "runtime/vm/device.h"
#include "runtime/vm/device_copies.h"
#include "runtime/vm/program_on_device.h"

namespace tenon::runtime {

class AcceleratorDevice final : public Device {
 public:
  explicit AcceleratorDevice(driver::Accelerator& accelerator) : accelerator_(accelerator) {}

  // Adds the program with this index in its executable.
  Status upload(uint32_t index, const AcceleratorProgram& program);
  Expected<std::unique_ptr<StartedWork>> start(RunState& run, const Work& work, std::span<const Tensor> args,
                                               Start how) override;
  void clear_profile() override;

 private:
  friend class Launch;

  struct Loaded {
    ProgramOnDevice program;
    bool launched = false;  // since the profile was cleared; guarded by `mutex_`
  };

  driver::Accelerator& accelerator_;
  std::map<uint32_t, Loaded> programs_;
  std::mutex mutex_;     // held during a launch
  DeviceCopies copies_;  // guarded by `mutex_`
};

}  // namespace tenon::runtime
