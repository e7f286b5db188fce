// Instructions: dot products of bytes where the processor has them, for all others what their declaration says.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "compiler/backends/llvm/emit.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMostBlockUnroll = 16;  // of an axis of an instruction's operand

// z[j] += sum over k in 4 of x[k] * y[j, k], of bytes in x and y and i32 in z.
struct Dot {
  unsigned lanes = 0;
  DType left{}, right{};
};

// Whether the declaration says so: its name alone says nothing.
std::optional<Dot> find_dot(const loop::Function& declared) {
  if (declared.params.size() != 2 || declared.results.size() != 1) return std::nullopt;
  const loop::Buffer &x = declared.buffer(declared.params[0]), &y = declared.buffer(declared.params[1]),
                     &z = declared.buffer(declared.results[0]);
  auto byte = [](DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; };
  if (!byte(x.dtype) || !byte(y.dtype) || z.dtype != DType::kI32 || x.rank() != 1 || y.rank() != 2 || z.rank() != 1)
    return std::nullopt;
  const auto lanes = z.axes[0].extent.constant();
  if (!lanes || *lanes > 64 || x.axes[0].extent.constant() != 4 || y.axes[1].extent.constant() != 4 ||
      y.axes[0].extent != z.axes[0].extent)
    return std::nullopt;
  // One stage in loops over all lanes and all k, whose point adds one product.
  const loop::Body* body = &declared.body;
  while (body->size() == 1 && std::holds_alternative<loop::For>(body->front().form))
    body = &std::get<loop::For>(body->front().form).body;
  const auto* stage = body->size() == 1 ? std::get_if<loop::Stage>(&body->front().form) : nullptr;
  if (!stage || !stage->where.empty() || !stage->init.empty() || stage->axes.size() != 2 || stage->body.size() != 1)
    return std::nullopt;
  const auto* store = std::get_if<loop::Store>(&stage->body.front().form);
  if (!store || store->indices.size() != 1) return std::nullopt;
  const auto j = store->indices[0].variable();
  const auto own = [&](Symbol var) { return std::ranges::find(stage->axes, var, &loop::Axis::var); };
  if (!j || own(*j) == stage->axes.end()) return std::nullopt;
  const loop::Axis& lane = *own(*j);
  const loop::Axis& sum = stage->axes[&lane == &stage->axes[0] ? 1 : 0];
  if (lane.kind != loop::AxisKind::kSpatial || sum.kind != loop::AxisKind::kReduce || lane.extent != z.axes[0].extent ||
      sum.extent.constant() != 4)
    return std::nullopt;
  // The loops give each axis its own variable.
  int loops = 0;
  for (const loop::Body* at = &declared.body; std::holds_alternative<loop::For>(at->front().form); ++loops) {
    const auto& loop = std::get<loop::For>(at->front().form);
    if (std::ranges::none_of(stage->axes, [&](const loop::Axis& axis) {
          return axis.value.variable() == loop.var && axis.extent == loop.extent;
        }))
      return std::nullopt;
    at = &loop.body;
  }
  if (loops != 2 || lane.value == sum.value) return std::nullopt;
  const auto* add = std::get_if<loop::Binary>(&store->value->form);
  if (!add || add->op != loop::BinaryOp::kAdd) return std::nullopt;
  auto loads = [](const loop::Expr& expr, loop::BufferId buffer, std::initializer_list<Symbol> indices) {
    const auto* load = std::get_if<loop::Load>(&expr->form);
    return load && load->buffer == buffer &&
           std::ranges::equal(load->indices, indices, [](Dim dim, Symbol var) { return dim.variable() == var; });
  };
  const auto* product = std::get_if<loop::Binary>(&add->right->form);
  if (!loads(add->left, declared.results[0], {lane.var}) || !product || product->op != loop::BinaryOp::kMultiply)
    return std::nullopt;
  const auto* left = std::get_if<loop::Convert>(&product->left->form);
  const auto* right = std::get_if<loop::Convert>(&product->right->form);
  if (!left || !right || !loads(left->value, declared.params[0], {sum.var}) ||
      !loads(right->value, declared.params[1], {lane.var, sum.var}))
    return std::nullopt;
  return Dot{static_cast<unsigned>(*lanes), x.dtype, y.dtype};
}

}  // namespace

// Whether the elements of the block lie behind each other.
bool FunctionEmitter::contiguous(const loop::Operand& operand) {
  const Dims& extents = extents_.at(operand.buffer);
  if (is_ragged(function_->buffer(operand.buffer))) return false;
  bool whole = true;  // so far, every axis from behind
  for (size_t axis = operand.parts.size(); axis-- > 0;) {
    const int64_t size = std::max<int64_t>(operand.parts[axis].size, 1);
    if (!whole && size != 1) return false;
    whole &= extents[axis].constant() == size;
  }
  return true;
}

