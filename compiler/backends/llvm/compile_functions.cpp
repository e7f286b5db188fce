#include "compiler/backends/llvm/compile_functions.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <cassert>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/backends/llvm/link.h"
#include "compiler/backends/llvm/object.h"
#include "runtime/executable/compiled_code.h"
#include "runtime/executable/liveness.h"
#include "support/try.h"
#include "support/visitor.h"

namespace tenon::compiler::native {
namespace {

using llvm::Value;
using runtime::DType;
using runtime::Instruction;
using runtime::Register;
using runtime::ScalarOp;

// Whether the machine executes the instruction itself, as it enters or leaves a frame.
bool changes_frame(const runtime::Operation& operation) {
  const runtime::Flow flow = runtime::facts(operation).flow;
  return flow == runtime::Flow::kCall || flow == runtime::Flow::kLeave;
}
bool is_kill(const Instruction& instruction) { return std::holds_alternative<runtime::Kill>(instruction.operation); }

// The code of one function.
class FunctionCompiler {
 public:
  FunctionCompiler(llvm::Module& module, const runtime::Function& function, uint32_t index)
      : context_(module.getContext()),
        function_(function),
        b_(context_),
        word_(llvm::StructType::get(b_.getInt64Ty(), b_.getInt64Ty())),
        machine_(llvm::StructType::get(context_, {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty(), b_.getPtrTy(),
                                                  b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()})) {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
    code_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, fmt::format("{}.{}", function.name, index),
                                   module);
  }

  llvm::Function* run() {
    const auto& code = function_.code;
    auto* entry = llvm::BasicBlock::Create(context_, "entry", code_);
    failed_ = llvm::BasicBlock::Create(context_, "failed", code_);
    // The instructions that begin a block: targets, those where a frame goes on, and what follows a block's end.
    std::set<uint32_t> begins{0}, resumes{0};
    for (uint32_t i = 0; i < code.size(); ++i) {
      runtime::for_each_target(code[i].operation, [&](uint32_t target) { begins.insert(target); });
      const bool ends = changes_frame(code[i].operation) || runtime::ends_block(code[i].operation);
      if (ends && i + 1 < code.size()) begins.insert(i + 1);
      if (!changes_frame(code[i].operation) || !runtime::falls_through(code[i].operation)) continue;
      resumes.insert(i + 1);
      // The machine may have executed what empties registers with the call.
      if (is_kill(code[i + 1]) && i + 2 < code.size()) resumes.insert(i + 2);
    }
    begins.insert(resumes.begin(), resumes.end());
    for (const uint32_t i : begins) blocks_[i] = llvm::BasicBlock::Create(context_, fmt::format("at{}", i), code_);

    b_.SetInsertPoint(entry);
    registers_ = b_.CreateLoad(b_.getPtrTy(), b_.CreateStructGEP(machine_, code_->getArg(0), 0));
    constants_ = b_.CreateLoad(b_.getPtrTy(), b_.CreateStructGEP(machine_, code_->getArg(0), 1));
    auto* elsewhere = llvm::BasicBlock::Create(context_, "elsewhere", code_);
    auto* dispatch = b_.CreateSwitch(code_->getArg(1), elsewhere, static_cast<unsigned>(resumes.size()));
    for (const uint32_t i : resumes) dispatch->addCase(b_.getInt32(i), blocks_.at(i));
    b_.SetInsertPoint(elsewhere);  // the machine goes on
    b_.CreateRet(code_->getArg(1));
    b_.SetInsertPoint(failed_);
    b_.CreateRet(b_.getInt32(TN_COMPILED_FAILED));

    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      const auto next = std::next(block);
      compile_block(block->first, next == blocks_.end() ? static_cast<uint32_t>(code.size()) : next->first);
    }
    return code_;
  }

