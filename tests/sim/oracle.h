// An independent execution of the instruction set, for tests: byte by byte and step by step as hw/spec/isa.h defines
// it, in stream order, sharing only the decoder with the behavioral simulator. For programs without races.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "hw/spec/requantize.h"

namespace tenon::sim::testing {

class Oracle {
 public:
  Oracle(const spec::Config& config, std::vector<std::byte> memory)
      : config(config), isa(config), dram(std::move(memory)) {
    for (size_t m = 0; m < spec::kScratchpads; ++m) pads[m].resize(static_cast<size_t>(config.bytes[m]));
  }

  void execute(const spec::Instruction& instruction, const std::array<uint64_t, spec::kBases>& bases) {
    bases_ = bases;
    std::visit([this](const auto& i) { run(i); }, instruction);
  }

  const spec::Config config;
  const spec::Isa isa;
  std::vector<std::byte> dram;
  std::array<std::vector<std::byte>, spec::kScratchpads> pads;

 private:
  using M = spec::Memory;
  template <class T>
  T get(M m, int64_t element, int64_t index) const {
    T v;
    std::memcpy(&v,
                &pads[static_cast<size_t>(m)].at(static_cast<size_t>(element * config.element_bytes(m)) +
                                                 static_cast<size_t>(index) * sizeof(T)),
                sizeof(T));
    return v;
  }
  template <class T>
  void put(M m, int64_t element, int64_t index, T v) {
    std::memcpy(&pads[static_cast<size_t>(m)].at(static_cast<size_t>(element * config.element_bytes(m)) +
                                                 static_cast<size_t>(index) * sizeof(T)),
                &v, sizeof(T));
  }

  void run(const spec::base::Finish&) {}
  void run(const spec::native::Finish&) {}
  void run(const spec::native::Sync&) {}

  void run(const spec::base::Load& l) {
    if (l.x_size == 0) return;
    constexpr std::array kMemories = {M::kUop, M::kWgt, M::kInp, M::kAcc, M::kOut, M::kAcc};
    constexpr std::array kBase = {0, 1, 2, 3, 4, 3};
    const M m = kMemories.at(static_cast<size_t>(l.memory_type));
    const bool narrow = l.memory_type == 5;
    const int64_t bytes = narrow ? config.block_out : config.element_bytes(m);
    int64_t element = l.sram_base;
    for (int64_t y = -l.y_pad_top; y < l.y_size + l.y_pad_bottom; ++y) {
      for (int64_t x = -l.x_pad_left; x < l.x_size + l.x_pad_right; ++x, ++element) {
        const bool data = y >= 0 && y < l.y_size && x >= 0 && x < l.x_size;
        const auto at = bases_[static_cast<size_t>(kBase[static_cast<size_t>(l.memory_type)])] +
                        static_cast<uint64_t>((l.dram_base + y * l.x_stride + x) * bytes);
        for (int64_t j = 0; j < bytes; ++j) {
          const auto b = data ? static_cast<int8_t>(dram.at(at + static_cast<uint64_t>(j))) : int8_t{0};
          if (narrow) put<int32_t>(m, element, j, b);
          else put<int8_t>(m, element, j, b);
        }
      }
    }
  }

  void run(const spec::base::Store& s) {
    for (int64_t y = 0; y < s.y_size; ++y)
      for (int64_t x = 0; x < s.x_size; ++x)
        for (int64_t j = 0; j < config.block_out; ++j) {
          const auto at = bases_[4] + static_cast<uint64_t>((s.dram_base + y * s.x_stride + x) * config.block_out + j);
          dram.at(at) = static_cast<std::byte>(get<int32_t>(M::kAcc, s.sram_base + y * s.x_size + x, j));
        }
  }

  void mac(int64_t dst, int64_t src, int64_t wgt, bool from_zero) {
    for (int64_t lane = 0; lane < config.block_out; ++lane) {
      int64_t sum = from_zero ? 0 : get<int32_t>(M::kAcc, dst, lane);
      for (int64_t k = 0; k < config.block_in; ++k)
        sum += int64_t{get<int8_t>(M::kInp, src, k)} * get<int8_t>(M::kWgt, wgt, lane * config.block_in + k);
      put<int32_t>(M::kAcc, dst, lane, static_cast<int32_t>(static_cast<uint64_t>(sum)));
    }
  }

