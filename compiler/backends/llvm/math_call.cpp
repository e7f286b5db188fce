#include "compiler/backends/llvm/math_call.h"

#include <fmt/format.h>
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>
#include <numeric>

namespace tenon::compiler::native {
namespace {

using llvm::Value;

constexpr unsigned kLanes = 8;

llvm::Function* own_function(llvm::Module& module, const llvm::Function& caller, const std::string& name,
                             llvm::Type* type, size_t params, FunctionBody body) {
  const auto attribute = [&](const char* key) { return caller.getFnAttribute(key).getValueAsString().str(); };
  const std::string full_name = fmt::format("tn.{}.{}{}.{}{}", name, type->isVectorTy() ? "v" : "",
                                            type->getScalarType()->isFloatTy() ? "f32" : "f64", attribute("target-cpu"),
                                            attribute("target-features"));
  if (llvm::Function* existing = module.getFunction(full_name)) return existing;
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, std::vector<llvm::Type*>(params, type), false),
                                          llvm::GlobalValue::InternalLinkage, full_name, module);
  function->addFnAttrs(llvm::AttrBuilder(module.getContext(), caller.getAttributes().getFnAttrs()));
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setDoesNotAccessMemory();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", function));
  Values values;
  for (llvm::Argument& argument : function->args()) values.push_back(&argument);
  b.CreateRet(body(b, values));
  return function;
}

}  // namespace

Value* call_own_function(llvm::IRBuilderBase& b, llvm::Module& module, const std::string& name, const Values& args,
                         FunctionBody body) {
  const llvm::Function& caller = *b.GetInsertBlock()->getParent();
  llvm::Type* const type = args[0]->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector) return b.CreateCall(own_function(module, caller, name, type, args.size(), body), args);
  auto* part_type = llvm::FixedVectorType::get(type->getScalarType(), kLanes);
  llvm::Function* const callee = own_function(module, caller, name, part_type, args.size(), body);
  const unsigned lanes = vector->getNumElements();
  Values parts;
  for (unsigned begin = 0; begin < lanes; begin += kLanes) {
    std::vector<int> from;  // the lanes beyond the last one are copies of it
    for (unsigned lane = begin; lane < begin + kLanes; ++lane)
      from.push_back(static_cast<int>(std::min(lane, lanes - 1)));
    Values part;
    for (Value* arg : args) part.push_back(b.CreateShuffleVector(arg, from));
    parts.push_back(b.CreateCall(callee, part));
  }
  std::vector<int> wanted(lanes);
  std::iota(wanted.begin(), wanted.end(), 0);
  return b.CreateShuffleVector(llvm::concatenateVectors(b, parts), wanted);
}

}  // namespace tenon::compiler::native
