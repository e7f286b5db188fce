#include "compiler/backends/llvm/emit_transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/loop/tree.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kBlock = 4;  // rows and columns of a block that is transposed in registers

}  // namespace

int64_t TransposeEmitter::lanes() const { return std::clamp<int64_t>(unit_.level.vector_bytes / 4, kBlock, 16); }

std::optional<TransposeEmitter::Tile> TransposeEmitter::find_tile(const loop::For& outer) {
  const auto* inner = outer.body.size() == 1 ? std::get_if<loop::For>(&outer.body[0].form) : nullptr;
  if (!inner || inner->kind != loop::LoopKind::kVectorized || inner->body.size() != 1 || frame().lanes > 0)
    return std::nullopt;
  const auto* stage = std::get_if<loop::Stage>(&inner->body[0].form);
  if (!stage || !stage->where.empty() || !stage->init.empty() || stage->body.size() != 1) return std::nullopt;
  const auto* store = std::get_if<loop::Store>(&stage->body[0].form);
  const auto* load = store ? std::get_if<loop::Load>(&store->value->form) : nullptr;
  if (!load) return std::nullopt;
  // The last two indices; the axes before them have one element.
  const auto tile_index = [&](BufferId buffer, const Dims& indices) {
    const Dims& extents = indices_.extents().at(buffer);
    const bool is_tile = indices.size() >= 2 && std::all_of(extents.begin(), extents.end() - 2,
                                                            [](Dim extent) { return extent.constant() == 1; });
    return is_tile ? loop::over_loops(context_, *stage, Dims(indices.end() - 2, indices.end())) : Dims();
  };
  const Dims to = tile_index(store->buffer, store->indices), from = tile_index(load->buffer, load->indices);
  if (to.empty() || from.empty()) return std::nullopt;
  if (from[0].variable() != outer.var || from[1].variable() != inner->var) return std::nullopt;
  const auto column = context_.linear_in(inner->var, to[0]), row = context_.linear_in(outer.var, to[1]);
  if (!column || !row || column->first.constant() != 1 || row->first.constant() != 1) return std::nullopt;
  const auto rows = outer.extent.constant(), columns = inner->extent.constant(),
             from_width = indices_.extents().at(load->buffer).back().constant(),
             width = indices_.extents().at(store->buffer).back().constant();
  const auto on_stack = [&](BufferId id) { return llvm::isa<llvm::AllocaInst>(frame().bases.at(id).value); };
  if (!rows || !columns || !width || from_width != columns || *columns % lanes() != 0 || !on_stack(store->buffer) ||
      !on_stack(load->buffer) || runtime::bytes(store->value->dtype) != 4)
    return std::nullopt;
  // At least one whole block is written.
  if (*rows < kBlock && row->second.constant().value_or(*width) + kBlock > *width) return std::nullopt;
  return Tile{load->buffer, store->buffer, row->second, column->second, *rows, *columns, *width};
}

bool TransposeEmitter::emit(const loop::For& outer) {
  const auto tile = find_tile(outer);
  if (!tile) return false;
  llvm::Type* element = frames_.memory_type(function().buffer(tile->to).dtype);
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(tile->columns));
  const llvm::Align align(4);
  const auto line_of = [&](Value* base, int64_t row) { return b_.CreateGEP(element, base, i64(row * tile->columns)); };
  Value* const accumulators = frame().bases.at(tile->from).value;
  Value* const lines =
      frames_.stack_memory(element, static_cast<uint64_t>(std::max(tile->rows, kBlock) * tile->columns));
  for (int64_t i = 0; i < tile->rows; ++i)
    b_.CreateAlignedStore(b_.CreateAlignedLoad(type, line_of(accumulators, i), align), line_of(lines, i), align);
  Value* const offset = b_.CreateAdd(b_.CreateMul(indices_.uniform(indices_.resolve(tile->column)), i64(tile->width)),
                                     indices_.uniform(indices_.resolve(tile->row)));
  b_.CreateCall(transpose_function(),
                {lines, i64(tile->columns), b_.CreateGEP(element, frame().bases.at(tile->to).value, offset),
                 i64(tile->width), i64(tile->rows)});
  frames_.clear_block_cache();
  return true;
}

