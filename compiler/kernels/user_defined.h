// Inlines user-defined loop functions into kernels. A function whose result is elementwise becomes an expression that
// its readers compute, like an operator; the stages of other functions become stages of the kernel.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/kernels/emitter.h"

namespace tenon::compiler::kernels {

// The results of the function for these arguments. An error where the function has ragged buffers, library calls or
// intrinsics, or is not elementwise and has a schedule.
Expected<std::vector<LazyTensor>> inline_user_defined(Emitter& emit, const loop::Function& function,
                                                      const std::vector<LazyTensor>& args);

// The statements of a loop function in text form (compiler/loop/text.h), for Emitter::nest(): `dims` are the values of
// its dims, and `buffers` replace its parameters and results, each in the order of their declarations. A table that
// dims apply must have the name of its buffer.
loop::Body inline_text(Emitter& emit, std::string_view text, const Dims& dims, const std::vector<BufferId>& buffers);

}  // namespace tenon::compiler::kernels
