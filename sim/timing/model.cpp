#include "sim/timing/model.h"

#include <algorithm>
#include <deque>
#include <queue>

#include "sim/timing/tokens.h"
#include "sim/timing/transfer_plan.h"

namespace tenon::sim::timing {
namespace {

using spec::engine_of;
using spec::tokens_of;

constexpr size_t kUnits = 8, kReaders = 4, kFetcher = 3;  // readers 0 .. 2 are LDI, LDW, LDM
constexpr size_t kInFlight = 2;                           // instructions that a sequencer has started
constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kRefusals = 8;  // of an acc read beside GEMM

size_t n(Unit u) { return static_cast<size_t>(u); }

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

// One reader's side of the read channel: bursts that wait to be asked for, and the beats that its FIFO holds.
struct Reader {
  struct Pending {
    Burst burst;
    size_t instruction;  // position in the stream; the fetcher's: slots before its end
    bool last = false;
    uint32_t tail = 0;
  };
  struct Held {  // beats of a burst in the FIFO, given back one by one in [begin, end)
    uint32_t beats;
    uint64_t begin, end;
  };
  std::deque<Pending> pending;
  std::deque<Held> held;
  uint32_t capacity = 0;
  size_t last_row = 0;  // pending bursts at or below this: all rows are handed over
  uint64_t used = 0;    // the unit has worked up to here
  bool scheduled = false;

  // When the FIFO has room for so many beats more.
  uint64_t room_at(uint32_t beats, uint64_t now) {
    while (!held.empty() && held.front().end <= now) held.pop_front();
    uint64_t total = 0;
    for (const Held& h : held) total += left(h, now);
    if (total + beats <= capacity) return now;
    uint64_t excess = total + beats - capacity;
    for (const Held& h : held) {
      const uint64_t there = left(h, now);
      if (excess > there) {
        excess -= there;
        continue;
      }
      const uint64_t begin = std::max(h.begin, now);
      return begin + (excess * (h.end - begin) + there - 1) / there;
    }
    return now;
  }
  static uint64_t left(const Held& h, uint64_t now) {
    if (now <= h.begin) return h.beats;
    return h.beats * (h.end - now) / std::max<uint64_t>(h.end - h.begin, 1);
  }
};

class Model {
 public:
  Model(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream, bool timeline,
        const Parameters& parameters)
      : config_(config), launch_(launch), stream_(stream), record_(timeline), p_(parameters), due_(stream.size()) {
    for (size_t i = 0; i < launch.tokens.size(); ++i) {
      tokens_.at(i / spec::kEngines, i % spec::kEngines) = launch.tokens[i];
    }
    const uint32_t burst = static_cast<uint32_t>(config.max_burst_beats);
    for (size_t r = 0; r < kFetcher; ++r) readers_[r].capacity = burst < 16 ? 32 : 2 * burst;
    readers_[kFetcher].capacity = 32;
  }

  Result run() {
    begin_fetch();
    while (!events_.empty()) {
      const Event e = events_.top();
      events_.pop();
      now_ = e.time;
      switch (e.kind) {
        case Event::kDone: done(e.index); break;
        case Event::kAsk: ask(e.index); break;
        case Event::kDispatch: dispatch(); break;
        case Event::kTry: try_class(e.index); break;
      }
    }
    result_.cycles = stream_.empty() ? last_ : last_ + static_cast<uint64_t>(p_.launch);
    return std::move(result_);
  }

