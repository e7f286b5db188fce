// Runs a module with the reference kernels: the semantics that every back end is compared with.
#pragma once

#include <functional>
#include <span>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// What a variable holds: a tensor, or the fields of a tuple.
struct RunValue {
  runtime::Tensor tensor;
  std::vector<RunValue> fields;
};

// Sees each binding's value as it is made, in @main and in every function that it calls.
using Observer = std::function<void(const Function& function, const Binding& binding, const RunValue& value)>;

// Calls `function` of `module`. The inputs must match the parameters' types, where dim variables take their values from
// them. Every kernel's result is held against the type that inference gave; a difference is an internal error. A tensor
// is freed after its last use.
Expected<RunValue> interpret(const Context& context, const Module& module, Symbol function,
                             std::span<const RunValue> inputs, const Observer& observer = {});

// For a function of tensors with a tensor, or a tuple of them, as result.
Expected<std::vector<runtime::Tensor>> interpret(const Context& context, const Module& module, Symbol function,
                                                 std::span<const runtime::Tensor> inputs,
                                                 const Observer& observer = {});

// As the function's parameter would be bound: "input must be Tensor[(N, 1, 28, 28), f32], found ..." otherwise.
Status check_inputs(const Context& context, const Function& function, std::span<const RunValue> inputs,
                    std::map<Symbol, int64_t>& dims);

}  // namespace tenon::compiler
