#include "sim/behavioral/behavioral.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "hw/spec/registers.h"
#include "sim/behavioral/executor.h"
#include "sim/behavioral/footprint.h"
#include "sim/behavioral/race.h"
#include "sim/timing/tokens.h"

namespace tenon::sim {
namespace {

using spec::Engine;
using spec::engine_of;
using spec::StopCode;
using spec::tokens_of;
namespace reg = spec::reg;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Dram = std::unique_ptr<std::byte[], Free>;

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

class Behavioral final : public Simulator {
 public:
  Behavioral(const spec::Config& config, BehavioralOptions options, const Kernels& kernels, Dram dram)
      : isa_(config),
        options_(std::move(options)),
        dram_(std::move(dram)),
        executor_(isa_, kernels, memory()),
        footprint_(config),
        races_(config) {}

  const spec::Config& config() const override { return isa_.config(); }
  std::span<std::byte> memory() override {
    return dram_ ? std::span(dram_.get(), static_cast<size_t>(options_.memory_bytes)) : options_.memory;
  }
  void observe(WriteObserver* observer) override { observer_ = observer; }
  void record_timeline(bool on) override { record_timeline_ = on; }
  std::string explain() override { return explanation_; }
  std::span<const Interval> timeline() const override {
    return record_timeline_ ? const_cast<Behavioral*>(this)->timing().timeline : std::span<const Interval>{};
  }

  uint32_t read_register(uint32_t offset) override;
  void write_register(uint32_t offset, uint32_t value) override;
  bool advance(uint64_t cycles) override;

 private:
  struct Queue {
    std::deque<uint32_t> instructions;  // positions in program_; one leaves the queue when it starts
    std::optional<uint32_t> giving;     // done, but a counter is full
    bool empty() const { return instructions.empty() && !giving; }
  };

  void start();
  void end();
  void stop(StopCode code, uint32_t slot, std::string why);
  void decode_stream();
  void clear_queues();
  void dispatch();
  bool step(size_t engine);  // whether something happened
  bool execute(const spec::Decoded& d, Engine engine);
  void report_deadlock();
  std::string say(uint32_t slot) const;
  const timing::Result& timing();

  const spec::Isa isa_;
  const uint64_t hash_ = spec::hash(isa_.config());
  const BehavioralOptions options_;
  Dram dram_;
  Executor executor_;
  Footprint footprint_;
  RaceDetector races_;
  Tokens tokens_, tokens_at_start_;
  WriteObserver* observer_ = nullptr;
  bool record_timeline_ = false;

  std::array<uint32_t, spec::kRegisterSpaceBytes / 4> arguments_{};  // the writable registers
  bool done_ = false, ready_ = false, busy_ = false;
  uint32_t interrupt_status_ = 0;
  StopCode code_ = StopCode::kNone;
  uint32_t error_index_ = 0;
  std::string explanation_;

