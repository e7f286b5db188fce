#include "sim/timing/model.h"

#include <algorithm>
#include <deque>
#include <queue>

#include "sim/timing/tokens.h"

namespace tenon::sim::timing {
namespace {

using spec::Engine;
using spec::engine_of;
using spec::tokens_of;

constexpr uint64_t kPage = 4096;  // no burst crosses one

// Bursts that cover [address, address + bytes), in beats.
void append_bursts(const spec::Config& config, uint64_t address, uint64_t bytes, std::vector<uint32_t>& bursts) {
  const auto beat = static_cast<uint64_t>(config.axi_bytes());
  const uint64_t end = address + bytes;
  for (uint64_t at = address / beat * beat; at < end;) {
    const uint64_t limit = std::min({at + beat * static_cast<uint64_t>(config.max_burst_beats),
                                     (at / kPage + 1) * kPage, (end + beat - 1) / beat * beat});
    bursts.push_back(static_cast<uint32_t>((limit - at) / beat));
    at = limit;
  }
}

std::vector<uint32_t> bursts_of(const spec::Config& config, const Dma& dma) {
  std::vector<uint32_t> bursts;
  std::vector<Range> ranges;
  for (int64_t y = dma.top; y < std::min(dma.rows, dma.top + dma.source_rows); ++y) append_row_ranges(dma, y, ranges);
  for (size_t i = 0; i < ranges.size();) {  // rows that touch are one
    uint64_t end = ranges[i].end;
    size_t j = i + 1;
    while (j < ranges.size() && ranges[j].begin == end) end = ranges[j++].end;
    append_bursts(config, ranges[i].begin, end - ranges[i].begin, bursts);
    i = j;
  }
  return bursts;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

class Model {
 public:
  Model(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream, bool timeline,
        const Parameters& parameters)
      : config_(config), launch_(launch), stream_(stream), record_(timeline), p_(parameters) {
    for (size_t i = 0; i < launch.tokens.size(); ++i)
      tokens_.at(i / spec::kEngines, i % spec::kEngines) = launch.tokens[i];
  }

  Result run() {
    at(0, Event::kFetch, 0);
    while (!events_.empty()) {
      const Event e = events_.top();
      events_.pop();
      now_ = e.time;
      switch (e.kind) {
        case Event::kFetch:
          fetch();
          break;
        case Event::kDispatch:
          dispatch();
          break;
        case Event::kTry:
          try_start(e.engine);
          break;
        case Event::kBurst:
          issue(e.engine);
          break;
        case Event::kDone:
          done(e.engine);
          break;
      }
    }
    result_.cycles = last_;
    return std::move(result_);
  }

 private:
  struct Event {
    enum Kind : uint8_t { kDone, kBurst, kFetch, kDispatch, kTry };  // at equal times in this order
    uint64_t time;
    Kind kind;
    size_t engine;
    uint64_t sequence;
    bool operator>(const Event& o) const {
      if (time != o.time) return time > o.time;
      if (kind != o.kind) return kind > o.kind;
      return sequence > o.sequence;
    }
  };
  struct State {
    std::deque<size_t> queue;
    bool running = false, giving = false, waiting = false;
    uint64_t since = 0;  // of running or waiting
    std::vector<uint32_t> bursts;
    size_t next_burst = 0;
    std::deque<uint64_t> in_flight;  // when each outstanding burst has ended
    uint64_t not_before = 0;         // the end of the transfer, from the scratchpad's side
  };

  void at(uint64_t time, Event::Kind kind, size_t engine) { events_.push({time, kind, engine, sequence_++}); }

  // One burst on the read channel, which serves in the order of issue.
  uint64_t read(uint32_t beats) {
    read_free_ = std::max(now_ + static_cast<uint64_t>(p_.read_latency), read_free_) + beats;
    result_.read_beats += beats;
    ++result_.read_bursts;
    return read_free_;
  }

  size_t width() const { return launch_.profile == spec::Profile::kNative ? 2 : 1; }

  void fetch() {
    const size_t slots = stream_.size() * width();
    while (fetched_ < slots && fetched_ - next_ * width() < static_cast<size_t>(p_.fetch_slots)) {
      const uint64_t address = launch_.instructions + fetched_ * spec::kSlotBytes;
      const uint64_t bytes = std::min<uint64_t>(
          {static_cast<uint64_t>(config_.max_burst_beats) * static_cast<uint64_t>(config_.axi_bytes()),
           kPage - address % kPage, (slots - fetched_) * spec::kSlotBytes,
           static_cast<uint64_t>(p_.fetch_slots) * spec::kSlotBytes});
      const uint64_t n = std::max<uint64_t>(bytes / spec::kSlotBytes, 1);
      const auto beats = static_cast<uint32_t>(
          n * spec::kSlotBytes / std::min<uint64_t>(static_cast<uint64_t>(config_.axi_bytes()), n * spec::kSlotBytes));
      const uint64_t end = read(beats);
      for (uint64_t i = 0; i < n; ++i) arrival_.push_back(end - beats + beats * (i + 1) / n);
      fetched_ += n;
    }
    at(now_, Event::kDispatch, 0);
  }

  void dispatch() {
    if (next_ == stream_.size() || blocked_dispatch_ > now_) return;
    const size_t last_slot = (next_ + 1) * width() - 1;
    if (last_slot >= arrival_.size()) return;
    const uint64_t ready = arrival_[last_slot] + static_cast<uint64_t>(p_.fetch_latency);
    if (ready > now_) {
      blocked_dispatch_ = ready;
      return at(ready, Event::kDispatch, 0);
    }
    const auto e = static_cast<size_t>(engine_of(stream_[next_].instruction));
    if (engines_[e].queue.size() == static_cast<size_t>(config_.queue_depth)) return;  // done() comes back
    engines_[e].queue.push_back(next_++);
    at(now_ + 1, Event::kTry, e);
    blocked_dispatch_ = now_ + 1;
    at(now_ + 1, Event::kDispatch, 0);
    if (fetched_ < stream_.size() * width()) at(now_ + 1, Event::kFetch, 0);
  }

  const spec::Instruction& head(size_t e) const { return stream_[engines_[e].queue.front()].instruction; }
  size_t charged(size_t e) const { return static_cast<size_t>(executing_engine(head(e))); }

  void interval(size_t e, Interval::Kind kind, uint64_t begin, uint64_t end) {
    if (begin == end) return;
    const size_t charge = charged(e);
    if (kind == Interval::Kind::kBusy)
      result_.busy[charge] += end - begin;
    else
      result_.stall[charge] += end - begin;
    if (record_) {
      result_.timeline.push_back(
          {static_cast<uint8_t>(charge), kind, stream_[engines_[e].queue.front()].index, begin, end});
    }
    last_ = std::max(last_, end);
  }

  void try_start(size_t e) {
    State& s = engines_[e];
    if (s.running || s.giving || s.queue.empty()) return;
    const spec::TokenMasks masks = tokens_of(head(e));
    if (!tokens_.can_take(e, masks.wait)) {
      if (!s.waiting) s.waiting = true, s.since = now_;
      return;
    }
    tokens_.take(e, masks.wait);
    if (s.waiting) interval(e, Interval::Kind::kWaitTokens, s.since, now_);
    s.waiting = false;
    s.running = true;
    s.since = now_;
    retry_givers();
    begin(e);
  }

  void begin(size_t e) {
    State& s = engines_[e];
    const spec::Instruction& instruction = head(e);
    const uint64_t work = steps(config_, instruction);
    const uint64_t started = now_ + static_cast<uint64_t>(p_.start);
    const auto dma = dma_of(config_, instruction, launch_.bases);
    if (dma && dma->units() > 0) {
      s.bursts = bursts_of(config_, *dma);
      s.next_burst = 0;
      s.in_flight.clear();
      s.not_before = started + work;
      if (s.bursts.empty()) return at(s.not_before + static_cast<uint64_t>(p_.finish), Event::kDone, e);
      return at(started, Event::kBurst, e);
    }
    uint64_t pipeline = 0;
    if (work > 0) {
      const Engine engine = executing_engine(instruction);
      pipeline = static_cast<uint64_t>(engine == Engine::kGemm                                ? p_.gemm_pipeline
                                       : std::holds_alternative<spec::base::Alu>(instruction) ? p_.alu_pipeline
                                                                                              : p_.rq_pipeline);
    }
    at(started + work + pipeline + static_cast<uint64_t>(p_.finish), Event::kDone, e);
  }

  // One more burst of the running transfer.
  void issue(size_t e) {
    State& s = engines_[e];
    const bool store = e == static_cast<size_t>(Engine::kSt);
    const uint32_t beats = s.bursts[s.next_burst++];
    uint64_t end;
    if (store) {
      write_free_ = std::max(now_, write_free_) + beats;
      result_.write_beats += beats;
      ++result_.write_bursts;
      end = write_free_;
    } else {
      end = read(beats);
    }
    s.in_flight.push_back(end);
    if (s.next_burst < s.bursts.size()) {
      uint64_t next = now_ + 1;
      if (store)
        next = end;
      else if (s.in_flight.size() >= static_cast<size_t>(p_.outstanding)) {
        next = std::max(next, s.in_flight.front());
        s.in_flight.pop_front();
      }
      return at(next, Event::kBurst, e);
    }
    if (store) end += static_cast<uint64_t>(p_.write_latency);
    at(std::max(end, s.not_before) + static_cast<uint64_t>(p_.finish), Event::kDone, e);
  }

  void done(size_t e) {
    State& s = engines_[e];
    interval(e, Interval::Kind::kBusy, s.since, now_);
    s.running = false;
    s.giving = true;
    give(e);
  }

  void give(size_t e) {
    State& s = engines_[e];
    const spec::TokenMasks masks = tokens_of(head(e));
    if (!tokens_.can_give(e, masks.signal)) return;
    tokens_.give(e, masks.signal);
    s.giving = false;
    s.queue.pop_front();
    last_ = std::max(last_, now_);
    for (size_t c = 0; c < spec::kEngines; ++c) at(now_, Event::kTry, c);
    if (blocked_dispatch_ <= now_) at(now_, Event::kDispatch, 0);
  }

  void retry_givers() {
    for (size_t e = 0; e < spec::kEngines; ++e)
      if (engines_[e].giving) give(e);
  }

  const spec::Config& config_;
  const Launch& launch_;
  std::span<const spec::Decoded> stream_;
  const bool record_;
  const Parameters& p_;
  Tokens tokens_;
  std::array<State, spec::kEngines> engines_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t sequence_ = 0, now_ = 0, last_ = 0, read_free_ = 0, write_free_ = 0, blocked_dispatch_ = 0;
  size_t fetched_ = 0, next_ = 0;
  std::vector<uint64_t> arrival_;  // of each slot
  Result result_;
};

}  // namespace

spec::Engine executing_engine(const spec::Instruction& instruction) {
  if (std::holds_alternative<spec::base::Alu>(instruction)) return Engine::kRq;
  if (const auto* load = std::get_if<spec::base::Load>(&instruction)) {
    switch (static_cast<spec::base::MemoryType>(load->memory_type)) {
      case spec::base::MemoryType::kInp:
        return Engine::kLdi;
      case spec::base::MemoryType::kWgt:
        return Engine::kLdw;
      case spec::base::MemoryType::kUop:
      case spec::base::MemoryType::kAcc:
      case spec::base::MemoryType::kAcc8:
      case spec::base::MemoryType::kOut:
        return Engine::kLdm;
    }
  }
  return engine_of(instruction);
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
  return std::visit(
      Overloaded{
          [&](const spec::base::Load&) { return transfer(); },
          [&](const spec::base::Store&) { return transfer(); },
          [&](const spec::base::Gemm& g) { return loops(g); },
          [&](const spec::base::Alu& a) { return loops(a) * (a.use_imm != 0 ? 1 : 2); },
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
