// The runtime's part of a kernel's tn_call: its thread's memory, the functions that it may call, the results that it
// makes, and its fault. Kernels of the runtime itself, which adapt a C++ function to the interface, read it too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/native/functions.h"
#include "runtime/native/kernel.h"
#include "runtime/native/signature.h"
#include "runtime/native/stop_request.h"
#include "runtime/native/thread_pool.h"

namespace tenon::runtime {

struct Failure {
  uint32_t site = 0;
  int64_t found = 0, expected = 0;
  const LibraryFunction* in = nullptr;  // the function whose library has the site; nullptr: the kernel's own library
  Diagnostic refusal = {};              // of a kernel that reports a message
};

// A kernel sees the base class; each thread that works on the call has its own.
struct Call : tn_call {
  Arena* arena = nullptr;
  ThreadPool* pool = nullptr;                         // nullptr inside of a task
  std::span<const LibraryFunction* const> functions;  // by index
  std::optional<Failure> fault;
  const StopRequest* stop = nullptr;
  // Of an operator's kernel: its inputs, and the results that it has made so far, empty tensors before.
  std::span<const Tensor> tensors;
  std::vector<Tensor>* results = nullptr;
  CallMemory* result_memory = nullptr;  // also of a generated kernel, where the caller has given one
};

// Without an arena yet. `pool` may be nullptr for kernels that use neither threads nor memory of the call.
Call make_call(void* const* buffers, const int64_t* dims, ThreadPool* pool);

// Reports a kernel's fault by a diagnostic of its own; returns not 0.
int32_t refuse(Call& call, Diagnostic problem);

// The error of a failed call of one of the library's kernels. `where`: the kernel, for faults without a site.
Diagnostic explain(const Call& call, const tn_library& library, std::string where);

inline bool is_known_interface(const tn_library& library) { return library.abi >= 1 && library.abi <= TN_ABI; }
// The library's first variant that this processor supports; with a `level`, the variant of that level.
Expected<const tn_variant*> best_variant(const tn_library& library, std::string_view level);

}  // namespace tenon::runtime
