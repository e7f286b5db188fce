#include "compiler/backends/llvm/emit_intrinsic.h"

#include <algorithm>

#include "compiler/backends/llvm/emit_byte_dot.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kMaxBlockUnroll = 16;  // of an axis of an instruction's operand

// z[j] += sum over k in 4 of x[k] * y[j, k], of bytes in x and y and i32 in z.
struct Dot {
  unsigned lanes = 0;
  DType left{}, right{};
};

// The dot product if the operands of the declaration have its types and sizes.
std::optional<Dot> dot_of_operands(const loop::Function& declared) {
  if (declared.params.size() != 2 || declared.results.size() != 1) return std::nullopt;
  const loop::Buffer &x = declared.buffer(declared.params[0]), &y = declared.buffer(declared.params[1]),
                     &z = declared.buffer(declared.results[0]);
  auto is_byte = [](DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; };
  if (!is_byte(x.dtype) || !is_byte(y.dtype) || z.dtype != DType::kI32 || x.rank() != 1 || y.rank() != 2 ||
      z.rank() != 1)
    return std::nullopt;
  const auto lanes = z.axes[0].extent.constant();
  if (!lanes || *lanes > 64 || x.axes[0].extent.constant() != 4 || y.axes[1].extent.constant() != 4 ||
      y.axes[0].extent != z.axes[0].extent)
    return std::nullopt;
  return Dot{static_cast<unsigned>(*lanes), x.dtype, y.dtype};
}

// The stage of a declaration that is a single stage, of one assignment, in two loops that are its axes.
const loop::Stage* single_stage(const loop::Function& declared) {
  std::vector<const loop::For*> loops;
  const loop::Body* body = &declared.body;
  while (body->size() == 1 && std::holds_alternative<loop::For>(body->front().form)) {
    loops.push_back(&std::get<loop::For>(body->front().form));
    body = &loops.back()->body;
  }
  const auto* stage = body->size() == 1 ? std::get_if<loop::Stage>(&body->front().form) : nullptr;
  if (!stage || !stage->where.empty() || !stage->init.empty() || stage->axes.size() != 2 || stage->body.size() != 1)
    return nullptr;
  const bool feed_axes = std::ranges::all_of(loops, [&](const loop::For* loop) {
    return std::ranges::any_of(stage->axes, [&](const loop::Axis& axis) {
      return axis.value.variable() == loop->var && axis.extent == loop->extent;
    });
  });
  return loops.size() == 2 && feed_axes && stage->axes[0].value != stage->axes[1].value ? stage : nullptr;
}

// Whether the value is z[lane] + convert(x[sum]) * convert(y[lane, sum]).
bool is_dot_update(const loop::Function& declared, const loop::Expr& value, Symbol lane, Symbol sum) {
  auto loads = [](const loop::Expr& expr, BufferId buffer, std::initializer_list<Symbol> indices) {
    const auto* load = std::get_if<loop::Load>(&expr->form);
    return load && load->buffer == buffer &&
           std::ranges::equal(load->indices, indices, [](Dim dim, Symbol var) { return dim.variable() == var; });
  };
  const auto* add = std::get_if<loop::Binary>(&value->form);
  if (!add || add->op != loop::BinaryOp::kAdd) return false;
  const auto* product = std::get_if<loop::Binary>(&add->right->form);
  if (!loads(add->left, declared.results[0], {lane}) || !product || product->op != loop::BinaryOp::kMultiply)
    return false;
  const auto* left = std::get_if<loop::Convert>(&product->left->form);
  const auto* right = std::get_if<loop::Convert>(&product->right->form);
  return left && right && loads(left->value, declared.params[0], {sum}) &&
         loads(right->value, declared.params[1], {lane, sum});
}

// The dot product that the declaration computes; the instruction's name alone is no proof.
std::optional<Dot> find_dot(const loop::Function& declared) {
  const auto dot = dot_of_operands(declared);
  const loop::Stage* stage = dot ? single_stage(declared) : nullptr;
  if (!stage) return std::nullopt;
  const auto* store = std::get_if<loop::Store>(&stage->body.front().form);
  if (!store || store->indices.size() != 1) return std::nullopt;
  const auto j = store->indices[0].variable();
  const auto axis_of = [&](Symbol var) { return std::ranges::find(stage->axes, var, &loop::Axis::var); };
  if (!j || axis_of(*j) == stage->axes.end()) return std::nullopt;
  const loop::Axis& lane = *axis_of(*j);
  const loop::Axis& sum = stage->axes[&lane == &stage->axes[0] ? 1 : 0];
  const bool is_lane = lane.kind == loop::AxisKind::kSpatial && lane.extent.constant() == dot->lanes;
  const bool is_sum = sum.kind == loop::AxisKind::kReduce && sum.extent.constant() == 4;
  return is_lane && is_sum && is_dot_update(declared, store->value, lane.var, sum.var) ? dot : std::nullopt;
}

}  // namespace

bool IntrinsicEmitter::is_contiguous(const loop::Operand& operand) {
  const Dims& extents = indices_.extents().at(operand.buffer);
  if (is_ragged(function().buffer(operand.buffer))) return false;
  bool whole = true;  // whether the block contains all of the axes after this one
  for (size_t axis = operand.parts.size(); axis-- > 0;) {
    const int64_t size = std::max<int64_t>(operand.parts[axis].size, 1);
    if (!whole && size != 1) return false;
    whole &= extents[axis].constant() == size;
  }
  return true;
}

