#include "tests/hw/rtl/compute_random.h"

#include <algorithm>
#include <cstring>

#include "hw/spec/isa.h"

namespace tenon::rtl_test {

using spec::Memory;

Window Random::whole(Memory memory) const { return {0, static_cast<uint32_t>(config_.depth(memory))}; }

Windows Random::whole() const {
  return {whole(Memory::kUop), whole(Memory::kWgt), whole(Memory::kInp), whole(Memory::kAcc),
          whole(Memory::kOut), whole(Memory::kPar), whole(Memory::kRes)};
}

Window Random::part(Window window) {
  const uint32_t size = 1 + below(chance(50) ? std::min(window.size, 4u) : window.size);
  return {window.begin + below(window.size - size + 1), size};
}

std::vector<LoadItem> Random::fill(const Windows& w, std::initializer_list<Memory> kinds) {
  std::vector<LoadItem> loads;
  for (Memory memory : kinds) {
    const Window window = memory == Memory::kWgt   ? w.wgt
                          : memory == Memory::kInp ? w.inp
                          : memory == Memory::kAcc ? w.acc
                          : memory == Memory::kPar ? w.par
                                                   : w.res;
    const auto units = static_cast<uint32_t>(config_.units_per_element(memory));
    for (uint32_t element = window.begin; element < window.begin + window.size; ++element) {
      if (memory == Memory::kAcc && chance(20)) {
        LoadItem item{memory, element, std::vector<uint8_t>(config_.block_out), true};
        for (uint8_t& byte : item.bytes) byte = static_cast<uint8_t>(random_());
        loads.push_back(item);
        continue;
      }
      std::vector<uint8_t> bytes(config_.element_bytes(memory));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
      if (memory == Memory::kAcc) {
        for (int lane = 0; lane < config_.block_out; ++lane) {
          static constexpr int32_t kSpecial[] = {0, 1, -1, 31, 32, 33, -31, -32, -33, INT32_MIN, INT32_MAX, 1 << 16};
          int32_t value = kSpecial[below(std::size(kSpecial))];
          if (chance(50)) value = static_cast<int32_t>(random_()) >> below(32);
          std::memcpy(&bytes[lane * 4], &value, 4);
        }
      }
      const size_t size = bytes.size() / units;
      for (uint32_t unit = 0; unit < units; ++unit) {
        loads.push_back({memory, element * units + unit,
                         std::vector<uint8_t>(bytes.begin() + static_cast<std::ptrdiff_t>(unit * size),
                                              bytes.begin() + static_cast<std::ptrdiff_t>((unit + 1) * size)),
                         false});
      }
    }
  }
  return loads;
}

uint32_t Random::extent(uint32_t max) { return chance(3) ? 0 : chance(40) ? 1 : 1 + below(max); }

uint32_t Random::spread(Window window, std::initializer_list<Level> levels) {
  uint32_t range = window.size - 1;
  for (const Level& level : levels) {
    if (level.extent <= 1) {
      *level.stride = below(4096);  // never used
      continue;
    }
    *level.stride = chance(25) ? 0 : below(std::min(range / (level.extent - 1), 4095u) + 1);
    range -= *level.stride * (level.extent - 1);
  }
  return range;
}

GemmCommand Random::native_gemm(const Windows& w, uint32_t index) {
  if (config_.own_lanes && chance(50)) return own_gemm(w, index);
  GemmCommand c;
  c.index = index;
  c.first = chance(50);
  c.r0 = extent(4), c.r1 = extent(3), c.r2 = extent(3), c.y = extent(5), c.x = extent(8);
  const Window dst = part(w.acc), src = part(w.inp), wgt = part(w.wgt);
  c.dst_base = dst.begin + below(spread(dst, {{c.y, &c.dst_y}, {c.x, &c.dst_x}}) + 1);
  c.src_base =
      src.begin +
      below(spread(src, {{c.r0, &c.src_r0}, {c.y, &c.src_y}, {c.r1, &c.src_r1}, {c.x, &c.src_x}, {c.r2, &c.src_r2}}) +
            1);
  c.wgt_base = wgt.begin + below(spread(wgt, {{c.r0, &c.wgt_r0}, {c.r1, &c.wgt_r1}, {c.r2, &c.wgt_r2}}) + 1);
  return c;
}

// A window that moves on by no column, one, two or three, or by any distance.
GemmCommand Random::own_gemm(const Windows& w, uint32_t index) {
  GemmCommand c;
  c.index = index;
  c.own = true;
  c.first = chance(50);
  c.r0 = chance(3) ? 0 : 1;
  c.r1 = chance(3) ? 0 : 1 + below(3);
  c.r2 = chance(3) ? 0 : 1 + below((static_cast<uint32_t>(config_.block_in) - std::max(c.r1, 1u)) / 3 + 1);
  c.y = extent(5), c.x = extent(9);
  const Window dst = part(w.acc), src = part(w.inp);
  c.dst_base = dst.begin + below(spread(dst, {{c.y, &c.dst_y}, {c.x, &c.dst_x}}) + 1);
  const uint32_t step = below(4), columns = 1 + below(3);
  const uint32_t row = c.r2 > 0 && c.x > 0 ? (c.r2 - 1) * step + (c.x - 1) * step * columns : 0;
  if (row < src.size && chance(80)) {
    c.src_r2 = step, c.src_x = step * columns;
    c.src_base = src.begin + below(spread({src.begin, src.size - row}, {{c.r1, &c.src_r1}, {c.y, &c.src_y}}) + 1);
  } else {
    c.src_base =
        src.begin + below(spread(src, {{c.r1, &c.src_r1}, {c.y, &c.src_y}, {c.r2, &c.src_r2}, {c.x, &c.src_x}}) + 1);
  }
  c.wgt_base = w.wgt.begin + below(w.wgt.size);
  return c;
}

RqCommand Random::rq(const Windows& w, uint32_t index) {
  RqCommand c;
  c.index = index;
  c.rows = extent(5), c.cols = extent(9);
  spec::LayerParameters& l = c.layer;
  const Window source = part(w.acc);
  if (config_.window_maximum && chance(50)) {
    c.rows = std::min(c.rows, 3u);
    c.win_rows = 1 + below(3), c.win_cols = 1 + below(std::min(source.size, 3u)), c.win_carry = chance(50);
    const Window columns{source.begin, source.size - (c.win_cols - 1)};
    const uint32_t range = spread(columns, {{c.rows, &c.acc_pitch}, {c.cols, &c.acc_step}, {c.win_rows, &c.win_pitch}});
    c.acc_base = source.begin + below(range + 1);
    if (w.acc.size == config_.depth(Memory::kAcc))
      c.acc_base = (c.acc_base + below(w.acc.size)) % w.acc.size;  // across the end
  } else {
    c.acc_base = source.begin + below(spread(source, {{c.rows, &c.acc_pitch}, {c.cols, &c.acc_step}}) + 1);
  }
  // out and res advance by one a column.
  const auto draw_base = [&](Window window, uint32_t& base, uint32_t& pitch) {
    if (window.size < c.cols) c.cols = window.size;
    const uint32_t range = spread({window.begin, window.size - std::max(c.cols, 1u) + 1}, {{c.rows, &pitch}});
    base = window.begin + below(range + 1);
  };
  c.to_inp = config_.results_to_inp && chance(50);
  draw_base(c.to_inp ? w.inp : w.out, c.out_base, c.out_pitch);
  draw_base(w.res, c.res_base, c.res_pitch);
  c.par_base = w.par.begin + below(w.par.size);
  l.residual = !c.has_window() && chance(50);
  l.v_lo = static_cast<int16_t>(static_cast<int>(below(4096)) - 2048);
  l.v_hi = static_cast<int16_t>(static_cast<int>(below(4096)) - 2048);
  if (chance(70)) l.v_lo = -2048, l.v_hi = 2047;
  l.zero = static_cast<int8_t>(random_());
  l.lo = static_cast<int8_t>(random_());
  l.hi = static_cast<int8_t>(random_());
  if (chance(70)) l.lo = -128, l.hi = 127;
  l.r_zero = static_cast<int8_t>(random_());
  l.r_multiplier = static_cast<uint16_t>(random_());
  l.r_shift = static_cast<uint8_t>(below(32));
  return c;
}

std::vector<LoadItem> Random::micro_ops(uint32_t begin, uint32_t end, Window dst, Window src, Window wgt) {
  const spec::Isa isa(config_);
  std::vector<LoadItem> loads;
  for (uint32_t u = begin; u < end; ++u) {
    const uint32_t word =
        isa.encode_uop({dst.begin + below(dst.size), src.begin + below(src.size), wgt.begin + below(wgt.size)});
    LoadItem item{Memory::kUop, u, std::vector<uint8_t>(4), false};
    std::memcpy(item.bytes.data(), &word, 4);
    loads.push_back(item);
  }
  return loads;
}

GemmCommand Random::base_gemm(const Windows& w, uint32_t index, std::vector<LoadItem>& uops) {
  GemmCommand c;
  c.index = index;
  c.is_base = true;
  c.reset = chance(20);
  c.y = extent(5), c.x = extent(6);
  // Fields of the native profile are ignored in base commands.
  c.first = chance(50), c.r0 = below(1024), c.r1 = below(1024), c.dst_base = below(1 << 14), c.src_r0 = below(1 << 14);
  const uint32_t count = extent(6);
  c.uop_begin = w.uop.begin + below(w.uop.size - count + 1);
  c.uop_end = c.uop_begin + count;
  if (count == 0 && chance(50)) c.uop_end = below(c.uop_begin + 1);
  Window dst = part(w.acc), src = part(w.inp), wgt = part(w.wgt);
  dst.size = 1 + spread(dst, {{c.y, &c.dst_y}, {c.x, &c.dst_x}});
  src.size = 1 + spread(src, {{c.x, &c.src_x}, {c.y, &c.src_y}});
  wgt.size = 1 + spread(wgt, {{c.y, &c.wgt_y}, {c.x, &c.wgt_x}});
  const std::vector<LoadItem> loads = micro_ops(c.uop_begin, c.uop_begin + count, dst, src, wgt);
  uops.insert(uops.end(), loads.begin(), loads.end());
  return c;
}

AluCommand Random::alu(const Windows& w, uint32_t index, std::vector<LoadItem>& uops) {
  AluCommand c;
  c.index = index;
  c.op = static_cast<spec::base::AluOp>(below(5));
  c.use_imm = chance(50);
  c.imm = static_cast<int16_t>(chance(50) ? random_() : static_cast<uint64_t>(int64_t{below(80)} - 40));
  c.y = extent(5), c.x = extent(6);
  const uint32_t count = extent(6);
  c.uop_begin = w.uop.begin + below(w.uop.size - count + 1);
  c.uop_end = c.uop_begin + count;
  Window dst = part(w.acc), src = chance(30) ? dst : part(w.acc);
  dst.size = 1 + spread(dst, {{c.y, &c.dst_y}, {c.x, &c.dst_x}});
  src.size = 1 + spread(src, {{c.x, &c.src_x}, {c.y, &c.src_y}});
  const std::vector<LoadItem> loads = micro_ops(c.uop_begin, c.uop_begin + count, dst, src, {0, 1});
  uops.insert(uops.end(), loads.begin(), loads.end());
  return c;
}

}  // namespace tenon::rtl_test
