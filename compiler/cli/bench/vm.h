// The parts of `tenon bench vm`.
#pragma once

#include <string>

#include "support/diagnostic.h"
#include "support/json.h"

namespace tenon::cli {

// Measures whole modules: dense products with a symbolic size beside constant ones, LSTM cells in a loop, and a decoder
// with a KV cache; `name`: one of them, or "all". Prints a line for each figure, or, with `json`, adds the member
// "models" to the object that is open.
Status bench_vm_models(const std::string& name, Json& out, bool json);

}  // namespace tenon::cli
