#include "sim/fuzz/generator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "sim/fuzz/builder.h"
#include "sim/fuzz/random.h"

namespace tenon::sim::fuzz {
namespace {

using spec::Memory;

struct Window {
  int64_t low = 0, size = 0;
  int64_t high() const { return low + size; }
};

// One loop of a nest: its extent, the field of its factor and that field's largest value.
struct Loop {
  int64_t extent;
  int64_t* factor;
  int64_t max;
};

class Generator {
 public:
  Generator(const spec::Config& config, uint64_t seed, const GeneratorOptions& options)
      : config_(config), isa_(config), options_(options), random_(seed * 0x2545f4914f6cdd1d + 1) {
    program_.config = config;
    program_.seed = seed;
  }

  Program run() {
    lay_out();
    Builder builder(program_, random_);
    b_ = &builder;
    const auto length = static_cast<size_t>(random_.between(options_.min_length, options_.max_length));
    const auto launches = static_cast<size_t>(random_.between(1, options_.max_launches));
    std::array<bool, 2> filled{};
    for (size_t i = 0; i < launches; ++i) {
      const spec::Profile profile = choose_profile();
      builder.begin_launch(profile);
      const size_t share = length * (i + 1) / launches - length * i / launches;
      if (!filled[static_cast<size_t>(profile)]) profile == spec::Profile::kBase ? fill_base() : fill_native();
      filled[static_cast<size_t>(profile)] = true;
      for (int tries = 0; builder.length() < share && tries < 4000; ++tries) {
        if (profile == spec::Profile::kBase) body_base();
        else body_native();
      }
      builder.finish();
    }
    place_streams();
    return std::move(program_);
  }

 private:
  spec::Profile choose_profile() {
    if (options_.profile) return *options_.profile;
    if (!config_.base) return spec::Profile::kNative;
    if (!config_.native) return spec::Profile::kBase;
    return random_.chance(50) ? spec::Profile::kBase : spec::Profile::kNative;
  }

  // Memory: [0, data_) is free for loads and stores, [data_, uops_end_) has micro-ops, streams follow.
  void lay_out() {
    int64_t bytes = 4096;
    for (size_t m = 0; m < spec::kScratchpads; ++m) {
      const auto memory = static_cast<Memory>(m);
      const int64_t depth = config_.depth(memory);
      Window& w = windows_[m];
      w.size = std::min<int64_t>(depth, random_.between(8, 160));
      if (memory == Memory::kPar) w.size = std::min<int64_t>(depth, random_.between(1, 8));
      w.low = random_.chance(30) ? 0 : random_.chance(40) ? depth - w.size : random_.between(0, depth - w.size);
      bytes = std::max(bytes, 2 * w.size * config_.element_bytes(memory));
    }
    data_ = (bytes + 8191) / 4096 * 4096;
    const int64_t uops = windows_[index_of(Memory::kUop)].size + 64;
    uops_begin_ = data_ + 4 * random_.between(0, 16);
    uops_end_ = uops_begin_ + 4 * uops;
    program_.memory.resize(static_cast<size_t>((uops_end_ + 4095) / 4096 * 4096));
    for (std::byte& b : program_.memory)
      b = static_cast<std::byte>(random_.chance(5) ? random_.of({0x00, 0x7f, 0x80, 0xff})
                                                   : static_cast<int>(random_.next() & 255));
    for (int64_t i = 0; i < uops; ++i) {
      // Micro-ops in the lower part of the windows leave room for the loops.
      const auto some = [&](Memory m) {
        const Window& w = windows_[index_of(m)];
        return static_cast<uint32_t>(
            w.low + random_.between(0, std::max<int64_t>(w.size / (random_.chance(70) ? 4 : 1) - 1, 0)));
      };
      const bool for_alu = random_.chance(40);
      const spec::base::Uop uop{
          .dst = some(Memory::kAcc), .src = some(for_alu ? Memory::kAcc : Memory::kInp), .wgt = some(Memory::kWgt)};
      const uint32_t word = isa_.encode_uop(uop);
      std::memcpy(program_.memory.data() + uops_begin_ + 4 * i, &word, 4);
    }
    for (size_t i = 0; i < program_.bases.size(); ++i) {
      const int64_t alignment = random_.of({1, 4, 16, 64});
      program_.bases[i] = static_cast<uint64_t>(random_.between(0, data_ / 4) / alignment * alignment);
    }
    // Micro-ops are words of their own, so that any element names one.
    program_.bases[spec::kBaseUop] = static_cast<uint64_t>(random_.chance(50) ? uops_begin_ : uops_begin_ % 4);
  }

