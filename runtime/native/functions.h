// Functions that loop functions call by name: kernels of shared objects that the user names, with the C interface of
// runtime/native/kernel.h, hence written in C or whatever else.
//
// The process has opened them: compiled kernels, the evaluator and the interpreter find the same ones. A kernel that is
// called so gets the sizes of all axes of its operands as `dims`, and their types as `operands`; it trusts no caller to
// give what it takes.
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

// Opens the shared object, whose kernels are functions from now on; the same one again is nothing. Errors: what is no
// such library, has no code for this processor, or has a function of a name that another one has.
Status open_functions(const std::filesystem::path& file);

// Of that name; lives as long as the process.
Expected<const LibraryFunction*> find_function(std::string_view name);

// Fills `outputs`, which are there.
Status call_function(const LibraryFunction& function, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     ThreadPool& pool);

}  // namespace tenon::runtime
