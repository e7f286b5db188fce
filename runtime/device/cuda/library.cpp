#include "runtime/device/cuda/library.h"

#include <fmt/format.h>

#include <utility>

#include "support/try.h"

namespace tenon::runtime::cuda {
namespace {

// Gives memory back at the end of a call, also of one that fails.
class Release {
 public:
  Release(Gpu& gpu, const std::vector<Memory>& owned) : gpu_(gpu), owned_(owned) {}
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release() {
    for (const Memory& memory : owned_) gpu_.release(memory);
  }

 private:
  Gpu& gpu_;
  const std::vector<Memory>& owned_;
};

Expected<uint64_t> bytes_of(const SignatureBuffer& buffer, const KnownDims& dims) {
  Shape shape;
  for (const Size& axis : buffer.axes) {
    const auto size = evaluate(axis, dims);
    if (!size || *size < 0)
      return error(fmt::format("a size of '{}' must be 0 or more and at most 64 bits", buffer.name));
    shape.push_back(*size);
  }
  const auto bytes = checked_bytes(buffer.dtype, shape);
  if (!bytes) return error(fmt::format("'{}' would be a {} of {}", buffer.name, to_string(shape), name(buffer.dtype)));
  return static_cast<uint64_t>(*bytes);
}

Expected<int64_t> value_of(const Size& size, const KnownDims& dims, const GpuLaunch& launch, std::string_view what) {
  const auto value = evaluate(size, dims);
  if (!value) return error(fmt::format("{} of '{}' is beyond 64 bits", what, launch.entry));
  return *value;
}

Expected<std::array<int64_t, 3>> blocks_of(const GpuLaunch& launch, const KnownDims& dims) {
  std::array<int64_t, 3> blocks{};
  for (size_t axis = 0; axis < 3; ++axis) {
    TENON_TRY_ASSIGN(count, value_of(launch.grid[axis], dims, launch, "the number of blocks"));
    blocks[axis] = *count;
  }
  return blocks;
}

}  // namespace

Expected<GpuLibrary> GpuLibrary::load(const NativeCode& code, std::shared_ptr<SharedGpu> gpu,
                                      std::span<const Tensor> constants) {
  GpuLibrary library(code, std::move(gpu));
  std::vector<std::pair<uint32_t, std::string>> sites;
  for (const GpuFaultSite& site : code.sites) sites.emplace_back(site.fault, site.where);
  const std::string ptx(reinterpret_cast<const char*>(code.object.data()), code.object.size());
  const std::lock_guard lock(library.gpu_->in_use);
  TENON_TRY_ASSIGN(loaded, library.gpu_->gpu.load(ptx, std::move(sites)));
  library.loaded_ = *loaded;
  for (const Tensor& constant : constants) library.constants_.emplace(constant.bytes().data(), Memory{});
  return library;
}

Status GpuLibrary::call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results,
                        CallMemory& memory) {
  const NativeKernel& called = code_->kernels[kernel];
  Status status = bind_dims(called.signature, params, memory);
  if (status) status = make_results(called.signature, params, memory, results);
  if (status) status = run(called, params, results, memory.dims);
  if (!status && status.error().where.empty()) status.error().where = "@" + called.name;
  return status;
}

// The parameter's memory on the GPU; what is not a constant belongs to the call.
Expected<Memory> GpuLibrary::copy(const Tensor& param, std::vector<Memory>& owned) {
  Gpu& gpu = gpu_->gpu;
  const auto constant = constants_.find(param.bytes().data());
  const bool is_constant = constant != constants_.end() && !param.bytes().empty();
  if (is_constant && constant->second.bytes == param.bytes().size()) return constant->second;
  TENON_TRY_ASSIGN(memory, gpu.allocate(param.bytes().size()));
  owned.push_back(*memory);
  TENON_TRY(gpu.upload(*memory, param.bytes()));
  ++counters_.uploads;
  counters_.uploaded_bytes += param.bytes().size();
  if (is_constant && constant->second.bytes == 0) {
    owned.pop_back();
    constant->second = *memory;
  }
  return memory;
}