  template <class I, class F>
  void each_uop(const I& i, F&& f) {
    for (int64_t y = 0; y < i.iter_out; ++y)
      for (int64_t x = 0; x < i.iter_in; ++x)
        for (int64_t u = i.uop_begin; u < i.uop_end; ++u) f(isa.decode_uop(get<uint32_t>(M::kUop, u, 0)), y, x);
  }

  void run(const spec::base::Gemm& g) {
    each_uop(g, [&](spec::base::Uop u, int64_t y, int64_t x) {
      const int64_t dst = u.dst + y * g.dst_factor_out + x * g.dst_factor_in;
      if (g.reset != 0) {
        for (int64_t lane = 0; lane < config.block_out; ++lane) put<int32_t>(M::kAcc, dst, lane, 0);
      } else {
        mac(dst, u.src + y * g.src_factor_out + x * g.src_factor_in, u.wgt + y * g.wgt_factor_out + x * g.wgt_factor_in,
            false);
      }
    });
  }

  void run(const spec::base::Alu& a) {
    each_uop(a, [&](spec::base::Uop u, int64_t y, int64_t x) {
      const int64_t dst = u.dst + y * a.dst_factor_out + x * a.dst_factor_in,
                    src = u.src + y * a.src_factor_out + x * a.src_factor_in;
      for (int64_t lane = 0; lane < config.block_out; ++lane) {
        const int64_t p = get<int32_t>(M::kAcc, dst, lane),
                      q = a.use_imm != 0 ? a.imm : get<int32_t>(M::kAcc, src, lane);
        int64_t r = 0;
        switch (a.alu_opcode) {
          case 0: r = p < q ? p : q; break;
          case 1: r = p > q ? p : q; break;
          case 2: r = p + q; break;
          case 3: r = q >= 0 ? p >> (q > 31 ? 31 : q) : p * (int64_t{1} << (q < -31 ? 31 : -q)); break;
          case 4: r = p * q; break;
          default: break;
        }
        put<int32_t>(M::kAcc, dst, lane, static_cast<int32_t>(static_cast<uint64_t>(r)));
      }
    });
  }

  void run(const spec::native::Move& m) {
    constexpr std::array kMemories = {M::kInp, M::kWgt, M::kPar, M::kRes, M::kOut};
    const M memory = kMemories.at(static_cast<size_t>(m.function));
    const int64_t unit = config.unit_bytes(memory), valid = m.valid == 0 ? unit : m.valid;
    for (int64_t y = 0; y < m.rows; ++y)
      for (int64_t x = 0; x < m.vectors; ++x)
        for (int64_t j = 0; j < unit; ++j) {
          const int64_t at = m.sram_base * config.element_bytes(memory) + (y * m.vectors + x) * unit + j;
          std::byte& pad = pads[static_cast<size_t>(memory)].at(static_cast<size_t>(at));
          const int64_t k = m.x_step * x - m.left + j;
          const bool present = j < valid && 0 <= k && k < m.row_bytes && 0 <= y - m.top && y - m.top < m.source_rows;
          const auto address = static_cast<size_t>(static_cast<int64_t>(bases_[static_cast<size_t>(m.base)]) +
                                                   m.offset + (y - m.top) * m.y_step + k);
          if (m.function == 4) {
            if (present) dram.at(address) = pad;
          } else {
            pad = j >= valid ? std::byte{0} : present ? dram.at(address) : static_cast<std::byte>(m.pad_value);
          }
        }
  }