 private:
  void compile_block(uint32_t begin, uint32_t end) {
    b_.SetInsertPoint(blocks_.at(begin));
    uint32_t count = 0;
    for (uint32_t i = begin; i < end; ++i) {
      const Instruction& instruction = function_.code[i];
      count += !is_kill(instruction) && !changes_frame(instruction.operation) ? 1 : 0;
    }
    if (count > 0) spend(begin, count);
    for (now_ = begin; now_ < end; ++now_) compile(function_.code[now_].operation);
    if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(blocks_.at(end));
  }

  void spend(uint32_t instruction, uint32_t count) {
    Value* budget = b_.CreateStructGEP(machine_, code_->getArg(0), 2);
    Value* left = b_.CreateLoad(b_.getInt64Ty(), budget);
    auto *enough = block("enough"), *more = block("more"), *done = block("paid");
    b_.CreateCondBr(b_.CreateICmpUGT(left, b_.getInt64(count)), enough, more, likely());
    b_.SetInsertPoint(enough);
    b_.CreateStore(b_.CreateSub(left, b_.getInt64(count)), budget);
    b_.CreateBr(done);
    b_.SetInsertPoint(more);
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty()}, false);
    Value* failed = call_back(type, 4, {code_->getArg(0), b_.getInt32(instruction), b_.getInt32(count)});
    b_.CreateCondBr(b_.CreateIsNull(failed), done, failed_, likely());
    b_.SetInsertPoint(done);
  }

  // Instructions.

  void compile(const runtime::Operation& operation) {
    std::visit(Overloaded{[&](const runtime::Jump& jump) { b_.CreateBr(blocks_.at(jump.target)); },
                          [&](const runtime::Branch& branch) { compile_branch(branch); },
                          [&](const runtime::Switch& select) { compile_switch(select); },
                          [&](const runtime::Kill& kill) {
                            for (const Register r : kill.registers) compile_kill(r);
                          },
                          [&](const runtime::Move& move) { compile_move(move); },
                          [&](const runtime::LoadConstant& load) { compile_constant(load); },
                          [&](const runtime::ScalarCompute& compute) { compile_scalar(compute); },
                          [&]<class O>(const O&) {
                            if (changes_frame(operation)) b_.CreateRet(b_.getInt32(now_));
                            else step();
                          }},
               operation);
  }

  void compile_branch(const runtime::Branch& branch) {
    auto *otherwise = blocks_.at(branch.otherwise), *next = blocks_.at(now_ + 1), *fast = block("bool"),
         *slow = block("tensor");
    b_.CreateCondBr(has_tag(branch.condition, scalar_tag(DType::kBool)), fast, slow, likely());
    b_.SetInsertPoint(fast);
    b_.CreateCondBr(as_bool(bits(branch.condition)), next, otherwise);
    b_.SetInsertPoint(slow);
    Value* target = target_of();
    auto* select = b_.CreateSwitch(target, failed_, 2);
    select->addCase(b_.getInt32(now_ + 1), next);
    if (branch.otherwise != now_ + 1) select->addCase(b_.getInt32(branch.otherwise), otherwise);
  }

  void compile_switch(const runtime::Switch& select) {
    const std::set<uint32_t> targets(select.targets.begin(), select.targets.end());
    auto* by_target = b_.CreateSwitch(target_of(), failed_, static_cast<unsigned>(targets.size()));
    for (const uint32_t target : targets) by_target->addCase(b_.getInt32(target), blocks_.at(target));
  }

  void compile_kill(Register r) {
    auto *object = block("object"), *plain = block("plain"), *done = block("empty");
    b_.CreateCondBr(is_object(r), object, plain);
    b_.SetInsertPoint(object);
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
    call_back(type, 5, {code_->getArg(0), b_.getInt32(r)});
    b_.CreateBr(done);
    b_.SetInsertPoint(plain);
    b_.CreateStore(b_.getInt64(0), head(r));
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

  void compile_move(const runtime::Move& move) {
    // Neither empty nor an object: the tag is between the two.
    Value* tag = tag_of(move.from);
    Value* is_plain = b_.CreateICmpULT(b_.CreateSub(tag, b_.getInt8(TN_WORD_EMPTY + 1)),
                                       b_.getInt8(TN_WORD_FIRST_OBJECT - TN_WORD_EMPTY - 1));
    unless(b_.CreateAnd(is_plain, b_.CreateNot(is_object(move.to))), [&] {
      Value *first = b_.CreateLoad(b_.getInt64Ty(), head(move.from)), *second = bits(move.from);
      b_.CreateStore(first, head(move.to));
      b_.CreateStore(second, tail(move.to));
    });
  }

  void compile_constant(const runtime::LoadConstant& load) {
    unless(b_.CreateNot(is_object(load.to)), [&] {
      Value* constant = b_.CreateConstInBoundsGEP1_64(word_, constants_, load.constant);
      Value* first = b_.CreateLoad(b_.getInt64Ty(), constant);
      Value* second = b_.CreateLoad(b_.getInt64Ty(), b_.CreateStructGEP(word_, constant, 1));
      b_.CreateStore(first, head(load.to));
      b_.CreateStore(second, tail(load.to));
    });
  }

  void compile_scalar(const runtime::ScalarCompute& compute) {
    llvm::Type* type = scalar_type(compute.dtype);
    if (!type || !is_inline(compute.op, compute.dtype)) return step();
    const uint16_t tag = scalar_tag(compute.dtype);
    Value* is_fast = b_.CreateAnd(b_.CreateAnd(has_tag(compute.a, tag), has_tag(compute.b, tag)),
                                  b_.CreateNot(is_object(compute.to)));
    unless(is_fast, [&] {
      Value *a = scalar(bits(compute.a), type), *b = scalar(bits(compute.b), type);
      Value* result = value_of(compute.op, a, b);
      const bool is_compared = result->getType()->isIntegerTy(1);
      if (result->getType()->isFloatingPointTy())
        result = b_.CreateBitCast(result, b_.getIntNTy(result->getType()->getPrimitiveSizeInBits()));
      b_.CreateStore(b_.getInt64(scalar_tag(is_compared ? DType::kBool : compute.dtype)), head(compute.to));
      b_.CreateStore(b_.CreateZExt(result, b_.getInt64Ty()), tail(compute.to));
    });
  }

  static bool is_inline(ScalarOp op, DType dtype) {
    const bool is_real = dtype == DType::kF32 || dtype == DType::kF64;
    switch (op) {
      case ScalarOp::kAdd:
      case ScalarOp::kSubtract:
      case ScalarOp::kMultiply: return dtype != DType::kBool;
      case ScalarOp::kMinimum:
      case ScalarOp::kMaximum: return !is_real && dtype != DType::kBool;
      case ScalarOp::kDivide:
      case ScalarOp::kFloorDivide: return false;  // may fail
      case ScalarOp::kEqual:
      case ScalarOp::kNotEqual:
      case ScalarOp::kLess:
      case ScalarOp::kLessEqual:
      case ScalarOp::kGreater:
      case ScalarOp::kGreaterEqual: return true;
      case ScalarOp::kAnd:
      case ScalarOp::kOr:
      case ScalarOp::kXor: return !is_real;
    }
    return false;
  }

  // Integers are signed, or bool; floats are compared as IEEE says: only "not equal" holds for a NaN.
  Value* value_of(ScalarOp op, Value* a, Value* b) {
    const bool is_real = a->getType()->isFloatingPointTy();
    const auto compare = [&](llvm::CmpInst::Predicate of_integers, llvm::CmpInst::Predicate of_floats) {
      return is_real ? b_.CreateFCmp(of_floats, a, b) : b_.CreateICmp(of_integers, a, b);
    };
    // Of bool, false is less than true.
    const bool is_bool = a->getType()->isIntegerTy(1);
    const auto order = [&](llvm::CmpInst::Predicate of_integers, llvm::CmpInst::Predicate of_bools,
                           llvm::CmpInst::Predicate of_floats) {
      return compare(is_bool ? of_bools : of_integers, of_floats);
    };
    using P = llvm::CmpInst::Predicate;
    switch (op) {
      case ScalarOp::kAdd: return is_real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
      case ScalarOp::kSubtract: return is_real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
      case ScalarOp::kMultiply: return is_real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
      case ScalarOp::kMinimum: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      case ScalarOp::kMaximum: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
      case ScalarOp::kEqual: return compare(P::ICMP_EQ, P::FCMP_OEQ);
      case ScalarOp::kNotEqual: return compare(P::ICMP_NE, P::FCMP_UNE);
      case ScalarOp::kLess: return order(P::ICMP_SLT, P::ICMP_ULT, P::FCMP_OLT);
      case ScalarOp::kLessEqual: return order(P::ICMP_SLE, P::ICMP_ULE, P::FCMP_OLE);
      case ScalarOp::kGreater: return order(P::ICMP_SGT, P::ICMP_UGT, P::FCMP_OGT);
      case ScalarOp::kGreaterEqual: return order(P::ICMP_SGE, P::ICMP_UGE, P::FCMP_OGE);
      case ScalarOp::kAnd: return b_.CreateAnd(a, b);
      case ScalarOp::kOr: return b_.CreateOr(a, b);
      case ScalarOp::kXor: return b_.CreateXor(a, b);
      case ScalarOp::kDivide:
      case ScalarOp::kFloorDivide: break;
    }
    assert(false && "is_inline() has excluded the operation");
    return a;
  }

  // Words.

  llvm::Type* scalar_type(DType dtype) {
    switch (dtype) {
      case DType::kBool: return b_.getInt1Ty();
      case DType::kI32: return b_.getInt32Ty();
      case DType::kI64: return b_.getInt64Ty();
      case DType::kF32: return b_.getFloatTy();
      case DType::kF64: return b_.getDoubleTy();
      default: return nullptr;
    }
  }
  // The tag and the dtype of a word, as its first two bytes.
  static uint16_t scalar_tag(DType dtype) {
    return static_cast<uint16_t>(TN_WORD_SCALAR | static_cast<unsigned>(dtype) << 8);
  }
  Value* head(Register r) { return b_.CreateConstInBoundsGEP1_64(word_, registers_, r); }
  Value* tail(Register r) { return b_.CreateStructGEP(word_, head(r), 1); }
  Value* bits(Register r) { return b_.CreateLoad(b_.getInt64Ty(), tail(r)); }
  Value* tag_of(Register r) { return b_.CreateLoad(b_.getInt8Ty(), head(r)); }
  Value* is_object(Register r) { return b_.CreateICmpUGE(tag_of(r), b_.getInt8(TN_WORD_FIRST_OBJECT)); }
  Value* has_tag(Register r, uint16_t tag) {
    return b_.CreateICmpEQ(b_.CreateLoad(b_.getInt16Ty(), head(r)), b_.getInt16(tag));
  }
  Value* as_bool(Value* bits) { return b_.CreateICmpNE(b_.CreateTrunc(bits, b_.getInt8Ty()), b_.getInt8(0)); }
  Value* scalar(Value* bits, llvm::Type* type) {
    if (type->isIntegerTy(1)) return as_bool(bits);
    Value* integer = b_.CreateTrunc(bits, b_.getIntNTy(type->getPrimitiveSizeInBits()));
    return type->isFloatingPointTy() ? b_.CreateBitCast(integer, type) : integer;
  }

  // Callbacks.

  Value* call_back(llvm::FunctionType* type, unsigned field, llvm::ArrayRef<Value*> args) {
    Value* callee = b_.CreateLoad(b_.getPtrTy(), b_.CreateStructGEP(machine_, code_->getArg(0), field));
    return b_.CreateCall(type, callee, args);
  }
  // The machine executes the current instruction.
  void step() {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
    Value* failed = call_back(type, 3, {code_->getArg(0), b_.getInt32(now_)});
    auto* done = block("done");
    b_.CreateCondBr(b_.CreateIsNull(failed), done, failed_, likely());
    b_.SetInsertPoint(done);
  }
  Value* target_of() {
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
    return call_back(type, 6, {code_->getArg(0), b_.getInt32(now_)});
  }
  // Emits the fast form of the current instruction for where the condition holds, a step of the machine for elsewhere.
  void unless(Value* is_fast, auto&& emit_fast) {
    auto *fast = block("fast"), *slow = block("slow"), *done = block("after");
    b_.CreateCondBr(is_fast, fast, slow, likely());
    b_.SetInsertPoint(slow);
    step();
    b_.CreateBr(done);
    b_.SetInsertPoint(fast);
    emit_fast();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(context_, name, code_); }
  llvm::MDNode* likely() { return llvm::MDBuilder(context_).createLikelyBranchWeights(); }

  llvm::LLVMContext& context_;
  const runtime::Function& function_;
  llvm::IRBuilder<> b_;
  llvm::StructType* word_;     // tn_word: its first eight bytes, and the scalar's
  llvm::StructType* machine_;  // tn_machine
  llvm::Function* code_ = nullptr;
  Value *registers_ = nullptr, *constants_ = nullptr;
  llvm::BasicBlock* failed_ = nullptr;
  std::map<uint32_t, llvm::BasicBlock*> blocks_;  // by the instruction that begins the block
  uint32_t now_ = 0;                              // the instruction
};