 private:
  struct Event {
    enum Kind : uint8_t { kDone, kAsk, kDispatch, kTry };  // at equal times in this order
    uint64_t time;
    Kind kind;
    size_t index;  // instruction, reader or class
    uint64_t sequence;
    bool operator>(const Event& o) const {
      if (time != o.time) return time > o.time;
      if (kind != o.kind) return kind > o.kind;
      return sequence > o.sequence;
    }
  };
  struct Flight {
    size_t instruction;
    Unit unit;
    uint64_t begin;
    bool done = false;
  };
  // A unit that reads acc beside GEMM or ALU, which come first.
  struct Victim {
    size_t instruction = 0;
    Unit unit = Unit::kSt;
    uint64_t reads_end = 0;  // where its last read would be if nobody disturbed
    uint64_t rate = 1;       // cycles a read
  };
  struct Class {
    std::deque<size_t> queue;
    std::deque<Flight> flights;
    uint64_t busy_since = 0, waits_since = kNever;
  };

  void at(uint64_t time, Event::Kind kind, size_t index) { events_.push({time, kind, index, sequence_++}); }
  const spec::Instruction& instruction(size_t i) const { return stream_[i].instruction; }
  size_t width() const { return launch_.profile == spec::Profile::kNative ? 2 : 1; }
  static uint64_t cycles(int c) { return static_cast<uint64_t>(c); }

  // Fetch and decode
  // ---------------------------------------------------------------------------------------------------

  void begin_fetch() {
    if (stream_.empty()) return;
    std::vector<Burst> bursts;
    const uint64_t bytes = stream_.size() * width() * spec::kSlotBytes;
    append_bursts(config_, launch_.instructions, bytes, static_cast<uint32_t>(std::min(config_.max_burst_beats, 16)),
                  bursts);
    for (const Burst& b : bursts) readers_[kFetcher].pending.push_back({b, 0});
    schedule(kFetcher, cycles(p_.launch));
  }

  // The slots that are complete once so many beats have come, from the first beat on.
  void fetched(uint64_t first, uint32_t beats) {
    const auto beat = static_cast<uint64_t>(config_.axi_bytes());
    const uint64_t offset = launch_.instructions % beat;
    for (uint32_t i = 0; i < beats; ++i) {
      ++fetched_beats_;
      const uint64_t bytes = fetched_beats_ * beat - offset;
      while ((arrival_.size() + 1) * spec::kSlotBytes <= bytes && arrival_.size() < stream_.size() * width()) {
        arrival_.push_back(first + i);
      }
    }
    at(now_, Event::kDispatch, 0);
  }

  void dispatch() {
    if (next_ == stream_.size() || dispatch_at_ > now_) return;
    const size_t last = (next_ + 1) * width() - 1;
    if (last >= arrival_.size()) return;
    const uint64_t ready = std::max(arrival_[last] + cycles(p_.decode), dispatched_at_ + width());
    if (ready > now_) {
      dispatch_at_ = ready;
      return at(ready, Event::kDispatch, 0);
    }
    const auto c = static_cast<size_t>(engine_of(instruction(next_)));
    if (classes_[c].queue.size() == static_cast<size_t>(config_.queue_depth)) return;  // a start comes back here
    classes_[c].queue.push_back(next_++);
    dispatched_at_ = now_;
    at(now_ + 1, Event::kTry, c);
    at(now_ + 1, Event::kDispatch, 0);
    // Its beats leave the fetcher's FIFO.
    const uint64_t used = next_ * width() * spec::kSlotBytes / static_cast<uint64_t>(config_.axi_bytes());
    Reader& fetcher = readers_[kFetcher];
    while (!fetcher.held.empty() && released_ + fetcher.held.front().beats <= used) {
      released_ += fetcher.held.front().beats;
      fetcher.held.pop_front();
    }
    schedule(kFetcher, now_);
  }

  // Read channel
  // -------------------------------------------------------------------------------------------------------

  void schedule(size_t reader, uint64_t time) {
    Reader& r = readers_[reader];
    if (r.scheduled || r.pending.empty()) return;
    r.scheduled = true;
    at(std::max(time, now_), Event::kAsk, reader);
  }

