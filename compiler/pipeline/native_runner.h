// Functions compiled to native code of this machine, for calibration.
#pragma once

#include "compiler/ir/context.h"
#include "compiler/quantize/runner.h"

namespace tenon::compiler {

// Compiles a function by the stages of compile(), for the CPU of this machine, whatever the target is, and runs it in a
// session of the virtual machine. Integer results are those of the interpreter; floats differ from them by the order of
// sums and by fused multiplications and additions. The context outlives the runner.
Runner native_runner(Context& context);

}  // namespace tenon::compiler