bool FunctionEmitter::dot_product(const loop::Intrinsic& call, const loop::Function& declared) {
  const auto dot = find_dot(declared);
  if (!dot || !contiguous(call.inputs[0]) || !contiguous(call.inputs[1]) || !contiguous(call.outputs[0])) return false;
  auto begin = [&](const loop::Operand& operand) {
    Dims at;
    for (const loop::Part& part : operand.parts) at.push_back(resolve(part.begin));
    for (Dim one : at) check_divisions(one);
    const Address place = address(operand.buffer, at);
    return pointer(place, place.offset, memory_type(function_->buffer(operand.buffer).dtype));
  };
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), dot->lanes);
  auto* x = b_.CreateAlignedLoad(b_.getInt32Ty(), begin(call.inputs[0]), llvm::Align(1));
  auto* y = b_.CreateAlignedLoad(words, begin(call.inputs[1]), llvm::Align(1));
  Value* place = begin(call.outputs[0]);
  auto* z = b_.CreateAlignedLoad(words, place, llvm::Align(4));
  annotate(x, call.inputs[0].buffer), annotate(y, call.inputs[1].buffer), annotate(z, call.outputs[0].buffer);
  Value* result = byte_dot(z, x, y, is_signed(dot->left), is_signed(dot->right));
  annotate(b_.CreateAlignedStore(result, place, llvm::Align(4)), call.outputs[0].buffer);
  return true;
}

// In pieces of a register; x or y may be the same in all lanes.
llvm::Value* FunctionEmitter::byte_dot(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(sum->getType());
  const unsigned lanes = vector ? vector->getNumElements() : 1;
  const auto most = static_cast<unsigned>(unit_.level.vector_bytes / 4);
  std::vector<Value*> done;
  for (unsigned begin = 0, count = 0; begin < lanes; begin += count) {
    const unsigned rest = lanes - begin;
    unsigned width = most;  // of the piece; its last lanes may be nobody's
    while (width > 4 && width > rest) width /= 2;
    count = std::min(width, rest);
    const auto piece = [&](Value* value) -> Value* {
      if (!value->getType()->isVectorTy()) return b_.CreateVectorSplat(width, value);
      if (count == lanes && width == lanes) return value;
      std::vector<int> numbers(width, -1);
      for (unsigned i = 0; i < count; ++i) numbers[i] = static_cast<int>(begin + i);
      return b_.CreateShuffleVector(value, numbers);
    };
    done.push_back(byte_dot_of_lanes(piece(sum), piece(x), piece(y), x_signed, y_signed));
  }
  if (!vector) return b_.CreateExtractElement(done.front(), uint64_t{0});
  // Pieces get shorter; each is brought to the length of all and put behind those before it.
  Value* all = nullptr;
  unsigned there = 0;
  for (Value* one : done) {
    const unsigned width = llvm::cast<llvm::FixedVectorType>(one->getType())->getNumElements(),
                   count = std::min(width, lanes - there);
    if (!all) {
      all = one;
    } else {
      const unsigned longer = llvm::cast<llvm::FixedVectorType>(all->getType())->getNumElements();
      std::vector<int> same(longer, -1), numbers;
      for (unsigned i = 0; i < std::min(width, longer); ++i) same[i] = static_cast<int>(i);
      if (width != longer) one = b_.CreateShuffleVector(one, same);
      for (unsigned i = 0; i < there; ++i) numbers.push_back(static_cast<int>(i));
      for (unsigned i = 0; i < count; ++i) numbers.push_back(static_cast<int>(longer + i));
      all = b_.CreateShuffleVector(all, one, numbers);
    }
    there += count;
  }
  if (llvm::cast<llvm::FixedVectorType>(all->getType())->getNumElements() == lanes) return all;
  std::vector<int> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(static_cast<int>(i));
  return b_.CreateShuffleVector(all, numbers);
}