  // Sends the address of the reader's next burst if there is room for it and the channel is free; else later.
  void ask(size_t reader) {
    Reader& r = readers_[reader];
    r.scheduled = false;
    const Reader::Pending next = r.pending.front();
    uint64_t when = now_;
    if (reader == kFetcher) {
      uint64_t held = 0;
      for (const auto& h : r.held) held += h.beats;
      if (held + next.burst.beats > r.capacity) return;  // dispatch() comes back
    } else {
      when = r.room_at(next.burst.beats, now_);
    }
    when = std::max(when, address_free_);
    if (outstanding_.size() >= static_cast<size_t>(p_.outstanding)) when = std::max(when, outstanding_.front());
    if (when > now_) {
      r.scheduled = true;
      return at(when, Event::kAsk, reader);
    }
    r.pending.pop_front();
    address_free_ = now_ + 1;
    const uint64_t first = std::max(now_ + cycles(p_.read_latency), data_free_);
    const uint64_t end = first + next.burst.beats;
    data_free_ = end;
    while (!outstanding_.empty() && outstanding_.front() <= now_) outstanding_.pop_front();
    outstanding_.push_back(end);
    result_.read_beats += next.burst.beats;
    ++result_.read_bursts;
    if (reader == kFetcher) {
      r.held.push_back({next.burst.beats, kNever, kNever});
      fetched(first, next.burst.beats);
    } else {
      const uint64_t begin = std::max(first + cycles(p_.beat), r.used + next.burst.idle_work);
      r.used = std::max(end + cycles(p_.beat), begin + next.burst.work);
      r.held.push_back({next.burst.beats, begin, r.used});
      if (next.last) finish_at(r.used + next.tail + 1, next.instruction), r.used += next.tail;
      if (r.pending.size() == r.last_row) at(now_ + 1, Event::kTry, class_of(next.instruction));
    }
    schedule(reader, now_ + 1);
  }

  size_t class_of(size_t i) const { return static_cast<size_t>(engine_of(instruction(i))); }

  // Classes
  // ------------------------------------------------------------------------------------------------------------

  bool unit_ready(Unit unit) const {
    if (unit == Unit::kLdi || unit == Unit::kLdw || unit == Unit::kLdm) {
      const Reader& r = readers_[n(unit)];
      return r.pending.size() <= r.last_row && handed_[n(unit)] < now_;
    }
    return unit_free_[n(unit)] <= now_;
  }

  void try_class(size_t c) {
    Class& k = classes_[c];
    while (!k.queue.empty()) {
      const size_t i = k.queue.front();
      const spec::TokenMasks masks = tokens_of(instruction(i));
      if (!tokens_.can_take(c, masks.wait)) {
        if (k.waits_since == kNever) k.waits_since = now_;
        return;
      }
      if (k.waits_since != kNever) interval(c, Interval::Kind::kWaitTokens, i, k.waits_since, now_);
      k.waits_since = kNever;
      const Unit unit = unit_of(config_, instruction(i));
      if (k.flights.size() == kInFlight) return;
      if (!k.flights.empty()) {
        const Unit stays = k.flights.back().unit;
        const bool loads = n(stays) <= n(Unit::kLdw) && n(unit) <= n(Unit::kLdw);
        if (unit != Unit::kNone && unit != stays && !loads) return;
      }
      if (!unit_ready(unit)) {
        if (n(unit) >= n(Unit::kGemm)) at(std::max(unit_free_[n(unit)], now_ + 1), Event::kTry, c);
        else if (handed_[n(unit)] >= now_) at(handed_[n(unit)] + 1, Event::kTry, c);
        return;
      }
      if (started_[c] == now_ && now_ != 0) return at(now_ + 1, Event::kTry, c);  // one a cycle
      started_[c] = now_;
      tokens_.take(c, masks.wait);
      k.queue.pop_front();
      if (k.flights.empty()) k.busy_since = now_;
      k.flights.push_back({i, unit, now_});
      begin(i, unit);
      retire_blocked();
      at(now_, Event::kDispatch, 0);
    }
  }

