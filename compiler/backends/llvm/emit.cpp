// Frames, scopes and faults: what the other parts of the emitter stand on.
#include "compiler/backends/llvm/emit.h"

#include <fmt/format.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/llvm/compile.h"
#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::native {

uint32_t Sites::number(tn_fault fault, const std::string& where) {
  const auto [found, added] = numbers.try_emplace({fault, where}, static_cast<uint32_t>(list.size()));
  if (added) list.emplace_back(fault, where);
  return found->second;
}

uint32_t Functions::number(const std::string& name, const std::string& caller) {
  const auto found = std::ranges::find(list, name, &std::pair<std::string, std::string>::first);
  const auto place = found - list.begin();
  if (found == list.end()) list.emplace_back(name, caller);
  return static_cast<uint32_t>(place);
}

FunctionEmitter::FunctionEmitter(Unit& unit, const loop::Function& function, const runtime::Signature& signature,
                                 std::string symbol)
    : unit_(unit),
      function_(&function),
      signature_(signature),
      symbol_(std::move(symbol)),
      b_(unit.module.getContext()),
      call_type_(llvm::StructType::get(b_.getInt32Ty(), b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(),
                                       b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy())),
      row_(unit.context.symbol("$row")) {
  // No two buffers overlap.
  llvm::MDBuilder metadata(unit.module.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> all;
  for (size_t i = 0; i < function.buffers.size(); ++i) all.push_back(metadata.createAnonymousAliasScope(domain));
  for (llvm::Metadata* own : all) {
    std::vector<llvm::Metadata*> others;
    std::ranges::copy_if(all, std::back_inserter(others), [&](llvm::Metadata* one) { return one != own; });
    alias_.emplace_back(llvm::MDNode::get(b_.getContext(), {own}), llvm::MDNode::get(b_.getContext(), others));
  }
}

llvm::Function* FunctionEmitter::run() {
  llvm::Function* kernel = make_function(symbol_, false);
  enter(kernel, false);
  Value* buffers = field(2, b_.getPtrTy());
  Value* dims = field(3, b_.getPtrTy());
  uint64_t number = 0;
  for (const auto* ids : {&function_->params, &function_->results}) {
    for (BufferId id : *ids) {
      Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, number++);
      frame().bases[id] = {b_.CreateLoad(b_.getPtrTy(), slot), 0};
    }
  }
  for (size_t i = 0; i < signature_.dims.size(); ++i) {
    Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), dims, i);
    frame().variables[unit_.context.symbol(signature_.dims[i].name)] = {b_.CreateLoad(b_.getInt64Ty(), slot), 0};
  }
  open_scope(false);
  for (const auto* ids : {&function_->params, &function_->results}) {
    for (BufferId id : *ids) declare(id);
  }
  for (const auto* ids : {&function_->params, &function_->results}) {
    for (BufferId id : *ids) make_table(id);
  }
  body(function_->body);
  leave();
  return kernel;
}

// --- Functions ---

llvm::Function* FunctionEmitter::make_function(const std::string& name, bool task) {
  std::vector<llvm::Type*> params{b_.getPtrTy()};
  if (task) params.insert(params.end(), {b_.getPtrTy(), b_.getInt64Ty()});
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), params, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, unit_.module);
  describe(*function);
  return function;
}

void FunctionEmitter::describe(llvm::Function& function) const {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("target-cpu", unit_.level.cpu);
  function.addFnAttr("target-features", unit_.level.features);
  if (unit_.level.wide()) function.addFnAttr("prefer-vector-width", "512");
}

void FunctionEmitter::enter(llvm::Function* function, bool task) {
  Frame& frame = frames_.emplace_back();
  frame.function = function;
  frame.task = task;
  frame.failed = llvm::BasicBlock::Create(b_.getContext(), "failed", function);
  llvm::IRBuilder<>(frame.failed).CreateRet(b_.getInt32(1));
  auto* entry = llvm::BasicBlock::Create(b_.getContext(), "entry", function, frame.failed);
  auto* start = block("start");
  frame.allocas = llvm::IRBuilder<>(entry).CreateBr(start);
  continue_at(start);
}

void FunctionEmitter::leave() {
  b_.CreateRet(b_.getInt32(0));
  frames_.pop_back();
}

llvm::BasicBlock* FunctionEmitter::block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, frame().function, frame().failed);
}

llvm::Value* FunctionEmitter::field(unsigned number, llvm::Type* type) {
  return b_.CreateLoad(type, b_.CreateStructGEP(call_type_, frame().function->getArg(0), number));
}

llvm::Value* FunctionEmitter::stack_memory(llvm::Type* type, uint64_t count) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().allocas);
  auto* memory = b_.CreateAlloca(llvm::ArrayType::get(type, count));
  memory->setAlignment(llvm::Align(64));
  return memory;
}

