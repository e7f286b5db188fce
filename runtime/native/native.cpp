#include "runtime/native/native.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>

#include "runtime/native/call.h"
#include "runtime/native/shared_object.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "x86_64";
std::vector<std::string_view> find_levels() {
  std::vector<std::string_view> levels;
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni")) levels.push_back("x86-64-v4+vnni");
  if (__builtin_cpu_supports("x86-64-v4")) levels.push_back("x86-64-v4");
  if (__builtin_cpu_supports("x86-64-v3") && __builtin_cpu_supports("avxvnni")) levels.push_back("x86-64-v3+vnni");
  if (__builtin_cpu_supports("x86-64-v3")) levels.push_back("x86-64-v3");
  if (__builtin_cpu_supports("x86-64-v2")) levels.push_back("x86-64-v2");
  levels.push_back("x86-64");
  return levels;
}
#elif defined(__aarch64__)
constexpr std::string_view kArchitecture = "aarch64";
std::vector<std::string_view> find_levels() {
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  std::vector<std::string_view> levels;
  if (getauxval(AT_HWCAP) & kDotProduct) levels.push_back("armv8.2-a+dotprod");
  levels.push_back("armv8-a");
  return levels;
}
#elif defined(__arm__)
constexpr std::string_view kArchitecture = "armv7";
std::vector<std::string_view> find_levels() {
  constexpr unsigned long kNeon = 1ul << 12;  // HWCAP_NEON
  std::vector<std::string_view> levels;
  if (getauxval(AT_HWCAP) & kNeon) levels.push_back("armv7-a+neon");
  levels.push_back("armv7-a");
  return levels;
}
#elif defined(__riscv) && __riscv_xlen == 64
constexpr std::string_view kArchitecture = "riscv64";
std::vector<std::string_view> find_levels() {
  constexpr unsigned long kVector = 1ul << ('v' - 'a');  // the kernel has a bit for each single-letter extension
  std::vector<std::string_view> levels;
  if (getauxval(AT_HWCAP) & kVector) levels.push_back("rv64gcv");
  levels.push_back("rv64gc");
  return levels;
}
#else  // LLVM's names of other architectures
#if defined(__i386__)
constexpr std::string_view kArchitecture = "i386";
#elif defined(__loongarch64)
constexpr std::string_view kArchitecture = "loongarch64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
constexpr std::string_view kArchitecture = "powerpc64le";
#else
constexpr std::string_view kArchitecture = "unknown";
#endif
std::vector<std::string_view> find_levels() { return {"generic"}; }
#endif

}  // namespace

Expected<const tn_variant*> best_variant(const tn_library& library, std::string_view level) {
  std::vector<std::string_view> levels;
  for (uint32_t i = 0; i < library.variants; ++i) {
    const std::string_view name = library.variant[i].level;
    levels.push_back(name);
    if ((level.empty() || name == level) && std::ranges::find(host_levels(), name) != host_levels().end())
      return &library.variant[i];
  }
  return error(fmt::format("the native code has the levels {}, and {}", fmt::join(levels, ", "),
                           level.empty() ? fmt::format("this processor has {}", fmt::join(host_levels(), ", "))
                                         : fmt::format("{} is not one of them that this processor has", level)));
}

