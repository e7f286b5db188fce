// Classes of instructions and their units: tokens, starts, the accumulators' read port, retirement.
#include "sim/timing/machine.h"

namespace tenon::sim::timing {

using spec::tokens_of;

constexpr uint64_t kRefusals = 8;  // of an acc read by GEMM, before GEMM yields a cycle

bool Machine::unit_ready(Unit unit) const {
  if (unit == Unit::kLdi || unit == Unit::kLdw || unit == Unit::kLdm) {
    const Reader& r = readers_[n(unit)];
    const bool room = config_.in_order ? r.pending.empty() && r.used < now_ : r.pending.size() <= r.last_row;
    return room && handed_[n(unit)] < now_;
  }
  // A start waits for the last step of the instruction before.
  if (unit == Unit::kGemm || unit == Unit::kRq) return unit_free_[n(unit)] <= now_ + cycles(p_.start);
  if (unit == Unit::kSt && config_.overlapping_stores) return true;  // or for the last beat
  return unit_free_[n(unit)] <= now_;
}

void Machine::try_class(size_t c) {
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
    if (k.flights.size() == in_flight()) return;
    if (!k.flights.empty()) {
      const Unit stays = k.flights.back().unit;
      const bool loads = n(stays) <= n(Unit::kLdw) && n(unit) <= n(Unit::kLdw);
      if (unit != Unit::kNone && unit != stays && !loads) return;
    }
    if (!unit_ready(unit)) {
      const uint64_t ahead = unit == Unit::kGemm || unit == Unit::kRq ? cycles(p_.start) : 0;
      if (n(unit) >= n(Unit::kGemm)) try_at(std::max(unit_free_[n(unit)] - ahead, now_ + 1), c);
      else if (handed_[n(unit)] >= now_) try_at(handed_[n(unit)] + 1, c);
      return;
    }
    if (started_[c] == now_ && now_ != 0) return try_at(now_ + 1, c);  // one start per cycle
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

void Machine::begin(size_t i, Unit unit) {
  const uint64_t work = std::max<uint64_t>(steps(config_, instruction(i)), 1);
  const uint64_t start = now_ + cycles(p_.start);
  switch (unit) {
    case Unit::kLdi:
    case Unit::kLdw:
    case Unit::kLdm: return begin_load(i, readers_[n(unit)], n(unit));
    case Unit::kGemm:
      unit_free_[n(unit)] = start + work;
      gemm_quiet_ = start + steps_without_read(instruction(i));
      finish_at(start + work + cycles(p_.gemm_pipeline), i);
      for (Victim& v : victims_) contend(v, Unit::kGemm);
      return;
    case Unit::kAlu:
    case Unit::kRq: {
      const auto* rq = std::get_if<spec::native::Requantize>(&instruction(i));
      const uint64_t queue = rq != nullptr && rq->to_inp != 0 ? cycles(p_.rq_to_inp) + waits_for_loads(work) : 0;
      uint64_t end = start + work + cycles(unit == Unit::kAlu ? p_.alu_pipeline : p_.rq_pipeline) + queue;
      for (const Flight& f : classes_[class_of(i)].flights) {  // RQ is done in order, one command a cycle
        if (unit == Unit::kRq && f.unit == unit && f.instruction != i) end = std::max(end, due_[f.instruction] + 1);
      }
      finish_at(end, i);
      if (unit == Unit::kRq) {
        unit_free_[n(unit)] = start + work + 1;  // its first stage is empty for a cycle
        // The RQ before has read when a GEMM that starts from now on reads.
        victims_[1] = {i, unit, start + work, 1};
        contend(victims_[1]);
      } else {
        unit_free_[n(unit)] = end + 1;
        for (Victim& v : victims_) contend(v, Unit::kAlu);
      }
      return;
    }
    case Unit::kSt: return begin_store(i);
    case Unit::kNone: return finish_at(now_ + 1, i);
  }
}

// The cycles that so many results for inp wait while loads write to it: a load that is in flight writes at the rate of
// the memory port. In banks, results pass it.
uint64_t Machine::waits_for_loads(uint64_t results) const {
  if (config_.own_lanes || classes_[static_cast<size_t>(spec::Engine::kLdi)].flights.empty()) return 0;
  return results * static_cast<uint64_t>(std::min(config_.axi_bytes(), config_.block_in)) /
         static_cast<uint64_t>(config_.block_in);
}

// The number of steps at the start of a GEMM that do not read acc.
uint64_t Machine::steps_without_read(const spec::Instruction& instruction) const {
  if (const auto* g = std::get_if<spec::native::Gemm>(&instruction)) {
    // Of two lanes that share their input, the second one's step continues the sum of the first one's.
    if (g->own != 0) return g->first != 0 && !config_.packed_products ? steps(config_, instruction) : 0;
    return g->first != 0 ? static_cast<uint64_t>(g->y * g->x) : 0;
  }
  const auto* g = std::get_if<spec::base::Gemm>(&instruction);
  return g != nullptr && g->reset != 0 ? UINT64_MAX / 2 : 0;
}

void Machine::finish_at(uint64_t time, size_t i) {
  due_[i] = time;
  at(time, Event::kDone, i);
}

// Delays a victim and the unit with priority: GEMM and ALU refuse the victim's read kRefusals times, then yield a
// cycle.
void Machine::contend(Victim& v, Unit first) {
  // ALU takes its next command after its pipeline, GEMM after its last step.
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

void Machine::contend(Victim& v) {
  contend(v, Unit::kGemm);
  contend(v, Unit::kAlu);
}

void Machine::done(size_t i) {
  if (due_[i] > now_) return at(due_[i], Event::kDone, i);
  Class& k = classes_[class_of(i)];
  for (Flight& f : k.flights)
    if (f.instruction == i) f.done = true;
  retire(class_of(i));
}

// Gives tokens in order; a token given now can be taken in the next cycle.
void Machine::retire(size_t c) {
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
    if (config_.in_order) {  // decode takes the next instruction
      dispatched_at_ = now_;
      at(now_, Event::kDispatch, 0);
    }
    for (size_t other = 0; other < spec::kEngines; ++other) {
      const bool frees = other == c || !config_.accumulator_engine;  // all classes that load share the engine
      if (frees || ((masks.signal >> other) & 1) != 0) try_at(now_ + 1, other);
    }
  }
}

void Machine::retire_blocked() {
  for (size_t c = 0; c < spec::kEngines; ++c) retire(c);
}

void Machine::interval(size_t c, Interval::Kind kind, size_t i, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  (kind == Interval::Kind::kBusy ? result_.busy : result_.stall)[c] += end - begin;
  if (record_) result_.timeline.push_back({static_cast<uint8_t>(c), kind, stream_[i].index, begin, end});
}

}  // namespace tenon::sim::timing
