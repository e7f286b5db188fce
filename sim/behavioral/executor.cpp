#include "sim/behavioral/executor.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tenon::sim {

using spec::Memory;

namespace {
constexpr std::align_val_t kAlignment{64};
}

void Executor::Free::operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }

Executor::Bytes Executor::allocate(size_t bytes) {
  auto* p = static_cast<std::byte*>(::operator new[](bytes, kAlignment));
  std::memset(p, 0, bytes);
  return Bytes(p);
}

Executor::Executor(const spec::Isa& isa, const KernelSet& kernels, std::span<std::byte> dram)
    : isa_(isa),
      kernels_(kernels),
      shape_{isa.config().block_in, isa.config().block_out},
      dram_(dram),
      inp_bytes_(kernels.inp_bytes(shape_)),
      wgt_bytes_(kernels.wgt_bytes(shape_)) {
  const spec::Config& config = isa.config();
  for (size_t m = 0; m < spec::kScratchpads; ++m) pads_[m] = allocate(static_cast<size_t>(config.bytes[m]));
  const auto inputs = static_cast<size_t>(config.depth(Memory::kInp));
  const auto weights = static_cast<size_t>(config.depth(Memory::kWgt));
  packed_inp_ = allocate(inputs * inp_bytes_);
  packed_wgt_ = allocate(weights * wgt_bytes_);
  stale_inp_ = Bitmap(inputs);
  stale_wgt_ = Bitmap(weights);
  stale_inp_.set_range(0, inputs);
  stale_wgt_.set_range(0, weights);
}

std::span<const uint32_t> Executor::uops() const {
  const auto bytes = pad(Memory::kUop);
  return {reinterpret_cast<const uint32_t*>(bytes.data()), bytes.size() / 4};
}

int32_t* Executor::acc(int64_t index) const {
  return reinterpret_cast<int32_t*>(pads_[index_of(Memory::kAcc)].get()) + index * shape_.block_out;
}

std::optional<Range> Executor::outside_dram(const Dma& dma) const {
  const uint64_t size = dram_.size();
  std::vector<Range> ranges;
  for (int64_t y = dma.top; y < std::min(dma.rows, dma.top + dma.source_rows); ++y) {
    ranges.clear();
    append_row_ranges(dma, y, ranges);
    for (const Range& r : ranges) {
      if (r.begin > r.end || r.end > size) return r;
    }
  }
  return std::nullopt;
}

void Executor::pack(const Footprint& footprint) {
  const auto refresh = [](Bitmap& stale, const Bitmap& used, auto&& pack_element) {
    for (size_t w = 0; w < stale.words().size(); ++w) {
      uint64_t todo = stale.words()[w] & used.words()[w];
      stale.words()[w] &= ~todo;
      for (; todo != 0; todo &= todo - 1) pack_element(w * 64 + static_cast<size_t>(std::countr_zero(todo)));
    }
  };
  const std::byte* inp = pad(Memory::kInp).data();
  const std::byte* wgt = pad(Memory::kWgt).data();
  const auto in = static_cast<size_t>(shape_.block_in), matrix = in * static_cast<size_t>(shape_.block_out);
  refresh(stale_inp_, footprint.reads[index_of(Memory::kInp)],
          [&](size_t i) { kernels_.pack_inp(shape_, inp + i * in, packed_inp_.get() + i * inp_bytes_); });
  refresh(stale_wgt_, footprint.reads[index_of(Memory::kWgt)],
          [&](size_t i) { kernels_.pack_wgt(shape_, wgt + i * matrix, packed_wgt_.get() + i * wgt_bytes_); });
}