llvm::Value* FunctionEmitter::allocate(Value* bytes) {
  auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getPtrTy(), b_.getInt64Ty()}, false);
  auto* memory = b_.CreateCall(type, field(6, b_.getPtrTy()), {frame().function->getArg(0), bytes});
  memory->addRetAttr(llvm::Attribute::NoAlias);
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateIsNull(memory), frame().failed, good,
                  llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  continue_at(good);
  return memory;
}

void FunctionEmitter::release(Value* memory) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
  b_.CreateCall(type, field(7, b_.getPtrTy()), {frame().function->getArg(0), memory});
}

// --- Scopes ---

void FunctionEmitter::open_scope(bool guarded) {
  auto* inside = block("in");
  Scope& scope = frame().scopes.emplace_back();
  scope.anchor = b_.CreateBr(inside);
  scope.guarded = guarded;
  continue_at(inside);
}

void FunctionEmitter::close_scope() {
  frame().scopes.pop_back();
  std::erase_if(frame().variables, [&](const auto& one) { return one.second.scope >= frame().scopes.size(); });
}

Dim FunctionEmitter::define(Value* value) {
  const Symbol symbol = unit_.context.symbol(fmt::format("${}", fresh_++));
  frame().variables[symbol] = {value, frame().scopes.size() - 1};
  return unit_.context.dim(symbol);
}

// --- Faults ---

std::string FunctionEmitter::where() const {
  const std::string name = fmt::format("@{}", unit_.context.name(function_->name));
  return stage_ ? fmt::format("{}, stage '{}'", name, unit_.context.name(stage_->name)) : name;
}

void FunctionEmitter::fail_if(Value* condition, tn_fault fault, Value* found, Value* expected) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition); constant && constant->isZero()) return;
  const bool differs = condition->getType()->isVectorTy();
  if (differs && frame().mask) condition = b_.CreateAnd(condition, frame().mask);
  auto* fails = block("fail");
  auto* good = block("good");
  b_.CreateCondBr(differs ? any(condition) : condition, fails, good,
                  llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  continue_at(fails);
  if (differs) {  // the first of the lanes
    auto* bits = b_.CreateBitCast(condition, b_.getIntNTy(frame().lanes));
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    for (Value** one : {&found, &expected}) {
      if ((*one)->getType()->isVectorTy()) *one = b_.CreateExtractElement(*one, lane);
    }
  }
  if (found->getType()->isFloatTy()) found = b_.CreateFPExt(found, b_.getDoubleTy());
  if (found->getType()->isDoubleTy()) found = b_.CreateBitCast(found, b_.getInt64Ty());
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(),
                                       {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  b_.CreateCall(type, field(5, b_.getPtrTy()),
                {frame().function->getArg(0), b_.getInt32(unit_.sites.number(fault, where())), found, expected});
  b_.CreateBr(frame().failed);
  continue_at(good);
}

// --- Types ---

llvm::Type* FunctionEmitter::memory_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kI8:
    case DType::kU8: return b_.getInt8Ty();
    case DType::kI16:
    case DType::kU16: return b_.getInt16Ty();
    case DType::kI32: return b_.getInt32Ty();
    case DType::kI64: return b_.getInt64Ty();
    case DType::kF32: return b_.getFloatTy();
    case DType::kF64: return b_.getDoubleTy();
  }
  assert(false);
  return nullptr;
}

llvm::Type* FunctionEmitter::value_type(DType dtype) {
  return dtype == DType::kBool ? b_.getInt1Ty() : memory_type(dtype);
}

bool is_signed(DType dtype) { return dtype != DType::kBool && dtype != DType::kU8 && dtype != DType::kU16; }

// --- What can be compiled ---

bool is_ragged(const loop::Buffer& buffer) { return packed_axes(buffer) > 0; }

Status supported(TypeContext& context, const loop::Function& function) {
  const std::string where = fmt::format("@{}", context.name(function.name));
  for (const loop::Buffer& buffer : function.buffers) {
    for (size_t axis = 1; axis < buffer.rank(); ++axis) {
      bool deeper = false;
      for_each_variable(buffer.axes[axis].extent, [&](Symbol var) {
        for (size_t before = 1; before < axis; ++before) deeper |= buffer.axes[before].var == var;
      });
      if (deeper)
        return error(fmt::format("axis {} of %{} depends on the index of an axis that is not the first", axis,
                                 context.name(buffer.name)),
                     where, "native code takes ragged buffers whose rows have their sizes from the first axis");
    }
  }
  std::optional<std::string> problem;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* call = std::get_if<loop::CallLibrary>(&stmt.form);
    if (!call) return;
    for (const auto* buffers : {&call->inputs, &call->outputs}) {
      for (const BufferId id : *buffers) {
        if (is_ragged(function.buffer(id)) && !problem)
          problem = fmt::format("%{}, whose rows have sizes of their own, is passed to the library function '{}'",
                                context.name(function.buffer(id).name), context.name(call->symbol));
      }
    }
  });
  if (problem)
    return error(*problem, where, "native code passes buffers without ragged axes; the evaluator passes all");
  TENON_TRY_ASSIGN(signature, signature_of(context, function));
  return {};
}

}  // namespace tenon::compiler::native