  void begin(size_t i, Unit unit) {
    const uint64_t work = std::max<uint64_t>(steps(config_, instruction(i)), 1);
    switch (unit) {
      case Unit::kLdi:
      case Unit::kLdw:
      case Unit::kLdm: return begin_load(i, readers_[n(unit)], n(unit));
      case Unit::kGemm:
        unit_free_[n(unit)] = now_ + work;
        gemm_quiet_ = now_ + steps_without_read(instruction(i));
        finish_at(now_ + work + cycles(p_.gemm_pipeline), i);
        for (Victim& v : victims_) contend(v, Unit::kGemm);
        return;
      case Unit::kAlu:
      case Unit::kRq: {
        const uint64_t end = now_ + work + cycles(unit == Unit::kAlu ? p_.alu_pipeline : p_.rq_pipeline);
        unit_free_[n(unit)] = end + 1;
        finish_at(end, i);
        if (unit == Unit::kRq) {
          victims_[1] = {i, unit, now_ + work, 1};
          contend(victims_[1]);
        } else {
          for (Victim& v : victims_) contend(v, Unit::kAlu);
        }
        return;
      }
      case Unit::kSt: return begin_store(i);
      case Unit::kNone: return finish_at(now_ + 1, i);
    }
  }

  void begin_load(size_t i, Reader& r, size_t reader) {
    const TransferPlan p = plan(config_, *dma_of(config_, instruction(i), launch_.bases));
    handed_[reader] = now_;
    if (p.bursts.empty()) {
      r.used = std::max(r.used, now_ + 1) + p.tail;
      return finish_at(r.used + 1, i);
    }
    r.used = std::max(r.used, now_ + 1);
    for (size_t b = 0; b < p.bursts.size(); ++b) {
      const bool last = b + 1 == p.bursts.size();
      r.pending.push_back({p.bursts[b], i, last, last ? p.tail : 0});
    }
    r.last_row = p.last_row;
    schedule(reader, now_ + cycles(p_.address));
  }

  void begin_store(size_t i) {
    const TransferPlan p = plan(config_, *dma_of(config_, instruction(i), launch_.bases));
    uint64_t time = now_ + cycles(p_.store_pipeline), end = time;
    std::deque<uint64_t> open;
    for (const Burst& b : p.bursts) {
      time += b.idle_work;
      if (open.size() == static_cast<size_t>(p_.open_writes)) {
        time = std::max(time, open.front());
        open.pop_front();
      }
      time += b.work;
      end = time + cycles(p_.write_latency);
      open.push_back(end);
      result_.write_beats += b.beats;
      ++result_.write_bursts;
    }
    end = std::max(end, time + p.tail);
    unit_free_[n(Unit::kSt)] = end + 1;
    finish_at(end, i);
    const Dma dma = *dma_of(config_, instruction(i), launch_.bases);
    if (dma.memory == spec::Memory::kAcc) {
      const auto reads = static_cast<uint64_t>(dma.units());
      victims_[0] = {i, Unit::kSt, std::max(time, now_ + reads), std::max<uint64_t>((time - now_) / reads, 1)};
      contend(victims_[0]);
    }
  }

  // The steps at a GEMM's begin that do not read acc.
  static uint64_t steps_without_read(const spec::Instruction& instruction) {
    if (const auto* g = std::get_if<spec::native::Gemm>(&instruction)) {
      return g->first != 0 ? static_cast<uint64_t>(g->y * g->x) : 0;
    }
    const auto* g = std::get_if<spec::base::Gemm>(&instruction);
    return g != nullptr && g->reset != 0 ? UINT64_MAX / 2 : 0;
  }

  void finish_at(uint64_t time, size_t i) {
    due_[i] = time;
    at(time, Event::kDone, i);
  }