  void place_streams() {
    uint64_t at = program_.memory.size();
    for (Launch& l : program_.launches) {
      at += 16 * static_cast<uint64_t>(random_.between(0, 255));
      l.stream = at;
      at += uint64_t{l.slots()} * spec::kSlotBytes;
    }
    program_.memory.resize((at + 4095) / 4096 * 4096);
  }

  const Window& window(Memory m) const { return windows_[index_of(m)]; }

  // Sets the factors so that base + sum((extent - 1) * factor) stays inside [low, high); returns the base.
  int64_t nest(int64_t low, int64_t high, std::vector<Loop> loops) {
    int64_t room = high - low - 1;
    for (size_t i = loops.size(); i > 1; --i)
      std::swap(loops[i - 1], loops[static_cast<size_t>(random_.between(0, static_cast<int64_t>(i) - 1))]);
    for (const Loop& l : loops) {
      if (l.extent <= 1) {
        *l.factor = random_.value(0, l.max);
        continue;
      }
      const int64_t most = std::min(room / (l.extent - 1), l.max);
      *l.factor = random_.chance(40) ? std::min<int64_t>(most, random_.between(0, 2)) : random_.between(0, most);
      room -= *l.factor * (l.extent - 1);
    }
    return low + random_.between(0, room);
  }

  // Extents whose product is at most `steps`; sometimes one of them is 0.
  void extents(std::initializer_list<int64_t*> all, int64_t steps, int64_t max, bool zero = true) {
    for (int64_t* e : all) {
      *e = random_.size(std::min(steps, max));
      steps /= *e;
    }
    if (zero && random_.chance(4)) *all.begin()[random_.between(0, static_cast<int64_t>(all.size()) - 1)] = 0;
  }

  // Native profile.

  // DRAM's side of a MOVE whose rows and vectors are set: geometry, then an address at which it fits.
  bool place(spec::native::Move& m, int unit, bool store) {
    m.x_step = random_.chance(40)   ? unit
               : random_.chance(50) ? random_.between(store ? unit : 0, 3 * unit)
                                    : random_.between(1, 40);
    if (store && m.x_step < unit && random_.chance(90)) m.x_step = unit;  // overlapping stores are legal, but rare
    const int64_t span = std::max<int64_t>((m.vectors - 1) * m.x_step + unit, 1);
    m.left = random_.chance(60) ? 0 : random_.value(-unit, std::min<int64_t>(2047, span));
    m.row_bytes = random_.chance(60) ? span : random_.between(0, std::min<int64_t>(span + 8, 65535));
    m.y_step = random_.chance(50) ? m.row_bytes : random_.between(0, 2 * span);
    if (store) m.y_step = std::max(m.y_step, random_.chance(90) ? m.row_bytes : int64_t{0});
    m.top = random_.chance(70) ? 0 : random_.between(0, std::min<int64_t>(m.rows + 1, 255));
    m.source_rows = random_.chance(60) ? m.rows : random_.between(0, m.rows + 1);
    m.pad_value = random_.value(-128, 127);
    m.valid = random_.chance(60) ? 0 : random_.between(1, unit);
    m.offset = 0;  // an earlier try may have set it
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

  void move(spec::native::MoveFunction function) {
    spec::native::Move m;
    m.function = static_cast<int64_t>(function);
    const bool store = function == spec::native::MoveFunction::kOut;
    const Memory memory = std::array{Memory::kInp, Memory::kWgt, Memory::kPar, Memory::kRes,
                                     Memory::kOut}[static_cast<size_t>(m.function)];
    const Window& w = window(memory);
    const int64_t per = config_.units_per_element(memory);
    m.sram_base = random_.between(w.low, w.high() - 1);
    const int64_t units = (w.high() - m.sram_base) * per;
    extents({&m.rows, &m.vectors}, std::min<int64_t>(units, options_.max_steps), units);
    if (random_.chance(50)) std::swap(m.rows, m.vectors);
    for (int i = 0; i < 20; ++i) {
      if (!place(m, config_.unit_bytes(memory), store)) continue;
      b_->append(m);
      return;
    }
  }

  // A whole window in one to three MOVEs.
  void fill(spec::native::MoveFunction function, Memory memory) {
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
      m.base = random_.between(0, spec::kBases - 1);
      m.offset = random_.between(0, data_ / 16);
      const Range r = bounding_range(*dma_of(config_, m, program_.bases));
      if (r.end > static_cast<uint64_t>(uops_end_)) m.y_step = 0;
      if (b_->append(m)) at += elements;
    }
  }

