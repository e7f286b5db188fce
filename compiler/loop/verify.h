// What every loop function holds to.
#pragma once

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// Checked: every variable and buffer is in scope where it is used; parameters are only read; indices are as many as the
// buffer has axes; types agree; names of buffers are different, as are those of a stage's axes and of all stages;
// nothing but a scan reads, at an axis, what other points write; points of a stage whose
// spatial or scan axes differ write different elements, as seen from the indices; a stage with a reduction
// starts it in `init` or adds to what is there. A function that was parsed or scheduled has passed this. The message
// says where it is; `stage` takes the stage of an error that is in one.
Status verify(const TypeContext& context, const Function& function, Symbol* stage = nullptr);

// What a back end needs beyond: a buffer on the stack has constant sizes and at most kMaxStack elements, one in
// registers at most kMaxRegisters, and its indices are constants but for unrolled and vector loops.
constexpr int64_t kMaxStack = 1 << 16, kMaxRegisters = 1 << 12;
Status verify_scopes(TypeContext& context, const Function& function);

}  // namespace tenon::compiler::loop
