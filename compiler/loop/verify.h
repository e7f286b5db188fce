// The verifier of loop functions.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// Checks that every variable and buffer is in scope where it is used; parameters are only read; the number of indices
// is the buffer's rank; types agree; names of buffers are unique, as are those of a stage's axes and of all stages;
// only a scan axis reads elements that other points write; points of a stage whose spatial or scan axes differ write
// different elements, as far as the indices show; a stage with a reduction starts it in `init` or accumulates into
// existing values. Every function that was parsed or scheduled has passed these checks. The error states its location;
// `stage` receives the stage that contains it, if any.
Status verify(const TypeContext& context, const Function& function, Symbol* stage = nullptr);

// Checks further requirements of back ends: a buffer on the stack has constant sizes and at most kMaxStack elements; a
// buffer in registers has at most kMaxRegisters, and its indices are constants once unrolled and vectorized loops are
// expanded.
constexpr int64_t kMaxStack = 1 << 16, kMaxRegisters = 1 << 12;
Status verify_scopes(TypeContext& context, const Function& function);

}  // namespace tenon::compiler::loop
