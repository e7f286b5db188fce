#include "compiler/backends/llvm/emit_frame.h"

#include <fmt/format.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cassert>

namespace tenon::compiler::native {
namespace {

constexpr const char *kFaultFunction = "tn_fault", *kFaultRecord = "tn_fault_record";
constexpr const char* kAllocator = "a thread's heap";

}  // namespace

uint32_t FaultSites::id(tn_fault fault, const std::string& where) {
  const auto [found, added] = ids.try_emplace({fault, where}, static_cast<uint32_t>(list.size()));
  if (added) list.emplace_back(fault, where);
  return found->second;
}

uint32_t ExternalFunctions::id(const std::string& name, const std::string& caller) {
  const auto found = std::ranges::find(list, name, &std::pair<std::string, std::string>::first);
  const auto index = found - list.begin();
  if (found == list.end()) list.emplace_back(name, caller);
  return static_cast<uint32_t>(index);
}

bool is_signed(DType dtype) { return runtime::kSignedNumericTypes.contains(dtype); }

FrameEmitter::FrameEmitter(Unit& unit, const loop::Function& function, std::string symbol)
    : unit_(unit),
      function_(&function),
      symbol_(std::move(symbol)),
      b_(unit.module.getContext()),
      call_type_(llvm::StructType::get(b_.getInt32Ty(), b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(),
                                       b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy())) {}

// --- Functions ---

llvm::Function* FrameEmitter::make_task() {
  return make_function(fmt::format("{}.task{}", symbol_, task_count_++), true);
}

llvm::Function* FrameEmitter::make_function(const std::string& name, bool is_task) {
  std::vector<llvm::Type*> params{b_.getPtrTy()};
  if (is_task) params.insert(params.end(), {b_.getPtrTy(), b_.getInt64Ty()});
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), params, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, unit_.module);
  set_target_attributes(*function);
  return function;
}

void FrameEmitter::set_target_attributes(llvm::Function& function) const {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("target-cpu", llvm::StringRef(unit_.level.cpu));
  function.addFnAttr("target-features", llvm::StringRef(unit_.level.features));
  if (unit_.level.wide()) function.addFnAttr("prefer-vector-width", "512");
}

void FrameEmitter::enter(llvm::Function* function, bool is_task) {
  Frame& frame = frames_.emplace_back();
  frame.function = function;
  frame.is_task = is_task;
  frame.failed = llvm::BasicBlock::Create(b_.getContext(), "failed", function);
  llvm::IRBuilder<>(frame.failed).CreateRet(b_.getInt32(1));
  auto* entry = llvm::BasicBlock::Create(b_.getContext(), "entry", function, frame.failed);
  auto* start = block("start");
  frame.allocas = llvm::IRBuilder<>(entry).CreateBr(start);
  continue_at(start);
}

void FrameEmitter::leave() {
  b_.CreateRet(b_.getInt32(0));
  frames_.pop_back();
}

llvm::BasicBlock* FrameEmitter::block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, frame().function, frame().failed);
}

// --- Scopes ---

void FrameEmitter::open_scope(bool guarded) {
  auto* inside = block("in");
  HoistScope& scope = frame().scopes.emplace_back();
  scope.anchor = b_.CreateBr(inside);
  scope.guarded = guarded;
  continue_at(inside);
}

void FrameEmitter::close_scope() {
  frame().scopes.pop_back();
  std::erase_if(frame().variables,
                [&](const auto& variable) { return variable.second.scope >= frame().scopes.size(); });
}

Dim FrameEmitter::new_variable(Value* value, std::optional<int64_t> end) {
  const Symbol symbol = unit_.context.symbol(fmt::format("${}", variable_count_++));
  frame().variables[symbol] = {value, frame().scopes.size() - 1};
  if (end) frame().bounds[symbol] = {0, *end - 1};
  return unit_.context.dim(symbol);
}

// --- The call ---

Value* FrameEmitter::call_field(unsigned index, llvm::Type* type) {
  return b_.CreateLoad(type, b_.CreateStructGEP(call_type_, frame().function->getArg(0), index));
}

Value* FrameEmitter::stack_memory(llvm::Type* type, uint64_t count) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(frame().allocas);
  auto* memory = b_.CreateAlloca(llvm::ArrayType::get(type, count));
  memory->setAlignment(llvm::Align(64));
  return memory;
}

Value* FrameEmitter::allocate(Value* bytes) {
  auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getPtrTy(), b_.getInt64Ty()}, false);
  // A GPU's threads have no heap: make_ptx() refuses the function that is not defined.
  Value* const allocator =
      unit_.is_gpu() ? unit_.module.getOrInsertFunction(kAllocator, type).getCallee() : call_field(6, b_.getPtrTy());
  auto* memory = b_.CreateCall(type, allocator, {frame().function->getArg(0), bytes});
  memory->addRetAttr(llvm::Attribute::NoAlias);
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateIsNull(memory), frame().failed, good,
                  llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  continue_at(good);
  return memory;
}

void FrameEmitter::release(Value* memory) {
  if (unit_.is_gpu()) return;
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
  b_.CreateCall(type, call_field(7, b_.getPtrTy()), {frame().function->getArg(0), memory});
}

std::string FrameEmitter::where() const {
  const std::string name = fmt::format("@{}", unit_.context.name(function_->name));
  return stage_ ? fmt::format("{}, stage '{}'", name, unit_.context.name(stage_->name)) : name;
}