// Of as many lanes as a register has, or of a half or a quarter of it: at least 4.
llvm::Value* FunctionEmitter::byte_dot_of_lanes(Value* sum, Value* x, Value* y, bool x_signed, bool y_signed) {
  const Level& level = unit_.level;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  auto* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 4 * lanes);
  auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes);
  const auto each = [&](llvm::Type* type, uint64_t value) { return llvm::ConstantInt::get(type, value); };
  const auto as_bytes = [&](Value* value) { return b_.CreateBitCast(value, bytes); };
  if (x_signed && !y_signed) std::swap(x, y), std::swap(x_signed, y_signed);
  if (level.family == Family::kX86 && level.dot && !x_signed && y_signed) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                 : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {sum, x, y});
  }
  if (level.family == Family::kX86) {
    // As 16 bits, the even bytes and the odd ones: pairs of such products fit into 32 bits, as they do not into 16.
    const auto half = [&](Value* value, bool sign, bool odd) -> Value* {
      value = b_.CreateBitCast(value, halves);
      if (odd) return sign ? b_.CreateAShr(value, each(halves, 8)) : b_.CreateLShr(value, each(halves, 8));
      if (!sign) return b_.CreateAnd(value, each(halves, 0xff));
      return b_.CreateAShr(b_.CreateShl(value, each(halves, 8)), each(halves, 8));
    };
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                 : llvm::Intrinsic::x86_sse2_pmadd_wd;
    for (const bool odd : {false, true}) {
      sum = b_.CreateAdd(
          sum, b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {half(x, x_signed, odd), half(y, y_signed, odd)}));
    }
    return sum;
  }
  if (level.family == Family::kArm && level.dot) {
    const auto dot = [&](Value* to, Value* a, Value* b, bool sign) {
      const auto id = sign ? llvm::Intrinsic::aarch64_neon_sdot : llvm::Intrinsic::aarch64_neon_udot;
      return b_.CreateIntrinsic(id, {to->getType(), bytes}, {to, as_bytes(a), as_bytes(b)});
    };
    if (x_signed == y_signed) return dot(sum, x, y, x_signed);
    // x = (x - 128) + 128, the sum of 128 * y as twice that of 64 * y.
    Value* less = b_.CreateXor(as_bytes(x), each(bytes, 0x80));
    Value* zero = llvm::Constant::getNullValue(sum->getType());
    Value* half = dot(zero, y, each(bytes, 64), true);
    return b_.CreateAdd(dot(sum, less, y, true), b_.CreateShl(half, each(sum->getType(), 1)));
  }
  auto* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), 4 * lanes);
  Value* products =
      b_.CreateMul(b_.CreateIntCast(as_bytes(x), wide, x_signed), b_.CreateIntCast(as_bytes(y), wide, y_signed));
  for (int k = 0; k < 4; ++k) {
    std::vector<int> numbers;
    for (unsigned lane = 0; lane < lanes; ++lane) numbers.push_back(static_cast<int>(4 * lane) + k);
    sum = b_.CreateAdd(sum, b_.CreateShuffleVector(products, numbers));
  }
  return sum;
}

// The declaration runs on blocks, copied in and out.
void FunctionEmitter::statement(const loop::Intrinsic& call) {
  const loop::Function& declared = *function_->intrinsic(call.name);
  if (dot_product(call, declared)) {
    made_ = {};
    return;
  }
  struct Block {
    const loop::Operand* operand;
    BufferId id;
    Value* memory;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < call.inputs.size(); ++i) blocks.push_back({&call.inputs[i], declared.params[i], nullptr});
  for (size_t i = 0; i < call.outputs.size(); ++i) blocks.push_back({&call.outputs[i], declared.results[i], nullptr});
  // Each element of a block, as indices of the buffer, and where the block has it.
  auto elements = [&](const loop::Operand& operand, const std::function<void(const Dims&, Dim)>& visit) {
    Dims at;
    const std::function<void(size_t, Dim)> axis = [&](size_t number, Dim place) {
      if (number == operand.parts.size()) return visit(at, place);
      const loop::Part& part = operand.parts[number];
      const Dim begin = resolve(part.begin);
      const int64_t size = std::max<int64_t>(part.size, 1);
      auto one = [&](Dim i) {
        at.push_back(unit_.context.add(begin, i));
        axis(number + 1, unit_.context.add(unit_.context.multiply(place, unit_.context.dim(size)), i));
        at.pop_back();
      };
      if (size <= kMostBlockUnroll) {
        for (int64_t i = 0; i < size; ++i) one(unit_.context.dim(i));
      } else {
        serial(i64(0), i64(size), false, one);
      }
    };
    axis(0, unit_.context.dim(0));
  };
  for (Block& block : blocks) {
    const loop::Buffer& buffer = function_->buffer(block.operand->buffer);
    int64_t count = 1;
    for (const loop::Part& part : block.operand->parts) count *= std::max<int64_t>(part.size, 1);
    llvm::Type* type = memory_type(buffer.dtype);
    block.memory = stack_memory(type, static_cast<uint64_t>(count));
    elements(*block.operand, [&](const Dims& at, Dim place) {
      Value* value = load(block.operand->buffer, at);
      if (buffer.dtype == DType::kBool) value = b_.CreateZExt(value, type);
      b_.CreateStore(value, b_.CreateGEP(type, block.memory, uniform(place)));
    });
  }
  const loop::Function* const outer = std::exchange(function_, &declared);
  const Env outer_env = std::exchange(env_, {});
  auto outer_bases = std::exchange(frame().bases, {});
  auto outer_extents = std::exchange(extents_, {});
  const auto outer_alias = std::exchange(alias_, {});
  const loop::Stage* const outer_stage = stage_;
  for (const Block& block : blocks) {
    frame().bases[block.id] = {block.memory, 0};
    declare(block.id);
  }
  body(declared.body);
  function_ = outer;
  env_ = outer_env;
  frame().bases = std::move(outer_bases);
  extents_ = std::move(outer_extents);
  alias_ = outer_alias;
  stage_ = outer_stage;
  for (const Block& block : std::span(blocks).subspan(call.inputs.size())) {
    const DType dtype = function_->buffer(block.operand->buffer).dtype;
    elements(*block.operand, [&](const Dims& at, Dim place) {
      Value* value = b_.CreateLoad(memory_type(dtype), b_.CreateGEP(memory_type(dtype), block.memory, uniform(place)));
      if (dtype == DType::kBool) value = b_.CreateICmpNE(value, b_.getInt8(0));
      store(block.operand->buffer, at, value);
    });
  }
}

}  // namespace tenon::compiler::native
