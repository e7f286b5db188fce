// Matrix instructions of a GPU's warps: mma.sync, and ldmatrix for its operands (NVIDIA, "Parallel Thread Execution
// ISA", sections on the matrix fragments of mma.m16n8k32, .m16n8k16 and .m16n8k8, and on ldmatrix).
//
// In bytes the fragments of all types are the same. With group = lane / 4, which is the thread's index along y: a
// fragment of x has rows `group` and `group` + 8 of the tile, one of y column `group`; the thread's index along x
// selects four bytes of terms of each half of 16.
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <array>
#include <map>

#include "compiler/backends/llvm/emit_intrinsic.h"
#include "compiler/base/dim_prover.h"
#include "compiler/loop/instructions.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kWarpColumns = 4, kWarpRows = 8;  // threads of a warp, along x and y
constexpr int64_t kWordBytes = 4, kHalfBytes = 16;
constexpr unsigned kMatrixSpace = 3;

struct MatrixInstruction {
  std::string_view name;
  llvm::Intrinsic::ID id;
};
constexpr MatrixInstruction kMatrixInstructions[] = {
    {"mma_s8_16x8x32", llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8},
    {"mma_s8_u8_16x8x32", llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8_u8},
    {"mma_u8_s8_16x8x32", llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8},
    {"mma_u8_16x8x32", llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8},
    {"mma_f16_16x8x16", llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32},
    {"mma_bf16_16x8x16", llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16},
    {"mma_tf32_16x8x8", llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32}};

Dims moved(TypeContext& context, Dims indices, std::initializer_list<std::pair<size_t, Dim>> offsets) {
  for (const auto& [axis, offset] : offsets) indices[axis] = context.add(indices[axis], offset);
  return indices;
}

}  // namespace

std::optional<IntrinsicEmitter::Fragment> IntrinsicEmitter::fragment_of(const loop::Operand& operand, Symbol thread) {
  const auto& threads = frame().threads;
  const DimBounds bounds{{*threads[0], {0, kWarpColumns - 1}}, {*threads[1], {0, kWarpRows - 1}}};
  const DimProver prover(context_, bounds);
  std::map<Symbol, Dim> first{{*threads[0], context_.dim(0)}, {*threads[1], context_.dim(0)}};
  Fragment fragment;
  std::optional<size_t> across;
  std::vector<size_t> axes;  // of the block, in order
  for (const loop::Part& part : operand.parts) {
    if (part.size > 0) axes.push_back(fragment.begin.size());
    const Dim own = indices_.resolve(part.begin), begin = context_.substitute(own, first);
    fragment.begin.push_back(begin);
    if (prover.equal(own, begin) == Answer::kYes) continue;
    if (across || prover.equal(own, context_.add(begin, context_.dim(thread))) != Answer::kYes) return std::nullopt;
    across = fragment.begin.size() - 1;
  }
  if (!across || axes.size() != 3 || axes.back() + 1 != operand.parts.size()) return std::nullopt;
  fragment.across = *across, fragment.rows = axes[0], fragment.halves = axes[1], fragment.terms = axes[2];
  return fragment;
}

// The element's address, or nullptr where it may not be a multiple of the bytes.
Value* IntrinsicEmitter::fragment_pointer(const loop::Operand& operand, const Dims& indices, int64_t bytes) {
  const DType dtype = function().buffer(operand.buffer).dtype;
  const MemoryEmitter::Address address = memory_.address(operand.buffer, indices);
  const Dim elements = context_.dim(bytes / runtime::bytes(dtype));
  if (address.rows || DimProver(context_).divides(elements, address.offset) != Answer::kYes) return nullptr;
  return memory_.pointer(address, address.offset, frames_.memory_type(dtype));
}

Value* IntrinsicEmitter::word_at(const loop::Operand& operand, const Dims& indices) {
  Value* pointer = fragment_pointer(operand, indices, kWordBytes);
  if (!pointer) return nullptr;
  auto* word = b_.CreateAlignedLoad(b_.getInt32Ty(), pointer, llvm::Align(kWordBytes));
  memory_.set_alias_metadata(word, operand.buffer);
  return word;
}