  void fill_native() {
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

  spec::native::Requantize requantize() {
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

  void gemm_native() {
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

  void requantize_native() {
    spec::native::Requantize q = requantize();
    const Window &acc = window(Memory::kAcc), &out = window(Memory::kOut), &res = window(Memory::kRes);
    extents({&q.rows, &q.cols}, std::min<int64_t>({options_.max_steps, out.size, res.size}), 1023);
    q.acc_base = nest(acc.low, acc.high(), {{q.rows, &q.acc_pitch, 4095}, {q.cols, &q.acc_step, 4095}});
    q.out_base = nest(out.low, out.high() - std::max<int64_t>(q.cols - 1, 0), {{q.rows, &q.out_pitch, 4095}});
    q.res_base = nest(res.low, res.high() - std::max<int64_t>(q.cols - 1, 0), {{q.rows, &q.res_pitch, 4095}});
    b_->append(q);
  }

  void body_native() {
    using F = spec::native::MoveFunction;
    const int64_t dice = random_.between(0, 99);
    if (dice < 12) move(F::kInp);
    else if (dice < 22) move(F::kWgt);
    else if (dice < 27) move(F::kPar);
    else if (dice < 33) move(F::kRes);
    else if (dice < 48) move(F::kOut);
    else if (dice < 72) gemm_native();
    else if (dice < 94) requantize_native();
    else {
      spec::native::Sync s;
      s.engine = random_.of({0, 1, 2, 3, 5, 6});
      b_->append(s);
    }
  }

  // Base profile.

  // Places rows of x_size elements of `bytes` in [begin, end) of DRAM: x_stride and dram_base.
  bool place(spec::base::Transfer& t, int64_t bytes, uint64_t base, int64_t begin, int64_t end) {
    const int64_t first = std::max<int64_t>((begin - static_cast<int64_t>(base) + bytes - 1) / bytes, 0);
    const int64_t elements = (end - static_cast<int64_t>(base)) / bytes - first;
    if (elements < t.x_size || t.x_size == 0) return t.x_size == 0;
    t.x_stride = random_.chance(40) ? t.x_size : random_.between(t.y_size <= 1 ? 0 : 0, 2 * t.x_size);
    if (t.y_size > 1) t.x_stride = std::min(t.x_stride, (elements - t.x_size) / (t.y_size - 1));
    const int64_t reach = t.y_size == 0 ? 0 : (t.y_size - 1) * t.x_stride + t.x_size;
    t.dram_base = first + random_.between(0, elements - reach);
    return true;
  }

  void load_base(spec::base::MemoryType type) {
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
        int64_t* all[] = {&l.y_pad_top, &l.y_pad_bottom, &l.x_pad_left, &l.x_pad_right, &l.y_size};
        *all[random_.between(0, 4)] /= 2;
        if (l.y_pad_top + l.y_pad_bottom + l.x_pad_left + l.x_pad_right == 0 && l.y_size * l.x_size > units)
          l.x_size = 1;
      }
    }
    const int64_t bytes = type == Type::kAcc8 ? config_.block_out : config_.element_bytes(memory);
    const bool uop = type == Type::kUop;
    const uint64_t base = program_.bases[static_cast<size_t>(uop                  ? spec::kBaseUop
                                                             : type == Type::kWgt ? spec::kBaseWgt
                                                             : type == Type::kInp ? spec::kBaseInp
                                                                                  : spec::kBaseAcc)];
    if (place(l, bytes, base, uop ? uops_begin_ : 0, uop ? uops_end_ : data_)) b_->append(l);
  }

  void store_base() {
    spec::base::Store s;
    s.memory_type = static_cast<int64_t>(spec::base::MemoryType::kOut);
    const Window& w = window(Memory::kAcc);
    s.sram_base = random_.between(w.low, w.high() - 1);
    const int64_t units = std::min<int64_t>(w.high() - s.sram_base, options_.max_steps);
    extents({&s.y_size, &s.x_size}, units, units);
    if (place(s, config_.block_out, program_.bases[spec::kBaseOut], 0, data_)) {
      if (s.y_size > 1 && s.x_stride < s.x_size && random_.chance(90)) s.y_size = 1;  // overlapping rows are rare
      b_->append(s);
    }
  }

  // Micro-ops, loops and factors of a GEMM or ALU; `member` lists the operands with their windows' ends.
  template <class Instruction>
  bool loops(Instruction& i, bool src_is_acc) {
    const Window& w = window(Memory::kUop);
    i.uop_begin = random_.between(w.low, w.high() - 1);
    i.uop_end = std::min(w.high(), i.uop_begin + random_.size(16));
    if (random_.chance(3)) i.uop_end = i.uop_begin;
    extents({&i.iter_in, &i.iter_out},
            std::max<int64_t>(options_.max_steps / std::max<int64_t>(i.uop_end - i.uop_begin, 1), 1), 16383);
    std::array<int64_t, 3> most{};
    for (int64_t u = i.uop_begin; u < i.uop_end; ++u) {
      const auto uop = isa_.decode_uop(b_->uops()[static_cast<size_t>(u)]);
      most = {std::max<int64_t>(most[0], uop.dst), std::max<int64_t>(most[1], uop.src),
              std::max<int64_t>(most[2], uop.wgt)};
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
    const bool dst_fits = fits(i.dst_factor_out, i.dst_factor_in, most[0], window(Memory::kAcc), dst_bits);
    const bool src_fits = fits(i.src_factor_out, i.src_factor_in, most[1], src, src_bits);
    if constexpr (std::is_same_v<Instruction, spec::base::Gemm>) {
      if (!fits(i.wgt_factor_out, i.wgt_factor_in, most[2], window(Memory::kWgt), config_.index_bits(Memory::kWgt)))
        return i.reset != 0 && dst_fits;
      return dst_fits && (src_fits || i.reset != 0);
    } else {
      return dst_fits && (src_fits || i.use_imm != 0);
    }
  }

  void gemm_base() {
    spec::base::Gemm g;
    g.reset = random_.chance(20) ? 1 : 0;
    if (loops(g, false)) b_->append(g);
  }

  void alu_base() {
    spec::base::Alu a;
    a.alu_opcode = random_.between(0, 4);
    a.use_imm = random_.between(0, 1);
    a.imm = random_.chance(40) ? random_.between(-40, 40) : random_.value(-32768, 32767);
    a.reset = random_.between(0, 1);
    if (loops(a, true)) b_->append(a);
  }

  void fill_base() {
    using Type = spec::base::MemoryType;
    const auto all = [&](Type type, Memory memory, uint64_t base, int64_t begin) {
      const Window& w = window(memory);
      const int64_t bytes = config_.element_bytes(memory);
      for (int64_t at = w.low; at < w.high();) {
        spec::base::Load l;
        l.memory_type = static_cast<int64_t>(type);
        l.sram_base = at;
        l.y_size = 1;
        l.x_size = random_.chance(50) ? w.high() - at : random_.between(1, w.high() - at);
        l.dram_base =
            std::max<int64_t>((begin - static_cast<int64_t>(base) + bytes - 1) / bytes, 0) + random_.between(0, 8);
        if (b_->append(l)) at += l.x_size;
      }
    };
    all(Type::kUop, Memory::kUop, program_.bases[spec::kBaseUop], uops_begin_);
    all(Type::kInp, Memory::kInp, program_.bases[spec::kBaseInp], 0);
    all(Type::kWgt, Memory::kWgt, program_.bases[spec::kBaseWgt], 0);
    all(Type::kAcc, Memory::kAcc, program_.bases[spec::kBaseAcc], 0);
  }

  void body_base() {
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

  const spec::Config& config_;
  const spec::Isa isa_;
  const GeneratorOptions options_;
  Random random_;
  Program program_;
  Builder* b_ = nullptr;
  std::array<Window, spec::kScratchpads> windows_;
  int64_t data_ = 0, uops_begin_ = 0, uops_end_ = 0;
};

}  // namespace

Program generate(const spec::Config& config, uint64_t seed, const GeneratorOptions& options) {
  return Generator(config, seed, options).run();
}

}  // namespace tenon::sim::fuzz
