#include "sim/behavioral/race.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::sim {

using spec::Engine;
using spec::Memory;

namespace {

size_t n(Engine e) { return static_cast<size_t>(e); }

// The first member of `set` whose time is later than `limit`, or size().
size_t first_later(const Bitmap& set, const std::vector<uint32_t>& times, uint32_t limit) {
  const auto& words = set.words();
  for (size_t w = 0; w < words.size(); ++w) {
    uint64_t remaining = words[w];
    if (remaining == ~uint64_t{0}) {
      uint32_t latest = 0;
      for (size_t i = 0; i < 64; ++i) latest = std::max(latest, times[w * 64 + i]);
      if (latest <= limit) continue;
    }
    for (; remaining != 0; remaining &= remaining - 1) {
      const size_t i = w * 64 + static_cast<size_t>(std::countr_zero(remaining));
      if (times[i] > limit) return i;
    }
  }
  return set.size();
}

void stamp(const Bitmap& set, std::vector<uint32_t>& times, uint32_t now) {
  const auto& words = set.words();
  for (size_t w = 0; w < words.size(); ++w) {
    if (words[w] == ~uint64_t{0}) {
      std::fill_n(times.begin() + static_cast<ptrdiff_t>(w * 64), 64, now);
      continue;
    }
    for (uint64_t remaining = words[w]; remaining != 0; remaining &= remaining - 1) {
      times[w * 64 + static_cast<size_t>(std::countr_zero(remaining))] = now;
    }
  }
}

std::vector<Range> ranges_of(const Dma& dma) {
  std::vector<Range> ranges;
  for (int64_t y = 0; y < dma.rows; ++y) append_row_ranges(dma, y, ranges);
  std::ranges::sort(ranges, {}, &Range::begin);
  return ranges;
}

// The first range of bytes that both transfers access.
std::optional<Range> overlap(const Dma& a, const Dma& b) {
  const auto left = ranges_of(a), right = ranges_of(b);
  // Ranges of one transfer may overlap each other, so each comparison advances the range with the lower end.
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    const Range both{std::max(left[i].begin, right[j].begin), std::min(left[i].end, right[j].end)};
    if (both.begin < both.end) return both;
    if (left[i].end <= right[j].begin) ++i;
    else ++j;
  }
  return std::nullopt;
}

bool overlaps(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

RaceDetector::RaceDetector(const spec::Config& config) : config_(config) {
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    const auto memory = static_cast<Memory>(m);
    const auto depth = static_cast<size_t>(config.depth(memory));
    Shadow& s = shadows_[m];
    s.write_times.resize((depth + 63) / 64 * 64);
    s.read_times.resize((depth + 63) / 64 * 64);
    if (second_writer(memory)) s.second_write_times.resize((depth + 63) / 64 * 64);
    s.initialised = Bitmap(depth);
    const bool moved_in_units = memory == Memory::kWgt || memory == Memory::kPar;
    s.per_element = moved_in_units ? config.units_per_element(memory) : 1;
    if (s.per_element > 1) s.units = Bitmap(depth * static_cast<size_t>(s.per_element));
  }
}

void RaceDetector::begin_launch(spec::Profile profile, Range stream) {
  profile_ = profile;
  stream_ = stream;
  clocks_ = {};
  for (auto& row : tokens_)
    for (auto& fifo : row)
      for (Clock& c : fifo) c = {};
  for (Shadow& s : shadows_) {
    std::ranges::fill(s.write_times, 0);
    std::ranges::fill(s.read_times, 0);
    std::ranges::fill(s.second_write_times, 0);
  }
  for (auto& h : history_) h.assign(1, 0);  // times start at 1
  for (auto& t : transfers_) t.clear();
}

void RaceDetector::clear_tokens() {
  for (auto& row : tokens_)
    for (auto& fifo : row) fifo.clear();
}

void RaceDetector::push(Engine producer, Engine consumer) {
  tokens_[n(producer)][n(consumer)].push_back(clocks_[n(producer)]);
}