// A lane gives the address of a row of 16 bytes of one of the matrices of 8 rows, and receives its words of all.
std::vector<Value*> IntrinsicEmitter::load_matrices(const loop::Operand& operand, const Fragment& fragment,
                                                    bool is_left) {
  const auto* base = llvm::dyn_cast<llvm::AddrSpaceCastOperator>(frame().bases.at(operand.buffer).value);
  if (!base || base->getSrcAddressSpace() != kMatrixSpace) return {};
  const Dim x = context_.dim(*frame().threads[0]), y = context_.dim(*frame().threads[1]), two = context_.dim(2);
  const Dim matrix_row = context_.add(x, context_.multiply(context_.dim(kWarpColumns), context_.modulo(y, two))),
            matrix = context_.floor_divide(y, two);
  Dims at;
  if (is_left) {
    at = moved(context_, fragment.begin,
               {{fragment.across, matrix_row},
                {fragment.rows, context_.modulo(matrix, two)},
                {fragment.halves, context_.floor_divide(matrix, two)}});
  } else {  // the addresses of the lanes from 16 on are not used
    at = moved(context_, fragment.begin,
               {{fragment.across, context_.floor_divide(matrix_row, two)},
                {fragment.rows, context_.modulo(matrix_row, two)},
                {fragment.halves, context_.modulo(matrix, two)}});
  }
  Value* pointer = fragment_pointer(operand, at, kHalfBytes);
  if (!pointer) return {};
  auto* type = b_.getPtrTy(kMatrixSpace);
  auto* loaded = b_.CreateIntrinsic(is_left ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16
                                            : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                                    {type}, {b_.CreateAddrSpaceCast(pointer, type)});
  memory_.set_alias_metadata(loaded, operand.buffer);
  std::vector<Value*> words;
  for (unsigned i = 0; i < (is_left ? 4u : 2u); ++i) words.push_back(b_.CreateExtractValue(loaded, i));
  return words;
}

std::vector<Value*> IntrinsicEmitter::load_fragment(const loop::Operand& operand, const Fragment& fragment,
                                                    bool is_left) {
  if (auto words = load_matrices(operand, fragment, is_left); !words.empty()) return words;
  const Dim group = context_.dim(*frame().threads[1]), pair = context_.dim(2),
            terms =
                context_.multiply(context_.dim(kWordBytes / runtime::bytes(function().buffer(operand.buffer).dtype)),
                                  context_.dim(*frame().threads[0]));
  std::vector<Value*> words;
  for (const int64_t half : {0, 1}) {
    const Dims terms_at =
        moved(context_, fragment.begin, {{fragment.halves, context_.dim(half)}, {fragment.terms, terms}});
    if (!is_left) {
      words.push_back(word_at(operand, moved(context_, terms_at,
                                             {{fragment.across, context_.floor_divide(group, pair)},
                                              {fragment.rows, context_.modulo(group, pair)}})));
      continue;
    }
    for (const int64_t row : {0, 1})
      words.push_back(
          word_at(operand, moved(context_, terms_at, {{fragment.across, group}, {fragment.rows, context_.dim(row)}})));
  }
  if (std::ranges::find(words, nullptr) != words.end()) words.clear();
  return words;
}

// All threads of a warp execute it: no condition is around it, and the block has all of the warp's threads.
bool IntrinsicEmitter::emit_mma(const loop::Intrinsic& call, const loop::Function& declared) {
  const auto& threads = frame().threads;
  const auto& dims = frames_.unit().threads;
  const bool whole_warps = threads[0] && threads[1] && dims[0] == kWarpColumns && dims[1] == kWarpRows;
  const bool uniform =
      !frame().mask && std::ranges::none_of(frame().scopes, [](const auto& scope) { return scope.guarded; });
  if (!frames_.unit().is_gpu() || !whole_warps || !uniform) return false;
  const auto* instruction =
      std::ranges::find(kMatrixInstructions, context_.name(declared.name), &MatrixInstruction::name);
  if (instruction == std::end(kMatrixInstructions)) return false;
  const auto known = loop::instruction(context_, instruction->name);
  if (!known || !equal(declared, *known)) return false;
  const loop::Operand &x = call.inputs[0], &y = call.inputs[1], &z = call.outputs[0];
  const auto rows = fragment_of(x, *threads[1]), columns = fragment_of(y, *threads[0]);
  if (!rows || !columns) return false;
  std::vector<Value*> operands = load_fragment(x, *rows, true);
  const std::vector<Value*> right = load_fragment(y, *columns, false);
  if (operands.empty() || right.empty()) return false;
  std::ranges::copy(right, std::back_inserter(operands));
  for (Value*& operand : operands) {
    if (instruction->id == llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32)
      operand = b_.CreateBitCast(operand, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
    if (instruction->id == llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32)
      operand = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_f2tf32_rna, {}, {b_.CreateBitCast(operand, b_.getFloatTy())});
  }
  Dims own;
  std::vector<size_t> axes;
  for (const loop::Part& part : z.parts) {
    if (part.size > 0) axes.push_back(own.size());
    own.push_back(indices_.resolve(part.begin));
  }
  const auto sum_at = [&](int64_t i) {
    return moved(context_, own, {{axes[0], context_.dim(i / 2)}, {axes[1], context_.dim(i % 2)}});
  };
  for (int64_t i = 0; i < 4; ++i) operands.push_back(memory_.load(z.buffer, sum_at(i)));
  Value* result = b_.CreateIntrinsic(instruction->id, {}, operands);
  for (unsigned i = 0; i < 4; ++i) memory_.store(z.buffer, sum_at(i), b_.CreateExtractValue(result, i));
  return true;
}

}  // namespace tenon::compiler::native
