// The machine that implements run(): the parts of the RTL that take time, as discrete events. Private to this folder.
//
// Events at equal times happen in the order of their kinds, then in the order of their scheduling, so that a run is
// deterministic.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/timing/model.h"
#include "sim/timing/tokens.h"
#include "sim/timing/transfer_plan.h"

namespace tenon::sim::timing {

inline constexpr size_t kUnits = 8, kReaders = 4, kFetcher = 3;  // readers 0 .. 2 are LDI, LDW, LDM
inline constexpr uint64_t kNever = UINT64_MAX;

inline size_t n(Unit u) { return static_cast<size_t>(u); }

// A reader of the read channel: bursts that are not requested yet, and the beats in the reader's FIFO.
struct Reader {
  struct Pending {
    Burst burst;
    size_t instruction;  // index into the stream; unused by the fetcher
    bool last = false;
    uint32_t tail = 0;
  };
  struct Held {  // beats of a burst in the FIFO, released one by one in [begin, end)
    uint32_t beats;
    uint64_t begin, end;
  };
  std::deque<Pending> pending;
  std::deque<Held> held;
  uint32_t capacity = 0;
  size_t last_row = 0;  // with at most this many pending bursts, the unit accepts the next command
  uint64_t used = 0;    // the cycle up to which the unit's work is scheduled
  bool scheduled = false;

  // The cycle at which the FIFO has room for `beats` more beats.
  uint64_t room_at(uint32_t beats, uint64_t now) {
    while (!held.empty() && held.front().end <= now) held.pop_front();
    uint64_t total = 0;
    for (const Held& h : held) total += beats_at(h, now);
    if (total + beats <= capacity) return now;
    uint64_t excess = total + beats - capacity;
    for (const Held& h : held) {
      const uint64_t present = beats_at(h, now);
      if (excess > present) {
        excess -= present;
        continue;
      }
      const uint64_t begin = std::max(h.begin, now);
      return begin + (excess * (h.end - begin) + present - 1) / present;
    }
    return now;
  }
  static uint64_t beats_at(const Held& h, uint64_t now) {
    if (now <= h.begin) return h.beats;
    return h.beats * (h.end - now) / std::max<uint64_t>(h.end - h.begin, 1);
  }
};

class Machine {
 public:
  Machine(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream, bool timeline,
          const Parameters& parameters)
      : config_(config),
        launch_(launch),
        stream_(stream),
        record_(timeline),
        p_(parameters.of(config)),
        due_(stream.size()) {
    for (size_t i = 0; i < launch.tokens.size(); ++i) {
      tokens_.at(i / spec::kEngines, i % spec::kEngines) = launch.tokens[i];
    }
    const bool native = launch.profile == spec::Profile::kNative;
    const int beats = native ? config.read_fifo_beats() : config.base_read_beats();
    for (size_t r = 0; r < kFetcher; ++r) readers_[r].capacity = static_cast<uint32_t>(beats);
    readers_[kFetcher].capacity = 32;
  }

  Result run();

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

  // A unit that reads acc concurrently with GEMM or ALU, which have priority.
  struct Victim {
    size_t instruction = 0;
    Unit unit = Unit::kSt;
    uint64_t reads_end = 0;  // the end of its reads without further conflicts
    uint64_t rate = 1;       // cycles a read
  };

  struct Class {
    std::deque<size_t> queue;
    std::deque<Flight> flights;
    uint64_t busy_since = 0, waits_since = kNever;
  };

  void at(uint64_t time, Event::Kind kind, size_t index) { events_.push({time, kind, index, sequence_++}); }
  // Tries the class in a later cycle, once: a class that waits for its unit is asked for again by every retirement.
  void try_at(uint64_t time, size_t c) {
    if (std::exchange(tried_[c], time) != time) at(time, Event::kTry, c);
  }
  const spec::Instruction& instruction(size_t i) const { return stream_[i].instruction; }
  size_t width() const { return launch_.profile == spec::Profile::kNative ? 2 : 1; }
  // Decode advances every second cycle.
  uint64_t decode_interval() const { return config_.in_order ? cycles(p_.decode) + 1 : 2; }
  static uint64_t cycles(int c) { return static_cast<uint64_t>(c); }
  size_t in_flight() const { return config_.in_order ? 1 : 2; }  // instructions that a sequencer has started
  size_t class_of(size_t i) const { return static_cast<size_t>(spec::engine_of(instruction(i))); }

  // Memory: fetch and decode, the read channel, loads and stores (machine_memory.cpp).
  void begin_fetch();
  void fetched(uint64_t first, uint32_t beats);
  void dispatch();
  void schedule(size_t reader, uint64_t time);
  void ask(size_t reader);
  void begin_load(size_t i, Reader& r, size_t reader);
  void begin_store(size_t i);

  // Classes and units (machine_units.cpp).
  bool unit_ready(Unit unit) const;
  void try_class(size_t c);
  void begin(size_t i, Unit unit);
  uint64_t steps_without_read(const spec::Instruction& instruction) const;
  uint64_t waits_for_loads(uint64_t results) const;
  void finish_at(uint64_t time, size_t i);
  void contend(Victim& v, Unit first);
  void contend(Victim& v);
  void done(size_t i);
  void retire(size_t c);
  void retire_blocked();
  void interval(size_t c, Interval::Kind kind, size_t i, uint64_t begin, uint64_t end);

  const spec::Config& config_;
  const Launch& launch_;
  std::span<const spec::Decoded> stream_;
  const bool record_;
  const Parameters p_;
  Tokens tokens_;
  std::array<Class, spec::kEngines> classes_;
  std::array<Reader, kReaders> readers_;
  std::array<uint64_t, kUnits> unit_free_{};  // of ST with overlapping stores, the next store's first beat
  uint64_t gemm_quiet_ = 0;                   // until then the running GEMM does not read acc
  std::array<Victim, 2> victims_;             // the store and RQ
  std::vector<uint64_t> due_;                 // the scheduled end of each instruction
  std::array<uint64_t, 3> handed_{};          // the cycle of each load unit's last command
  std::array<uint64_t, spec::kEngines> started_{};
  std::array<uint64_t, spec::kEngines> tried_{};  // the cycle of each class's last event kTry
  std::deque<uint64_t> outstanding_;              // the ends of the bursts in the memory
  std::deque<uint64_t> open_writes_;              // the responses of the bursts that the store unit keeps open
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t sequence_ = 0, now_ = 0, last_ = 0, address_free_ = 0, data_free_ = 0;
  uint64_t dispatch_at_ = 0, dispatched_at_ = 0, fetched_beats_ = 0, released_ = 0;
  size_t next_ = 0;
  std::vector<uint64_t> arrival_;  // of each slot
  Result result_;
};

}  // namespace tenon::sim::timing
