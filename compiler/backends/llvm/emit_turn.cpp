// A tile of sums that is turned round: to[a + column, b + row] = from[row, column].
#include <fmt/format.h>

#include <algorithm>

#include "compiler/backends/llvm/emit.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::native {

// The sums leave their registers by rows, and one function for all kernels of a level turns them round in memory: a
// copy of it for each tile would cost more compilation than the tile's own loops.
bool FunctionEmitter::turn(const loop::For& outer) {
  const auto* inner = outer.body.size() == 1 ? std::get_if<loop::For>(&outer.body[0].form) : nullptr;
  if (!inner || inner->mark != loop::Mark::kVector || inner->body.size() != 1 || frame().lanes > 0) return false;
  const auto* stage = std::get_if<loop::Stage>(&inner->body[0].form);
  if (!stage || !stage->where.empty() || !stage->init.empty() || stage->body.size() != 1) return false;
  const auto* store = std::get_if<loop::Store>(&stage->body[0].form);
  const auto* load = store ? std::get_if<loop::Load>(&store->value->form) : nullptr;
  if (!load || store->indices.size() != 2 || load->indices.size() != 2) return false;
  TypeContext& context = unit_.context;
  const Dims to = loop::over_loops(context, *stage, store->indices),
             from = loop::over_loops(context, *stage, load->indices);
  if (from[0].variable() != outer.var || from[1].variable() != inner->var) return false;
  const auto column = context.linear_in(inner->var, to[0]), row = context.linear_in(outer.var, to[1]);
  if (!column || !row || column->first.constant() != 1 || row->first.constant() != 1) return false;
  const auto rows = outer.extent.constant(), columns = inner->extent.constant(),
             from_width = extents_.at(load->buffer)[1].constant(), width = extents_.at(store->buffer)[1].constant();
  const auto own = [&](BufferId id) { return llvm::isa<llvm::AllocaInst>(frame().bases.at(id).value); };
  const int64_t lanes = turned_lanes();
  if (!rows || !columns || !width || from_width != columns || *columns % lanes != 0 || !own(store->buffer) ||
      !own(load->buffer) || runtime::bytes(store->value->dtype) != 4)
    return false;
  if (*rows < kTurned && row->second.constant().value_or(*width) + kTurned > *width) return false;  // four are written
  llvm::Type* element = memory_type(store->value->dtype);
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(*columns));
  const llvm::Align align(4);
  const auto at = [&](Value* base, int64_t offset) { return b_.CreateGEP(element, base, i64(offset)); };
  Value* const sums = frame().bases.at(load->buffer).value;
  Value* const lines = stack_memory(element, static_cast<uint64_t>(std::max(*rows, kTurned) * *columns));
  for (int64_t i = 0; i < *rows; ++i)
    b_.CreateAlignedStore(b_.CreateAlignedLoad(type, at(sums, i * *columns), align), at(lines, i * *columns), align);
  Value* const place =
      b_.CreateAdd(b_.CreateMul(uniform(resolve(column->second)), i64(*width)), uniform(resolve(row->second)));
  b_.CreateCall(turning(), {lines, i64(*columns), b_.CreateGEP(element, frame().bases.at(store->buffer).value, place),
                            i64(*width), i64(*rows)});
  made_ = {};
  return true;
}

int64_t FunctionEmitter::turned_lanes() const { return std::clamp<int64_t>(unit_.level.vector_bytes / 4, kTurned, 16); }

