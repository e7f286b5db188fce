#include "compiler/kernels/slide_plane.h"

#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"

namespace tenon::compiler::kernels {
namespace {

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

SlidePlane::SlidePlane(const SlideDim& rows, const SlideDim& columns, int64_t out, int64_t end, const Expr& pad)
    : rows_(rows), columns_(columns), pad_(pad), phases_(columns.phases()) {
  const int64_t reach = columns.reach() / columns.stride, used = columns.out + reach;
  lanes_ = std::min(lanes_of(pad->dtype), used <= 8 ? int64_t{8} : int64_t{16});
  height_ = (out - 1) * rows.stride + rows.reach() + 1;
  pitch_ = round_up(used, lanes_);
  // Places behind the last column read on, in the next row; behind the last row there is room for that.
  size_ = height_ * phases_ * pitch_ + round_up(std::max<int64_t>(end + reach - pitch_, 0), lanes_);
}

void SlidePlane::make(const SlideLoops& loops, int64_t group) {
  group_ = group;
  buffer_ = loops.buffer(loops.name + "_plane", {loops.context.dim(group), loops.context.dim(size_)}, pad_->dtype);
}

loop::Alloc SlidePlane::alloc(loop::Body body) const {
  return {.buffer = buffer_,
          .scope = group_ * size_ <= loop::kMaxStack ? loop::Scope::kStack : loop::Scope::kHeap,
          .body = std::move(body)};
}

loop::Body SlidePlane::copy(const SlideLoops& loops, Dim member, const Source& source) const {
  // Rows that lie in x; where that is not known, all, and each is asked.
  const int64_t line = phases_ * pitch_;
  const int64_t first = source.whole ? std::clamp<int64_t>(rows_.before, 0, height_) : 0;
  const int64_t last = source.whole ? std::clamp<int64_t>(rows_.in + rows_.before, first, height_) : height_;
  loop::Body body;
  fill(loops, member, 0, first * line, body);
  if (last > first) {
    std::vector<For> lines;
    std::vector<Axis> axes = loops.outer;
    const Dim row = loops.around(lines, axes, loops.loop_of(loops.symbol("t0"), last - first, Mark::kSerial));
    const Dim from = loops.plus(loops.context.add(loops.times(source.first, rows_.stride), row), first - rows_.before);
    loop::Body parts;
    copy_row(loops, member, source, from, loops.times(loops.plus(row, first), line), axes, parts);
    if (lines.empty()) {
      std::ranges::move(parts, std::back_inserter(body));
    } else {
      lines.back().body = std::move(parts);
      body.push_back({std::move(lines.back())});
    }
  }
  fill(loops, member, last * line, size_, body);
  return body;
}

// Vectors of padding.
void SlidePlane::fill(const SlideLoops& loops, Dim member, int64_t begin, int64_t end, loop::Body& to) const {
  if (end <= begin) return;
  std::vector<Axis> axes = loops.outer;
  std::vector<For> nest;
  const Dim block = loops.around(nest, axes, loops.loop_of(loops.symbol("b1"), (end - begin) / lanes_, Mark::kSerial));
  const Dim lane = loops.around(nest, axes, loops.loop_of(loops.symbol("t1"), lanes_, Mark::kVector));
  const Dim place = loops.plus(loops.context.add(loops.times(block, lanes_), lane), begin);
  to.push_back(loop::nest(nest, loops.stage(loops.name + "_pad", axes, {}, buffer_, {member, place}, pad_)));
}

// Row `from` of x, to where the plane's row begins.
void SlidePlane::copy_row(const SlideLoops& loops, Dim member, const Source& source, Dim from, Dim to,
                          const std::vector<Axis>& axes, loop::Body& body) const {
  Context& context = loops.context;
  // Both remainders by 2 are taken of the same vectors, in registers.
  const bool both = columns_.stride == 2 && phases_ == 2;
  const int64_t at_once = both ? 2 : 1;
  for (int64_t phase = 0; phase < phases_; phase += at_once) {
    const SlideDim row{.out = pitch_ * at_once,
                       .in = columns_.in,
                       .stride = both ? 1 : columns_.stride,
                       .before = columns_.before - phase};
    for (const SlidePart& part : row.vectors(lanes_ * at_once, lanes_ * at_once)) {
      std::vector<Axis> blocks = axes;
      std::vector<For> around;
      const Dim block = loops.around(around, blocks, loops.loop_of(loops.symbol("b1"), part.count, Mark::kSerial));
      const Dim begin = loops.plus(loops.times(block, part.size), part.begin);
      For vector = loops.loop_of(loops.symbol("t1"), part.size, Mark::kVector);
      const Dim lane = context.dim(vector.var);
      const Dim column = loops.plus(loops.times(context.add(begin, lane), row.stride), -row.before);
      Expr value = source.x(from, column);
      if (part.open) value = choose(loops.emit.inside(column, context.dim(0), context.dim(row.in)), value, source.pad);
      if (!source.whole)
        value = choose(loops.emit.inside(from, context.dim(0), context.dim(rows_.in)), value, source.pad);
      value = source.element(value);
      std::vector<Axis> points = blocks;
      loops.axis(points, vector);
      if (!both) {
        const Dim place = loops.plus(context.add(to, context.add(begin, lane)), phase * pitch_);
        around.push_back(vector);
        body.push_back(loop::nest(
            around, loops.stage(loops.name + "_copy", points, {}, buffer_, {member, place}, std::move(value))));
        continue;
      }
      const loop::BufferId held = loops.buffer(loops.name + "_row", {vector.extent}, pad_->dtype);
      loop::Body parts;
      parts.push_back(
          loop::nest({vector}, loops.stage(loops.name + "_held", points, {}, held, {lane}, std::move(value))));
      vector.extent = context.dim(part.size / 2);
      points = blocks;
      loops.axis(points, vector);
      const Dim half = loops.plus(loops.times(block, part.size / 2), part.begin / 2);
      for (int64_t one = 0; one < 2; ++one) {
        const Dim place = loops.plus(context.add(to, context.add(half, lane)), one * pitch_);
        parts.push_back(loop::nest(
            {vector}, loops.stage(loops.name + "_copy", points, {}, buffer_, {member, place},
                                  loops.emit.builder().load(held, {loops.plus(loops.times(lane, 2), one)}))));
      }
      body.push_back(loop::nest(
          around, {loop::Alloc{.buffer = held, .scope = loop::Scope::kRegisters, .body = std::move(parts)}}));
    }
  }
}

Expr SlidePlane::load(const SlideLoops& loops, Dim member, const Dims& place, const Dims& tap) const {
  Context& context = loops.context;
  const Dim row = context.add(loops.times(place[0], rows_.stride), loops.times(tap[0], rows_.dilation)),
            shift = loops.times(tap[1], columns_.dilation), stride = context.dim(columns_.stride);
  const Dim phase = phases_ == 1 ? context.dim(0) : context.modulo(shift, stride);
  const Dim column = context.add(place[1], context.floor_divide(shift, stride));
  const Dim line = context.add(loops.times(row, phases_ * pitch_), loops.times(phase, pitch_));
  return loops.emit.builder().load(buffer_, {member, context.add(line, column)});
}

}  // namespace tenon::compiler::kernels
