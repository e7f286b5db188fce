#include "tests/hw/rtl/compute_model.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tenon::rtl_test {

using spec::Memory;

int32_t alu(spec::base::AluOp op, int32_t a, int32_t b) {
  using spec::base::AluOp;
  const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
  switch (op) {
    case AluOp::kMin: return std::min(a, b);
    case AluOp::kMax: return std::max(a, b);
    case AluOp::kAdd: return static_cast<int32_t>(ua + ub);
    case AluOp::kShr:
      return b >= 0 ? a >> std::min(b, 31) : static_cast<int32_t>(ua << std::min<int64_t>(-int64_t{b}, 31));
    case AluOp::kMul: return static_cast<int32_t>(ua * ub);
  }
  return 0;
}

Model::Model(const spec::Config& config)
    : config(config),
      uop(config.depth(Memory::kUop)),
      inp(config.bytes[static_cast<size_t>(Memory::kInp)]),
      wgt(config.bytes[static_cast<size_t>(Memory::kWgt)]),
      out(config.bytes[static_cast<size_t>(Memory::kOut)]),
      res(config.bytes[static_cast<size_t>(Memory::kRes)]),
      acc(config.depth(Memory::kAcc) * config.block_out),
      par(config.bytes[static_cast<size_t>(Memory::kPar)]),
      isa_(config) {}

bool Model::inside(uint64_t index, Memory memory) const { return index < static_cast<uint64_t>(config.depth(memory)); }

bool Model::execute(const GemmCommand& c) {
  const auto step = [&](uint64_t dst, uint64_t src, uint64_t wgt_index, bool zero, bool reset) {
    if (!inside(dst, Memory::kAcc)) return false;
    if (!reset && (!inside(src, Memory::kInp) || !inside(wgt_index, Memory::kWgt))) return false;
    Write write{c.index, static_cast<uint32_t>(dst), {}};
    for (int o = 0; o < config.block_out; ++o) {
      uint32_t sum = zero ? 0 : static_cast<uint32_t>(acc[dst * config.block_out + o]);
      for (int i = 0; i < config.block_in && !reset; ++i) {
        sum += static_cast<uint32_t>(inp[src * config.block_in + i] *
                                     wgt[(wgt_index * config.block_out + o) * config.block_in + i]);
      }
      acc[dst * config.block_out + o] = static_cast<int32_t>(sum);
      write.lanes.push_back(static_cast<int32_t>(sum));
    }
    acc_writes.push_back(write);
    return true;
  };
  if (c.is_base) {
    for (uint64_t y = 0; y < c.y; ++y)
      for (uint64_t x = 0; x < c.x; ++x)
        for (uint64_t u = c.uop_begin; u < c.uop_end; ++u) {
          if (!inside(u, Memory::kUop)) return false;
          const spec::base::Uop op = isa_.decode_uop(uop[u]);
          if (!step(op.dst + y * c.dst_y + x * c.dst_x, op.src + y * c.src_y + x * c.src_x,
                    op.wgt + y * c.wgt_y + x * c.wgt_x, c.reset, c.reset))
            return false;
        }
    return true;
  }
  if (c.own) {
    for (uint64_t y = 0; y < c.y && c.r0 * c.r1 * c.r2 != 0; ++y)
      for (uint64_t x = 0; x < c.x; ++x) {
        const uint64_t dst = c.dst_base + y * c.dst_y + x * c.dst_x, src = c.src_base + y * c.src_y + x * c.src_x;
        if (!inside(dst, Memory::kAcc) || !inside(src + (c.r1 - 1) * c.src_r1 + (c.r2 - 1) * c.src_r2, Memory::kInp) ||
            !inside(c.wgt_base, Memory::kWgt)) {
          return false;
        }
        Write write{c.index, static_cast<uint32_t>(dst), {}};
        Write even = write;  // of lanes in pairs, which take turns
        for (int o = 0; o < config.block_out; ++o) {
          uint32_t sum = c.first ? 0 : static_cast<uint32_t>(acc[dst * config.block_out + o]);
          for (uint64_t i = 0; i < c.r1; ++i)
            for (uint64_t j = 0; j < c.r2; ++j)
              sum += static_cast<uint32_t>(
                  inp[(src + i * c.src_r1 + j * c.src_r2) * config.block_in + o] *
                  wgt[(c.wgt_base * config.block_out + o) * config.block_in + i + 3 * (c.r2 - 1 - j)]);
          even.lanes.push_back(o % 2 == 0 ? static_cast<int32_t>(sum) : c.first ? 0 : acc[dst * config.block_out + o]);
          acc[dst * config.block_out + o] = static_cast<int32_t>(sum);
          write.lanes.push_back(static_cast<int32_t>(sum));
        }
        if (config.packed_products) acc_writes.push_back(even);
        acc_writes.push_back(write);
      }
    return true;
  }
  for (uint64_t r0 = 0; r0 < c.r0; ++r0)
    for (uint64_t r1 = 0; r1 < c.r1; ++r1)
      for (uint64_t r2 = 0; r2 < c.r2; ++r2)
        for (uint64_t y = 0; y < c.y; ++y)
          for (uint64_t x = 0; x < c.x; ++x)
            if (!step(c.dst_base + y * c.dst_y + x * c.dst_x,
                      c.src_base + r0 * c.src_r0 + r1 * c.src_r1 + r2 * c.src_r2 + y * c.src_y + x * c.src_x,
                      c.wgt_base + r0 * c.wgt_r0 + r1 * c.wgt_r1 + r2 * c.wgt_r2,
                      c.first && r0 == 0 && r1 == 0 && r2 == 0, false))
              return false;
  return true;
}

