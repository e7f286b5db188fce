#include "compiler/kernels/padded_input.h"

#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"

namespace tenon::compiler::kernels {
namespace {

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

PaddedInput::PaddedInput(const SlidingWindowDim& rows, const SlidingWindowDim& columns, int64_t out, int64_t end,
                         const Expr& pad)
    : rows_(rows), columns_(columns), pad_(pad), phases_(columns.phases()) {
  const int64_t halo = columns.halo() / columns.stride, width = columns.out + halo;
  lanes_ = std::min(lanes_of(pad->dtype), width <= 8 ? int64_t{8} : int64_t{16});
  height_ = (out - 1) * rows.stride + rows.halo() + 1;
  pitch_ = round_up(width, lanes_);
  // Vectors of pixels past the last column read elements of the next row; the last row is followed by room for them.
  size_ = height_ * phases_ * pitch_ + round_up(std::max<int64_t>(end + halo - pitch_, 0), lanes_);
}

void PaddedInput::make(const SlidingWindowLoops& loops, int64_t group) {
  group_ = group;
  buffer_ = loops.buffer(loops.name + "_padded", {loops.context.dim(group), loops.context.dim(size_)}, pad_->dtype);
}

loop::Alloc PaddedInput::alloc(loop::Body body) const {
  return {.buffer = buffer_,
          .scope = group_ * size_ <= loop::kMaxStack ? loop::Scope::kStack : loop::Scope::kHeap,
          .body = std::move(body)};
}

loop::Body PaddedInput::copy(const SlidingWindowLoops& loops, Dim member, const Source& source) const {
  // The rows that are in x; where they are not constant, all rows, each of which is checked.
  const int64_t line = phases_ * pitch_;
  const int64_t first = source.all_rows ? std::clamp<int64_t>(rows_.before, 0, height_) : 0;
  const int64_t last = source.all_rows ? std::clamp<int64_t>(rows_.in + rows_.before, first, height_) : height_;
  loop::Body body;
  fill(loops, member, 0, first * line, body);
  if (last > first) {
    std::vector<For> row_loops;
    std::vector<Axis> axes = loops.outer;
    const Dim row = loops.add_loop(row_loops, axes, loops.loop_of(loops.symbol("t0"), last - first, LoopKind::kSerial));
    const Dim from = loops.plus(loops.context.add(loops.times(source.first, rows_.stride), row), first - rows_.before);
    loop::Body parts;
    copy_row(loops, member, source, from, loops.times(loops.plus(row, first), line), axes, parts);
    if (row_loops.empty()) {
      std::ranges::move(parts, std::back_inserter(body));
    } else {
      row_loops.back().body = std::move(parts);
      body.push_back({std::move(row_loops.back())});
    }
  }
  fill(loops, member, last * line, size_, body);
  return body;
}

// Stores vectors of padding.
void PaddedInput::fill(const SlidingWindowLoops& loops, Dim member, int64_t begin, int64_t end, loop::Body& to) const {
  if (end <= begin) return;
  std::vector<Axis> axes = loops.outer;
  std::vector<For> nest;
  const Dim block =
      loops.add_loop(nest, axes, loops.loop_of(loops.symbol("b1"), (end - begin) / lanes_, LoopKind::kSerial));
  const Dim lane = loops.add_loop(nest, axes, loops.loop_of(loops.symbol("t1"), lanes_, LoopKind::kVectorized));
  const Dim index = loops.plus(loops.context.add(loops.times(block, lanes_), lane), begin);
  to.push_back(loop::nest(nest, loops.stage(loops.name + "_pad", axes, {}, buffer_, {member, index}, pad_)));
}

// Copies row `from` of x to the row of the padded input that starts at `to`.
void PaddedInput::copy_row(const SlidingWindowLoops& loops, Dim member, const Source& source, Dim from, Dim to,
                           const std::vector<Axis>& axes, loop::Body& body) const {
  Context& context = loops.context;
  // The two phases of stride 2 are extracted from the same vectors in registers.
  const bool deinterleaves = columns_.stride == 2 && phases_ == 2;
  const int64_t phases_at_once = deinterleaves ? 2 : 1;
  for (int64_t phase = 0; phase < phases_; phase += phases_at_once) {
    const SlidingWindowDim row{.out = pitch_ * phases_at_once,
                               .in = columns_.in,
                               .stride = deinterleaves ? 1 : columns_.stride,
                               .before = columns_.before - phase};
    for (const SlidingWindowPart& part : row.vectors(lanes_ * phases_at_once, lanes_ * phases_at_once)) {
      std::vector<Axis> blocks = axes;
      std::vector<For> block_loops;
      const Dim block =
          loops.add_loop(block_loops, blocks, loops.loop_of(loops.symbol("b1"), part.count, LoopKind::kSerial));
      const Dim begin = loops.plus(loops.times(block, part.size), part.begin);
      For vector = loops.loop_of(loops.symbol("t1"), part.size, LoopKind::kVectorized);
      const Dim lane = context.dim(vector.var);
      const Dim column = loops.plus(loops.times(context.add(begin, lane), row.stride), -row.before);
      Expr value = source.x(from, column);
      if (part.needs_padding)
        value = select(loops.emit.inside(column, context.dim(0), context.dim(row.in)), value, source.pad);
      if (!source.all_rows)
        value = select(loops.emit.inside(from, context.dim(0), context.dim(rows_.in)), value, source.pad);
      value = source.element(value);
      std::vector<Axis> points = blocks;
      loops.axis(points, vector);
      if (!deinterleaves) {
        const Dim index = loops.plus(context.add(to, context.add(begin, lane)), phase * pitch_);
        block_loops.push_back(vector);
        body.push_back(loop::nest(
            block_loops, loops.stage(loops.name + "_copy", points, {}, buffer_, {member, index}, std::move(value))));
        continue;
      }
      const loop::BufferId vector_buffer = loops.buffer(loops.name + "_row", {vector.extent}, pad_->dtype);
      loop::Body parts;
      parts.push_back(
          loop::nest({vector}, loops.stage(loops.name + "_load", points, {}, vector_buffer, {lane}, std::move(value))));
      vector.extent = context.dim(part.size / 2);
      points = blocks;
      loops.axis(points, vector);
      const Dim half = loops.plus(loops.times(block, part.size / 2), part.begin / 2);
      for (int64_t odd = 0; odd < 2; ++odd) {
        const Dim index = loops.plus(context.add(to, context.add(half, lane)), odd * pitch_);
        parts.push_back(loop::nest(
            {vector}, loops.stage(loops.name + "_copy", points, {}, buffer_, {member, index},
                                  loops.emit.builder().load(vector_buffer, {loops.plus(loops.times(lane, 2), odd)}))));
      }
      body.push_back(loop::nest(
          block_loops,
          {loop::Alloc{.buffer = vector_buffer, .scope = loop::Scope::kRegisters, .body = std::move(parts)}}));
    }
  }
}

Expr PaddedInput::load(const SlidingWindowLoops& loops, Dim member, const Dims& pixel, const Dims& kernel_index) const {
  Context& context = loops.context;
  const Dim row = context.add(loops.times(pixel[0], rows_.stride), loops.times(kernel_index[0], rows_.dilation)),
            shift = loops.times(kernel_index[1], columns_.dilation), stride = context.dim(columns_.stride);
  const Dim phase = phases_ == 1 ? context.dim(0) : context.modulo(shift, stride);
  const Dim column = context.add(pixel[1], context.floor_divide(shift, stride));
  const Dim line = context.add(loops.times(row, phases_ * pitch_), loops.times(phase, pitch_));
  return loops.emit.builder().load(buffer_, {member, context.add(line, column)});
}

}  // namespace tenon::compiler::kernels
