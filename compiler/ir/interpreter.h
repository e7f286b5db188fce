// Runs a module with the reference kernels: the semantics that every back end is compared with.
//
// Semantics: calls, arms and closures run on a stack of the interpreter's own, so recursion is as deep as memory allows
// (four million frames), and a call whose value is the result of its function takes the place of its caller. A closure
// holds what it captured. The result of a module does not depend on the order of bindings without effects.
#pragma once

#include <functional>
#include <span>

#include "compiler/ir/module.h"
#include "compiler/ir/run_value.h"

namespace tenon::compiler {

// Sees each binding's value as it is made, in @main and in every function that it calls. With one, no call takes its
// caller's place.
using Observer = std::function<void(const Function& function, const Binding& binding, const RunValue& value)>;

// What library symbols stand for.
using Libraries = std::map<std::string, std::function<Expected<RunValue>(std::span<const RunValue>)>, std::less<>>;

// Where a program that nobody trusts is stopped, with an error.
struct Limits {
  int64_t steps = INT64_MAX;  // bindings and results
  int64_t bytes = INT64_MAX;  // of one tensor
};

// Calls `function` of `module`. The inputs must match the parameters' types, where dim variables take their values from
// them, and hold no functions or references. Every kernel's result is held against the type that inference gave; a
// difference is an internal error. A value is freed after its last use.
Expected<RunValue> interpret(const Context& context, const Module& module, Symbol function,
                             std::span<const RunValue> inputs, const Observer& observer = {},
                             const Libraries& libraries = {}, const Limits& limits = {});

// For a function of tensors with a tensor, or a tuple of them, as result.
Expected<std::vector<runtime::Tensor>> interpret(const Context& context, const Module& module, Symbol function,
                                                 std::span<const runtime::Tensor> inputs,
                                                 const Observer& observer = {});

// As the function's parameter would be bound: "input must be Tensor[(N, 1, 28, 28), f32], found ..." otherwise.
Status check_inputs(const Context& context, const Module& module, const Function& function,
                    std::span<const RunValue> inputs, Sizes& sizes);

}  // namespace tenon::compiler
