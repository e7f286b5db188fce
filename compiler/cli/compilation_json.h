// A compilation as JSON: the fields that `tenon compile --json` and the C interface of the compiler have in common.
#pragma once

#include "compiler/pipeline/pipeline.h"
#include "support/json.h"

namespace tenon::cli {

// Adds them to the object that is open.
void write_compilation(Json& out, const compiler::Compilation& compiled);

}  // namespace tenon::cli