void Executor::execute(const spec::Instruction& instruction, const Footprint& footprint) {
  if (footprint.dma) {
    if (footprint.dma->units() == 0) return;
    if (footprint.dma->store) return store(*footprint.dma);
    load(*footprint.dma);
    if (footprint.dma->memory == Memory::kInp) stale_inp_ |= footprint.writes[index_of(Memory::kInp)];
    if (footprint.dma->memory == Memory::kWgt) stale_wgt_ |= footprint.writes[index_of(Memory::kWgt)];
    return;
  }
  const bool works = std::ranges::any_of(footprint.writing, [](bool b) { return b; });
  if (!works) return;
  const auto* native_gemm = std::get_if<spec::native::Gemm>(&instruction);
  if (native_gemm != nullptr && native_gemm->own != 0) return run_own(*native_gemm);
  if (footprint.macs > 0) pack(footprint);
  if (const auto* g = std::get_if<spec::base::Gemm>(&instruction)) run(*g, footprint);
  if (const auto* a = std::get_if<spec::base::Alu>(&instruction)) run(*a);
  if (native_gemm != nullptr) run(*native_gemm);
  if (const auto* q = std::get_if<spec::native::Requantize>(&instruction)) {
    run(*q);
    if (q->to_inp != 0) stale_inp_ |= footprint.writes[index_of(Memory::kInp)];
  }
}

void Executor::load(const Dma& dma) {
  std::byte* const base = pad(dma.memory).data();
  const auto v = static_cast<size_t>(dma.vector_bytes);
  const size_t unit = dma.convert == Dma::Convert::kSignExtend ? 4 * v : v;
  std::byte* to = base + static_cast<size_t>(dma.first_unit) * unit;
  const auto pad = static_cast<std::byte>(dma.pad_value);
  const auto valid = static_cast<size_t>(dma.valid);
  const auto fill = [&](std::byte* vector) {
    std::memset(vector, dma.pad_value, valid);
    std::memset(vector + valid, 0, v - valid);
  };
  std::array<std::byte, 64> narrow;
  for (int64_t y = 0; y < dma.rows; ++y) {
    const bool present = dma.row_in_dram(y);
    const std::byte* row = present ? dram_.data() + dma.row_address(y) : nullptr;
    if (present && dma.convert == Dma::Convert::kNone && dma.left == 0 && dma.x_step == dma.vector_bytes &&
        valid == v && dma.vectors * dma.x_step <= dma.row_bytes) {
      std::memcpy(to, row, static_cast<size_t>(dma.vectors) * v);
      to += static_cast<size_t>(dma.vectors) * v;
      continue;
    }
    for (int64_t x = 0; x < dma.vectors; ++x, to += unit) {
      std::byte* vector = dma.convert == Dma::Convert::kSignExtend ? narrow.data() : to;
      const auto [first, last] = dma.in_dram(x);
      if (!present || first >= last) {
        fill(vector);
      } else {
        const int64_t k = x * dma.x_step - dma.left;
        std::memset(vector, static_cast<int>(pad), static_cast<size_t>(first));
        std::memcpy(vector + first, row + (k + first), static_cast<size_t>(last - first));
        std::memset(vector + last, static_cast<int>(pad), valid - static_cast<size_t>(last));
        std::memset(vector + valid, 0, v - valid);
      }
      if (dma.convert == Dma::Convert::kSignExtend) {
        for (size_t lane = 0; lane < v; ++lane) {
          const int32_t wide = static_cast<int8_t>(narrow[lane]);
          std::memcpy(to + 4 * lane, &wide, 4);
        }
      }
    }
  }
}

void Executor::store(const Dma& dma) {
  const auto v = static_cast<size_t>(dma.vector_bytes);
  const std::byte* from = pad(dma.memory).data();
  std::array<std::byte, 64> narrow;
  for (int64_t y = 0; y < dma.rows; ++y) {
    if (!dma.row_in_dram(y)) continue;
    std::byte* row = dram_.data() + dma.row_address(y);
    for (int64_t x = 0; x < dma.vectors; ++x) {
      const auto [first, last] = dma.in_dram(x);
      if (first >= last) continue;
      const int64_t unit = dma.first_unit + y * dma.vectors + x;
      const std::byte* vector = from + static_cast<size_t>(unit) * v;
      if (dma.convert == Dma::Convert::kLowByte) {
        const int32_t* lanes = acc(unit);
        for (size_t lane = 0; lane < v; ++lane) narrow[lane] = static_cast<std::byte>(lanes[lane]);
        vector = narrow.data();
      }
      std::memcpy(row + (x * dma.x_step - dma.left + first), vector + first, static_cast<size_t>(last - first));
    }
  }
}