bool IntrinsicEmitter::emit_dot(const loop::Intrinsic& call, const loop::Function& declared) {
  const auto dot = find_dot(declared);
  if (!dot || !is_contiguous(call.inputs[0]) || !is_contiguous(call.inputs[1]) || !is_contiguous(call.outputs[0]))
    return false;
  auto begin = [&](const loop::Operand& operand) {
    Dims indices;
    for (const loop::Part& part : operand.parts) indices.push_back(indices_.resolve(part.begin));
    indices_.check_divisions(indices);
    const MemoryEmitter::Address address = memory_.address(operand.buffer, indices);
    return memory_.pointer(address, address.offset, frames_.memory_type(function().buffer(operand.buffer).dtype));
  };
  auto* vector = llvm::FixedVectorType::get(b_.getInt32Ty(), dot->lanes);
  auto* x = b_.CreateAlignedLoad(b_.getInt32Ty(), begin(call.inputs[0]), llvm::Align(1));
  auto* y = b_.CreateAlignedLoad(vector, begin(call.inputs[1]), llvm::Align(1));
  Value* output = begin(call.outputs[0]);
  auto* z = b_.CreateAlignedLoad(vector, output, llvm::Align(4));
  memory_.set_alias_metadata(x, call.inputs[0].buffer), memory_.set_alias_metadata(y, call.inputs[1].buffer);
  memory_.set_alias_metadata(z, call.outputs[0].buffer);
  Value* result = emit_byte_dot(b_, unit_.level, z, x, y, is_signed(dot->left), is_signed(dot->right));
  memory_.set_alias_metadata(b_.CreateAlignedStore(result, output, llvm::Align(4)), call.outputs[0].buffer);
  return true;
}

void IntrinsicEmitter::emit(const loop::Intrinsic& call) {
  const loop::Function& declared = *function().intrinsic(call.name);
  if (emit_mma(call, declared)) return frames_.clear_block_cache();
  if (emit_dot(call, declared)) return frames_.clear_block_cache();
  std::vector<Block> blocks;
  for (size_t i = 0; i < call.inputs.size(); ++i) blocks.push_back({&call.inputs[i], declared.params[i], nullptr});
  for (size_t i = 0; i < call.outputs.size(); ++i) blocks.push_back({&call.outputs[i], declared.results[i], nullptr});
  for (Block& block : blocks) copy_in(block);
  execute(declared, blocks);
  for (const Block& block : std::span(blocks).subspan(call.inputs.size())) copy_out(block);
}

// Visits each element of a block with its indices in the buffer and its offset in the block.
void IntrinsicEmitter::for_each_element(const loop::Operand& operand, FunctionRef<void(const Dims&, Dim)> visit) {
  Dims indices;
  const std::function<void(size_t, Dim)> visit_axis = [&](size_t axis, Dim offset) {
    if (axis == operand.parts.size()) return visit(indices, offset);
    const loop::Part& part = operand.parts[axis];
    const Dim begin = indices_.resolve(part.begin);
    const int64_t size = std::max<int64_t>(part.size, 1);
    auto visit_index = [&](Dim i) {
      indices.push_back(context_.add(begin, i));
      visit_axis(axis + 1, context_.add(context_.multiply(offset, context_.dim(size)), i));
      indices.pop_back();
    };
    if (size <= kMaxBlockUnroll) {
      for (int64_t i = 0; i < size; ++i) visit_index(context_.dim(i));
    } else {
      control_.serial_loop(i64(0), i64(size), false, visit_index);
    }
  };
  visit_axis(0, context_.dim(0));
}

void IntrinsicEmitter::copy_in(Block& block) {
  const loop::Buffer& buffer = function().buffer(block.operand->buffer);
  int64_t count = 1;
  for (const loop::Part& part : block.operand->parts) count *= std::max<int64_t>(part.size, 1);
  llvm::Type* type = frames_.memory_type(buffer.dtype);
  block.memory = frames_.stack_memory(type, static_cast<uint64_t>(count));
  for_each_element(*block.operand, [&](const Dims& indices, Dim offset) {
    Value* value = memory_.load(block.operand->buffer, indices);
    if (buffer.dtype == DType::kBool) value = b_.CreateZExt(value, type);
    b_.CreateStore(value, b_.CreateGEP(type, block.memory, indices_.uniform(offset)));
  });
}

void IntrinsicEmitter::copy_out(const Block& block) {
  const DType dtype = function().buffer(block.operand->buffer).dtype;
  llvm::Type* type = frames_.memory_type(dtype);
  for_each_element(*block.operand, [&](const Dims& indices, Dim offset) {
    Value* value = b_.CreateLoad(type, b_.CreateGEP(type, block.memory, indices_.uniform(offset)));
    if (dtype == DType::kBool) value = b_.CreateICmpNE(value, b_.getInt8(0));
    memory_.store(block.operand->buffer, indices, value);
  });
}

// Emits the declaration's body, whose buffers are the blocks.
void IntrinsicEmitter::execute(const loop::Function& declared, std::span<const Block> blocks) {
  const loop::Function& outer_function = function();
  frames_.set_function(declared);
  const IndexEmitter::Env outer_env = std::exchange(indices_.env(), {});
  auto outer_bases = std::exchange(frame().bases, {});
  auto outer_extents = std::exchange(indices_.extents(), {});
  auto outer_alias_scopes = std::exchange(memory_.alias_scopes(), {});
  const loop::Stage* const outer_stage = frames_.stage();
  for (const Block& block : blocks) {
    frame().bases[block.id] = {block.memory, 0};
    indices_.declare(block.id);
  }
  body_(declared.body);
  frames_.set_function(outer_function);
  indices_.env() = outer_env;
  frame().bases = std::move(outer_bases);
  indices_.extents() = std::move(outer_extents);
  memory_.alias_scopes() = std::move(outer_alias_scopes);
  frames_.set_stage(outer_stage);
}

}  // namespace tenon::compiler::native
