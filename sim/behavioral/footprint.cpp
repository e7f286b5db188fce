#include "sim/behavioral/footprint.h"

#include <fmt/format.h>

#include <initializer_list>

namespace tenon::sim {
namespace {

using spec::Memory;

struct Loop {
  int64_t count, step;
};

class Finder {
 public:
  Finder(const spec::Isa& isa, std::span<const uint32_t> uops, Footprint& footprint)
      : isa_(isa), config_(isa.config()), uops_(uops), f_(footprint) {}

  std::optional<RangeError> operator()(const spec::base::Load&) { return transfer(); }
  std::optional<RangeError> operator()(const spec::base::Store&) { return transfer(); }
  std::optional<RangeError> operator()(const spec::native::Move&) { return transfer(); }
  std::optional<RangeError> operator()(const spec::base::Finish&) { return std::nullopt; }
  std::optional<RangeError> operator()(const spec::native::Finish&) { return std::nullopt; }
  std::optional<RangeError> operator()(const spec::native::Sync&) { return std::nullopt; }

  std::optional<RangeError> operator()(const spec::base::Gemm& g) {
    return with_uops(g, [&](Bitmap* dst, Bitmap* src, Bitmap* wgt) -> std::optional<RangeError> {
      if (auto e = uop_set(g, &spec::base::Uop::dst, {{g.iter_out, g.dst_factor_out}, {g.iter_in, g.dst_factor_in}},
                           Memory::kAcc, *dst)) {
        return e;
      }
      set_write(Memory::kAcc);
      if (g.reset != 0) return std::nullopt;
      f_.reads[index_of(Memory::kAcc)] = *dst;
      f_.reading[index_of(Memory::kAcc)] = true;
      set_read(Memory::kInp), set_read(Memory::kWgt);
      f_.macs = static_cast<uint64_t>((g.uop_end - g.uop_begin) * g.iter_out * g.iter_in * config_.macs_per_cycle());
      if (auto e = uop_set(g, &spec::base::Uop::src, {{g.iter_out, g.src_factor_out}, {g.iter_in, g.src_factor_in}},
                           Memory::kInp, *src)) {
        return e;
      }
      return uop_set(g, &spec::base::Uop::wgt, {{g.iter_out, g.wgt_factor_out}, {g.iter_in, g.wgt_factor_in}},
                     Memory::kWgt, *wgt);
    });
  }

  std::optional<RangeError> operator()(const spec::base::Alu& a) {
    return with_uops(a, [&](Bitmap* dst, Bitmap*, Bitmap*) -> std::optional<RangeError> {
      if (auto e = uop_set(a, &spec::base::Uop::dst, {{a.iter_out, a.dst_factor_out}, {a.iter_in, a.dst_factor_in}},
                           Memory::kAcc, *dst)) {
        return e;
      }
      set_write(Memory::kAcc), set_read(Memory::kAcc);
      Bitmap& reads = f_.reads[index_of(Memory::kAcc)];
      if (a.use_imm == 0) {
        if (auto e = uop_set(a, &spec::base::Uop::src, {{a.iter_out, a.src_factor_out}, {a.iter_in, a.src_factor_in}},
                             Memory::kAcc, reads)) {
          return e;
        }
      }
      reads |= *dst;
      return std::nullopt;
    });
  }

  std::optional<RangeError> operator()(const spec::native::Gemm& g) {
    if (g.r0 == 0 || g.r1 == 0 || g.r2 == 0 || g.y == 0 || g.x == 0) return std::nullopt;
    // A product of own lanes is one vector; lanes in pairs share an input, so that each of them has its own step.
    const int64_t products = g.own == 0 ? g.r0 * g.r1 * g.r2 : config_.packed_products ? 2 : 1;
    f_.macs = static_cast<uint64_t>(products * g.y * g.x * config_.macs_per_cycle());
    Bitmap& dst = f_.writes[index_of(Memory::kAcc)];
    if (auto e = nest(g.dst_base, {{g.y, g.dst_y}, {g.x, g.dst_x}}, Memory::kAcc, dst)) return e;
    set_write(Memory::kAcc);
    if (g.first == 0) {
      f_.reads[index_of(Memory::kAcc)] = dst;
      set_read(Memory::kAcc);
    }
    if (auto e =
            nest(g.src_base, {{g.r0, g.src_r0}, {g.r1, g.src_r1}, {g.r2, g.src_r2}, {g.y, g.src_y}, {g.x, g.src_x}},
                 Memory::kInp, f_.reads[index_of(Memory::kInp)])) {
      return e;
    }
    set_read(Memory::kInp), set_read(Memory::kWgt);
    if (g.own != 0) return nest(g.wgt_base, {}, Memory::kWgt, f_.reads[index_of(Memory::kWgt)]);
    return nest(g.wgt_base, {{g.r0, g.wgt_r0}, {g.r1, g.wgt_r1}, {g.r2, g.wgt_r2}}, Memory::kWgt,
                f_.reads[index_of(Memory::kWgt)]);
  }

