// The runtime's part of a kernel's tn_call: its thread's memory, the functions that it may call, and its fault.
// Internal to this folder.
#pragma once

#include <optional>
#include <string>

#include "runtime/native/functions.h"
#include "runtime/native/kernel.h"
#include "runtime/native/thread_pool.h"

namespace tenon::runtime {

struct Failure {
  uint32_t site = 0;
  int64_t found = 0, expected = 0;
  const LibraryFunction* in = nullptr;  // the function whose library has the site; nullptr: the kernel's own library
};

// A kernel sees the base class; each thread that works on the call has its own.
struct Call : tn_call {
  Arena* arena = nullptr;
  ThreadPool* pool = nullptr;                         // nullptr inside of a task
  std::span<const LibraryFunction* const> functions;  // by index
  std::optional<Failure> fault;
};

// Without an arena yet.
Call make_call(void* const* buffers, const int64_t* dims, ThreadPool& pool);

// The message for a failed call of one of the library's kernels; sets `where` to the site if there is one.
std::string explain(const Call& call, const tn_library& library, std::string& where);

inline bool is_known_interface(const tn_library& library) { return library.abi >= 1 && library.abi <= TN_ABI; }
// The library's first variant that this processor supports; with a `level`, the variant of that level.
Expected<const tn_variant*> best_variant(const tn_library& library, std::string_view level);

}  // namespace tenon::runtime
