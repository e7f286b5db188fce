#include "compiler/backends/accel/tokens.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>

namespace tenon::compiler::accel {
namespace {

using spec::Engine;
using spec::kEngines;
using spec::Memory;

constexpr int kNone = -1;
using Clock = std::array<int, kEngines>;  // by engine: the latest finished instruction; kNone for none

// Leaves room for the pushes that may follow after the limit is reached: see derive_tokens.
constexpr int kOutstandingLimit = spec::kMaxTokens - 15;

// The accesses so far to one memory: for each interval the last write and, by engine, the last read since.
class History {
 public:
  // Calls `conflict(j)` for each instruction j that `access` conflicts with, then records it.
  template <class F>
  void access(const Access& access, int instruction, int engine, const F& conflict) {
    auto it = split(access.begin);
    const auto end = split(access.end);
    for (auto i = it; i != end; ++i) {
      if (i->second.writer != kNone) conflict(i->second.writer);
      if (access.write) {
        for (const int reader : i->second.readers) {
          if (reader != kNone) conflict(reader);
        }
      } else {
        i->second.readers[engine] = instruction;
      }
    }
    if (access.write) {
      State state;
      state.writer = instruction;
      it->second = state;
      intervals_.erase(std::next(it), end);
    }
  }

 private:
  struct State {
    int writer = kNone;
    Clock readers = none();
  };
  static Clock none() {
    Clock clock;
    clock.fill(kNone);
    return clock;
  }
  using Map = std::map<uint64_t, State>;  // the state from this key up to the next

  // Splits the interval that contains `at` there, and returns the part that begins at `at`.
  Map::iterator split(uint64_t at) {
    auto it = intervals_.lower_bound(at);
    if (it != intervals_.end() && it->first == at) return it;
    const State state = it == intervals_.begin() ? State{} : std::prev(it)->second;
    return intervals_.emplace_hint(it, at, state);
  }

  Map intervals_;
};

// One wait: the instructions of an engine pair, both ascending.
struct Edge {
  int producer, consumer;
};

void set_signal(spec::Instruction& instruction, Engine consumer) {
  std::visit(
      [&](auto& x) {
        if constexpr (requires { x.signal; }) x.signal |= bit(consumer);
      },
      instruction);
}
void set_wait(spec::Instruction& instruction, Engine producer) {
  std::visit(
      [&](auto& x) {
        if constexpr (requires { x.wait; }) x.wait |= bit(producer);
      },
      instruction);
}

}  // namespace

void derive_tokens(const spec::Config& config, std::span<spec::Instruction> program) {
  Clock none;
  none.fill(kNone);
  std::vector<Clock> done(program.size(), none);  // the instructions that have finished when instruction i has
  Clock latest = none;                            // the last instruction so far of each engine
  std::map<std::pair<Memory, int>, History> histories;
  std::array<std::array<std::vector<Edge>, kEngines>, kEngines> edges;

  for (int i = 0; i < static_cast<int>(program.size()); ++i) {
    if (std::holds_alternative<spec::native::Finish>(program[i])) continue;
    const int engine = static_cast<int>(spec::engine_of(program[i]));
    Clock finished = latest[engine] == kNone ? none : done[latest[engine]];

    Clock needed = none;  // the latest conflict by engine: an engine finishes its instructions in order
    for (const Access& access : accesses(config, program[i])) {
      if (access.begin >= access.end) continue;
      histories[{access.memory, access.base}].access(access, i, engine, [&](int j) {
        int& latest_conflict = needed[static_cast<int>(spec::engine_of(program[j]))];
        latest_conflict = std::max(latest_conflict, j);
      });
    }
    // Latest first: a wait implies waits for earlier instructions, never for later ones.
    std::array<int, kEngines> order;
    for (int e = 0; e < kEngines; ++e) order[e] = e;
    std::sort(order.begin(), order.end(), [&](int a, int b) { return needed[a] > needed[b]; });
    for (const int e : order) {
      if (e == engine || needed[e] <= finished[e]) continue;
      auto& pair = edges[e][engine];
      // Tokens that are not yet popped directly after `needed`, if instructions run in program order.
      const auto popped = std::upper_bound(pair.begin(), pair.end(), needed[e],
                                           [](int at, const Edge& edge) { return at < edge.consumer; });
      if (pair.end() - popped >= kOutstandingLimit) needed[e] = latest[e];
      assert(pair.empty() || (pair.back().producer < needed[e] && pair.back().consumer < i));
      pair.push_back({needed[e], i});
      set_signal(program[needed[e]], static_cast<Engine>(engine));
      set_wait(program[i], static_cast<Engine>(e));
      for (int k = 0; k < kEngines; ++k) finished[k] = std::max(finished[k], done[needed[e]][k]);
    }
    finished[engine] = i;
    done[i] = finished;
    latest[engine] = i;
  }
}

}  // namespace tenon::compiler::accel
