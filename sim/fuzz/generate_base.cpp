// Random instructions of the base profile: loads and stores with pads, GEMM and ALU over micro-ops.
#include <algorithm>
#include <array>

#include "sim/fuzz/generation.h"

namespace tenon::sim::fuzz {

// Chooses x_stride and dram_base such that all rows of x_size elements of `bytes` are in [begin, end) of DRAM.
bool Generator::choose_addresses(spec::base::Transfer& t, int64_t bytes, uint64_t base, int64_t begin, int64_t end) {
  const int64_t first = std::max<int64_t>((begin - static_cast<int64_t>(base) + bytes - 1) / bytes, 0);
  const int64_t elements = (end - static_cast<int64_t>(base)) / bytes - first;
  if (elements < t.x_size || t.x_size == 0) return t.x_size == 0;
  t.x_stride = random_.chance(40) ? t.x_size : random_.between(t.y_size <= 1 ? 0 : 0, 2 * t.x_size);
  if (t.y_size > 1) t.x_stride = std::min(t.x_stride, (elements - t.x_size) / (t.y_size - 1));
  const int64_t extent = t.y_size == 0 ? 0 : (t.y_size - 1) * t.x_stride + t.x_size;
  t.dram_base = first + random_.between(0, elements - extent);
  return true;
}

void Generator::load_base(spec::base::MemoryType type) {
  using Type = spec::base::MemoryType;
  spec::base::Load l;
  l.memory_type = static_cast<int64_t>(type);
  const Memory memory = std::array{
      Memory::kUop, Memory::kWgt, Memory::kInp, Memory::kAcc, Memory::kOut, Memory::kAcc}[static_cast<size_t>(type)];
  const Window& w = window(memory);
  l.sram_base = random_.between(w.low, w.high() - 1);
  const int64_t units = std::min<int64_t>(w.high() - l.sram_base, options_.max_steps);
  extents({&l.y_size, &l.x_size}, units, units);
  if (random_.chance(35)) {
    l.y_pad_top = random_.between(0, 15), l.y_pad_bottom = random_.between(0, 15);
    l.x_pad_left = random_.between(0, 15), l.x_pad_right = random_.between(0, 15);
    while ((l.y_pad_top + l.y_size + l.y_pad_bottom) * (l.x_pad_left + l.x_size + l.x_pad_right) > units) {
      int64_t* fields[] = {&l.y_pad_top, &l.y_pad_bottom, &l.x_pad_left, &l.x_pad_right, &l.y_size};
      *fields[random_.between(0, 4)] /= 2;
      if (l.y_pad_top + l.y_pad_bottom + l.x_pad_left + l.x_pad_right == 0 && l.y_size * l.x_size > units) l.x_size = 1;
    }
  }
  const int64_t bytes = type == Type::kAcc8 ? config_.block_out : config_.element_bytes(memory);
  const bool uop = type == Type::kUop;
  const uint64_t base = program_.bases[static_cast<size_t>(uop                  ? spec::kBaseUop
                                                           : type == Type::kWgt ? spec::kBaseWgt
                                                           : type == Type::kInp ? spec::kBaseInp
                                                                                : spec::kBaseAcc)];
  if (choose_addresses(l, bytes, base, uop ? uops_begin_ : 0, uop ? uops_end_ : data_)) b_->append(l);
}

void Generator::store_base() {
  spec::base::Store s;
  s.memory_type = static_cast<int64_t>(spec::base::MemoryType::kOut);
  const Window& w = window(Memory::kAcc);
  s.sram_base = random_.between(w.low, w.high() - 1);
  const int64_t units = std::min<int64_t>(w.high() - s.sram_base, options_.max_steps);
  extents({&s.y_size, &s.x_size}, units, units);
  if (choose_addresses(s, config_.block_out, program_.bases[spec::kBaseOut], 0, data_)) {
    if (s.y_size > 1 && s.x_stride < s.x_size && random_.chance(90)) s.y_size = 1;  // overlapping rows are rare
    b_->append(s);
  }
}

// Chooses the micro-ops, loops and factors of a GEMM or ALU; returns false where the operands do not fit their windows.
template <class Instruction>
bool Generator::loops(Instruction& i, bool src_is_acc) {
  const Window& w = window(Memory::kUop);
  i.uop_begin = random_.between(w.low, w.high() - 1);
  i.uop_end = std::min(w.high(), i.uop_begin + random_.size(16));
  if (random_.chance(3)) i.uop_end = i.uop_begin;
  extents({&i.iter_in, &i.iter_out},
          std::max<int64_t>(options_.max_steps / std::max<int64_t>(i.uop_end - i.uop_begin, 1), 1), 16383);
  std::array<int64_t, 3> largest{};  // dst, src and wgt index of the micro-ops
  for (int64_t u = i.uop_begin; u < i.uop_end; ++u) {
    const auto uop = isa_.decode_uop(b_->uops()[static_cast<size_t>(u)]);
    largest = {std::max<int64_t>(largest[0], uop.dst), std::max<int64_t>(largest[1], uop.src),
               std::max<int64_t>(largest[2], uop.wgt)};
  }
  const Window& src = window(src_is_acc ? Memory::kAcc : Memory::kInp);
  const auto fits = [&](int64_t& out, int64_t& in, int64_t index, const Window& limit, int bits) {
    if (index >= limit.high()) return false;
    const int64_t max = (int64_t{1} << bits) - 1;
    nest(index, limit.high(), {{i.iter_out, &out, max}, {i.iter_in, &in, max}});
    return true;
  };
  const int dst_bits = config_.index_bits(Memory::kAcc),
            src_bits = std::max(dst_bits, config_.index_bits(Memory::kInp));
  const bool dst_fits = fits(i.dst_factor_out, i.dst_factor_in, largest[0], window(Memory::kAcc), dst_bits);
  const bool src_fits = fits(i.src_factor_out, i.src_factor_in, largest[1], src, src_bits);
  if constexpr (std::is_same_v<Instruction, spec::base::Gemm>) {
    if (!fits(i.wgt_factor_out, i.wgt_factor_in, largest[2], window(Memory::kWgt), config_.index_bits(Memory::kWgt)))
      return i.reset != 0 && dst_fits;
    return dst_fits && (src_fits || i.reset != 0);
  } else {
    return dst_fits && (src_fits || i.use_imm != 0);
  }
}

void Generator::gemm_base() {
  spec::base::Gemm g;
  g.reset = random_.chance(20) ? 1 : 0;
  if (loops(g, false)) b_->append(g);
}

void Generator::alu_base() {
  spec::base::Alu a;
  a.alu_opcode = random_.between(0, config_.alu_multiply_passes > 0 ? 4 : 3);
  a.use_imm = random_.between(0, 1);
  a.imm = random_.chance(40) ? random_.between(-40, 40) : random_.value(-32768, 32767);
  a.reset = random_.between(0, 1);
  if (loops(a, true)) b_->append(a);
}

void Generator::fill_base() {
  using Type = spec::base::MemoryType;
  const auto fill_window = [&](Type type, Memory memory, uint64_t base, int64_t begin) {
    const Window& w = window(memory);
    const int64_t bytes = config_.element_bytes(memory);
    for (int64_t at = w.low; at < w.high();) {
      spec::base::Load l;
      l.memory_type = static_cast<int64_t>(type);
      l.sram_base = at;
      l.y_size = 1;
      l.x_size = random_.chance(50) ? w.high() - at : random_.between(1, w.high() - at);
      const int64_t first = std::max<int64_t>((begin - static_cast<int64_t>(base) + bytes - 1) / bytes, 0);
      const int64_t spare = (uops_end_ - static_cast<int64_t>(base)) / bytes - first - l.x_size;
      l.dram_base = first + random_.between(0, std::clamp<int64_t>(spare, 0, 8));
      if (b_->append(l)) at += l.x_size;
    }
  };
  fill_window(Type::kUop, Memory::kUop, program_.bases[spec::kBaseUop], uops_begin_);
  fill_window(Type::kInp, Memory::kInp, program_.bases[spec::kBaseInp], 0);
  fill_window(Type::kWgt, Memory::kWgt, program_.bases[spec::kBaseWgt], 0);
  fill_window(Type::kAcc, Memory::kAcc, program_.bases[spec::kBaseAcc], 0);
}

void Generator::body_base() {
  using Type = spec::base::MemoryType;
  const int64_t dice = random_.between(0, 99);
  if (dice < 14) load_base(Type::kInp);
  else if (dice < 26) load_base(Type::kWgt);
  else if (dice < 32) load_base(Type::kUop);
  else if (dice < 38) load_base(Type::kAcc);
  else if (dice < 43) load_base(Type::kAcc8);
  else if (dice < 63) gemm_base();
  else if (dice < 85) alu_base();
  else store_base();
}

}  // namespace tenon::sim::fuzz
