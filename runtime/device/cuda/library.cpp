#include "runtime/device/cuda/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/try.h"

namespace tenon::runtime::cuda {
namespace {

constexpr size_t kMostLists = 16;  // of a kernel: one for each of the sizes that it is called with

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

StartedCall::~StartedCall() {
  if (!ended_) (void)gpu_.wait();  // no caller waits for a fault
  for (const Memory& memory : owned_) gpu_.release(memory);
}

Expected<double> GpuLibrary::call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results,
                                  CallMemory& memory) {
  TENON_TRY_ASSIGN(started, start(kernel, params));
  return finish(**started, params, results, memory);
}

Expected<std::unique_ptr<StartedCall>> GpuLibrary::start(size_t kernel, std::span<const Tensor> params) {
  return start(std::unique_lock(gpu_->in_use), kernel, params);
}

Expected<std::unique_ptr<StartedCall>> GpuLibrary::try_start(size_t kernel, std::span<const Tensor> params) {
  std::unique_lock in_use(gpu_->in_use, std::try_to_lock);
  if (!in_use) return nullptr;
  return start(std::move(in_use), kernel, params);
}

Expected<std::unique_ptr<StartedCall>> GpuLibrary::start(std::unique_lock<std::mutex> in_use, size_t kernel,
                                                         std::span<const Tensor> params) {
  auto call = std::make_unique<StartedCall>(std::move(in_use), gpu_->gpu);
  call->kernel_ = kernel;
  if (Status status = queue(*call, params); !status) return located(kernel, std::move(status.error()));
  return call;
}

Expected<double> GpuLibrary::finish(StartedCall& call, std::span<const Tensor> params, std::vector<Tensor>& results,
                                    CallMemory& memory) {
  memory.dims = call.dims_;
  Status status = make_results(code_->kernels[call.kernel_].signature, params, memory, results);
  if (status) status = read(call, results);
  if (!status) return located(call.kernel_, std::move(status.error()));
  TENON_TRY_ASSIGN(seconds, call.gpu_.interval_seconds());
  counters_.seconds += *seconds;
  return *seconds;
}

std::unexpected<Diagnostic> GpuLibrary::located(size_t kernel, Diagnostic diagnostic) const {
  if (diagnostic.where.empty()) diagnostic.where = "@" + code_->kernels[kernel].name;
  return std::unexpected(std::move(diagnostic));
}

// Where a constant is on the GPU; it is copied at its first use.
Expected<Memory> GpuLibrary::constant_memory(const Tensor& param) {
  const auto constant = constants_.find(param.bytes().data());
  if (constant == constants_.end() || param.bytes().empty()) return Memory{};
  if (constant->second.bytes == param.bytes().size()) return constant->second;
  if (constant->second.bytes != 0) return Memory{};  // a part of another one
  TENON_TRY_ASSIGN(memory, allocate(param.bytes().size()));
  if (Status copied = upload(*memory, param); !copied) {
    gpu_->gpu.release(*memory);
    return std::unexpected(std::move(copied.error()));
  }
  constant->second = *memory;
  return memory;
}

Status GpuLibrary::upload(const Memory& to, const Tensor& param) {
  TENON_TRY(gpu_->gpu.upload(to, param.bytes()));
  ++counters_.uploads;
  counters_.uploaded_bytes += param.bytes().size();
  return {};
}

// Copies the parameters and queues the launches: one by one, or as the list that an earlier call has recorded.
Status GpuLibrary::queue(StartedCall& call, std::span<const Tensor> params) {
  const NativeKernel& kernel = code_->kernels[call.kernel_];
  TENON_TRY_ASSIGN(dims, bind_dims(kernel.signature, params));
  call.dims_ = std::move(*dims);
  const KnownDims known(call.dims_.begin(), call.dims_.end());
  std::vector<Address> constants;
  for (const Tensor& param : params) {
    TENON_TRY_ASSIGN(memory, constant_memory(param));
    constants.push_back(memory->address);
  }
  if (CommandList* const list = list_of(call.kernel_, call.dims_, constants)) {
    // What cannot be recorded, as for lack of memory, is launched one by one.
    if (!list->list && !list->is_refused && !record(*list, params, known)) {
      list->is_refused = true;
      list->release();
    }
    if (list->list) return replay(*list, call, params);
  }
  std::vector<uint64_t> addresses(constants.begin(), constants.end());
  for (size_t i = 0; i < params.size(); ++i) {
    if (addresses[i] != 0) continue;
    TENON_TRY_ASSIGN(memory, allocate(params[i].bytes().size()));
    call.owned_.push_back(*memory);
    TENON_TRY(upload(*memory, params[i]));
    addresses[i] = memory->address;
  }
  for (const SignatureBuffer& result : kernel.signature.results) {
    TENON_TRY_ASSIGN(memory, allocate(result, known));
    call.owned_.push_back(*memory);
    call.results_.push_back(*memory);
    addresses.push_back(memory->address);
  }
  TENON_TRY(gpu_->gpu.begin_interval());
  TENON_TRY(launch(kernel, std::move(addresses), known));
  return gpu_->gpu.end_interval();
}

// --- Lists ---

CommandList::~CommandList() { release(); }

void CommandList::release() {
  if (list) gpu.destroy(std::exchange(list, nullptr));
  for (auto* memories : {&params, &results, &temporaries}) {
    for (const Memory& memory : *memories) gpu.release(memory);
    memories->clear();
  }
}

// The second call of its kind has a list; the first one only says that there may be one.
CommandList* GpuLibrary::list_of(size_t kernel, const std::vector<int64_t>& dims,
                                 const std::vector<Address>& constants) {
  if (!gpu_->gpu.records_lists()) return nullptr;
  size_t count = 0;
  for (const auto& list : lists_) {
    if (list->kernel != kernel) continue;
    if (list->dims == dims && list->constants == constants) return list.get();
    ++count;
  }
  if (count < kMostLists) lists_.push_back(std::make_unique<CommandList>(gpu_->gpu, kernel, dims, constants));
  return nullptr;
}

Status GpuLibrary::record(CommandList& list, std::span<const Tensor> params, const KnownDims& known) {
  const NativeKernel& kernel = code_->kernels[list.kernel];
  Gpu& gpu = gpu_->gpu;
  std::vector<uint64_t> addresses(list.constants.begin(), list.constants.end());
  const auto take = [&](uint64_t bytes, std::vector<Memory>& to) -> Expected<Address> {
    TENON_TRY_ASSIGN(memory, gpu.allocate(bytes));
    to.push_back(*memory);
    return memory->address;
  };
  for (size_t i = 0; i < params.size(); ++i) {
    if (addresses[i] != 0) continue;
    TENON_TRY_ASSIGN(address, take(params[i].bytes().size(), list.params));
    addresses[i] = *address;
  }
  for (const SignatureBuffer& result : kernel.signature.results) {
    TENON_TRY_ASSIGN(bytes, bytes_of(result, known));
    TENON_TRY_ASSIGN(address, take(*bytes, list.results));
    addresses.push_back(*address);
  }
  TENON_TRY(gpu.begin_list());
  const uint64_t launches = counters_.launches;
  const Status launched = launch(kernel, std::move(addresses), known, &list.temporaries);
  counters_.launches = launches;
  auto recorded = gpu.end_list();
  if (!launched) {
    if (recorded) gpu.destroy(*recorded);
    return launched;
  }
  if (!recorded) return std::unexpected(std::move(recorded.error()));
  list.list = *recorded;
  ++counters_.recorded_lists;
  return {};
}

Status GpuLibrary::replay(const CommandList& list, StartedCall& call, std::span<const Tensor> params) {
  auto memory = list.params.begin();
  for (size_t i = 0; i < params.size(); ++i) {
    if (list.constants[i] == 0) TENON_TRY(upload(*memory++, params[i]));
  }
  call.results_ = list.results;
  TENON_TRY(gpu_->gpu.begin_interval());
  TENON_TRY(gpu_->gpu.launch(list.list));
  TENON_TRY(gpu_->gpu.end_interval());
  counters_.launches += code_->kernels[list.kernel].launches.size();
  ++counters_.replayed_lists;
  return {};
}

Status GpuLibrary::read(StartedCall& call, std::span<Tensor> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_TRY(call.gpu_.download(results[i].bytes(), call.results_[i]));
    call.ended_ = true;
    ++counters_.downloads;
    counters_.downloaded_bytes += results[i].bytes().size();
  }
  call.ended_ = true;
  return results.empty() ? call.gpu_.wait() : Status();
}