// void (from, its columns, to, its columns, rows of `from`): four rows at a time, the last four perhaps once more, and
// a register's columns. Lanes of two rows zipped, then pairs of lanes of two such vectors, turn each four by four: each
// of them is one instruction of most processors.
llvm::Function* FunctionEmitter::turning() {
  const std::string name = fmt::format("turn.{}", unit_.level.name);
  if (auto* known = unit_.module.getFunction(name)) return known;
  llvm::Type *pointer = b_.getPtrTy(), *number = b_.getInt64Ty(), *element = b_.getFloatTy();
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, number, pointer, number, number}, false),
                             llvm::GlobalValue::InternalLinkage, name, unit_.module);
  describe(*function);
  Value *from = function->getArg(0), *columns = function->getArg(1), *to = function->getArg(2),
        *width = function->getArg(3), *rows = function->getArg(4);
  const int64_t lanes = turned_lanes();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(b_.getContext(), "entry", function));
  auto *each_row = llvm::BasicBlock::Create(b_.getContext(), "rows", function),
       *each_column = llvm::BasicBlock::Create(b_.getContext(), "columns", function),
       *next_row = llvm::BasicBlock::Create(b_.getContext(), "next", function),
       *done = llvm::BasicBlock::Create(b_.getContext(), "done", function);
  auto* const entry = b.GetInsertBlock();
  Value* last = b.CreateSub(rows, i64(kTurned));
  last = b.CreateSelect(b.CreateICmpSGT(last, i64(0)), last, i64(0));
  b.CreateBr(each_row);

  b.SetInsertPoint(each_row);
  auto* counted = b.CreatePHI(number, 2);
  counted->addIncoming(i64(0), entry);
  Value* row = b.CreateSelect(b.CreateICmpSLT(counted, last), counted, last);
  Value* line = b.CreateGEP(element, from, b.CreateMul(row, columns));
  Value* target = b.CreateGEP(element, to, row);
  b.CreateBr(each_column);

  b.SetInsertPoint(each_column);
  auto* column = b.CreatePHI(number, 2);
  column->addIncoming(i64(0), each_row);
  const llvm::Align align(4);
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  std::vector<Value*> lines;
  for (int64_t i = 0; i < kTurned; ++i) {
    Value* place = b.CreateGEP(element, line, b.CreateAdd(column, b.CreateMul(columns, i64(i))));
    lines.push_back(b.CreateAlignedLoad(type, place, align));
  }
  // Of each four lanes: a0 b0 a1 b1, a2 b2 a3 b3 and those of c and d; then pairs of these.
  const auto zip = [&](Value* x, Value* y, int size, bool high) {
    std::vector<int> numbers;
    for (int64_t part = 0; part < lanes; part += kTurned) {
      for (int i = 0; i < kTurned; ++i) {
        const int from = static_cast<int>(part) + (high ? 2 : 0) + (size == 1 ? i / 2 : i % 2);
        numbers.push_back((size == 1 ? i % 2 : i / 2) != 0 ? static_cast<int>(lanes) + from : from);
      }
    }
    return b.CreateShuffleVector(x, y, numbers);
  };
  Value *ab = zip(lines[0], lines[1], 1, false), *ab_high = zip(lines[0], lines[1], 1, true),
        *cd = zip(lines[2], lines[3], 1, false), *cd_high = zip(lines[2], lines[3], 1, true);
  lines = {zip(ab, cd, 2, false), zip(ab, cd, 2, true), zip(ab_high, cd_high, 2, false),
           zip(ab_high, cd_high, 2, true)};
  for (int64_t part = 0; part < lanes; part += kTurned) {
    std::vector<int> four;
    for (int64_t lane = 0; lane < kTurned; ++lane) four.push_back(static_cast<int>(part + lane));
    for (int64_t i = 0; i < kTurned; ++i) {
      Value* place = b.CreateGEP(element, target, b.CreateMul(width, b.CreateAdd(column, i64(part + i))));
      b.CreateAlignedStore(b.CreateShuffleVector(lines[static_cast<size_t>(i)], four), place, align);
    }
  }
  Value* next = b.CreateAdd(column, i64(lanes));
  column->addIncoming(next, each_column);
  b.CreateCondBr(b.CreateICmpSLT(next, columns), each_column, next_row);

  b.SetInsertPoint(next_row);
  Value* following = b.CreateAdd(counted, i64(kTurned));
  counted->addIncoming(following, next_row);
  b.CreateCondBr(b.CreateICmpSLT(following, rows), each_row, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return function;
}

}  // namespace tenon::compiler::native