void Executor::run(const spec::base::Gemm& g, const Footprint& footprint) {
  if (g.reset != 0) {
    const auto bytes = static_cast<size_t>(shape_.block_out) * 4;
    footprint.writes[index_of(Memory::kAcc)].for_each(
        [&](size_t i) { std::memset(acc(static_cast<int64_t>(i)), 0, bytes); });
    return;
  }
  // Wrapping sums commute, so the loops run micro-op by micro-op, along the longest run that keeps its weights.
  const auto encoded = uops();
  for (int64_t u = g.uop_begin; u < g.uop_end; ++u) {
    const spec::base::Uop uop = isa_.decode_uop(encoded[static_cast<size_t>(u)]);
    const bool keep_out = g.wgt_factor_out == 0, keep_in = g.wgt_factor_in == 0;
    const int64_t calls_out = keep_out ? 1 : g.iter_out, calls_in = keep_in ? 1 : g.iter_in;
    GemmRun run;
    run.ny = keep_out ? g.iter_out : 1;
    run.nx = keep_in ? g.iter_in : 1;
    run.acc_y = g.dst_factor_out * shape_.block_out;
    run.acc_x = g.dst_factor_in * shape_.block_out;
    run.inp_y = g.src_factor_out * static_cast<int64_t>(inp_bytes_);
    run.inp_x = g.src_factor_in * static_cast<int64_t>(inp_bytes_);
    for (int64_t y = 0; y < calls_out; ++y) {
      for (int64_t x = 0; x < calls_in; ++x) {
        run.acc = acc(uop.dst + y * g.dst_factor_out + x * g.dst_factor_in);
        run.inp = packed_inp(uop.src + y * g.src_factor_out + x * g.src_factor_in);
        run.wgt = packed_wgt(uop.wgt + y * g.wgt_factor_out + x * g.wgt_factor_in);
        kernels_.gemm(shape_, run);
      }
    }
  }
}

void Executor::run(const spec::base::Alu& a) {
  const auto encoded = uops();
  decoded_.clear();
  for (int64_t u = a.uop_begin; u < a.uop_end; ++u)
    decoded_.push_back(isa_.decode_uop(encoded[static_cast<size_t>(u)]));
  const auto imm = static_cast<int32_t>(a.imm);
  const int lanes = shape_.block_out;
  std::array<int32_t, 64> immediate;
  immediate.fill(imm);
  const auto steps = [&](auto&& op) {
    for (int64_t y = 0; y < a.iter_out; ++y) {
      for (int64_t x = 0; x < a.iter_in; ++x) {
        for (const auto& uop : decoded_) {
          int32_t* dst = acc(uop.dst + y * a.dst_factor_out + x * a.dst_factor_in);
          const int32_t* src =
              a.use_imm != 0 ? immediate.data() : acc(uop.src + y * a.src_factor_out + x * a.src_factor_in);
          for (int lane = 0; lane < lanes; ++lane) dst[lane] = op(dst[lane], src[lane]);
        }
      }
    }
  };
  const auto u = [](int32_t v) { return static_cast<uint32_t>(v); };
  switch (static_cast<spec::base::AluOp>(a.alu_opcode)) {
    case spec::base::AluOp::kMin: steps([](int32_t x, int32_t y) { return std::min(x, y); }); break;
    case spec::base::AluOp::kMax: steps([](int32_t x, int32_t y) { return std::max(x, y); }); break;
    case spec::base::AluOp::kAdd: steps([u](int32_t x, int32_t y) { return static_cast<int32_t>(u(x) + u(y)); }); break;
    case spec::base::AluOp::kShr:
      steps([u](int32_t x, int32_t n) {
        if (n >= 0) return x >> std::min(n, 31);
        return static_cast<int32_t>(u(x) << (n < -31 ? 31 : -n));
      });
      break;
    case spec::base::AluOp::kMul: steps([u](int32_t x, int32_t y) { return static_cast<int32_t>(u(x) * u(y)); }); break;
  }
}

