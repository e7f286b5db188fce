// Bound loop functions as the native code of an executable for GPUs: their PTX, and what the runtime launches.
#pragma once

#include <span>
#include <string>

#include "compiler/loop/loop.h"
#include "runtime/native/native.h"

namespace tenon::compiler::native {

// The level of PTX for executables: the driver translates it for all later GPUs.
inline constexpr const char* kLeastGpu = "sm_80";

// One kernel for each function, under its name, which must be unique and one of PTX: letters, digits, underscores. Its
// launches are those of loop::kernels_of(), and its temporaries the buffers that the function allocates outside of
// them. `level`: the least capability, as sm_80. Errors: those of make_ptx(), and a function that is not bound.
Expected<runtime::NativeCode> compile_for_gpu(TypeContext& context, std::span<const loop::Function* const> functions,
                                              const std::string& level);
// The error that compile_for_gpu() has for the function, if any, without its code: for targets that ask of each
// operator.
Status check_for_gpu(TypeContext& context, const loop::Function& function, const std::string& level);

}  // namespace tenon::compiler::native
