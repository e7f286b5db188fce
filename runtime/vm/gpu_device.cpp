#include "runtime/vm/gpu_device.h"

#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/vm/call_operands.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

class GpuCall final : public StartedWork {
 public:
  GpuCall(const Work& work, std::span<const Tensor> args, cuda::GpuLibrary& library,
          std::unique_ptr<cuda::StartedCall> call, std::optional<int64_t> begin_ns)
      : StartedWork(work, args), library_(library), call_(std::move(call)), begin_ns_(begin_ns) {}

  Status finish(CallOperands& operands) override {
    if (begin_ns_) operands.call_begin_ns = begin_ns_;
    TENON_TRY_ASSIGN(seconds, library_.finish(*call_, operands.args, operands.made, operands.memory));
    operands.gpu_ns = std::llround(1e9 * *seconds);
    return {};
  }

 private:
  cuda::GpuLibrary& library_;
  std::unique_ptr<cuda::StartedCall> call_;  // which holds the GPU
  std::optional<int64_t> begin_ns_;          // where the call began before its instruction
};

}  // namespace

Expected<std::unique_ptr<StartedWork>> GpuDevice::start(RunState& run, const Work& work, std::span<const Tensor> args,
                                                        Start how) {
  auto& library = std::get<cuda::GpuLibrary>(run.session.natives[work.code]);
  const bool async = how == Start::kAsync;
  const std::optional begin_ns = async ? std::optional(run.session.now()) : std::nullopt;
  TENON_TRY_ASSIGN(call, async ? library.try_start(work.kernel, args) : library.start(work.kernel, args));
  if (!*call) return nullptr;
  return std::make_unique<GpuCall>(work, args, library, std::move(*call), begin_ns);
}

}  // namespace tenon::runtime