Status verify(const NativeCode& code, std::string_view where) {
  const bool is_gpu = code.is_for_gpu();
  if (!is_gpu && !code.sites.empty())
    return error(fmt::format("code for {} has the fault sites of a GPU", code.triple), std::string(where));
  if (is_gpu && std::ranges::find(code.object, std::byte{0}) != code.object.end())
    return error("the PTX has a byte 0", std::string(where));
  for (const NativeKernel& kernel : code.kernels) {
    const std::string of = fmt::format("{}: native kernel '{}'", where, kernel.name);
    TENON_TRY(verify(kernel.signature, of));
    if (!is_gpu && (!kernel.launches.empty() || !kernel.temporaries.empty()))
      return error(fmt::format("it launches kernels of a GPU in code for {}", code.triple), of);
    const auto is_sound_here = [&](const Size& size) { return is_sound(size, kernel.signature.dims.size()); };
    for (const SignatureBuffer& buffer : kernel.temporaries) {
      if (buffer.axes.size() > kMaxRank || !std::ranges::all_of(buffer.axes, is_sound_here))
        return error(fmt::format("'{}' has a malformed size", buffer.name), of);
    }
    for (const GpuLaunch& launch : kernel.launches) {
      if (!std::ranges::all_of(launch.grid, is_sound_here))
        return error(fmt::format("the launch of '{}' has a malformed number of blocks", launch.entry), of);
      if (!std::ranges::all_of(launch.sizes, is_sound_here))
        return error(fmt::format("the launch of '{}' has a malformed size as argument", launch.entry), of);
      const size_t count = kernel.signature.params.size() + kernel.signature.results.size() + kernel.temporaries.size();
      if (std::ranges::any_of(launch.buffers, [&](uint32_t buffer) { return buffer >= count; }))
        return error(fmt::format("the launch of '{}' has a buffer that does not exist", launch.entry), of);
      const auto [x, y, z] = launch.threads;
      if (x == 0 || y == 0 || z == 0 || std::max({x, y, z}) > kMaxBlockThreads ||
          uint64_t{x} * y * z > kMaxBlockThreads)
        return error(fmt::format("the launch of '{}' has {} x {} x {} threads, a block has 1 to {}", launch.entry, x, y,
                                 z, kMaxBlockThreads),
                     of);
    }
  }
  return {};
}

std::string_view host_architecture() { return kArchitecture; }

std::span<const std::string_view> host_levels() {
  static const std::vector<std::string_view> levels = find_levels();
  return levels;
}

struct NativeLibrary::State {
  const NativeCode* code = nullptr;
  SharedObject object;
  const tn_library* library = nullptr;
  const tn_variant* variant = nullptr;
  std::vector<const LibraryFunction*> functions;  // that its kernels call
};

NativeLibrary::NativeLibrary(std::unique_ptr<State> state) : state_(std::move(state)) {}
NativeLibrary::NativeLibrary(NativeLibrary&&) noexcept = default;
NativeLibrary& NativeLibrary::operator=(NativeLibrary&&) noexcept = default;
NativeLibrary::~NativeLibrary() = default;
const NativeCode& NativeLibrary::code() const { return *state_->code; }
std::string_view NativeLibrary::level() const { return state_->variant->level; }

Expected<NativeLibrary> NativeLibrary::load(const NativeCode& code, std::string_view level) {
  const std::string where = "native code for " + code.triple;
  if (code.triple.substr(0, code.triple.find('-')) != kArchitecture) {
    return error(fmt::format("the native code is for {}, this processor is a {}", code.triple, kArchitecture), {},
                 fmt::format("tenon compile --target {} makes it for this one, --kernels reference for all",
                             kArchitecture == "armv7" ? "armhf" : kArchitecture));
  }
  auto state = std::make_unique<State>();
  state->code = &code;
  auto object = SharedObject::load(code.object);
  if (!object) {
    object.error().where = where;
    return std::unexpected(std::move(object.error()));
  }
  state->object = std::move(*object);
  auto get = reinterpret_cast<decltype(&tn_library_get)>(state->object.symbol("tn_library_get"));
  if (!get) return error("the native code has no tn_library_get", where);
  state->library = get();
  const tn_library& library = *state->library;
  if (!is_known_interface(library))
    return error(fmt::format("the native code has interface {}, this runtime has {}", library.abi, int{TN_ABI}), where,
                 "compile the model again with this version's tenon compile");
  if (library.count != code.kernels.size())
    return error(fmt::format("the native code has {} kernels, {} are named", library.count, code.kernels.size()),
                 where);
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    if (code.kernels[i].name != library.names[i])
      return error(
          fmt::format("kernel {} of the native code is '{}', not '{}'", i, library.names[i], code.kernels[i].name),
          where);
  }
  auto variant = best_variant(library, level);
  if (!variant) {
    variant.error().where = where;
    return std::unexpected(std::move(variant.error()));
  }
  state->variant = *variant;
  for (uint32_t i = 0; library.abi >= TN_ABI_FUNCTIONS && i < library.functions; ++i) {
    auto function = find_function(library.function[i].name);
    if (!function) {
      function.error().where = library.function[i].caller;
      return std::unexpected(std::move(function.error()));
    }
    state->functions.push_back(*function);
  }
  return NativeLibrary(std::move(state));
}