  // GEMM and ALU refuse the victim's read kRefusals times, then give way for a cycle.
  void contend(Victim& v, Unit first) {
    // ALU takes its next command behind its pipeline, GEMM behind its last step.
    const uint64_t pipeline = first == Unit::kAlu ? cycles(p_.alu_pipeline) + 1 : 0;
    const uint64_t free = unit_free_[n(first)] - std::min(unit_free_[n(first)], pipeline);
    const uint64_t begin = first == Unit::kGemm ? std::max(now_, gemm_quiet_) : now_;
    if (v.reads_end <= begin || free <= begin) return;
    const uint64_t reads = (v.reads_end - begin + v.rate - 1) / v.rate;
    const uint64_t given = std::min(reads, (free - begin) / kRefusals);
    const uint64_t later = given * (kRefusals + 1 - std::min(v.rate, kRefusals + 1));
    v.reads_end += later;
    due_[v.instruction] += later;
    unit_free_[n(v.unit)] += later;
    unit_free_[n(first)] += given;
    for (const Flight& f : classes_[static_cast<size_t>(spec::Engine::kGemm)].flights) {
      if (f.unit == first && !f.done) due_[f.instruction] += given;
    }
  }
  void contend(Victim& v) {
    contend(v, Unit::kGemm);
    contend(v, Unit::kAlu);
  }

  void done(size_t i) {
    if (due_[i] > now_) return at(due_[i], Event::kDone, i);
    Class& k = classes_[class_of(i)];
    for (Flight& f : k.flights)
      if (f.instruction == i) f.done = true;
    retire(class_of(i));
  }

  // Gives tokens in order; those given now can be taken in the next cycle.
  void retire(size_t c) {
    Class& k = classes_[c];
    while (!k.flights.empty() && k.flights.front().done) {
      const size_t i = k.flights.front().instruction;
      const spec::TokenMasks masks = tokens_of(instruction(i));
      if (!tokens_.can_give(c, masks.signal)) return;
      tokens_.give(c, masks.signal);
      interval(c, Interval::Kind::kBusy, i, k.busy_since, now_);
      k.busy_since = now_;
      k.flights.pop_front();
      last_ = std::max(last_, now_);
      for (size_t other = 0; other < spec::kEngines; ++other) {
        if (other == c || ((masks.signal >> other) & 1) != 0) at(now_ + 1, Event::kTry, other);
      }
    }
  }

  void retire_blocked() {
    for (size_t c = 0; c < spec::kEngines; ++c) retire(c);
  }

  void interval(size_t c, Interval::Kind kind, size_t i, uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    (kind == Interval::Kind::kBusy ? result_.busy : result_.stall)[c] += end - begin;
    if (record_) result_.timeline.push_back({static_cast<uint8_t>(c), kind, stream_[i].index, begin, end});
  }

