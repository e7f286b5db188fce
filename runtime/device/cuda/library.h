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
  uint64_t recorded_lists = 0, replayed_lists = 0;
  double seconds = 0;  // of the launches by the GPU's clock, without the copies of parameters and results
};

using KnownDims = std::vector<std::optional<int64_t>>;

class GpuLibrary;

// A call whose inputs are copied and whose launches are queued: the GPU belongs to it until it is destroyed, which
// waits.
class StartedCall {
 public:
  StartedCall(std::unique_lock<std::mutex> in_use, Gpu& gpu) : in_use_(std::move(in_use)), gpu_(gpu) {}
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;
  ~StartedCall();

 private:
  friend class GpuLibrary;

  std::unique_lock<std::mutex> in_use_;
  Gpu& gpu_;
  size_t kernel_ = 0;
  std::vector<int64_t> dims_;
  std::vector<Memory> owned_, results_;  // memory of the call; and of its results, which is among it
  bool ended_ = false;
};

// The launches of a call with memory of their own: the call's memory, and what later calls with the same dims and
// constants copy their parameters into and their results from.
struct CommandList {
  CommandList(Gpu& owner, size_t of, std::vector<int64_t> values, std::vector<Address> addresses)
      : gpu(owner), kernel(of), dims(std::move(values)), constants(std::move(addresses)) {}
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;
  ~CommandList();
  void release();  // the list and its memory

  Gpu& gpu;
  size_t kernel = 0;
  std::vector<int64_t> dims;
  std::vector<Address> constants;  // by parameter: where a constant is; 0: the parameter is none
  std::vector<Memory> params, results, temporaries;
  GraphExec* list = nullptr;
  bool is_refused = false;  // it could not be recorded
};

class GpuLibrary {
 public:
  // Translates the code for the GPU. `code` and `constants` outlive the library: the memory of a parameter that is one
  // of the constants is copied to the GPU once, at its first use.
  static Expected<GpuLibrary> load(const NativeCode& code, std::shared_ptr<SharedGpu> gpu,
                                   std::span<const Tensor> constants);

  // Copies the parameters to the GPU, launches the kernel's grids, and copies the results into memory of the host;
  // `results` is replaced. The result: the seconds of its launches by the GPU's clock, without the copies. Errors:
  // tensors that do not match the signature, memory, and faults of the kernel.
  Expected<double> call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results,
                        CallMemory& memory);

  // The same in two steps, between which the host does other work. Where the GPU belongs to another call now, the first
  // waits for it, or returns nothing.
  Expected<std::unique_ptr<StartedCall>> start(size_t kernel, std::span<const Tensor> params);
  Expected<std::unique_ptr<StartedCall>> try_start(size_t kernel, std::span<const Tensor> params);
  Expected<double> finish(StartedCall& call, std::span<const Tensor> params, std::vector<Tensor>& results,
                          CallMemory& memory);

  const GpuCounters& counters() const { return counters_; }

 private:
  GpuLibrary(const NativeCode& code, std::shared_ptr<SharedGpu> gpu) : code_(&code), gpu_(std::move(gpu)) {}
  Expected<std::unique_ptr<StartedCall>> start(std::unique_lock<std::mutex> in_use, size_t kernel,
                                               std::span<const Tensor> params);
  Status queue(StartedCall& call, std::span<const Tensor> params);
  Status read(StartedCall& call, std::span<Tensor> results);
  // `kept`: the temporaries' memory, which is not released.
  Status launch(const NativeKernel& kernel, std::vector<uint64_t> addresses, const KnownDims& known,
                std::vector<Memory>* kept = nullptr);
  CommandList* list_of(size_t kernel, const std::vector<int64_t>& dims, const std::vector<Address>& constants);
  Status record(CommandList& list, std::span<const Tensor> params, const KnownDims& known);
  Status replay(const CommandList& list, StartedCall& call, std::span<const Tensor> params);
  std::unexpected<Diagnostic> located(size_t kernel, Diagnostic diagnostic) const;
  Status launch_one(const GpuLaunch& launch, const std::vector<uint64_t>& addresses, const KnownDims& dims);
  Expected<Memory> allocate(const SignatureBuffer& buffer, const KnownDims& dims);
  Expected<Memory> allocate(uint64_t bytes);
  Expected<Memory> constant_memory(const Tensor& param);  // no address: the parameter is no constant
  Status upload(const Memory& to, const Tensor& param);

  const NativeCode* code_;
  std::shared_ptr<SharedGpu> gpu_;
  const Code* loaded_ = nullptr;
  std::map<const std::byte*, Memory> constants_;  // by their memory on the host; no address: not copied yet
  std::vector<std::unique_ptr<CommandList>> lists_;
  GpuCounters counters_;
};

}  // namespace tenon::runtime::cuda
