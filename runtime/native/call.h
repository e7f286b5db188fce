// What stands behind a kernel's tn_call: its thread's memory, the functions that it may call, and what failed. Internal
// to this folder.
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
  const LibraryFunction* in = nullptr;  // where the site is one of its library
};

// What a kernel sees is the beginning; one for each thread that works on the call.
struct Call : tn_call {
  Arena* arena = nullptr;
  ThreadPool* pool = nullptr;                         // nullptr inside of a task
  std::span<const LibraryFunction* const> functions;  // by their numbers
  std::optional<Failure> fault;
};

// Without an arena yet.
Call make_call(void* const* buffers, const int64_t* dims, ThreadPool& pool);

// Why the call of one of the library's kernels failed; `where` becomes the site, where there is one.
std::string explain(const Call& call, const tn_library& library, std::string& where);

inline bool is_known_interface(const tn_library& library) { return library.abi >= 1 && library.abi <= TN_ABI; }
// The library's first one whose level this processor has, or that one.
Expected<const tn_variant*> best_variant(const tn_library& library, std::string_view level);

}  // namespace tenon::runtime
