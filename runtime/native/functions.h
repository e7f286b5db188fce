// Library functions, which loop functions call by name: kernels of shared objects that the user names, with the C
// interface of runtime/native/kernel.h, in any language.
//
// Opened libraries belong to the process: compiled kernels, the evaluator and the interpreter find the same functions.
// A library function gets the sizes of all axes of its operands as `dims`, and their types as `operands`; it checks
// them itself.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/native/kernel.h"
#include "runtime/native/thread_pool.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

struct LibraryFunction {
  std::string name, file;
  tn_kernel kernel = nullptr;
  const tn_library* library = nullptr;
};

// Opens the shared object, whose kernels are library functions from then on; opening it again has no effect. Errors:
// the file is not such a library, has no code for this processor, or has a function whose name another library has.
Status open_functions(const std::filesystem::path& file);

// The function of that name; valid as long as the process runs.
Expected<const LibraryFunction*> find_function(std::string_view name);

// Calls the function, which fills the existing `outputs`.
Status call_function(const LibraryFunction& function, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     ThreadPool& pool);

}  // namespace tenon::runtime