void Executor::run(const spec::native::Gemm& g) {
  GemmRun run;
  run.ny = g.y;
  run.nx = g.x;
  run.acc = acc(g.dst_base);
  run.acc_y = g.dst_y * shape_.block_out;
  run.acc_x = g.dst_x * shape_.block_out;
  run.inp_y = g.src_y * static_cast<int64_t>(inp_bytes_);
  run.inp_x = g.src_x * static_cast<int64_t>(inp_bytes_);
  for (int64_t r0 = 0; r0 < g.r0; ++r0) {
    for (int64_t r1 = 0; r1 < g.r1; ++r1) {
      for (int64_t r2 = 0; r2 < g.r2; ++r2) {
        run.overwrite = g.first != 0 && r0 == 0 && r1 == 0 && r2 == 0;
        run.inp = packed_inp(g.src_base + r0 * g.src_r0 + r1 * g.src_r1 + r2 * g.src_r2);
        run.wgt = packed_wgt(g.wgt_base + r0 * g.wgt_r0 + r1 * g.wgt_r1 + r2 * g.wgt_r2);
        kernels_.gemm(shape_, run);
      }
    }
  }
}

void Executor::run_own(const spec::native::Gemm& g) {
  const auto lanes = static_cast<size_t>(shape_.block_out);
  const auto* inp = reinterpret_cast<const int8_t*>(pad(Memory::kInp).data());
  const auto* wgt = reinterpret_cast<const int8_t*>(pad(Memory::kWgt).data()) +
                    static_cast<size_t>(g.wgt_base) * lanes * static_cast<size_t>(shape_.block_in);
  // The kernel positions of a window, each with the weights of all lanes.
  struct Position {
    const int8_t* inp;
    std::array<int8_t, 64> weights;
  };
  std::vector<Position> positions;
  for (int64_t i = 0; i < g.r1; ++i) {
    for (int64_t j = 0; j < g.r2; ++j) {
      Position& position = positions.emplace_back();
      position.inp = inp + static_cast<size_t>(g.src_base + i * g.src_r1 + j * g.src_r2) * lanes;
      const auto byte = static_cast<size_t>(i + spec::native::kOwnRows * (g.r2 - 1 - j));
      for (size_t lane = 0; lane < lanes; ++lane) {
        position.weights[lane] = wgt[lane * static_cast<size_t>(shape_.block_in) + byte];
      }
    }
  }
  std::array<uint32_t, 64> sum;
  for (int64_t y = 0; y < g.y; ++y) {
    for (int64_t x = 0; x < g.x; ++x) {
      int32_t* dst = acc(g.dst_base + y * g.dst_y + x * g.dst_x);
      const size_t offset = static_cast<size_t>(y * g.src_y + x * g.src_x) * lanes;
      for (size_t lane = 0; lane < lanes; ++lane) sum[lane] = g.first != 0 ? 0 : static_cast<uint32_t>(dst[lane]);
      for (const Position& position : positions) {
        for (size_t lane = 0; lane < lanes; ++lane) {
          sum[lane] += static_cast<uint32_t>(position.inp[offset + lane] * position.weights[lane]);
        }
      }
      for (size_t lane = 0; lane < lanes; ++lane) dst[lane] = static_cast<int32_t>(sum[lane]);
    }
  }
}