Status GpuLibrary::run(const NativeKernel& kernel, std::span<const Tensor> params, std::span<Tensor> results,
                       std::span<const int64_t> dims) {
  const std::lock_guard lock(gpu_->in_use);
  Gpu& gpu = gpu_->gpu;
  std::vector<Memory> owned;
  const Release release(gpu, owned);
  std::vector<uint64_t> addresses;
  for (const Tensor& param : params) {
    TENON_TRY_ASSIGN(memory, copy(param, owned));
    addresses.push_back(memory->address);
  }
  const size_t first_result = owned.size();
  for (const Tensor& result : results) {
    TENON_TRY_ASSIGN(memory, gpu.allocate(result.bytes().size()));
    owned.push_back(*memory);
    addresses.push_back(memory->address);
  }
  TENON_TRY(launch(kernel, std::move(addresses), dims));
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_TRY(gpu.download(results[i].bytes(), owned[first_result + i]));
    ++counters_.downloads;
    counters_.downloaded_bytes += results[i].bytes().size();
  }
  return results.empty() ? gpu.wait() : Status();
}

// Launches run in their order, so the memory of a temporary serves others as soon as its last launch is queued.
Status GpuLibrary::launch(const NativeKernel& kernel, std::vector<uint64_t> addresses, std::span<const int64_t> dims) {
  Gpu& gpu = gpu_->gpu;
  const KnownDims known(dims.begin(), dims.end());
  const size_t first = addresses.size();  // temporary
  std::vector<size_t> last(kernel.temporaries.size(), 0);
  for (size_t i = 0; i < kernel.launches.size(); ++i)
    for (const uint32_t buffer : kernel.launches[i].buffers)
      if (buffer >= first) last[buffer - first] = i;
  addresses.resize(first + kernel.temporaries.size(), 0);
  std::map<size_t, Memory> live;  // by temporary
  Status status;
  for (size_t i = 0; i < kernel.launches.size() && status; ++i) {
    for (const uint32_t buffer : kernel.launches[i].buffers) {
      if (buffer < first || live.contains(buffer - first) || !status) continue;
      auto memory = allocate(kernel.temporaries[buffer - first], known);
      if (!memory) {
        status = std::unexpected(std::move(memory.error()));
        break;
      }
      live.emplace(buffer - first, *memory);
      addresses[buffer] = memory->address;
    }
    if (status) status = launch_one(kernel.launches[i], addresses, known);
    std::erase_if(live, [&](const auto& entry) {
      if (last[entry.first] == i) gpu.release(entry.second);
      return last[entry.first] == i;
    });
  }
  for (const auto& [temporary, memory] : live) gpu.release(memory);
  return status;
}

Expected<Memory> GpuLibrary::allocate(const SignatureBuffer& buffer, const KnownDims& dims) {
  TENON_TRY_ASSIGN(bytes, bytes_of(buffer, dims));
  return gpu_->gpu.allocate(*bytes);
}

Status GpuLibrary::launch_one(const GpuLaunch& launch, const std::vector<uint64_t>& addresses, const KnownDims& dims) {
  TENON_TRY_ASSIGN(blocks, blocks_of(launch, dims));
  std::vector<uint64_t> arguments;
  for (const uint32_t buffer : launch.buffers) arguments.push_back(addresses[buffer]);
  for (const Size& size : launch.sizes) {
    TENON_TRY_ASSIGN(value, value_of(size, dims, launch, "a size"));
    arguments.push_back(static_cast<uint64_t>(*value));
  }
  const auto& [x, y, z] = launch.threads;
  TENON_TRY(gpu_->gpu.launch(*loaded_, launch.entry, *blocks, {x, y, z}, arguments));
  ++counters_.launches;
  return {};
}

}  // namespace tenon::runtime::cuda