  // The launch.
  spec::Profile profile_ = spec::Profile::kBase;
  uint64_t stream_ = 0;
  Bases bases_{};
  std::vector<spec::Decoded> program_;
  std::optional<spec::DecodeError> decode_error_;  // behind the last of program_
  size_t dispatched_ = 0;
  std::array<Queue, spec::kEngines> queues_;
  size_t next_engine_ = 0;
  uint64_t instructions_done_ = 0, macs_ = 0, executed_steps_ = 0;
  std::optional<timing::Result> timing_;
  timing::Result running_;
};

uint32_t Behavioral::read_register(uint32_t offset) {
  const auto half = [offset](uint64_t value) { return static_cast<uint32_t>((offset & 4) != 0 ? value >> 32 : value); };
  const auto in = [offset](uint32_t base, uint32_t count) { return offset >= base && offset < base + 8 * count; };
  if (offset % 4 != 0 || offset >= spec::kRegisterSpaceBytes) return 0;
  if (in(reg::kBusy0, spec::kEngines)) return half(timing().busy[(offset - reg::kBusy0) / 8]);
  if (in(reg::kStall0, spec::kEngines)) return half(timing().stall[(offset - reg::kStall0) / 8]);
  if (offset >= reg::kTokens && offset < reg::kTokens + spec::kEngines * spec::kEngines) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const size_t counter = offset - reg::kTokens + i;
      if (counter < tokens_.counters().size()) value |= uint32_t{tokens_.counters()[counter]} << (8 * i);
    }
    return value;
  }
  switch (offset & ~uint32_t{4}) {
    case reg::kCycles: return half(timing().cycles);
    case reg::kInstructionsDone: return half(instructions_done_);
    case reg::kMacs: return half(macs_);
    case reg::kReadBeats: return half(timing().read_beats);
    case reg::kWriteBeats: return half(timing().write_beats);
    case reg::kReadBursts: return half(timing().read_bursts);
    case reg::kWriteBursts: return half(timing().write_bursts);
    case reg::kConfigHash: return half(hash_);
    default: break;
  }
  switch (offset) {
    case reg::kControl: {
      const uint32_t value =
          (busy_ ? spec::kApStart : spec::kApIdle) | (done_ ? spec::kApDone : 0) | (ready_ ? spec::kApReady : 0);
      done_ = ready_ = false;
      return value;
    }
    case reg::kInterruptStatus: return interrupt_status_;
    case reg::kCommand: return 0;
    case reg::kStatus: return static_cast<uint32_t>(code_) | (busy_ ? spec::kStatusBusy : 0);
    case reg::kErrorIndex: return error_index_;
    case reg::kVersion: return uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion;
    case reg::kCapabilities: {
      const unsigned engines = ((1u << spec::kEngines) - 1) & ~spec::bit(Engine::kDw);
      return (isa_.config().base ? 1u : 0u) | (isa_.config().native ? 2u : 0u) | engines << 8;
    }
    case reg::kTokenWait: {
      uint32_t waiting = 0;
      for (size_t e = 0; e < spec::kEngines; ++e) {
        const Queue& q = queues_[e];
        if (q.instructions.empty()) continue;
        if (!tokens_.can_take(e, tokens_of(program_[q.instructions.front()].instruction).wait)) waiting |= 1u << e;
      }
      return waiting;
    }
    default: return arguments_[offset / 4];
  }
}

void Behavioral::write_register(uint32_t offset, uint32_t value) {
  if (offset % 4 != 0 || offset >= spec::kRegisterSpaceBytes) return;
  switch (offset) {
    case reg::kControl:
      if ((value & spec::kApStart) != 0 && !busy_) start();
      return;
    case reg::kInterruptStatus: interrupt_status_ ^= value & 3; return;
    case reg::kCommand:
      if ((value & (spec::kSoftReset | spec::kTokenClear)) != 0) {
        tokens_.clear();
        races_.clear_tokens();
      }
      if ((value & spec::kSoftReset) != 0) {
        clear_queues();
        busy_ = done_ = ready_ = false;
        code_ = StopCode::kNone;
        error_index_ = 0;
        interrupt_status_ = 0;
        explanation_.clear();
        instructions_done_ = macs_ = 0;
        program_.clear();
        timing_.emplace();
      }
      return;
    default: break;
  }
  const bool writable = offset == reg::kGlobalInterruptEnable || offset == reg::kInterruptEnable ||
                        (offset >= reg::kInstructions && offset < reg::kBase0 + 8 * spec::kBases);
  if (writable) arguments_[offset / 4] = value;
}

void Behavioral::clear_queues() {
  for (Queue& q : queues_) q = {};
  dispatched_ = 0;
}

void Behavioral::start() {
  const auto argument = [&](uint32_t offset) {
    return arguments_[offset / 4] | uint64_t{arguments_[offset / 4 + 1]} << 32;
  };
  busy_ = true;
  done_ = ready_ = false;
  code_ = StopCode::kNone;
  error_index_ = 0;
  explanation_.clear();
  instructions_done_ = macs_ = executed_steps_ = 0;
  next_engine_ = 0;
  timing_.reset();
  clear_queues();
  stream_ = argument(reg::kInstructions);
  for (uint32_t i = 0; i < spec::kBases; ++i) bases_[i] = argument(reg::kBase0 + 8 * i);
  profile_ = (arguments_[reg::kMode / 4] & spec::kModeNative) != 0 ? spec::Profile::kNative : spec::Profile::kBase;
  tokens_at_start_ = tokens_;
  decode_stream();
  const uint64_t bytes = uint64_t{arguments_[reg::kCount / 4]} * spec::kSlotBytes;
  races_.begin_launch(profile_, {stream_, stream_ + bytes});
}