// Launches run in their order, so the memory of a temporary serves others as soon as its last launch is queued.
Status GpuLibrary::launch(const NativeKernel& kernel, std::vector<uint64_t> addresses, const KnownDims& known,
                          std::vector<Memory>* kept) {
  Gpu& gpu = gpu_->gpu;
  const size_t first = addresses.size();  // temporary
  std::vector<size_t> last(kernel.temporaries.size(), 0);
  for (size_t i = 0; i < kernel.launches.size(); ++i)
    for (const uint32_t buffer : kernel.launches[i].buffers)
      if (buffer >= first) last[buffer - first] = i;
  addresses.resize(first + kernel.temporaries.size(), 0);
  std::map<size_t, Memory> live;  // by temporary
  std::vector<Memory> idle;       // of those that are kept
  const auto take = [&](const SignatureBuffer& buffer) -> Expected<Memory> {
    if (!kept) return allocate(buffer, known);
    TENON_TRY_ASSIGN(bytes, bytes_of(buffer, known));
    const auto fits = [&](const Memory& memory) { return memory.bytes >= *bytes && memory.bytes / 2 <= *bytes; };
    if (const auto found = std::ranges::find_if(idle, fits); found != idle.end()) {
      const Memory memory = *found;
      idle.erase(found);
      return memory;
    }
    TENON_TRY_ASSIGN(memory, gpu.allocate(*bytes));
    kept->push_back(*memory);
    return memory;
  };
  const auto give_back = [&](const Memory& memory) {
    if (kept) idle.push_back(memory);
    else gpu.release(memory);
  };
  Status status;
  for (size_t i = 0; i < kernel.launches.size() && status; ++i) {
    for (const uint32_t buffer : kernel.launches[i].buffers) {
      if (buffer < first || live.contains(buffer - first) || !status) continue;
      auto memory = take(kernel.temporaries[buffer - first]);
      if (!memory) {
        status = std::unexpected(std::move(memory.error()));
        break;
      }
      live.emplace(buffer - first, *memory);
      addresses[buffer] = memory->address;
    }
    if (status) status = launch_one(kernel.launches[i], addresses, known);
    std::erase_if(live, [&](const auto& entry) {
      if (last[entry.first] == i) give_back(entry.second);
      return last[entry.first] == i;
    });
  }
  for (const auto& [temporary, memory] : live) give_back(memory);
  return status;
}

Expected<Memory> GpuLibrary::allocate(const SignatureBuffer& buffer, const KnownDims& dims) {
  TENON_TRY_ASSIGN(bytes, bytes_of(buffer, dims));
  return allocate(*bytes);
}
// Lists give their memory back before a call fails for lack of it.
Expected<Memory> GpuLibrary::allocate(uint64_t bytes) {
  auto memory = gpu_->gpu.allocate(bytes);
  if (memory || lists_.empty()) return memory;
  lists_.clear();
  return gpu_->gpu.allocate(bytes);
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