  const spec::Config& config_;
  const Launch& launch_;
  std::span<const spec::Decoded> stream_;
  const bool record_;
  const Parameters& p_;
  Tokens tokens_;
  std::array<Class, spec::kEngines> classes_;
  std::array<Reader, kReaders> readers_;
  std::array<uint64_t, kUnits> unit_free_{};
  uint64_t gemm_quiet_ = 0;           // until then the running GEMM does not read acc
  std::array<Victim, 2> victims_;     // the store and RQ
  std::vector<uint64_t> due_;         // when each instruction is done, as far as is known
  std::array<uint64_t, 3> handed_{};  // a load unit took a command in this cycle
  std::array<uint64_t, spec::kEngines> started_{};
  std::deque<uint64_t> outstanding_;  // when each burst in the memory ends
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t sequence_ = 0, now_ = 0, last_ = 0, address_free_ = 0, data_free_ = 0;
  uint64_t dispatch_at_ = 0, dispatched_at_ = 0, fetched_beats_ = 0, released_ = 0;
  size_t next_ = 0;
  std::vector<uint64_t> arrival_;  // of each slot
  Result result_;
};

}  // namespace

Unit unit_of(const spec::Config& config, const spec::Instruction& instruction) {
  const auto moves = [&](Unit unit) {
    const auto dma = dma_of(config, instruction, {});
    return dma && dma->units() > 0 ? unit : Unit::kNone;
  };
  return std::visit(Overloaded{
                        [&](const spec::base::Load& l) {
                          switch (static_cast<spec::base::MemoryType>(l.memory_type)) {
                            case spec::base::MemoryType::kInp: return moves(Unit::kLdi);
                            case spec::base::MemoryType::kWgt: return moves(Unit::kLdw);
                            case spec::base::MemoryType::kUop:
                            case spec::base::MemoryType::kAcc:
                            case spec::base::MemoryType::kAcc8:
                            case spec::base::MemoryType::kOut: break;
                          }
                          return moves(Unit::kLdm);
                        },
                        [&](const spec::base::Store&) { return moves(Unit::kSt); },
                        [](const spec::base::Gemm&) { return Unit::kGemm; },
                        [](const spec::base::Alu&) { return Unit::kAlu; },
                        [](const spec::base::Finish&) { return Unit::kNone; },
                        [&](const spec::native::Move& m) {
                          switch (static_cast<spec::native::MoveFunction>(m.function)) {
                            case spec::native::MoveFunction::kInp: return moves(Unit::kLdi);
                            case spec::native::MoveFunction::kWgt: return moves(Unit::kLdw);
                            case spec::native::MoveFunction::kPar:
                            case spec::native::MoveFunction::kRes: return moves(Unit::kLdm);
                            case spec::native::MoveFunction::kOut: break;
                          }
                          return moves(Unit::kSt);
                        },
                        [](const spec::native::Gemm&) { return Unit::kGemm; },
                        [](const spec::native::Requantize&) { return Unit::kRq; },
                        [](const spec::native::Sync&) { return Unit::kNone; },
                        [](const spec::native::Finish&) { return Unit::kNone; },
                    },
                    instruction);
}

uint64_t steps(const spec::Config& config, const spec::Instruction& instruction) {
  const auto loops = [](const auto& i) {
    return i.uop_end <= i.uop_begin ? uint64_t{0}
                                    : static_cast<uint64_t>((i.uop_end - i.uop_begin) * i.iter_out * i.iter_in);
  };
  const auto transfer = [&] {
    const auto dma = dma_of(config, instruction, {});
    if (!dma) return uint64_t{0};
    const auto per_vector = std::max<int64_t>(dma->vector_bytes / config.axi_bytes(), 1);
    return static_cast<uint64_t>(dma->units() * per_vector);
  };
  // One micro-op that hits the same element again and again waits for its own result.
  const auto alu = [&](const spec::base::Alu& a) {
    const bool same = a.uop_end - a.uop_begin == 1 && (a.iter_in > 1 ? a.dst_factor_in == 0 : a.dst_factor_out == 0);
    return loops(a) * (same ? (a.use_imm != 0 ? 3 : 4) : (a.use_imm != 0 ? 1 : 2));
  };
  return std::visit(
      Overloaded{
          [&](const spec::base::Load&) { return transfer(); },
          [&](const spec::base::Store&) { return transfer(); },
          [&](const spec::base::Gemm& g) { return loops(g); },
          [&](const spec::base::Alu& a) { return alu(a); },
          [&](const spec::base::Finish&) { return uint64_t{0}; },
          [&](const spec::native::Move&) { return transfer(); },
          [&](const spec::native::Gemm& g) { return static_cast<uint64_t>(g.r0 * g.r1 * g.r2 * g.y * g.x); },
          [&](const spec::native::Requantize& q) { return static_cast<uint64_t>(q.rows * q.cols); },
          [&](const spec::native::Sync&) { return uint64_t{0}; },
          [&](const spec::native::Finish&) { return uint64_t{0}; },
      },
      instruction);
}

Result run(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream, bool timeline,
           const Parameters& parameters) {
  return Model(config, launch, stream, timeline, parameters).run();
}

}  // namespace tenon::sim::timing
