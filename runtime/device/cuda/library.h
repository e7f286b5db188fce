// The kernels of an executable's code for a GPU: called with tensors of the host, as those of a NativeLibrary are.
//
// Trust: the code's launches have passed verify(); its PTX is trusted as native code is.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/cuda/gpu.h"
#include "runtime/native/native.h"

namespace tenon::runtime::cuda {

// A GPU of several libraries, which use it one call at a time.
struct SharedGpu {
  explicit SharedGpu(Gpu opened) : gpu(std::move(opened)) {}
  Gpu gpu;
  std::mutex in_use;
};

// What a library has copied and launched, for reports and tests.
struct GpuCounters {
  uint64_t uploads = 0, uploaded_bytes = 0, downloads = 0, downloaded_bytes = 0, launches = 0;
};

using KnownDims = std::vector<std::optional<int64_t>>;

class GpuLibrary {
 public:
  // Translates the code for the GPU. `code` and `constants` outlive the library: the memory of a parameter that is one
  // of the constants is copied to the GPU once, at its first use.
  static Expected<GpuLibrary> load(const NativeCode& code, std::shared_ptr<SharedGpu> gpu,
                                   std::span<const Tensor> constants);

  // Copies the parameters to the GPU, launches the kernel's grids, and copies the results into memory of the host;
  // `results` is replaced. Errors: tensors that do not match the signature, memory, and faults of the kernel.
  Status call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results, CallMemory& memory);

  const GpuCounters& counters() const { return counters_; }

 private:
  GpuLibrary(const NativeCode& code, std::shared_ptr<SharedGpu> gpu) : code_(&code), gpu_(std::move(gpu)) {}
  Status run(const NativeKernel& kernel, std::span<const Tensor> params, std::span<Tensor> results,
             std::span<const int64_t> dims);
  Status launch(const NativeKernel& kernel, std::vector<uint64_t> addresses, std::span<const int64_t> dims);
  Status launch_one(const GpuLaunch& launch, const std::vector<uint64_t>& addresses, const KnownDims& dims);
  Expected<Memory> allocate(const SignatureBuffer& buffer, const KnownDims& dims);
  Expected<Memory> copy(const Tensor& param, std::vector<Memory>& owned);

  const NativeCode* code_;
  std::shared_ptr<SharedGpu> gpu_;
  const Code* loaded_ = nullptr;
  std::map<const std::byte*, Memory> constants_;  // by their memory on the host; no address: not copied yet
  GpuCounters counters_;
};

}  // namespace tenon::runtime::cuda
