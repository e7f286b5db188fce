#include "sim/fuzz/builder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tenon::sim::fuzz {

using spec::Engine;
using spec::engine_of;
using spec::tokens_of;

namespace {

size_t n(Engine e) { return static_cast<size_t>(e); }
constexpr int kMaxSpareTokens = 6;  // redundant tokens of a pair of engines

// The previous and the next class, as bits.
unsigned prev_of(Engine e) {
  return e == Engine::kGemm ? spec::bit(Engine::kLdi) : e == Engine::kSt ? spec::bit(Engine::kGemm) : 0;
}
unsigned next_of(Engine e) {
  return e == Engine::kGemm ? spec::bit(Engine::kSt) : e == Engine::kLdi ? spec::bit(Engine::kGemm) : 0;
}

}  // namespace

void set_tokens(spec::Instruction& instruction, spec::TokenMasks masks) {
  const Engine engine = engine_of(instruction);
  std::visit(
      [&]<class T>(T& x) {
        if constexpr (std::is_base_of_v<spec::base::Tokens, T>) {
          const unsigned prev = prev_of(engine), next = next_of(engine);
          // The outer classes ignore their outer bits, which stay unchanged.
          if (prev != 0) x.pop_prev = (masks.wait & prev) != 0, x.push_prev = (masks.signal & prev) != 0;
          if (next != 0) x.pop_next = (masks.wait & next) != 0, x.push_next = (masks.signal & next) != 0;
        } else if constexpr (std::is_base_of_v<spec::native::Tokens, T>) {
          x.wait = masks.wait;
          x.signal = masks.signal;
        }
      },
      instruction);
}

Builder::Builder(Program& program, Random& random)
    : program_(program),
      random_(random),
      isa_(program.config),
      races_(program.config),
      footprint_(program.config),
      uops_(static_cast<size_t>(program.config.depth(spec::Memory::kUop))) {}

void Builder::begin_launch(spec::Profile profile) {
  program_.launches.push_back({.profile = profile, .instructions = {}, .stream = 0});
  races_.begin_launch(profile, {});
  last_.fill(-1);
}

bool Builder::adjacent(Engine from, Engine to) const {
  if (launch().profile == spec::Profile::kNative) return true;
  return ((prev_of(from) | next_of(from)) & spec::bit(to)) != 0;
}

spec::Instruction Builder::make_sync(Engine engine) {
  if (launch().profile == spec::Profile::kNative) {
    spec::native::Sync sync;
    sync.engine = static_cast<int64_t>(engine);
    return sync;
  }
  using Type = spec::base::MemoryType;
  const auto transfer = [&](auto t, Type type) -> spec::Instruction {
    t.memory_type = static_cast<int64_t>(type);
    t.sram_base = random_.value(0, 0xffff);
    t.dram_base = random_.value(0, 0xffffffff);
    t.y_size = random_.value(0, 0xffff);
    t.y_pad_top = random_.between(0, 15);
    t.x_pad_left = random_.between(0, 15);
    return t;
  };
  if (engine == Engine::kLdi) return transfer(spec::base::Load{}, random_.of({Type::kInp, Type::kWgt}));
  if (engine == Engine::kSt) return transfer(spec::base::Store{}, random_.of({Type::kUop, Type::kOut}));
  switch (random_.between(0, 2)) {
    case 0: return transfer(spec::base::Load{}, random_.of({Type::kUop, Type::kAcc, Type::kAcc8}));
    case 1: {
      spec::base::Gemm g;
      g.uop_end = random_.between(0, 2);
      g.iter_out = random_.between(0, 3);
      g.reset = random_.between(0, 1);
      return g;  // iter_in is 0
    }
    default: {
      spec::base::Alu a;
      // The width of the fields follows the depth of the scratchpad: with two micro-ops a field has one bit.
      a.uop_begin = a.uop_end = random_.between(0, std::min<int64_t>(3, program_.config.depth(spec::Memory::kUop) - 1));
      a.iter_out = a.iter_in = random_.between(0, 3);
      return a;
    }
  }
}

void Builder::commit(spec::Instruction instruction, Engine engine, unsigned wait, unsigned signal) {
  set_tokens(instruction, {.wait = wait, .signal = signal});
  launch().instructions.push_back(std::move(instruction));
  last_[n(engine)] = static_cast<int>(launch().instructions.size()) - 1;
  for (size_t c = 0; c < spec::kEngines; ++c) {
    if (((signal >> c) & 1) == 0) continue;
    races_.push(engine, static_cast<Engine>(c));
    ++tokens_[n(engine)][c];
  }
}