void Executor::run(const spec::native::Requantize& q) {
  spec::LayerParameters layer;
  layer.v_lo = static_cast<int16_t>(q.v_lo);
  layer.v_hi = static_cast<int16_t>(q.v_hi);
  layer.zero = static_cast<int8_t>(q.zero);
  layer.lo = static_cast<int8_t>(q.lo);
  layer.hi = static_cast<int8_t>(q.hi);
  layer.residual = q.residual != 0;
  layer.r_zero = static_cast<int8_t>(q.r_zero);
  layer.r_multiplier = static_cast<uint16_t>(q.r_multiplier);
  layer.r_shift = static_cast<uint8_t>(q.r_shift);
  const auto lanes = static_cast<size_t>(shape_.block_out);
  auto* out = reinterpret_cast<int8_t*>(pad(q.to_inp != 0 ? Memory::kInp : Memory::kOut).data());
  const auto* res = reinterpret_cast<const int8_t*>(pad(Memory::kRes).data());
  RequantizeRun run;
  run.lanes = shape_.block_out;
  run.parameters = pad(Memory::kPar).data() + static_cast<size_t>(q.par_base) * lanes * spec::kChannelParameterBytes;
  std::vector<int8_t> column(q.has_window() ? lanes : 0);  // the maximum of the last column of the window before
  for (int64_t y = 0; y < q.rows; ++y) {
    for (int64_t x = 0; x < q.cols; ++x) {
      if (q.has_window()) {
        int8_t* result = out + static_cast<size_t>(q.out_base + y * q.out_pitch + x) * lanes;
        requantize_window(q, run, layer, y, x, column, result);
        continue;
      }
      run.acc = acc(q.acc_base + y * q.acc_pitch + x * q.acc_step);
      run.out = out + static_cast<size_t>(q.out_base + y * q.out_pitch + x) * lanes;
      run.residual = layer.residual ? res + static_cast<size_t>(q.res_base + y * q.res_pitch + x) * lanes : nullptr;
      kernels_.requantize(run, layer);
    }
  }
}

// The maximum over the window of result (y, x). `column` is that of the last column of the window before, and becomes
// that of this one.
void Executor::requantize_window(const spec::native::Requantize& q, RequantizeRun run,
                                 const spec::LayerParameters& layer, int64_t y, int64_t x, std::vector<int8_t>& column,
                                 int8_t* result) {
  const size_t lanes = column.size();
  const int64_t depth = isa_.config().depth(Memory::kAcc);
  const auto include = [&](const std::vector<int8_t>& values, int8_t* maximum) {
    for (size_t lane = 0; lane < lanes; ++lane) maximum[lane] = std::max(maximum[lane], values[lane]);
  };
  std::vector<int8_t> values(lanes);
  std::fill_n(result, lanes, int8_t{-128});
  if (q.win_carry != 0 && x > 0) include(column, result);
  run.out = values.data();
  for (int64_t j = 0; j < q.window_cols(); ++j) {
    std::ranges::fill(column, int8_t{-128});
    for (int64_t i = 0; i < q.window_rows(); ++i) {
      run.acc = acc((q.acc_base + y * q.acc_pitch + x * q.acc_step + i * q.win_pitch + j) % depth);
      kernels_.requantize(run, layer);
      include(values, column.data());
    }
    include(column, result);
  }
}

void Executor::report(const spec::Instruction&, uint32_t index, const Footprint& footprint,
                      WriteObserver& observer) const {
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    if (!footprint.writing[m]) continue;
    const auto memory = static_cast<Memory>(m);
    const auto bytes = static_cast<size_t>(isa_.config().element_bytes(memory));
    footprint.writes[m].for_each([&](size_t i) {
      observer.on_write({index, memory, i, pad(memory).subspan(i * bytes, bytes)});
    });
  }
  if (footprint.dma && footprint.dma->store) {
    std::vector<Range> ranges;
    for (int64_t y = 0; y < footprint.dma->rows; ++y) append_row_ranges(*footprint.dma, y, ranges);
    for (const Range& r : ranges) {
      observer.on_write({index, Memory::kDram, r.begin, dram_.subspan(r.begin, r.end - r.begin)});
    }
  }
  observer.on_done(index);
}

}  // namespace tenon::sim
