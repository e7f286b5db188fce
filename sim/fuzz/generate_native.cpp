// Random instructions of the native profile: MOVE, GEMM, RQ and SYNC with random values of every field.
#include <algorithm>
#include <array>

#include "sim/fuzz/generation.h"

namespace tenon::sim::fuzz {

// Chooses the DRAM side of a MOVE whose rows and vectors are set: its geometry, then an address at which it fits.
bool Generator::choose_addresses(spec::native::Move& m, int unit, bool store) {
  m.x_step = random_.chance(40)   ? unit
             : random_.chance(50) ? random_.between(store ? unit : 0, 3 * unit)
                                  : random_.between(1, 40);
  if (store && m.x_step < unit && random_.chance(90)) m.x_step = unit;  // overlapping stores are legal, but rare
  const int64_t span = std::max<int64_t>((m.vectors - 1) * m.x_step + unit, 1);
  m.left = random_.chance(60) ? 0 : random_.value(-unit, std::min<int64_t>(2047, span));
  m.row_bytes =
      random_.chance(60) ? std::min<int64_t>(span, 65535) : random_.between(0, std::min<int64_t>(span + 8, 65535));
  m.y_step = random_.chance(50) ? m.row_bytes : random_.between(0, 2 * span);
  if (store) m.y_step = std::max(m.y_step, random_.chance(90) ? m.row_bytes : int64_t{0});
  m.top = random_.chance(70) ? 0 : random_.between(0, std::min<int64_t>(m.rows + 1, 255));
  m.source_rows = random_.chance(60) ? m.rows : random_.between(0, m.rows + 1);
  m.pad_value = random_.value(-128, 127);
  m.valid = random_.chance(60) ? 0 : random_.between(1, unit);
  m.offset = 0;  // an earlier attempt may have set the offset
  const auto dma = dma_of(config_, m, {});
  const Range r = bounding_range(*dma);
  const auto bytes = static_cast<int64_t>(r.end - r.begin), first = static_cast<int64_t>(r.begin);
  const int64_t limit = store ? data_ : uops_end_;
  if (bytes > limit || first > limit - bytes) return false;
  const int64_t address = random_.between(first, limit - bytes) - first;
  m.base = random_.between(0, spec::kBases - 1);
  for (int i = 0; i<spec::kBases&& static_cast<int64_t>(program_.bases[static_cast<size_t>(m.base)])> address; ++i) {
    m.base = (m.base + 1) % spec::kBases;
  }
  m.offset = address - static_cast<int64_t>(program_.bases[static_cast<size_t>(m.base)]);
  return m.offset >= 0;
}

void Generator::move(spec::native::MoveFunction function) {
  spec::native::Move m;
  m.function = static_cast<int64_t>(function);
  const bool store = function == spec::native::MoveFunction::kOut;
  const Memory memory =
      std::array{Memory::kInp, Memory::kWgt, Memory::kPar, Memory::kRes, Memory::kOut}[static_cast<size_t>(m.function)];
  const Window& w = window(memory);
  const int64_t per = config_.units_per_element(memory);
  m.sram_base = random_.between(w.low, w.high() - 1);
  const int64_t units = (w.high() - m.sram_base) * per;
  extents({&m.rows, &m.vectors}, std::min<int64_t>(units, options_.max_steps), units);
  if (random_.chance(50)) std::swap(m.rows, m.vectors);
  for (int i = 0; i < 20; ++i) {
    if (!choose_addresses(m, config_.unit_bytes(memory), store)) continue;
    b_->append(m);
    return;
  }
}

// Fills a whole window by MOVEs.
void Generator::fill(spec::native::MoveFunction function, Memory memory) {
  const Window& w = window(memory);
  const int64_t per = config_.units_per_element(memory);
  for (int64_t at = w.low; at < w.high();) {
    const int64_t elements = random_.chance(50) ? w.high() - at : random_.between(1, w.high() - at);
    spec::native::Move m;
    m.function = static_cast<int64_t>(function);
    m.sram_base = at;
    m.rows = elements;
    m.vectors = per;
    if (random_.chance(30)) std::swap(m.rows, m.vectors);
    m.x_step = m.row_bytes = config_.unit_bytes(memory);
    m.row_bytes *= m.vectors;
    m.y_step = random_.chance(70) ? m.row_bytes : 0;
    m.source_rows = m.rows;
    // The base of the micro-ops may be near the end of memory; the others leave room for the largest window.
    static_assert(spec::kBaseUop == 0);
    m.base = random_.between(1, spec::kBases - 1);
    m.offset = random_.between(0, data_ / 16);
    const Range r = bounding_range(*dma_of(config_, m, program_.bases));
    if (r.end > static_cast<uint64_t>(uops_end_)) m.y_step = 0;
    if (b_->append(m)) at += elements;
  }
}

void Generator::fill_native() {
  using F = spec::native::MoveFunction;
  fill(F::kInp, Memory::kInp);
  fill(F::kWgt, Memory::kWgt);
  fill(F::kPar, Memory::kPar);
  fill(F::kRes, Memory::kRes);
  spec::native::Gemm g;
  g.first = g.r0 = g.r1 = g.r2 = g.y = 1;
  g.x = window(Memory::kAcc).size;
  g.dst_base = window(Memory::kAcc).low;
  g.dst_x = 1;
  g.src_base = window(Memory::kInp).low;
  g.wgt_base = window(Memory::kWgt).low;
  b_->append(g);
  const Window& out = window(Memory::kOut);
  const int64_t run = std::min(window(Memory::kAcc).size, out.size);
  for (int64_t at = out.low; at < out.high(); at += run) {
    spec::native::Requantize q = requantize();
    q.rows = 1;
    q.cols = std::min(run, out.high() - at);
    q.acc_base = window(Memory::kAcc).low;
    q.acc_step = 1;
    q.out_base = at;
    q.residual = 0;
    b_->append(q);
  }
}

spec::native::Requantize Generator::requantize() {
  spec::native::Requantize q;
  q.residual = random_.between(0, 1);
  q.v_lo = random_.value(-2048, 2047);
  q.v_hi = random_.chance(80) ? random_.between(q.v_lo, 2047) : random_.value(-2048, 2047);
  q.zero = random_.value(-128, 127);
  q.lo = random_.value(-128, 127);
  q.hi = random_.chance(80) ? random_.between(q.lo, 127) : random_.value(-128, 127);
  q.r_zero = random_.value(-128, 127);
  q.r_multiplier = random_.value(0, 65535);
  q.r_shift = random_.value(0, 31);
  q.par_base = random_.between(window(Memory::kPar).low, window(Memory::kPar).high() - 1);
  return q;
}

void Generator::gemm_native() {
  spec::native::Gemm g;
  g.first = random_.between(0, 1);
  extents({&g.x, &g.y, &g.r2, &g.r1, &g.r0}, options_.max_steps, 1023);
  const Window &acc = window(Memory::kAcc), &inp = window(Memory::kInp), &wgt = window(Memory::kWgt);
  g.dst_base = nest(acc.low, acc.high(), {{g.y, &g.dst_y, 4095}, {g.x, &g.dst_x, 4095}});
  g.src_base = nest(inp.low, inp.high(),
                    {{g.r0, &g.src_r0, 4095},
                     {g.r1, &g.src_r1, 4095},
                     {g.r2, &g.src_r2, 4095},
                     {g.y, &g.src_y, 4095},
                     {g.x, &g.src_x, 4095}});
  g.wgt_base = nest(wgt.low, wgt.high(), {{g.r0, &g.wgt_r0, 4095}, {g.r1, &g.wgt_r1, 4095}, {g.r2, &g.wgt_r2, 4095}});
  b_->append(g);
}

// A window of own lanes that moves over inp, mostly by a column or two, in any distance of its rows.
void Generator::gemm_own() {
  spec::native::Gemm g;
  g.own = 1;
  g.first = random_.between(0, 1);
  g.r0 = random_.chance(3) ? 0 : 1;
  g.r1 = random_.between(random_.chance(3) ? 0 : 1, std::min<int64_t>(spec::native::kOwnRows, config_.block_in));
  g.r2 = random_.between(random_.chance(3) ? 0 : 1,
                         (config_.block_in - std::max<int64_t>(g.r1, 1)) / spec::native::kOwnRows + 1);
  extents({&g.x, &g.y}, options_.max_steps / std::max<int64_t>(g.r2, 1), 1023);
  const Window &acc = window(Memory::kAcc), &inp = window(Memory::kInp), &wgt = window(Memory::kWgt);
  g.dst_base = nest(acc.low, acc.high(), {{g.y, &g.dst_y, 4095}, {g.x, &g.dst_x, 4095}});
  const int64_t step = random_.between(0, 3),
                columns = random_.between(1, 3);  // from column to column, and of a vector
  const int64_t row = (g.r2 - 1) * step + (g.x - 1) * step * columns;
  if (random_.chance(70) && row >= 0 && row < inp.size) {
    g.src_r2 = step, g.src_x = step * columns;
    g.src_base = nest(inp.low, inp.high() - row, {{g.r1, &g.src_r1, 4095}, {g.y, &g.src_y, 4095}});
  } else {
    g.src_base = nest(inp.low, inp.high(),
                      {{g.r1, &g.src_r1, 4095}, {g.r2, &g.src_r2, 4095}, {g.y, &g.src_y, 4095}, {g.x, &g.src_x, 4095}});
  }
  g.wgt_base = random_.between(wgt.low, wgt.high() - 1);
  g.src_r0 = random_.value(0, 4095), g.wgt_r1 = random_.value(0, 4095);  // not used
  b_->append(g);
}

// Windows of accumulators inside the part of acc that the program uses, at any distances; where this is all of acc,
// also across its end.
void Generator::requantize_windows(spec::native::Requantize& q) {
  const Window& acc = window(Memory::kAcc);
  q.residual = 0;
  q.win_rows = random_.size(7);
  q.win_cols = random_.size(std::min<int64_t>(7, acc.size));
  q.win_carry = random_.between(0, 1);
  // Each accumulator of a window takes a step.
  const int64_t most = std::max<int64_t>(1, options_.max_steps / (q.win_rows * q.win_cols));
  q.cols = std::min(q.cols, most);
  q.rows = std::min(q.rows, std::max<int64_t>(1, most / std::max<int64_t>(q.cols, 1)));
  q.acc_base = nest(acc.low, acc.high() - (q.win_cols - 1),
                    {{q.rows, &q.acc_pitch, 4095}, {q.cols, &q.acc_step, 4095}, {q.win_rows, &q.win_pitch, 4095}});
  if (acc.size == config_.depth(Memory::kAcc) && random_.chance(50)) {
    q.acc_base = random_.value(0, 16383);
    q.acc_pitch = random_.value(0, 4095), q.acc_step = random_.value(0, 4095), q.win_pitch = random_.value(0, 4095);
  }
}

void Generator::requantize_native() {
  spec::native::Requantize q = requantize();
  q.to_inp = config_.results_to_inp && random_.chance(50) ? 1 : 0;
  const Window &acc = window(Memory::kAcc), &res = window(Memory::kRes),
               &out = window(q.to_inp != 0 ? Memory::kInp : Memory::kOut);
  extents({&q.rows, &q.cols}, std::min<int64_t>({options_.max_steps, out.size, res.size}), 1023);
  if (config_.window_maximum && random_.chance(40)) {
    requantize_windows(q);
  } else {
    q.acc_base = nest(acc.low, acc.high(), {{q.rows, &q.acc_pitch, 4095}, {q.cols, &q.acc_step, 4095}});
  }
  q.out_base = nest(out.low, out.high() - std::max<int64_t>(q.cols - 1, 0), {{q.rows, &q.out_pitch, 4095}});
  q.res_base = nest(res.low, res.high() - std::max<int64_t>(q.cols - 1, 0), {{q.rows, &q.res_pitch, 4095}});
  b_->append(q);
}

void Generator::body_native() {
  using F = spec::native::MoveFunction;
  const int64_t dice = random_.between(0, 99);
  if (dice < 12) move(F::kInp);
  else if (dice < 22) move(F::kWgt);
  else if (dice < 27) move(F::kPar);
  else if (dice < 33) move(F::kRes);
  else if (dice < 48) move(F::kOut);
  else if (dice < 72 && config_.own_lanes && random_.chance(50)) gemm_own();
  else if (dice < 72) gemm_native();
  else if (dice < 94) requantize_native();
  else {
    spec::native::Sync s;
    s.engine = random_.of({0, 1, 2, 3, 5, 6});
    b_->append(s);
  }
}

}  // namespace tenon::sim::fuzz
