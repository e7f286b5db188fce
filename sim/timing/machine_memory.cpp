// Memory accesses of the machine: fetch and decode, the read channel that four readers share, loads and stores.
#include "sim/timing/machine.h"

namespace tenon::sim::timing {

using spec::engine_of;

void Machine::begin_fetch() {
  if (stream_.empty()) return;
  std::vector<Burst> bursts;
  const uint64_t bytes = stream_.size() * width() * spec::kSlotBytes;
  append_bursts(config_, launch_.instructions, bytes, static_cast<uint32_t>(std::min(config_.max_burst_beats, 16)),
                bursts);
  for (const Burst& b : bursts) readers_[kFetcher].pending.push_back({b, 0});
  schedule(kFetcher, cycles(p_.launch));
}

// Records the arrival of the slots that a burst of the fetcher completes; `first` is the cycle of its first beat.
void Machine::fetched(uint64_t first, uint32_t beats) {
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

void Machine::dispatch() {
  if (next_ == stream_.size() || dispatch_at_ > now_) return;
  const size_t last = (next_ + 1) * width() - 1;
  if (last >= arrival_.size()) return;
  const uint64_t ready = std::max(arrival_[last] + cycles(p_.decode), dispatched_at_ + decode_interval());
  if (ready > now_) {
    dispatch_at_ = ready;
    return at(ready, Event::kDispatch, 0);
  }
  const auto c = static_cast<size_t>(engine_of(instruction(next_)));
  // A start dispatches again.
  if (classes_[c].queue.size() == static_cast<size_t>(config_.queue_depth)) return;
  // In order, decode holds the instruction until it retires, which dispatches again.
  const auto empty = [](const Class& k) { return k.queue.empty() && k.flights.empty(); };
  if (config_.in_order && !std::ranges::all_of(classes_, empty)) return;
  classes_[c].queue.push_back(next_++);
  dispatched_at_ = now_;
  try_at(now_ + 1, c);
  at(now_ + 1, Event::kDispatch, 0);
  // The beats of dispatched instructions leave the fetcher's FIFO.
  const uint64_t used = next_ * width() * spec::kSlotBytes / static_cast<uint64_t>(config_.axi_bytes());
  Reader& fetcher = readers_[kFetcher];
  while (!fetcher.held.empty() && released_ + fetcher.held.front().beats <= used) {
    released_ += fetcher.held.front().beats;
    fetcher.held.pop_front();
  }
  schedule(kFetcher, now_);
}

void Machine::schedule(size_t reader, uint64_t time) {
  Reader& r = readers_[reader];
  if (r.scheduled || r.pending.empty()) return;
  r.scheduled = true;
  at(std::max(time, now_), Event::kAsk, reader);
}

// Sends the address of the reader's next burst if the FIFO has room and the channel is free; else schedules a retry.
void Machine::ask(size_t reader) {
  Reader& r = readers_[reader];
  r.scheduled = false;
  const Reader::Pending next = r.pending.front();
  uint64_t when = now_;
  if (reader == kFetcher) {
    uint64_t held = 0;
    for (const auto& h : r.held) held += h.beats;
    if (held + next.burst.beats > r.capacity) return;  // dispatch() schedules the reader again
  } else {
    when = r.room_at(next.burst.beats, now_);
  }
  when = std::max(when, address_free_);
  if (outstanding_.size() >= static_cast<size_t>(p_.memory.outstanding)) when = std::max(when, outstanding_.front());
  if (when > now_) {
    r.scheduled = true;
    return at(when, Event::kAsk, reader);
  }
  r.pending.pop_front();
  address_free_ = now_ + 1;
  const uint64_t first = std::max(now_ + cycles(p_.memory.read_latency), data_free_);
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
    if (r.pending.size() == r.last_row) try_at(now_ + 1, class_of(next.instruction));
  }
  schedule(reader, now_ + 1);
}

void Machine::begin_load(size_t i, Reader& r, size_t reader) {
  const TransferPlan p = plan(config_, *dma_of(config_, instruction(i), launch_.bases));
  handed_[reader] = now_;
  if (p.bursts.empty()) {
    r.used = std::max(r.used, now_ + cycles(p_.start) + 1) + p.tail;
    return finish_at(r.used + 1, i);
  }
  r.used = std::max(r.used, now_ + cycles(p_.start) + 1);
  for (size_t b = 0; b < p.bursts.size(); ++b) {
    const bool last = b + 1 == p.bursts.size();
    r.pending.push_back({p.bursts[b], i, last, last ? p.tail : 0});
  }
  r.last_row = p.last_row;
  schedule(reader, now_ + cycles(p_.start + p_.address));
}

void Machine::begin_store(size_t i) {
  const TransferPlan p = plan(config_, *dma_of(config_, instruction(i), launch_.bases));
  uint64_t& free = unit_free_[n(Unit::kSt)];
  uint64_t time = now_ + cycles(p_.start + p_.store_pipeline);
  if (config_.overlapping_stores) time = std::max(time, free);
  uint64_t end = time;
  for (const Burst& b : p.bursts) {
    time += b.idle_work;
    if (open_writes_.size() == static_cast<size_t>(config_.in_order ? 1 : p_.open_writes)) {
      time = std::max(time, open_writes_.front());
      open_writes_.pop_front();
    }
    time += b.work;
    end = time + cycles(p_.memory.write_latency);
    open_writes_.push_back(end);
    result_.write_beats += b.beats;
    ++result_.write_bursts;
  }
  time += p.tail;
  end = std::max(end, time) + cycles(p_.store_done);
  free = config_.overlapping_stores ? time + cycles(p_.store_refill) : end + 1;
  finish_at(end, i);
  const Dma dma = *dma_of(config_, instruction(i), launch_.bases);
  if (dma.memory == spec::Memory::kAcc) {
    const auto reads = static_cast<uint64_t>(dma.units());
    victims_[0] = {i, Unit::kSt, std::max(time, now_ + reads), std::max<uint64_t>((time - now_) / reads, 1)};
    contend(victims_[0]);
  }
}

}  // namespace tenon::sim::timing
