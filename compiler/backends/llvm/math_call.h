// Elementary functions that are LLVM functions of their own, because they branch or are long: one for each level and
// number of lanes. A vector is passed in parts of eight lanes.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace tenon::compiler::native {

using Values = std::vector<llvm::Value*>;
// Emits the result of the parameters; the builder is at the entry, and may be left in another block.
using FunctionBody = llvm::function_ref<llvm::Value*(llvm::IRBuilder<>& b, const Values& params)>;

// The function's value of arguments of one type. The function is defined at its first call, with the processor of the
// function that calls it. Its operations are IEEE's, also where the caller's builder may contract them.
llvm::Value* call_own_function(llvm::IRBuilderBase& b, llvm::Module& module, const std::string& name,
                               const Values& args, FunctionBody body);

}  // namespace tenon::compiler::native