void Builder::append_sync(Engine engine, unsigned wait, unsigned signal) {
  const Footprint empty(program_.config);
  races_.access(engine, 0, empty);
  commit(make_sync(engine), engine, wait, signal);
}

// Takes a token of (from, to) for the instruction under construction on `to`; where the instruction takes one already,
// a SYNC before it takes the other tokens.
void Builder::take(Engine from, Engine to, unsigned& wait) {
  assert(tokens_[n(from)][n(to)] > 0);
  if ((wait & spec::bit(from)) != 0) {
    append_sync(to, wait, 0);
    wait = 0;
  }
  wait |= spec::bit(from);
  races_.pop(from, to);
  --tokens_[n(from)][n(to)];
}

// Orders all instructions of `from` so far before the instruction under construction on `to`.
void Builder::order(Engine from, Engine to, unsigned& wait) {
  const uint32_t time = races_.clock(from)[n(from)];
  while (races_.clock(to)[n(from)] < time) {
    if (!adjacent(from, to)) {  // load to store and back go through compute
      unsigned between = 0;
      order(from, Engine::kGemm, between);
      append_sync(Engine::kGemm, between, spec::bit(to));
      while (races_.clock(to)[n(from)] < time) take(Engine::kGemm, to, wait);
      return;
    }
    if (tokens_[n(from)][n(to)] == 0) {
      auto& giver = launch().instructions[static_cast<size_t>(last_[n(from)])];
      const spec::TokenMasks masks = tokens_of(giver);
      if ((masks.signal & spec::bit(to)) == 0 && random_.chance(80) &&
          !std::holds_alternative<spec::native::Finish>(giver)) {
        set_tokens(giver, {.wait = masks.wait, .signal = masks.signal | spec::bit(to)});
        races_.push(from, to);
        ++tokens_[n(from)][n(to)];
      } else {
        append_sync(from, 0, spec::bit(to));
      }
    }
    take(from, to, wait);
  }
}

bool Builder::append(spec::Instruction instruction) {
  const Engine engine = engine_of(instruction);
  if (find_footprint(isa_, instruction, program_.bases, uops_, footprint_)) return false;
  if (!races_.initialised(footprint_)) return false;
  unsigned wait = 0, signal = 0;
  const bool native = launch().profile == spec::Profile::kNative;
  // Redundant tokens, given now and taken later, let counters have values other than 0 and 1.
  for (size_t i = 0; i < spec::kEngines; ++i) {
    const auto other = static_cast<Engine>(i);
    if ((spec::kAbsentEngines & bit(other)) != 0 || (other == engine && !native) || !adjacent(engine, other)) continue;
    if (tokens_[i][n(engine)] > 0 && random_.chance(25)) take(other, engine, wait);
    if (tokens_[n(engine)][i] < kMaxSpareTokens && random_.chance(native ? 4 : 12)) signal |= spec::bit(other);
  }
  for (;;) {
    const auto conflict = races_.check(engine, 0, footprint_);
    if (!conflict) break;
    assert(conflict->race);
    order(conflict->other_engine, engine, wait);
  }
  races_.access(engine, 0, footprint_);
  if (footprint_.dma && footprint_.dma->memory == spec::Memory::kUop && footprint_.dma->units() > 0) {
    run_uop_load(*footprint_.dma);
  }
  commit(std::move(instruction), engine, wait, signal);
  return true;
}

// Tracks the contents of the micro-op scratchpad, since micro-ops determine the footprints of later instructions. No
// instruction stores to the micro-ops in memory.
void Builder::run_uop_load(const Dma& dma) {
  auto to = static_cast<size_t>(dma.first_unit);
  for (int64_t y = 0; y < dma.rows; ++y) {
    for (int64_t x = 0; x < dma.vectors; ++x, ++to) {
      uops_[to] = 0;
      const auto [first, last] = dma.in_dram(x);
      if (!dma.row_in_dram(y) || first >= last) continue;
      std::memcpy(&uops_[to], program_.memory.data() + dma.row_address(y) + (x * dma.x_step - dma.left), 4);
    }
  }
}

void Builder::finish() {
  const bool native = launch().profile == spec::Profile::kNative;
  if (random_.chance(30)) return;
  if (native) launch().instructions.push_back(spec::native::Finish{});
  else launch().instructions.push_back(spec::base::Finish{});
}

}  // namespace tenon::sim::fuzz