// Transposes each block of four vectors, so that the vectors hold the columns 4 * i + 0, 1, 2, 3 of all blocks i.
// Zipping lanes of two rows, then pairs of lanes of two such vectors, is one instruction each on most processors.
std::vector<Value*> TransposeEmitter::transposed(llvm::IRBuilder<>& b, const std::vector<Value*>& rows) const {
  const int64_t lanes = this->lanes();
  const auto zip = [&](Value* x, Value* y, int size, bool high) {
    std::vector<int> from;
    for (int64_t part = 0; part < lanes; part += kBlock) {
      for (int i = 0; i < kBlock; ++i) {
        const int lane = static_cast<int>(part) + (high ? 2 : 0) + (size == 1 ? i / 2 : i % 2);
        from.push_back((size == 1 ? i % 2 : i / 2) != 0 ? static_cast<int>(lanes) + lane : lane);
      }
    }
    return b.CreateShuffleVector(x, y, from);
  };
  // Of each four lanes: a0 b0 a1 b1, a2 b2 a3 b3 and the same of c and d; then pairs of these.
  Value *ab = zip(rows[0], rows[1], 1, false), *ab_high = zip(rows[0], rows[1], 1, true),
        *cd = zip(rows[2], rows[3], 1, false), *cd_high = zip(rows[2], rows[3], 1, true);
  return {zip(ab, cd, 2, false), zip(ab, cd, 2, true), zip(ab_high, cd_high, 2, false), zip(ab_high, cd_high, 2, true)};
}

// void (from, its columns, to, its columns, rows of `from`): a loop over four rows at a time, the last of which may
// overlap the previous ones, and in it one over the columns of a register.
llvm::Function* TransposeEmitter::transpose_function() {
  const std::string name = fmt::format("tn.transpose.{}", unit_.level.name);  // kernels may be called "transpose"
  if (auto* existing = unit_.module.getFunction(name)) return existing;
  llvm::Type *pointer = b_.getPtrTy(), *integer = b_.getInt64Ty(), *element = b_.getFloatTy();
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, integer, pointer, integer, integer}, false),
      llvm::GlobalValue::InternalLinkage, name, unit_.module);
  frames_.set_target_attributes(*function);
  Value *from = function->getArg(0), *columns = function->getArg(1), *to = function->getArg(2),
        *width = function->getArg(3), *rows = function->getArg(4);
  const int64_t lanes = this->lanes();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(b_.getContext(), "entry", function));
  auto *row_loop = llvm::BasicBlock::Create(b_.getContext(), "rows", function),
       *column_loop = llvm::BasicBlock::Create(b_.getContext(), "columns", function),
       *next_row = llvm::BasicBlock::Create(b_.getContext(), "next", function),
       *done = llvm::BasicBlock::Create(b_.getContext(), "done", function);
  auto* const entry = b.GetInsertBlock();
  Value* last = b.CreateSub(rows, i64(kBlock));
  last = b.CreateSelect(b.CreateICmpSGT(last, i64(0)), last, i64(0));
  b.CreateBr(row_loop);

  b.SetInsertPoint(row_loop);
  auto* counter = b.CreatePHI(integer, 2);
  counter->addIncoming(i64(0), entry);
  Value* row = b.CreateSelect(b.CreateICmpSLT(counter, last), counter, last);
  Value* line = b.CreateGEP(element, from, b.CreateMul(row, columns));
  Value* target = b.CreateGEP(element, to, row);
  b.CreateBr(column_loop);

  b.SetInsertPoint(column_loop);
  auto* column = b.CreatePHI(integer, 2);
  column->addIncoming(i64(0), row_loop);
  const llvm::Align align(4);
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  std::vector<Value*> vectors;
  for (int64_t i = 0; i < kBlock; ++i) {
    Value* source = b.CreateGEP(element, line, b.CreateAdd(column, b.CreateMul(columns, i64(i))));
    vectors.push_back(b.CreateAlignedLoad(type, source, align));
  }
  vectors = transposed(b, vectors);
  for (int64_t part = 0; part < lanes; part += kBlock) {
    std::vector<int> block;
    for (int64_t lane = 0; lane < kBlock; ++lane) block.push_back(static_cast<int>(part + lane));
    for (int64_t i = 0; i < kBlock; ++i) {
      Value* destination = b.CreateGEP(element, target, b.CreateMul(width, b.CreateAdd(column, i64(part + i))));
      b.CreateAlignedStore(b.CreateShuffleVector(vectors[static_cast<size_t>(i)], block), destination, align);
    }
  }
  Value* next = b.CreateAdd(column, i64(lanes));
  column->addIncoming(next, column_loop);
  b.CreateCondBr(b.CreateICmpSLT(next, columns), column_loop, next_row);

  b.SetInsertPoint(next_row);
  Value* following = b.CreateAdd(counter, i64(kBlock));
  counter->addIncoming(following, next_row);
  b.CreateCondBr(b.CreateICmpSLT(following, rows), row_loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return function;
}

}  // namespace tenon::compiler::native