bool Model::execute(const AluCommand& c) {
  for (uint64_t y = 0; y < c.y; ++y)
    for (uint64_t x = 0; x < c.x; ++x)
      for (uint64_t u = c.uop_begin; u < c.uop_end; ++u) {
        if (!inside(u, Memory::kUop)) return false;
        const spec::base::Uop op = isa_.decode_uop(uop[u]);
        const uint64_t dst = op.dst + y * c.dst_y + x * c.dst_x, src = op.src + y * c.src_y + x * c.src_x;
        if (!inside(dst, Memory::kAcc) || (!c.use_imm && !inside(src, Memory::kAcc))) return false;
        Write write{c.index, static_cast<uint32_t>(dst), {}};
        for (int o = 0; o < config.block_out; ++o) {
          write.lanes.push_back(
              alu(c.op, acc[dst * config.block_out + o], c.use_imm ? c.imm : acc[src * config.block_out + o]));
        }
        std::ranges::copy(write.lanes, acc.begin() + static_cast<std::ptrdiff_t>(dst * config.block_out));
        acc_writes.push_back(write);
      }
  return true;
}

int8_t Model::requantized(const RqCommand& c, uint64_t source, int lane, int8_t residual) const {
  const uint8_t* bytes = &par[(c.par_base * config.block_out + lane) * 8];
  spec::ChannelParameters channel;
  std::memcpy(&channel.bias, bytes, 4);
  std::memcpy(&channel.multiplier, bytes + 4, 2);
  channel.shift = bytes[6] & 63;
  return spec::requantize(acc[source * config.block_out + lane], channel, c.layer, residual);
}

bool Model::execute(const RqCommand& c) {
  for (uint64_t y = 0; y < c.rows; ++y)
    for (uint64_t x = 0; x < c.cols; ++x) {
      const uint64_t source = c.acc_base + y * c.acc_pitch + x * c.acc_step, target = c.out_base + y * c.out_pitch + x;
      const uint64_t residual = c.res_base + y * c.res_pitch + x;
      if ((!c.has_window() && !inside(source, Memory::kAcc)) ||
          !inside(target, c.to_inp ? Memory::kInp : Memory::kOut) || !inside(c.par_base, Memory::kPar) ||
          (c.layer.residual && !inside(residual, Memory::kRes)))
        return false;
      Write write{c.index, static_cast<uint32_t>(target), {}};
      for (int o = 0; o < config.block_out; ++o) {
        const int8_t r = c.layer.residual ? res[residual * config.block_out + o] : int8_t{0};
        int8_t value = c.has_window() ? int8_t{-128} : requantized(c, source, o, r);
        // The columns of the window, and with carry the last one of the window before.
        const auto columns = static_cast<int64_t>(std::max(c.win_cols, 1u));
        for (int64_t j = c.win_carry && x > 0 ? -1 : 0; c.has_window() && j < columns; ++j) {
          const uint64_t column =
              j >= 0 ? source + static_cast<uint64_t>(j) : source - c.acc_step + static_cast<uint64_t>(columns - 1);
          for (uint64_t i = 0; i < std::max(c.win_rows, 1u); ++i) {
            const auto depth = static_cast<uint64_t>(config.depth(Memory::kAcc));
            value = std::max(value, requantized(c, (column + i * c.win_pitch) % depth, o, 0));
          }
        }
        (c.to_inp ? inp : out)[target * config.block_out + o] = value;
        write.lanes.push_back(value);
      }
      (c.to_inp ? inp_writes : out_writes).push_back(write);
    }
  return true;
}

void Model::load(Memory memory, uint32_t unit, const std::vector<uint8_t>& bytes, bool sign_extended) {
  const size_t offset = static_cast<size_t>(unit) * bytes.size();
  switch (memory) {
    case Memory::kUop: std::memcpy(&uop[unit], bytes.data(), 4); return;
    case Memory::kWgt: std::memcpy(&wgt[offset], bytes.data(), bytes.size()); return;
    case Memory::kInp: std::memcpy(&inp[offset], bytes.data(), bytes.size()); return;
    case Memory::kRes: std::memcpy(&res[offset], bytes.data(), bytes.size()); return;
    case Memory::kPar: std::memcpy(&par[offset], bytes.data(), bytes.size()); return;
    case Memory::kAcc:
      if (sign_extended) {
        for (size_t i = 0; i < bytes.size(); ++i) acc[offset + i] = static_cast<int8_t>(bytes[i]);
      } else {
        std::memcpy(reinterpret_cast<uint8_t*>(acc.data()) + offset, bytes.data(), bytes.size());
      }
      return;
    case Memory::kOut:
    case Memory::kDram: assert(false && "not loaded"); return;
  }
}

}  // namespace tenon::rtl_test