  std::optional<RangeError> operator()(const spec::native::Requantize& q) {
    if (q.rows == 0 || q.cols == 0) return std::nullopt;
    if (q.has_window()) {
      read_windows(q);
    } else if (auto e = nest(q.acc_base, {{q.rows, q.acc_pitch}, {q.cols, q.acc_step}}, Memory::kAcc,
                             f_.reads[index_of(Memory::kAcc)])) {
      return e;
    }
    const Memory target = q.to_inp != 0 ? Memory::kInp : Memory::kOut;
    if (auto e = nest(q.out_base, {{q.rows, q.out_pitch}, {q.cols, 1}}, target, f_.writes[index_of(target)])) return e;
    if (auto e = nest(q.par_base, {}, Memory::kPar, f_.reads[index_of(Memory::kPar)])) return e;
    set_read(Memory::kAcc), set_read(Memory::kPar), set_write(target);
    if (q.residual == 0) return std::nullopt;
    set_read(Memory::kRes);
    return nest(q.res_base, {{q.rows, q.res_pitch}, {q.cols, 1}}, Memory::kRes, f_.reads[index_of(Memory::kRes)]);
  }

 private:
  void set_read(Memory m) { f_.reading[index_of(m)] = true; }
  void set_write(Memory m) { f_.writing[index_of(m)] = true; }

  RangeError outside(Memory memory, int64_t index) const {
    return {fmt::format("accesses {}[{}], but {} has {} elements", name(memory), index, name(memory),
                        config_.depth(memory))};
  }

  // The accumulators of windows, whose indices are modulo the depth of acc and so never outside.
  void read_windows(const spec::native::Requantize& q) {
    Bitmap& set = f_.reads[index_of(Memory::kAcc)];
    const int64_t depth = config_.depth(Memory::kAcc);
    for (int64_t y = 0; y < q.rows; ++y) {
      for (int64_t x = 0; x < q.cols; ++x) {
        for (int64_t i = 0; i < q.window_rows(); ++i) {
          for (int64_t j = 0; j < q.window_cols(); ++j) {
            const int64_t at = q.acc_base + y * q.acc_pitch + x * q.acc_step + i * q.win_pitch + j;
            set.set(static_cast<size_t>(at % depth));
          }
        }
      }
    }
  }

  // The set of base + sum(i * step).
  std::optional<RangeError> nest(int64_t base, std::initializer_list<Loop> loops, Memory memory, Bitmap& set) {
    int64_t last = base;
    for (const Loop& l : loops) last += (l.count - 1) * l.step;
    if (last >= config_.depth(memory)) return outside(memory, last);
    set.set(static_cast<size_t>(base));
    for (const Loop& l : loops) set.spread(l.count, l.step);
    return std::nullopt;
  }

  template <class Instruction, class F>
  std::optional<RangeError> with_uops(const Instruction& i, F&& f) {
    if (i.uop_begin >= i.uop_end || i.iter_out == 0 || i.iter_in == 0) return std::nullopt;
    if (i.uop_end > config_.depth(Memory::kUop)) return outside(Memory::kUop, i.uop_end - 1);
    f_.reads[index_of(Memory::kUop)].set_range(static_cast<size_t>(i.uop_begin), static_cast<size_t>(i.uop_end));
    set_read(Memory::kUop);
    return f(&f_.writes[index_of(Memory::kAcc)], &f_.reads[index_of(Memory::kInp)], &f_.reads[index_of(Memory::kWgt)]);
  }

  // The set of one operand of all micro-ops, spread over the loops.
  template <class Instruction>
  std::optional<RangeError> uop_set(const Instruction& i, uint32_t spec::base::Uop::*member,
                                    std::initializer_list<Loop> loops, Memory memory, Bitmap& set) {
    int64_t extent = 0, highest = 0;
    for (const Loop& l : loops) extent += (l.count - 1) * l.step;
    for (int64_t u = i.uop_begin; u < i.uop_end; ++u) {
      const int64_t index = isa_.decode_uop(uops_[static_cast<size_t>(u)]).*member;
      highest = std::max(highest, index);
      if (index + extent >= config_.depth(memory)) return outside(memory, index + extent);
      set.set(static_cast<size_t>(index));
    }
    for (const Loop& l : loops) set.spread(l.count, l.step);
    return std::nullopt;
  }

  std::optional<RangeError> transfer() {
    const Dma& dma = *f_.dma;
    if (dma.units() == 0) return std::nullopt;
    const int64_t per = dma.units_per_element;
    const int64_t last = dma.last_unit() / per;
    if (last >= config_.depth(dma.memory)) return outside(dma.memory, last);
    auto& set = dma.store ? f_.reads[index_of(dma.memory)] : f_.writes[index_of(dma.memory)];
    set.set_range(static_cast<size_t>(dma.first_unit / per), static_cast<size_t>(last) + 1);
    if (dma.store) {
      set_read(dma.memory);
    } else {
      set_write(dma.memory);
      f_.written_units = {dma.first_unit, dma.last_unit() + 1};
    }
    return std::nullopt;
  }

  const spec::Isa& isa_;
  const spec::Config& config_;
  std::span<const uint32_t> uops_;
  Footprint& f_;
};

}  // namespace

Footprint::Footprint(const spec::Config& config) {
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    const auto depth = static_cast<size_t>(config.depth(static_cast<Memory>(m)));
    reads[m] = Bitmap(depth);
    writes[m] = Bitmap(depth);
  }
}

void Footprint::clear() {
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    reads[m].clear();
    writes[m].clear();
  }
  reading = {};
  writing = {};
  written_units = {0, 0};
  dma.reset();
  macs = 0;
}

std::optional<RangeError> find_footprint(const spec::Isa& isa, const spec::Instruction& instruction, const Bases& bases,
                                         std::span<const uint32_t> uops, Footprint& footprint) {
  footprint.clear();
  footprint.dma = dma_of(isa.config(), instruction, bases);
  return std::visit(Finder(isa, uops, footprint), instruction);
}

}  // namespace tenon::sim
