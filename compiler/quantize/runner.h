// How calibration runs functions: by the interpreter, or by what a caller compiles them to.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// Runs a function on one sample.
using RunFunction = std::function<Expected<std::vector<runtime::Tensor>>(std::span<const runtime::Tensor> inputs)>;

// Prepares a function whose parameters are tensors and whose result is a tensor or a tuple of tensors. The module
// outlives what is returned.
using Runner = std::function<Expected<RunFunction>(const Module& module, Symbol entry)>;

// The interpreter, whose results are the same on every machine. The context outlives what is returned.
Runner interpreter(const Context& context);

}  // namespace tenon::compiler