// The whole stream at once: what the fetcher would see, unless a store changes it, which the race detector refuses.
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
                  fmt::format("the stream's address {:#x} is no multiple of {}", stream_, spec::kSlotBytes));
  }
  const uint32_t count = arguments_[reg::kCount / 4];
  const uint64_t size = memory().size();
  const uint64_t available = stream_ >= size ? 0 : (size - stream_) / spec::kSlotBytes;
  const auto readable = static_cast<uint32_t>(std::min<uint64_t>(count, available));
  std::vector<spec::Slot> slots(readable);
  if (readable > 0) std::memcpy(slots.data(), memory().data() + stream_, slots.size() * sizeof(spec::Slot));
  const uint32_t width = profile_ == spec::Profile::kNative ? 2 : 1;
  bool finished = false;
  for (uint32_t slot = 0; slot < count; slot += width) {
    if (finished) return refuse(StopCode::kAfterFinish, slot, "an instruction behind FINISH");
    if (slot + width > readable && readable < count) {
      return refuse(StopCode::kReadError, slot,
                    fmt::format("slot {} at {:#x} lies outside memory of {} bytes", slot,
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

void Behavioral::end() {
  busy_ = false;
  done_ = ready_ = true;
  if ((arguments_[reg::kInterruptEnable / 4] & 1) != 0) interrupt_status_ |= 1;
  if ((arguments_[reg::kInterruptEnable / 4] & 2) != 0) interrupt_status_ |= 2;
}

void Behavioral::stop(StopCode code, uint32_t slot, std::string why) {
  code_ = code;
  error_index_ = slot;
  explanation_ = std::move(why);
  end();
}

std::string Behavioral::say(uint32_t slot) const {
  const auto it = std::ranges::lower_bound(program_, slot, {}, &spec::Decoded::index);
  if (it == program_.end() || it->index != slot) return fmt::format("instruction {}", slot);
  return fmt::format("instruction {} ({})", slot, isa_.disassemble(it->instruction));
}

void Behavioral::dispatch() {
  while (dispatched_ < program_.size()) {
    Queue& q = queues_[static_cast<size_t>(engine_of(program_[dispatched_].instruction))];
    if (q.instructions.size() == static_cast<size_t>(isa_.config().queue_depth)) return;
    q.instructions.push_back(static_cast<uint32_t>(dispatched_++));
  }
}

// Executes one instruction, or finds out why it cannot be; returns whether the run goes on.
bool Behavioral::execute(const spec::Decoded& d, Engine engine) {
  const auto& instruction = d.instruction;
  if (auto outside = find_footprint(isa_, instruction, bases_, executor_.uops(), footprint_)) {
    stop(StopCode::kScratchpadRange, d.index, say(d.index) + " " + outside->message);
    return false;
  }
  if (footprint_.dma && footprint_.dma->units() > 0) {
    if (const auto range = executor_.outside_dram(*footprint_.dma)) {
      stop(footprint_.dma->store ? StopCode::kWriteError : StopCode::kReadError, d.index,
           fmt::format("{} {} dram[{:#x}..{:#x}], but memory has {:#x} bytes", say(d.index),
                       footprint_.dma->store ? "writes" : "reads", range->begin, range->end - 1, memory().size()));
      return false;
    }
  }
  if (options_.detect_races) {
    if (const auto c = races_.access(engine, d.index, footprint_)) {
      if (!c->race) {
        stop(StopCode::kUninitialised, d.index,
             fmt::format("{} on {} reads {}, which no instruction has written so far", say(d.index), name(engine),
                         c->region));
      } else {
        stop(StopCode::kRace, d.index,
             fmt::format("{} on {} {} {}, which {} on {} {}, and no token orders the two", say(d.index), name(engine),
                         c->writes ? "writes" : "reads", c->region, say(c->other),
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
  const auto each = [](unsigned mask, auto&& f) {
    for (size_t i = 0; i < spec::kEngines; ++i)
      if (((mask >> i) & 1) != 0) f(static_cast<Engine>(i));
  };
  bool happened = false;
  if (!q.giving) {
    if (q.instructions.empty()) return false;
    const spec::Decoded& d = program_[q.instructions.front()];
    const unsigned wait = tokens_of(d.instruction).wait;
    if (!tokens_.can_take(e, wait)) return false;
    tokens_.take(e, wait);
    if (options_.detect_races) each(wait, [&](Engine p) { races_.pop(p, engine); });
    if (!execute(d, engine)) return true;
    executed_steps_ += timing::steps(isa_.config(), d.instruction) + 1;
    q.giving = q.instructions.front();
    q.instructions.pop_front();
    happened = true;
  }
  const unsigned signal = tokens_of(program_[*q.giving].instruction).signal;
  if (!tokens_.can_give(e, signal)) return happened;
  tokens_.give(e, signal);
  if (options_.detect_races) each(signal, [&](Engine c) { races_.push(engine, c); });
  q.giving.reset();
  ++instructions_done_;
  return true;
}

bool Behavioral::advance(uint64_t cycles) {
  const uint64_t limit = executed_steps_ + std::max<uint64_t>(cycles, 1);
  while (busy_ && executed_steps_ < limit) {
    dispatch();
    if (dispatched_ == program_.size() && decode_error_) {
      stop(decode_error_->code, decode_error_->index,
           fmt::format("instruction {}: {}", decode_error_->index, decode_error_->message));
      break;
    }
    bool happened = false;
    for (size_t i = 0; i < spec::kEngines && !happened && busy_; ++i) {
      happened = step((next_engine_ + i) % spec::kEngines);
      if (happened) next_engine_ = (next_engine_ + i + 1) % spec::kEngines;
    }
    if (happened) continue;
    const bool drained = std::ranges::all_of(queues_, [](const Queue& q) { return q.empty(); });
    if (drained && dispatched_ == program_.size()) end();
    else report_deadlock();
  }
  return busy_;
}

void Behavioral::report_deadlock() {
  std::string text = "deadlock: nothing can happen any more";
  uint32_t oldest = UINT32_MAX;
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Queue& q = queues_[e];
    if (q.empty()) continue;
    const spec::Decoded& d = program_[q.giving ? *q.giving : q.instructions.front()];
    oldest = std::min(oldest, d.index);
    const spec::TokenMasks masks = tokens_of(d.instruction);
    text += fmt::format("\n  {}: {} {}", name(static_cast<Engine>(e)), say(d.index),
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
    text += fmt::format("\n  fetch: {} finds the queue of {} full", say(d.index), name(engine_of(d.instruction)));
  }
  text += fmt::format("\n  tokens: {}", list_of(tokens_));
  stop(StopCode::kDeadlock, oldest, std::move(text));
}

const timing::Result& Behavioral::timing() {
  if (!timing_) {
    const timing::Launch launch{profile_, stream_, bases_, tokens_at_start_.counters()};
    // Of a run that stopped, what was dispatched.
    auto result =
        timing::run(isa_.config(), launch, std::span(program_).first(dispatched_), record_timeline_, options_.timing);
    if (busy_) return running_ = std::move(result);  // not over: asked again, it will be longer
    timing_ = std::move(result);
  }
  return *timing_;
}

}  // namespace

Expected<std::unique_ptr<Simulator>> make_behavioral(const spec::Config& config, const BehavioralOptions& options) {
  if (auto status = spec::validate(config, config.name); !status) return forward_error(status);
  const Kernels* kernels = find_kernels(options.kernels);
  if (kernels == nullptr) {
    std::string known;
    for (const Kernels* k : all_kernels()) known += fmt::format("{}{}", known.empty() ? "" : ", ", k->name);
    return error(fmt::format("this machine has no kernels \"{}\"", options.kernels), "behavioral simulator",
                 fmt::format("the sets are {}; leave the option out for the fastest that runs here", known));
  }
  // calloc leaves pages untouched until they are used.
  Dram dram;
  if (options.memory.empty())
    dram.reset(static_cast<std::byte*>(std::calloc(std::max<size_t>(options.memory_bytes, 1), 1)));
  if (!dram && options.memory.empty()) {
    return error(fmt::format("cannot allocate {} bytes for the accelerator's memory", options.memory_bytes),
                 "behavioral simulator", "ask for less memory");
  }
  return std::make_unique<Behavioral>(config, options, *kernels, std::move(dram));
}

}  // namespace tenon::sim
