#include "runtime/native/call.h"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <functional>
#include <mutex>

#include "runtime/native/fault.h"

namespace tenon::runtime {
namespace {

// Sites that no library has.
constexpr uint32_t kNoMemory = UINT32_MAX;
constexpr uint32_t kUnreported = UINT32_MAX - 1;  // of a kernel that fails and reports nothing

int32_t fail(tn_call* base, uint32_t site, int64_t found, int64_t expected) {
  auto& call = *static_cast<Call*>(base);
  if (!call.fault) call.fault = {site, found, expected};
  return 1;
}

void* allocate(tn_call* base, int64_t bytes) {
  void* memory = static_cast<Call*>(base)->arena->allocate(bytes);
  if (!memory) fail(base, kNoMemory, bytes, 0);
  return memory;
}

void release(tn_call* base, void* memory) { static_cast<Call*>(base)->arena->release(memory); }

int32_t parallel(tn_call* base, tn_task task, void* data, int64_t count) {
  auto& call = *static_cast<Call*>(base);
  if (!call.pool) {
    for (int64_t i = 0; i < count; ++i) {
      if (const int32_t failed = task(base, data, i); failed != 0) return failed;
    }
    return 0;
  }
  std::mutex mutex;
  int64_t first = INT64_MAX;  // the smallest index that failed, and its fault
  std::optional<Failure> fault;
  const auto run_task = [&](Arena& arena, int64_t index) {
    Call task_call = call;
    task_call.arena = &arena;
    task_call.pool = nullptr;
    task_call.fault.reset();
    if (task(&task_call, data, index) == 0) return true;
    const std::lock_guard lock(mutex);
    if (index < first) first = index, fault = task_call.fault;
    return false;
  };
  const int64_t failed = call.pool->run(count, std::ref(run_task));  // as in NativeLibrary::run()
  if (failed < 0) return 0;
  if (fault && !call.fault) call.fault = fault;
  return 1;
}

int32_t function(tn_call* base, uint32_t index, void* const* buffers, const int64_t* dims, const tn_operand* operands,
                 uint32_t inputs, uint32_t outputs) {
  auto& call = *static_cast<Call*>(base);
  assert(index < call.functions.size());
  const LibraryFunction& callee = *call.functions[index];
  Call inner = call;
  inner.buffers = buffers;
  inner.dims = dims;
  inner.operands = operands;
  inner.inputs = inputs;
  inner.outputs = outputs;
  inner.functions = {};
  inner.function = nullptr;
  inner.fault.reset();
  const size_t position = call.arena->position();
  const int32_t failed = callee.kernel(&inner);
  call.arena->reset(position);
  if (failed == 0) return 0;
  if (!call.fault) {
    call.fault = inner.fault.value_or(Failure{kUnreported});
    call.fault->in = &callee;
  }
  return 1;
}

}  // namespace

std::string fault_message(uint32_t fault, int64_t found, int64_t expected) {
  switch (static_cast<tn_fault>(fault)) {
    case TN_FAULT_DIVISION: return "an integer is divided by 0";
    case TN_FAULT_INDEX: return fmt::format("the index {} is not in 0 .. {}", found, expected - 1);
    case TN_FAULT_CONVERSION:
      return fmt::format("{} does not fit into {}", std::bit_cast<double>(found),
                         expected >= 0 && expected < static_cast<int64_t>(kDTypeCount)
                             ? name(static_cast<DType>(expected))
                             : "its type");
    case TN_FAULT_SIZE_DIVISION: return "a size is divided by 0";
    case TN_FAULT_SIZE: return fmt::format("a buffer would have {} elements", found);
    case TN_FAULT_OTHER: break;
  }
  return "the kernel failed";
}

// tn_dtype is the C form of DType.
static_assert(TN_BOOL == static_cast<int>(DType::kBool) && TN_U8 == static_cast<int>(DType::kU8) &&
              TN_I64 == static_cast<int>(DType::kI64) && TN_F64 == static_cast<int>(DType::kF64) &&
              TN_U32 == static_cast<int>(DType::kU32) && TN_BF16 == static_cast<int>(DType::kBF16));

Call make_call(void* const* buffers, const int64_t* dims, ThreadPool& pool) {
  Call call{};
  call.size = sizeof(tn_call);
  call.threads = pool.threads();
  call.buffers = buffers;
  call.dims = dims;
  call.parallel = parallel;
  call.fail = fail;
  call.allocate = allocate;
  call.release = release;
  call.function = function;
  call.pool = &pool;
  return call;
}

std::string explain(const Call& call, const tn_library& kernel_library, std::string& where) {
  const Failure fault = call.fault.value_or(Failure{kUnreported});
  const tn_library& library = fault.in ? *fault.in->library : kernel_library;
  const tn_site* site = fault.site < library.sites ? &library.site[fault.site] : nullptr;
  if (fault.in) {
    where += fmt::format(", library function '{}' of {}", fault.in->name, fault.in->file);
    if (site) where += fmt::format(": {}", site->where);
  } else if (site) {
    where = site->where;
  }
  if (site) return fault_message(site->fault, fault.found, fault.expected);
  if (fault.site == kNoMemory) return fmt::format("not enough memory for {} bytes", fault.found);
  return fault.in ? "the library function failed" : "the kernel failed";
}

}  // namespace tenon::runtime
