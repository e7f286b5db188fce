// A GPU as a device of a session: kernels of the executable's code for GPUs (runtime/device/cuda/library.h).
#pragma once

#include <memory>

#include "runtime/vm/device.h"

namespace tenon::runtime {

class GpuDevice final : public Device {
 public:
  Expected<std::unique_ptr<StartedWork>> start(RunState& run, const Work& work, std::span<const Tensor> args,
                                               Start how) override;
};

}  // namespace tenon::runtime
