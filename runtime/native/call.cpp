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
constexpr uint32_t kRefused = UINT32_MAX - 2;     // of a kernel that reports a message
constexpr uint32_t kStopped = UINT32_MAX - 3;     // of a kernel that was told to end

int32_t fail(tn_call* base, uint32_t site, int64_t found, int64_t expected) {
  auto& call = *static_cast<Call*>(base);
  if (!call.fault) call.fault = {site, found, expected};
  return 1;
}

int32_t refuse_text(tn_call* base, const char* message) {
  return refuse(*static_cast<Call*>(base), {.what = message, .where = {}, .help = {}});
}

int32_t stopped(tn_call* base) {
  const auto& call = *static_cast<Call*>(base);
  return call.stop && call.stop->is_reached() ? 1 : 0;
}

void* result(tn_call* base, uint32_t output, uint32_t dtype, uint32_t rank, const int64_t* sizes) {
  auto& call = *static_cast<Call*>(base);
  const auto wrong = [&](std::string what) {
    refuse(call, {.what = std::move(what), .where = {}, .help = {}});
    return nullptr;
  };
  if (!call.results) return wrong("the kernel asks for a result, but its results have memory");
  if (output >= call.results->size())
    return wrong(fmt::format("the kernel makes result {}, and has {}", output, call.results->size()));
  if ((*call.results)[output]) return wrong(fmt::format("the kernel makes result {} twice", output));
  if (dtype >= kDTypeCount) return wrong(fmt::format("result {} has dtype {}, which does not exist", output, dtype));
  const std::span shape(sizes, rank);
  const auto bytes = checked_bytes(static_cast<DType>(dtype), shape);
  if (!bytes) return wrong(fmt::format("result {} cannot be of shape {}", output, to_string(shape)));
  Storage storage = call.result_memory->storage(output, static_cast<size_t>(*bytes));
  if (!storage.memory) {
    fail(base, kNoMemory, *bytes, 0);
    return nullptr;
  }
  Shape of_result = call.result_memory->shape();
  of_result.assign(shape.begin(), shape.end());
  Tensor& made = (*call.results)[output];
  made = Tensor::in(std::move(storage), static_cast<DType>(dtype), std::move(of_result));
  return made.bytes().data();
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
      if (stopped(base) != 0) return fail(base, kStopped, 0, 0);
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
    const bool ends = stopped(&task_call) != 0;
    if (ends) fail(&task_call, kStopped, 0, 0);
    if (!ends && task(&task_call, data, index) == 0) return true;
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
  inner.state = nullptr;
  inner.functions = {};
  inner.function = nullptr;
  inner.results = nullptr;
  inner.fault.reset();
  const size_t position = call.arena->position();
  if (call.result_memory) call.result_memory->called_function = true;
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

Call make_call(void* const* buffers, const int64_t* dims, ThreadPool* pool) {
  Call call{};
  call.size = sizeof(tn_call);
  call.threads = pool ? pool->threads() : 1;
  call.buffers = buffers;
  call.dims = dims;
  call.parallel = parallel;
  call.fail = fail;
  call.allocate = allocate;
  call.release = release;
  call.function = function;
  call.result = result;
  call.refuse = refuse_text;
  call.stopped = stopped;
  call.pool = pool;
  return call;
}

int32_t refuse(Call& call, Diagnostic problem) {
  if (!call.fault) call.fault = {.site = kRefused, .refusal = std::move(problem)};
  return 1;
}

Diagnostic explain(const Call& call, const tn_library& kernel_library, std::string where) {
  const Failure fault = call.fault.value_or(Failure{kUnreported});
  const tn_library& library = fault.in ? *fault.in->library : kernel_library;
  const tn_site* site = fault.site < library.sites ? &library.site[fault.site] : nullptr;
  Diagnostic problem = fault.refusal;
  if (site) problem.what = fault_message(site->fault, fault.found, fault.expected);
  else if (fault.site == kNoMemory) problem.what = fmt::format("not enough memory for {} bytes", fault.found);
  else if (fault.site == kStopped) problem.what = "the kernel was stopped";
  else if (fault.site != kRefused) problem.what = fault.in ? "the library function failed" : "the kernel failed";
  if (fault.in) {
    where += fmt::format("{}library function '{}' of {}", where.empty() ? "" : ", ", fault.in->name, fault.in->file);
    if (site) where += fmt::format(": {}", site->where);
  } else if (site) {
    where = site->where;
  }
  if (problem.where.empty()) problem.where = std::move(where);
  return problem;
}

}  // namespace tenon::runtime