void RaceDetector::pop(Engine producer, Engine consumer) {
  auto& fifo = tokens_[n(producer)][n(consumer)];
  Clock& mine = clocks_[n(consumer)];
  for (size_t e = 0; e < mine.size(); ++e) mine[e] = std::max(mine[e], fifo.front()[e]);
  fifo.pop_front();
}

Engine RaceDetector::writer(Memory memory) const {
  switch (memory) {
    case Memory::kInp: return Engine::kLdi;
    case Memory::kWgt: return profile_ == spec::Profile::kBase ? Engine::kLdi : Engine::kLdw;
    case Memory::kUop:
    case Memory::kAcc: return Engine::kGemm;
    case Memory::kOut: return Engine::kRq;
    case Memory::kPar:
    case Memory::kRes: return Engine::kLdm;
    case Memory::kDram: return Engine::kSt;
  }
  return Engine::kSt;
}

std::optional<Engine> RaceDetector::second_writer(Memory memory) const {
  if (memory == Memory::kInp && config_.results_to_inp) return Engine::kRq;
  return std::nullopt;
}

Engine RaceDetector::reader(Memory memory) const {
  switch (memory) {
    case Memory::kUop:
    case Memory::kInp:
    case Memory::kWgt: return Engine::kGemm;
    case Memory::kAcc: return profile_ == spec::Profile::kBase ? Engine::kSt : Engine::kRq;
    case Memory::kPar:
    case Memory::kRes: return Engine::kRq;
    case Memory::kOut:
    case Memory::kDram: return Engine::kSt;
  }
  return Engine::kSt;
}

std::string RaceDetector::describe(Memory memory, size_t index, const Bitmap& set) const {
  size_t end = index;
  while (end + 1 < set.size() && set.test(end + 1)) ++end;
  if (end == index) return fmt::format("{}[{}]", name(memory), index);
  return fmt::format("{}[{}..{}]", name(memory), index, end);
}

std::optional<Conflict> RaceDetector::check_elements(Engine engine, const Footprint& f) const {
  const Clock& mine = clocks_[n(engine)];
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    const auto memory = static_cast<Memory>(m);
    const Shadow& s = shadows_[m];
    const auto report = [&](const Bitmap& set, const std::vector<uint32_t>& times, Engine other, bool writes,
                            bool other_writes) -> std::optional<Conflict> {
      if (other == engine) return std::nullopt;
      const uint32_t limit = mine[n(other)];
      const size_t i = first_later(set, times, limit);
      if (i == set.size()) return std::nullopt;
      Bitmap racing(set.size());  // the run of elements that race with the same instruction
      for (size_t k = i; k < set.size() && set.test(k) && times[k] == times[i]; ++k) racing.set(k);
      return Conflict{.writes = writes,
                      .other_writes = other_writes,
                      .other_engine = other,
                      .other = history_[n(other)][times[i]],
                      .region = describe(memory, i, racing)};
    };
    const std::optional<Engine> second = second_writer(memory);
    if (f.reading[m]) {
      if (auto c = report(f.reads[m], s.write_times, writer(memory), false, true)) return c;
      if (second) {
        if (auto c = report(f.reads[m], s.second_write_times, *second, false, true)) return c;
      }
      if (!s.initialised.contains(f.reads[m])) {
        Bitmap missing = f.reads[m];
        for (size_t w = 0; w < missing.words().size(); ++w) missing.words()[w] &= ~s.initialised.words()[w];
        size_t first = 0;
        while (!missing.test(first)) ++first;
        return Conflict{.race = false, .region = describe(memory, first, missing)};
      }
    }
    if (f.writing[m]) {
      if (auto c = report(f.writes[m], s.read_times, reader(memory), true, false)) return c;
      if (second) {
        if (auto c = report(f.writes[m], s.write_times, writer(memory), true, true)) return c;
        if (auto c = report(f.writes[m], s.second_write_times, *second, true, true)) return c;
      }
    }
  }
  return std::nullopt;
}

