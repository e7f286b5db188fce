// A launch from its start to its end: decoding, queues, tokens, execution, and the reasons for a stop.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/behavioral/machine.h"

namespace tenon::sim {

using spec::Engine;
using spec::engine_of;
using spec::StopCode;
using spec::tokens_of;

namespace {

std::string list_of(const Tokens& tokens) {
  std::string text;
  for (size_t p = 0; p < spec::kEngines; ++p) {
    for (size_t c = 0; c < spec::kEngines; ++c) {
      if (tokens.at(p, c) == 0) continue;
      text += fmt::format("{}{}->{}: {}", text.empty() ? "" : ", ", name(static_cast<Engine>(p)),
                          name(static_cast<Engine>(c)), tokens.at(p, c));
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace

void Behavioral::clear_queues() {
  for (Queue& q : queues_) q = {};
  dispatched_ = 0;
}

void Behavioral::start() {
  registers_.start();
  explanation_.clear();
  instructions_done_ = macs_ = executed_steps_ = 0;
  next_engine_ = 0;
  timing_.reset();
  clear_queues();
  stream_ = registers_.stream();
  for (uint32_t i = 0; i < spec::kBases; ++i) bases_[i] = registers_.base(i);
  profile_ = registers_.profile();
  tokens_at_start_ = tokens_;
  decode_stream();
  const uint64_t bytes = uint64_t{registers_.count()} * spec::kSlotBytes;
  races_.begin_launch(profile_, {stream_, stream_ + bytes});
}

// Decodes the whole stream at once, as the fetcher would see it: a store that changes the stream is a race.
void Behavioral::decode_stream() {
  program_.clear();
  decode_error_.reset();
  const auto refuse = [&](StopCode code, uint32_t slot, std::string message) {
    decode_error_ = spec::DecodeError{code, slot, std::move(message)};
  };
  const bool has_profile = profile_ == spec::Profile::kBase ? isa_.config().base : isa_.config().native;
  if (!has_profile) {
    return refuse(StopCode::kProfileOff, 0,
                  fmt::format("configuration {} has no {} profile", isa_.config().name, name(profile_)));
  }
  if (stream_ % spec::kSlotBytes != 0) {
    return refuse(StopCode::kUnaligned, 0,
                  fmt::format("the stream's address {:#x} must be a multiple of {}", stream_, spec::kSlotBytes));
  }
  const uint32_t count = registers_.count();
  const uint64_t size = memory().size();
  const uint64_t available = stream_ >= size ? 0 : (size - stream_) / spec::kSlotBytes;
  const auto readable = static_cast<uint32_t>(std::min<uint64_t>(count, available));
  std::vector<spec::Slot> slots(readable);
  if (readable > 0) std::memcpy(slots.data(), memory().data() + stream_, slots.size() * sizeof(spec::Slot));
  const uint32_t width = profile_ == spec::Profile::kNative ? 2 : 1;
  bool finished = false;
  for (uint32_t slot = 0; slot < count; slot += width) {
    if (finished) return refuse(StopCode::kAfterFinish, slot, "an instruction after FINISH");
    if (slot + width > readable && readable < count) {
      return refuse(StopCode::kReadError, slot,
                    fmt::format("slot {} at {:#x} is outside the memory of {} bytes", slot,
                                stream_ + uint64_t{slot} * spec::kSlotBytes, size));
    }
    auto instruction = isa_.decode(slots, slot, profile_);
    if (!instruction) {
      decode_error_ = std::move(instruction.error());
      return;
    }
    finished = std::holds_alternative<spec::base::Finish>(*instruction) ||
               std::holds_alternative<spec::native::Finish>(*instruction);
    program_.push_back({std::move(*instruction), slot});
  }
}

void Behavioral::stop(StopCode code, uint32_t slot, std::string why) {
  registers_.stop(code, slot);
  explanation_ = std::move(why);
}

std::string Behavioral::describe(uint32_t slot) const {
  const auto it = std::ranges::lower_bound(program_, slot, {}, &spec::Decoded::index);
  if (it == program_.end() || it->index != slot) return fmt::format("instruction {}", slot);
  return fmt::format("instruction {} ({})", slot, isa_.disassemble(it->instruction));
}

void Behavioral::dispatch() {
  while (dispatched_ < program_.size()) {
    Queue& q = queues_[static_cast<size_t>(engine_of(program_[dispatched_].instruction))];
    if (q.instructions.size() == static_cast<size_t>(isa_.config().queue_depth)) return;
    if (isa_.config().in_order && !std::ranges::all_of(queues_, [](const Queue& k) { return k.empty(); })) return;
    q.instructions.push_back(static_cast<uint32_t>(dispatched_++));
  }
}

// Executes one instruction, or stops the run where it is illegal; returns whether the run goes on.
bool Behavioral::execute(const spec::Decoded& d, Engine engine) {
  const auto& instruction = d.instruction;
  if (auto outside = find_footprint(isa_, instruction, bases_, executor_.uops(), footprint_)) {
    stop(StopCode::kScratchpadRange, d.index, describe(d.index) + " " + outside->message);
    return false;
  }
  if (footprint_.dma && footprint_.dma->units() > 0) {
    if (const auto range = executor_.outside_dram(*footprint_.dma)) {
      stop(footprint_.dma->store ? StopCode::kWriteError : StopCode::kReadError, d.index,
           fmt::format("{} {} dram[{:#x}..{:#x}], but memory has {:#x} bytes", describe(d.index),
                       footprint_.dma->store ? "writes" : "reads", range->begin, range->end - 1, memory().size()));
      return false;
    }
  }
  if (options_.detect_races) {
    if (const auto c = races_.access(engine, d.index, footprint_)) {
      if (!c->race) {
        stop(StopCode::kUninitialised, d.index,
             fmt::format("{} on {} reads {}, which no earlier instruction writes", describe(d.index), name(engine),
                         c->region));
      } else {
        stop(StopCode::kRace, d.index,
             fmt::format("{} on {} {} {}, which {} on {} {}, and no token orders the two", describe(d.index),
                         name(engine), c->writes ? "writes" : "reads", c->region, describe(c->other),
                         c->with_fetch ? "the fetcher" : name(c->other_engine), c->other_writes ? "writes" : "reads"));
      }
      return false;
    }
  }
  executor_.execute(instruction, footprint_);
  macs_ += footprint_.macs;
  if (observer_ != nullptr) executor_.report(instruction, d.index, footprint_, *observer_);
  return true;
}

bool Behavioral::step(size_t e) {
  Queue& q = queues_[e];
  const auto engine = static_cast<Engine>(e);
  const auto for_each_engine = [](unsigned mask, auto&& f) {
    for (size_t i = 0; i < spec::kEngines; ++i)
      if (((mask >> i) & 1) != 0) f(static_cast<Engine>(i));
  };
  bool progressed = false;
  if (!q.giving) {
    if (q.instructions.empty()) return false;
    const spec::Decoded& d = program_[q.instructions.front()];
    const unsigned wait = tokens_of(d.instruction).wait;
    if (!tokens_.can_take(e, wait)) return false;
    tokens_.take(e, wait);
    if (options_.detect_races) for_each_engine(wait, [&](Engine p) { races_.pop(p, engine); });
    if (!execute(d, engine)) return true;
    executed_steps_ += timing::steps(isa_.config(), d.instruction) + 1;
    q.giving = q.instructions.front();
    q.instructions.pop_front();
    progressed = true;
  }
  const unsigned signal = tokens_of(program_[*q.giving].instruction).signal;
  if (!tokens_.can_give(e, signal)) return progressed;
  tokens_.give(e, signal);
  if (options_.detect_races) for_each_engine(signal, [&](Engine c) { races_.push(engine, c); });
  q.giving.reset();
  ++instructions_done_;
  return true;
}

bool Behavioral::advance(uint64_t cycles) {
  const uint64_t limit = executed_steps_ + std::max<uint64_t>(cycles, 1);
  while (registers_.busy() && executed_steps_ < limit) {
    dispatch();
    if (dispatched_ == program_.size() && decode_error_) {
      stop(decode_error_->code, decode_error_->index,
           fmt::format("instruction {}: {}", decode_error_->index, decode_error_->message));
      break;
    }
    bool progressed = false;
    for (size_t i = 0; i < spec::kEngines && !progressed && registers_.busy(); ++i) {
      progressed = step((next_engine_ + i) % spec::kEngines);
      if (progressed) next_engine_ = (next_engine_ + i + 1) % spec::kEngines;
    }
    if (progressed) continue;
    const bool drained = std::ranges::all_of(queues_, [](const Queue& q) { return q.empty(); });
    if (drained && dispatched_ == program_.size()) registers_.end();
    else report_deadlock();
  }
  return registers_.busy();
}

void Behavioral::report_deadlock() {
  std::string text = "deadlock: no engine can make progress";
  uint32_t oldest = UINT32_MAX;
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Queue& q = queues_[e];
    if (q.empty()) continue;
    const spec::Decoded& d = program_[q.giving ? *q.giving : q.instructions.front()];
    oldest = std::min(oldest, d.index);
    const spec::TokenMasks masks = tokens_of(d.instruction);
    text += fmt::format("\n  {}: {} {}", name(static_cast<Engine>(e)), describe(d.index),
                        q.giving ? "cannot give its tokens to" : "waits for tokens of");
    for (size_t i = 0; i < spec::kEngines; ++i) {
      const unsigned mask = q.giving ? masks.signal : masks.wait;
      if (((mask >> i) & 1) == 0) continue;
      const bool blocks = q.giving ? tokens_.at(e, i) == spec::kMaxTokens : tokens_.at(i, e) == 0;
      if (blocks) text += fmt::format(" {}", name(static_cast<Engine>(i)));
    }
    text += fmt::format("; {} more in its queue", q.instructions.size() - (q.giving ? 0 : 1));
  }
  if (dispatched_ < program_.size()) {
    const spec::Decoded& d = program_[dispatched_];
    text += fmt::format("\n  fetch: {} finds the queue of {} full", describe(d.index), name(engine_of(d.instruction)));
  }
  text += fmt::format("\n  tokens: {}", list_of(tokens_));
  stop(StopCode::kDeadlock, oldest, std::move(text));
}

}  // namespace tenon::sim