// What tn_compiled_get() returns.
void make_table(llvm::Module& module, const std::vector<llvm::Function*>& functions) {
  llvm::IRBuilder<> b(module.getContext());
  const auto global = [&](llvm::Constant* value) {
    return new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::InternalLinkage, value);
  };
  const std::vector<llvm::Constant*> entries(functions.begin(), functions.end());
  auto* list = global(llvm::ConstantArray::get(llvm::ArrayType::get(b.getPtrTy(), entries.size()), entries));
  auto* table = global(llvm::ConstantStruct::getAnon(
      {b.getInt32(TN_COMPILED_ABI), b.getInt32(static_cast<uint32_t>(functions.size())), list}));
  auto* get = llvm::Function::Create(llvm::FunctionType::get(b.getPtrTy(), false), llvm::GlobalValue::ExternalLinkage,
                                     "tn_compiled_get", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", get));
  b.CreateRet(table);
}

}  // namespace

Expected<runtime::CompiledCode> compile_functions(const runtime::Executable& executable, const std::string& triple) {
  TENON_TRY_ASSIGN(target, find_target(triple));
  const Level& level = target->levels.back();
  llvm::LLVMContext context;
  llvm::Module module("functions", context);
  llvm::TargetMachine& machine = machine_for(*target, level);
  module.setTargetTriple(target->triple);
  module.setDataLayout(machine.createDataLayout());
  std::vector<llvm::Function*> functions;
  for (const runtime::Function& function : executable.functions) {
    functions.push_back(FunctionCompiler(module, function, static_cast<uint32_t>(functions.size())).run());
    functions.back()->addFnAttr("target-cpu", level.cpu);
    functions.back()->addFnAttr("target-features", level.features);
  }
  make_table(module, functions);
  if constexpr (TENON_SANITIZED) {
    [[maybe_unused]] const bool is_broken = llvm::verifyModule(module, &llvm::errs());
    assert(!is_broken);
  }
  const auto object = make_object(module, machine);
  TENON_TRY_ASSIGN(shared, link({object.data(), object.size()}));
  return runtime::CompiledCode{target->triple, std::move(*shared)};
}

}  // namespace tenon::compiler::native
