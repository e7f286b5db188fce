// Random numbers: Threefry-2x32 as in runtime/reference/create.cpp, a vector of counters at a time.
#include <fmt/format.h>

#include <cmath>

#include "compiler/kernels/lowerings.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

constexpr int64_t kBlock = 16;             // counters of a vector
constexpr int64_t kParallelBlocks = 1024;  // blocks below which threads cost more than they save

Expr i32(int64_t value) { return loop::integer_literal(DType::kI32, static_cast<int32_t>(value)); }
Expr bits(BinaryOp op, const Expr& a, const Expr& b) { return loop::binary(op, a, b); }
// A logical shift to the right.
Expr shifted(const Expr& x, int distance) {
  return bits(BinaryOp::kBitAnd, bits(BinaryOp::kShiftRight, x, i32(distance)),
              i32((int64_t{1} << (32 - distance)) - 1));
}
Expr rotated(const Expr& x, int distance) {
  return bits(BinaryOp::kBitOr, bits(BinaryOp::kShiftLeft, x, i32(distance)), shifted(x, 32 - distance));
}

// `count` random 32-bit words, or one more: each counter gives two.
LazyTensor random_int32s(const OperatorCall& op, int64_t count, int64_t purpose) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  Emitter& emit = op.emit;
  Context& context = op.context();
  const int64_t counters = (count + 1) / 2, blocks = (counters + kBlock - 1) / kBlock;
  const Expr first = op.arg(0).at({emit.dim(0)}), second = op.arg(0).at({emit.dim(1)});
  const Expr keys[] = {first, second, bits(BinaryOp::kBitXor, bits(BinaryOp::kBitXor, first, second), i32(0x1BD11BDA))};
  const auto make = [&](std::span<const loop::BufferId> results) {
    const Dim size = emit.dim(kBlock);
    const loop::BufferId x[] = {emit.local("x", {size}, DType::kI32), emit.local("y", {size}, DType::kI32)};
    const Symbol block = emit.fresh_index(), lane = emit.fresh_index();
    std::vector<Axis> axes;
    for (const auto& [var, extent] : {std::pair(block, emit.dim(blocks)), std::pair(lane, size)})
      axes.push_back({.var = var, .extent = extent, .kind = AxisKind::kSpatial, .value = context.dim(var)});
    const Dim at = context.dim(lane), counter = context.add(context.multiply(context.dim(block), size), at);
    loop::Body body;
    const auto set = [&](loop::BufferId to, Dim index, const Expr& value, std::vector<loop::Guard> where = {}) {
      loop::Stage stage{
          .name = emit.builder().stage_name("words"), .axes = axes, .where = std::move(where), .init = {}, .body = {}};
      stage.body.push_back({loop::Store{to, {index}, value}});
      body.push_back(loop::nest({For{.var = lane, .extent = size, .kind = LoopKind::kVectorized, .body = {}}},
                                Stmt{std::move(stage)}));
    };
    const Expr a = emit.builder().load(x[0], {at}), b = emit.builder().load(x[1], {at});
    set(x[0], at, loop::convert(DType::kI32, loop::index_value(counter)) + keys[0]);
    set(x[1], at, i32(purpose) + keys[1]);
    for (size_t round = 0; round < 5; ++round) {
      for (const int distance : kRotations[round % 2]) {
        set(x[0], at, a + b);
        set(x[1], at, bits(BinaryOp::kBitXor, rotated(b, distance), a));
      }
      set(x[0], at, a + keys[(round + 1) % 3]);
      set(x[1], at, b + (keys[(round + 2) % 3] + i32(static_cast<int64_t>(round) + 1)));
    }
    const std::vector<loop::Guard> inside =
        counters % kBlock == 0 ? std::vector<loop::Guard>() : std::vector<loop::Guard>{{counter, emit.dim(counters)}};
    const Dim to = context.multiply(counter, emit.dim(2));
    set(results[0], to, a, inside);
    set(results[0], context.add(to, emit.dim(1)), b, inside);
    for (const loop::BufferId buffer : {x[1], x[0]}) {
      Stmt alloc{loop::Alloc{.buffer = buffer, .scope = loop::Scope::kRegisters, .body = std::move(body)}};
      body.clear();
      body.push_back(std::move(alloc));
    }
    const LoopKind kind = blocks >= kParallelBlocks ? LoopKind::kParallel : LoopKind::kSerial;
    loop::Body nest;
    nest.push_back({For{.var = block, .extent = emit.dim(blocks), .kind = kind, .body = std::move(body)}});
    return nest;
  };
  return emit.nest("words", {{Dims{emit.dim(2 * counters)}, DType::kI32}}, make).front();
}