void FrameEmitter::fail_if(Value* condition, tn_fault fault, Value* found, Value* expected) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition); constant && constant->isZero()) return;
  const bool differs = condition->getType()->isVectorTy();
  if (differs && frame().mask) condition = b_.CreateAnd(condition, frame().mask);
  auto* fails = block("fail");
  auto* good = block("good");
  b_.CreateCondBr(differs ? any_lane(condition) : condition, fails, good,
                  llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  continue_at(fails);
  if (differs) {  // reports the first failing lane
    auto* bits = b_.CreateBitCast(condition, b_.getIntNTy(frame().lanes));
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    for (Value** reported : {&found, &expected}) {
      if ((*reported)->getType()->isVectorTy()) *reported = b_.CreateExtractElement(*reported, lane);
    }
  }
  if (found->getType()->isFloatTy()) found = b_.CreateFPExt(found, b_.getDoubleTy());
  if (found->getType()->isDoubleTy()) found = b_.CreateBitCast(found, b_.getInt64Ty());
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(),
                                       {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  b_.CreateCall(type, unit_.is_gpu() ? static_cast<Value*>(fault_function()) : call_field(5, b_.getPtrTy()),
                {frame().function->getArg(0), b_.getInt32(unit_.sites.id(fault, where())), found, expected});
  b_.CreateBr(frame().failed);
  continue_at(good);
}

llvm::Function* FrameEmitter::fault_function() {
  if (llvm::Function* existing = unit_.module.getFunction(kFaultFunction)) return existing;
  llvm::Type *i32 = b_.getInt32Ty(), *i64_type = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(i32, {b_.getPtrTy(), i32, i64_type, i64_type}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, kFaultFunction, unit_.module);
  function->addFnAttr(llvm::Attribute::NoInline);
  set_target_attributes(*function);
  auto* record_type = llvm::StructType::get(i32, i32, i64_type, i64_type);
  auto* record = new llvm::GlobalVariable(unit_.module, record_type, false, llvm::GlobalValue::ExternalLinkage,
                                          llvm::ConstantAggregateZero::get(record_type), kFaultRecord, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, 1);
  auto *entry = llvm::BasicBlock::Create(b_.getContext(), "", function),
       *first = llvm::BasicBlock::Create(b_.getContext(), "", function),
       *done = llvm::BasicBlock::Create(b_.getContext(), "", function);
  llvm::IRBuilder<> b(entry);
  Value* exchanged = b.CreateAtomicCmpXchg(record, b.getInt32(0), b.getInt32(1), llvm::MaybeAlign(),
                                           llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateExtractValue(exchanged, 1), first, done);
  b.SetInsertPoint(first);
  for (unsigned i = 1; i < 4; ++i) b.CreateStore(function->getArg(i), b.CreateStructGEP(record_type, record, i));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRet(b.getInt32(1));
  return function;
}

void FrameEmitter::fail_on(Value* status) {
  auto* good = block("good");
  b_.CreateCondBr(b_.CreateICmpNE(status, b_.getInt32(0)), frame().failed, good);
  continue_at(good);
}

// --- Types and lanes ---

llvm::Type* FrameEmitter::memory_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kI8:
    case DType::kU8: return b_.getInt8Ty();
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:  // as their bits
    case DType::kBF16: return b_.getInt16Ty();
    case DType::kI32:
    case DType::kU32: return b_.getInt32Ty();
    case DType::kI64:
    case DType::kU64: return b_.getInt64Ty();
    case DType::kF32: return b_.getFloatTy();
    case DType::kF64: return b_.getDoubleTy();
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
    case DType::kF4E2M1:
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2: break;  // no loop function has one (loop::kElementTypes)
  }
  assert(false);
  return nullptr;
}

llvm::Type* FrameEmitter::value_type(DType dtype) {
  return dtype == DType::kBool ? b_.getInt1Ty() : memory_type(dtype);
}

llvm::Type* FrameEmitter::shaped_as(llvm::Type* type, Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
}

Value* FrameEmitter::splat(Value* value) {
  if (value->getType()->isVectorTy()) return value;
  BlockCache* const cache = llvm::isa<llvm::Constant>(value) ? nullptr : block_cache();
  if (!cache) return b_.CreateVectorSplat(frame().lanes, value);
  Value*& cached = cache->splats[{value, frame().lanes}];
  if (!cached) cached = b_.CreateVectorSplat(frame().lanes, value);
  return cached;
}

void FrameEmitter::match_lanes(Value*& a, Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = splat(a), b = splat(b);
}

Value* FrameEmitter::any_lane(Value* lanes) {
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(lanes)) return b_.getInt1(!constant->isNullValue());
  return b_.CreateOrReduce(lanes);
}

Value* FrameEmitter::all_lanes() { return b_.CreateVectorSplat(frame().lanes, b_.getTrue()); }

FrameEmitter::BlockCache* FrameEmitter::block_cache() {
  auto* const block = b_.GetInsertBlock();
  if (b_.GetInsertPoint() != block->end()) return nullptr;
  if (block_cache_.block != block)
    block_cache_ = {.block = block, .pointers = {}, .splats = {}, .loads = {}, .words = {}, .stored = {}};
  return &block_cache_;
}

}  // namespace tenon::compiler::native
