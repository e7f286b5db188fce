// Native kernels in this process: the code as a value, and as a loaded library that is called with tensors.
//
// Trust: native code runs with all rights of this process, whatever checks the other parts of a file have passed; a
// file with native code is loaded only if its user trusts its maker.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/native/kernel.h"
#include "runtime/native/signature.h"
#include "runtime/native/stop_request.h"
#include "runtime/native/thread_pool.h"

namespace tenon::runtime {

// One launch of a GPU's kernel: an entry of the PTX. Its arguments are addresses and then sizes, 8 bytes each.
struct GpuLaunch {
  std::string entry;
  std::vector<uint32_t> buffers;  // the addresses: indices into the parameters, results and temporaries, in this order
  std::vector<Size> sizes;        // over the signature's dims
  std::array<Size, 3> grid;       // blocks along x, y and z, likewise
  std::array<uint32_t, 3> threads{1, 1, 1};
  bool operator==(const GpuLaunch&) const = default;
};
inline constexpr uint64_t kMaxBlockThreads = 1024;  // of every GPU

struct NativeKernel {
  std::string name;
  Signature signature;
  // Of code for a GPU: buffers that its launches share, and the launches in their order.
  std::vector<SignatureBuffer> temporaries = {};
  std::vector<GpuLaunch> launches = {};
  bool operator==(const NativeKernel&) const = default;
};

// Where kernels of a GPU fail: what they record is an index into a list of these.
struct GpuFaultSite {
  uint32_t fault = 0;  // tn_fault
  std::string where;
  bool operator==(const GpuFaultSite&) const = default;
};

// A shared object with kernels for several levels of a processor, as an executable stores it; or PTX for GPUs.
struct NativeCode {
  std::string triple;               // "x86_64-unknown-linux-gnu"; kGpuTriple
  std::vector<std::string> levels;  // the best first: "x86-64-v4", ...; of PTX, the least: "sm_80"
  std::vector<std::byte> object;
  std::vector<NativeKernel> kernels;  // in the order of the library's
  std::vector<GpuFaultSite> sites = {};
  bool operator==(const NativeCode&) const = default;
  bool is_for_gpu() const;
};
inline constexpr std::string_view kGpuTriple = "nvptx64-nvidia-cuda";
inline bool NativeCode::is_for_gpu() const { return triple == kGpuTriple; }

// Checks what callers of the code rely on: signatures, and the launches of a GPU.
Status verify(const NativeCode& code, std::string_view where);

// The architecture of this process, as the first component of a triple: "x86_64"; and the levels that its processor
// supports, the best first.
std::string_view host_architecture();
std::span<const std::string_view> host_levels();

class NativeLibrary {
 public:
  // Loads the object for level `level`, or for the best level that this processor supports if it is empty. `code`
  // outlives the library. Errors: the code is for another architecture, or for no level that this processor supports;
  // the object is not a library of this version of the interface, or its kernels are not those of `code`.
  static Expected<NativeLibrary> load(const NativeCode& code, std::string_view level = {});
  NativeLibrary(NativeLibrary&&) noexcept;
  NativeLibrary& operator=(NativeLibrary&&) noexcept;
  ~NativeLibrary();

  const NativeCode& code() const;
  std::string_view level() const;

  // The kernel's results for these tensors, computed by the pool's threads. Errors: tensors that do not match the
  // signature, and faults of the kernel, whose messages name the loop function and the stage.
  Expected<std::vector<Tensor>> call(size_t kernel, std::span<const Tensor> params, ThreadPool& pool) const;
  // The same with memory of the caller; `results` is replaced. A kernel in parallel tasks ends with an error at the
  // first task that begins after `stop` is reached.
  Status call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results, CallMemory& memory,
              ThreadPool& pool, const StopRequest* stop = nullptr) const;
  // The same, into existing tensors: they have the types and shapes of the signature (asserted), and none of them is a
  // parameter.
  Status call_into(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results, ThreadPool& pool) const;
  // The same on memory, of a kernel without tables: params, then results, of the shapes that give the signature's dims
  // these values.
  Status call_buffers(size_t kernel, void* const* buffers, std::span<const int64_t> dims, ThreadPool& pool,
                      const StopRequest* stop = nullptr) const;
  // Calls a kernel by name; an unknown name is an error.
  Expected<std::vector<Tensor>> call(std::string_view kernel, std::span<const Tensor> params, ThreadPool& pool) const;

 private:
  using Table = std::shared_ptr<const std::vector<int64_t>>;
  Status run(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results, std::span<const int64_t> dims,
             std::span<const Table> tables, ThreadPool& pool, const StopRequest* stop, CallMemory* memory) const;
  Status run(size_t kernel, void* const* buffers, std::span<const int64_t> dims, ThreadPool& pool,
             const StopRequest* stop, CallMemory* memory) const;

  struct State;
  explicit NativeLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