  void run_own(const spec::native::Gemm& g) {
    for (int64_t y = 0; y < g.y; ++y)
      for (int64_t x = 0; x < g.x; ++x)
        for (int64_t lane = 0; lane < config.block_out; ++lane) {
          const int64_t dst = g.dst_base + y * g.dst_y + x * g.dst_x;
          int64_t sum = g.first != 0 ? 0 : get<int32_t>(M::kAcc, dst, lane);
          for (int64_t i = 0; i < g.r1; ++i)
            for (int64_t j = 0; j < g.r2; ++j)
              sum += int64_t{get<int8_t>(M::kInp, g.src_base + i * g.src_r1 + j * g.src_r2 + y * g.src_y + x * g.src_x,
                                         lane)} *
                     get<int8_t>(M::kWgt, g.wgt_base, lane * config.block_in + i + 3 * (g.r2 - 1 - j));
          put<int32_t>(M::kAcc, dst, lane, static_cast<int32_t>(static_cast<uint64_t>(sum)));
        }
  }

  void run(const spec::native::Gemm& g) {
    if (g.own != 0) {
      if (g.r0 * g.r1 * g.r2 != 0) run_own(g);
      return;
    }
    for (int64_t r0 = 0; r0 < g.r0; ++r0)
      for (int64_t r1 = 0; r1 < g.r1; ++r1)
        for (int64_t r2 = 0; r2 < g.r2; ++r2)
          for (int64_t y = 0; y < g.y; ++y)
            for (int64_t x = 0; x < g.x; ++x)
              mac(g.dst_base + y * g.dst_y + x * g.dst_x,
                  g.src_base + r0 * g.src_r0 + r1 * g.src_r1 + r2 * g.src_r2 + y * g.src_y + x * g.src_x,
                  g.wgt_base + r0 * g.wgt_r0 + r1 * g.wgt_r1 + r2 * g.wgt_r2, g.first != 0 && r0 + r1 + r2 == 0);
  }

  void run(const spec::native::Requantize& q) {
    const spec::LayerParameters layer{.v_lo = static_cast<int16_t>(q.v_lo),
                                      .v_hi = static_cast<int16_t>(q.v_hi),
                                      .zero = static_cast<int8_t>(q.zero),
                                      .lo = static_cast<int8_t>(q.lo),
                                      .hi = static_cast<int8_t>(q.hi),
                                      .residual = q.residual != 0,
                                      .r_zero = static_cast<int8_t>(q.r_zero),
                                      .r_multiplier = static_cast<uint16_t>(q.r_multiplier),
                                      .r_shift = static_cast<uint8_t>(q.r_shift)};
    for (int64_t y = 0; y < q.rows; ++y)
      for (int64_t x = 0; x < q.cols; ++x)
        for (int64_t c = 0; c < config.block_out; ++c) {
          const spec::ChannelParameters channel{
              .bias = get<int32_t>(M::kPar, q.par_base, 2 * c),
              .multiplier = get<uint16_t>(M::kPar, q.par_base, 4 * c + 2),
              .shift = static_cast<uint8_t>(get<uint8_t>(M::kPar, q.par_base, 8 * c + 6) & 63)};
          const int8_t r = q.residual != 0 ? get<int8_t>(M::kRes, q.res_base + y * q.res_pitch + x, c) : int8_t{0};
          const auto result = [&](int64_t at) {
            return spec::requantize(get<int32_t>(M::kAcc, at, c), channel, layer, r);
          };
          const int64_t at = q.acc_base + y * q.acc_pitch + x * q.acc_step;
          int8_t value = q.has_window() ? int8_t{-128} : result(at);
          for (int64_t i = 0; q.has_window() && i < q.window_rows(); ++i) {
            const auto include = [&](int64_t column) {
              value = std::max(value, result((column + i * q.win_pitch) % config.depth(M::kAcc)));
            };
            for (int64_t j = 0; j < q.window_cols(); ++j) include(at + j);
            if (q.win_carry != 0 && x > 0) include(at - q.acc_step + q.window_cols() - 1);
          }
          put<int8_t>(q.to_inp != 0 ? M::kInp : M::kOut, q.out_base + y * q.out_pitch + x, c, value);
        }
  }

  std::array<uint64_t, spec::kBases> bases_{};
};

}  // namespace tenon::sim::testing