Expected<std::vector<Tensor>> NativeLibrary::call(size_t kernel, std::span<const Tensor> params,
                                                  ThreadPool& pool) const {
  CallMemory memory;
  std::vector<Tensor> results;
  TENON_TRY(call(kernel, params, results, memory, pool));
  return results;
}
Status NativeLibrary::call(size_t kernel, std::span<const Tensor> params, std::vector<Tensor>& results,
                           CallMemory& memory, ThreadPool& pool, const StopRequest* stop) const {
  assert(kernel < state_->code->kernels.size());
  const NativeKernel& called = state_->code->kernels[kernel];
  Status status = bind_dims(called.signature, params, memory);
  if (status) status = make_results(called.signature, params, memory, results);
  if (status) {
    auto tables = make_tables(called.signature, params, memory);
    if (tables) return run(kernel, params, results, memory.dims, *tables, pool, stop, &memory);
    status = std::unexpected(std::move(tables.error()));
  }
  if (status.error().where.empty()) status.error().where = "@" + called.name;
  return status;
}
Status NativeLibrary::call_into(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results,
                                ThreadPool& pool) const {
  const Signature& signature = state_->code->kernels[kernel].signature;
  CallMemory memory;
  TENON_TRY(bind_dims(signature, params, memory));
  assert(results.size() == signature.results.size());
  TENON_TRY_ASSIGN(tables, make_tables(signature, params, memory));
  return run(kernel, params, results, memory.dims, *tables, pool, nullptr, nullptr);
}
Status NativeLibrary::run(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results,
                          std::span<const int64_t> dims, std::span<const Table> tables, ThreadPool& pool,
                          const StopRequest* stop, CallMemory* memory) const {
  std::array<void*, 32> few;  // of most kernels
  const size_t count = params.size() + results.size() + tables.size();
  std::vector<void*> many(count <= few.size() ? 0 : count);
  void** const buffers = many.empty() ? few.data() : many.data();
  void** next = buffers;
  for (const Tensor& param : params) *next++ = const_cast<std::byte*>(param.bytes().data());
  for (Tensor& result : results) *next++ = result.bytes().data();
  for (const Table& table : tables) *next++ = table ? const_cast<int64_t*>(table->data()) : nullptr;
  return run(kernel, buffers, dims, pool, stop, memory);
}
Status NativeLibrary::call_buffers(size_t kernel, void* const* buffers, std::span<const int64_t> dims, ThreadPool& pool,
                                   const StopRequest* stop) const {
  assert(state_->code->kernels[kernel].signature.tables.empty());
  return run(kernel, buffers, dims, pool, stop, nullptr);
}
Status NativeLibrary::run(size_t kernel, void* const* buffers, std::span<const int64_t> dims, ThreadPool& pool,
                          const StopRequest* stop, CallMemory* memory) const {
  Call call = make_call(buffers, dims.data(), &pool);
  call.functions = state_->functions;
  call.stop = stop;
  call.result_memory = memory;
  int32_t failed = 0;
  const auto run_kernel = [&](Arena& arena) {
    call.arena = &arena;
    failed = state_->variant->kernels[kernel](&call);
  };
  pool.with_arena(std::ref(run_kernel));  // a reference, since a function object of this size would be on the heap
  if (failed == 0) return {};
  return std::unexpected(explain(call, *state_->library, "@" + state_->code->kernels[kernel].name));
}

Expected<std::vector<Tensor>> NativeLibrary::call(std::string_view kernel, std::span<const Tensor> params,
                                                  ThreadPool& pool) const {
  const auto found = std::ranges::find(state_->code->kernels, kernel, &NativeKernel::name);
  if (found == state_->code->kernels.end()) return error(fmt::format("there is no native kernel '{}'", kernel));
  return call(static_cast<size_t>(found - state_->code->kernels.begin()), params, pool);
}

}  // namespace tenon::runtime