std::optional<Conflict> RaceDetector::check_dram(Engine engine, uint32_t slot, const Footprint& f) const {
  if (!f.dma) return std::nullopt;
  const Range bounds = bounding_range(*f.dma);
  if (bounds.begin == bounds.end) return std::nullopt;
  if (f.dma->store && overlaps(bounds, stream_)) {
    for (const Range& r : ranges_of(*f.dma)) {
      const uint64_t fetched =
          stream_.begin + (uint64_t{slot} + (profile_ == spec::Profile::kNative ? 2 : 1)) * spec::kSlotBytes;
      const uint64_t begin = std::max(r.begin, fetched);
      if (begin >= std::min(r.end, stream_.end)) continue;
      return Conflict{.writes = true,
                      .other = static_cast<uint32_t>((begin - stream_.begin) / spec::kSlotBytes),
                      .with_fetch = true,
                      .region = fmt::format("dram[{:#x}..{:#x}]", begin, std::min(r.end, stream_.end) - 1)};
    }
  }
  for (size_t other = 0; other < spec::kEngines; ++other) {
    if (other == n(engine)) continue;
    const uint32_t limit = clocks_[n(engine)][other];
    const auto& log = transfers_[other];
    for (size_t i = log.size(); i-- > 0 && log[i].time > limit;) {
      if (!log[i].dma.store && !f.dma->store) continue;  // loads never conflict with loads
      if (!overlaps(log[i].bounds, bounds)) continue;
      if (const auto both = overlap(log[i].dma, *f.dma)) {
        return Conflict{.writes = f.dma->store,
                        .other_writes = log[i].dma.store,
                        .other_engine = static_cast<Engine>(other),
                        .other = log[i].slot,
                        .region = fmt::format("dram[{:#x}..{:#x}]", both->begin, both->end - 1)};
      }
    }
  }
  return std::nullopt;
}

void RaceDetector::record(Engine engine, uint32_t slot, const Footprint& f) {
  const uint32_t now = ++clocks_[n(engine)][n(engine)];
  history_[n(engine)].push_back(slot);
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    Shadow& s = shadows_[m];
    if (f.reading[m] && writer(static_cast<Memory>(m)) != engine) stamp(f.reads[m], s.read_times, now);
    if (!f.writing[m]) continue;
    const bool second = second_writer(static_cast<Memory>(m)) == engine;
    stamp(f.writes[m], second ? s.second_write_times : s.write_times, now);
    if (s.per_element == 1) {
      s.initialised |= f.writes[m];
      continue;
    }
    const auto per = static_cast<size_t>(s.per_element);
    const size_t scale = per / static_cast<size_t>(f.dma->units_per_element);  // base loads move whole elements
    const auto begin = static_cast<size_t>(f.written_units.first) * scale;
    const auto end = static_cast<size_t>(f.written_units.second) * scale;
    s.units.set_range(begin, end);
    for (size_t e = begin / per; e * per < end; ++e) {
      if (!s.initialised.test(e) && s.units.contains_range(e * per, (e + 1) * per)) s.initialised.set(e);
    }
  }
  if (f.dma) {
    const Range bounds = bounding_range(*f.dma);
    if (bounds.begin != bounds.end) transfers_[n(engine)].push_back({now, slot, bounds, *f.dma});
  }
}

bool RaceDetector::initialised(const Footprint& f) const {
  for (size_t m = 0; m < spec::kScratchpads; ++m)
    if (f.reading[m] && !shadows_[m].initialised.contains(f.reads[m])) return false;
  return true;
}

std::optional<Conflict> RaceDetector::check(Engine engine, uint32_t slot, const Footprint& f) const {
  auto conflict = check_elements(engine, f);
  return conflict ? conflict : check_dram(engine, slot, f);
}

std::optional<Conflict> RaceDetector::access(Engine engine, uint32_t slot, const Footprint& f) {
  auto conflict = check(engine, slot, f);
  record(engine, slot, f);
  return conflict;
}

}  // namespace tenon::sim