// Random numbers in [0, 1), `draws` of them for each element: draw number `draw` of the element at `at`.
using Uniform = std::function<Expr(const Dims& at, int64_t draw)>;
Uniform uniforms(const OperatorCall& op, DType dtype, int64_t draws) {
  Context& context = op.context();
  const int64_t num_words = dtype == DType::kF32 ? 1 : 2;  // of 24 bits, or 53
  const LazyTensor bits = random_int32s(op, *context.product(op.dims()).constant() * draws * num_words, 0);
  return [=, &context, dims = op.dims()](const Dims& at, int64_t draw) {
    Dim element = context.dim(0);
    for (size_t d = 0; d < at.size(); ++d) element = context.add(context.multiply(element, dims[d]), at[d]);
    const auto bits_of = [&](int64_t word, int dropped_bits) {
      const Dim index = context.add(context.multiply(element, context.dim(draws * num_words)), context.dim(word));
      return shifted(bits.at({index}), dropped_bits);
    };
    if (num_words == 1) return loop::convert(dtype, bits_of(draw, 8)) * 0x1p-24;
    const Expr high = loop::convert(DType::kI64, bits_of(2 * draw, 5)),
               low = loop::convert(DType::kI64, bits_of(2 * draw + 1, 6));
    return loop::convert(dtype, high * static_cast<double>(1 << 26) + low) * 0x1p-53;
  };
}

LoweredResults random_uniform(const OperatorCall& op) {
  const DType dtype = op.dtype();
  const Expr zero = loop::literal(dtype, 0), low = like(zero, op.real("a"));
  const double range = dtype == DType::kF32 ? static_cast<float>(op.real("b")) - static_cast<float>(op.real("a"))
                                            : op.real("b") - op.real("a");
  return op.expression(
      [=, draw = uniforms(op, dtype, 1)](const Dims& at) { return low + like(zero, range) * draw(at, 0); });
}

// Box and Muller's transform.
LoweredResults random_normal(const OperatorCall& op) {
  return op.expression(
      [draw = uniforms(op, op.dtype(), 2), mean = op.real("a"), deviation = op.real("b")](const Dims& at) {
        const Expr radius = square_root(-2.0 * logarithm(1.0 - draw(at, 0)));
        return mean + deviation * radius * loop::unary(UnaryOp::kCos, 2 * M_PI * draw(at, 1));
      });
}

LoweredResults random_bernoulli(const OperatorCall& op) {
  return op.expression([draw = uniforms(op, DType::kF64, 1), probability = op.real("probability")](const Dims& at) {
    return below(draw(at, 0), probability);
  });
}

LoweredResults random_split(const OperatorCall& op) {
  Context& context = op.context();
  return op.expression([&context, keys = random_int32s(op, 2 * op.integer("count"), 1)](const Dims& at) {
    return keys.at({context.add(context.multiply(at[0], context.dim(2)), at[1])});
  });
}

}  // namespace

std::span<const Lowering> random_lowerings() {
  static constexpr Lowering kLowerings[] = {{ops::kRandomBernoulli, random_bernoulli},
                                            {ops::kRandomNormal, random_normal},
                                            {ops::kRandomSplit, random_split},
                                            {ops::kRandomUniform, random_uniform}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
