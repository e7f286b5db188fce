// The interpreter, which runs a module with the reference kernels. It defines the semantics that the tests compare
// every back end with.
//
// Semantics: calls, arms and closures run on a heap-allocated stack, so recursion is as deep as memory allows (four
// million frames), and a call in tail position reuses the frame of its caller. A closure holds its captured values. The
// result of a module does not depend on the order of bindings without effects.
#pragma once

#include <functional>
#include <span>

#include "compiler/ir/module.h"
#include "compiler/ir/run_value.h"

namespace tenon::compiler {

// A callback with the value of each variable, in @main and in every function that it calls: of parameters, of those of
// lambdas, of patterns' variables and of bindings. With an observer, tail calls do not reuse frames.
using Observer = std::function<void(const Function& function, VarId var, const RunValue& value)>;

// The implementations of library symbols.
using Libraries = std::map<std::string, std::function<Expected<RunValue>(std::span<const RunValue>)>, std::less<>>;

// The limits at which an untrusted program is stopped with an error.
struct Limits {
  int64_t steps = INT64_MAX;  // bindings and results
  int64_t bytes = INT64_MAX;  // of one tensor
};

// Calls `function` of `module`. The inputs must match the parameters' types, from which the dim variables get their
// values, and must not contain functions or references. The result of every kernel is compared with its inferred type;
// a difference is an internal error. A value is freed after its last use.
Expected<RunValue> interpret(const Context& context, const Module& module, Symbol function,
                             std::span<const RunValue> inputs, const Observer& observer = {},
                             const Libraries& libraries = {}, const Limits& limits = {});

// For a function whose parameters are tensors and whose result is a tensor or a tuple of tensors.
Expected<std::vector<runtime::Tensor>> interpret(const Context& context, const Module& module, Symbol function,
                                                 std::span<const runtime::Tensor> inputs,
                                                 const Observer& observer = {});

// Checks the inputs against the types of the function's parameters and binds `sizes`; the error is "input must be
// Tensor[(N, 1, 28, 28), f32], found ...".
Status check_inputs(const Context& context, const Module& module, const Function& function,
                    std::span<const RunValue> inputs, Sizes& sizes);

}  // namespace tenon::compiler
