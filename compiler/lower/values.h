// Values of the interpreter as values of an executable's session, and back.
#pragma once

#include "compiler/ir/run_value.h"
#include "runtime/executable/value.h"

namespace tenon::compiler {

// An error if the value holds a function or a reference, or a constructed value of a type that the executable does not
// have. The executable was lowered from `module`.
Expected<runtime::Value> to_session(const Context& context, const Module& module, const runtime::Executable& executable,
                                    const RunValue& value);
// A function becomes a closure without code. The value's types are those of the executable.
RunValue from_session(Context& context, const runtime::Executable& executable, const runtime::Value& value);

}  // namespace tenon::compiler
