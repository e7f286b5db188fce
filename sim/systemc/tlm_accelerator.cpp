#include "sim/systemc/tlm_accelerator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/timing/transfer_plan.h"

namespace tenon::sim::systemc {
namespace {

using spec::StopCode;
using spec::tokens_of;
using timing::Unit;

constexpr size_t kInFlight = 2;  // instructions that an engine has started

}  // namespace

AcceleratorModule::AcceleratorModule(const sc_core::sc_module_name& name)
    : sc_module(name), control("control"), interrupt("interrupt") {
  control.register_b_transport(this, &AcceleratorModule::transport);
}

void AcceleratorModule::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const uint64_t address = payload.get_address();
  delay += cycles(kRegisterCycles);
  if (payload.get_data_length() != 4 || payload.get_streaming_width() < 4) {
    return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  if (payload.get_byte_enable_ptr() != nullptr) {
    return payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  }
  if (address % 4 != 0 || address >= spec::kRegisterSpaceBytes) {
    return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  auto* word = reinterpret_cast<uint32_t*>(payload.get_data_ptr());
  if (payload.is_read()) *word = read_register(static_cast<uint32_t>(address));
  if (payload.is_write()) write_register(static_cast<uint32_t>(address), *word);
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

TlmAccelerator::TlmAccelerator(const sc_core::sc_module_name& name, const spec::Config& config,
                               const KernelSet& kernels, std::span<std::byte> window,
                               const timing::Parameters& parameters)
    : AcceleratorModule(name),
      isa_(config),
      parameters_(parameters),
      window_(window),
      kernels_(kernels),
      footprint_(config),
      registers_(config) {
  power_on();
  sc_core::sc_spawn_options options;
  options.set_stack_size(1 << 18);
  sc_core::sc_spawn([this] { process([this] { fetch(); }); }, "fetch", &options);
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const std::string engine(spec::name(static_cast<spec::Engine>(e)));
    sc_core::sc_spawn([this, e] { process([this, e] { start_next(e); }); }, (engine + "_start").c_str(), &options);
    sc_core::sc_spawn([this, e] { process([this, e] { retire_next(e); }); }, (engine + "_retire").c_str(), &options);
  }
}

void TlmAccelerator::power_on() { executor_.emplace(isa_, kernels_, window_); }

// Registers
// -----------------------------------------------------------------------------------------------------------

uint32_t TlmAccelerator::read_register(uint32_t offset) { return registers_.read(offset, *this, tokens_); }

void TlmAccelerator::write_register(uint32_t offset, uint32_t value) {
  switch (registers_.write(offset, value)) {
    case RegisterFile::Request::kNone: break;
    case RegisterFile::Request::kStart: start(); break;
    case RegisterFile::Request::kReset:
      registers_.reset();
      abandon();
      [[fallthrough]];
    case RegisterFile::Request::kClearTokens: tokens_.clear(); break;
  }
  interrupt.write(registers_.interrupt());
}

const timing::Result& TlmAccelerator::counters() {
  if (registers_.busy()) counters_.cycles = now_in_cycles() - begin_;
  return counters_;
}

RegisterFile::Progress TlmAccelerator::progress() {
  RegisterFile::Progress progress;
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Engine& k = engines_[e];
    if (k.queue.empty() && k.flights.empty()) continue;
    const size_t oldest = k.flights.empty() ? k.queue.front() : k.flights.front().instruction;
    progress.engines[e] = {.has = true,
                           .in_flight = !k.flights.empty(),
                           .waits = !k.queue.empty() && !has_tokens(k, e),
                           .slot = program_[oldest].index};
  }
  progress.decoded = decoded_;
  return progress;
}

void TlmAccelerator::start() {
  abandon();
  registers_.start();
  begin_ = now_in_cycles();
  channel_free_ = begin_;
  stream_ = registers_.stream();
  for (uint32_t i = 0; i < spec::kBases; ++i) bases_[i] = registers_.base(i);
  profile_ = registers_.profile();
  fetched_ = false;
}

// Clears all state but arguments and tokens. Processes abandon their work: every transfer so far is complete, so memory
// never sees a part of a burst.
void TlmAccelerator::abandon() {
  ++launch_;
  over_.notify(sc_core::SC_ZERO_TIME);
  changed();
  explanation_.clear();
  instructions_done_ = macs_ = 0;
  decoded_ = 0;
  counters_ = {};
  timeline_.clear();
  program_.clear();
  for (Engine& k : engines_) k = {};
  fetched_ = true;
  fetch_blocked_on_.reset();
}

void TlmAccelerator::end(StopCode code, uint32_t slot) {
  registers_.stop(code, slot);
  counters_.cycles = now_in_cycles() - begin_ + static_cast<uint64_t>(parameters_.launch);
  interrupt.write(registers_.interrupt());
  ++launch_;
  over_.notify(sc_core::SC_ZERO_TIME);
}

void TlmAccelerator::stop(StopCode code, uint32_t slot, std::string why) {
  explanation_ = std::move(why);
  end(code, slot);
}

std::string TlmAccelerator::describe(size_t instruction) const {
  return fmt::format("instruction {} ({})", program_[instruction].index,
                     isa_.disassemble(program_[instruction].instruction));
}

// Processes
// -----------------------------------------------------------------------------------------------------------

void TlmAccelerator::process(FunctionRef<void()> body) {
  while (true) {
    try {
      body();
    } catch (const Abandoned&) {
    }
  }
}

void TlmAccelerator::until(FunctionRef<bool()> ready) {
  while (!registers_.busy() || !ready()) {
    const uint64_t launch = launch_;
    if (registers_.busy()) check_quiet();
    sc_core::wait(changed_);
    if (launch != launch_) throw Abandoned();
  }
}

void TlmAccelerator::pause(uint64_t count) {
  const uint64_t launch = launch_;
  sc_core::wait(cycles(count), over_);
  if (launch != launch_) throw Abandoned();
}

void TlmAccelerator::pause_until(uint64_t cycle) {
  const uint64_t now = now_in_cycles();
  if (cycle > now) pause(cycle - now);
}

bool TlmAccelerator::has_tokens(const Engine& k, size_t e) const {
  return tokens_.can_take(e, tokens_of(program_[k.queue.front()].instruction).wait);
}

bool TlmAccelerator::can_start(const Engine& k, size_t e) const {
  if (k.queue.empty() || k.flights.size() == kInFlight || !has_tokens(k, e)) return false;
  if (k.flights.empty()) return true;
  // Units of a class run one after the other, but loads of inputs and of weights overlap.
  const Unit unit = timing::unit_of(isa_.config(), program_[k.queue.front()].instruction);
  const Unit before = k.flights.back().unit;
  return unit == Unit::kNone || unit == before || (unit <= Unit::kLdw && before <= Unit::kLdw);
}

bool TlmAccelerator::has_room(size_t engine) const {
  const spec::Config& config = isa_.config();
  const bool turn = !config.in_order ||
                    std::ranges::all_of(engines_, [](const Engine& k) { return k.queue.empty() && k.flights.empty(); });
  return turn && engines_[engine].queue.size() < static_cast<size_t>(config.queue_depth);
}

bool TlmAccelerator::quiet() const {
  if (!fetched_) {
    if (!fetch_blocked_on_) return false;
    if (has_room(*fetch_blocked_on_)) return false;
  }
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Engine& k = engines_[e];
    if (k.starting || can_start(k, e)) return false;
    if (k.flights.empty()) continue;
    const Flight& oldest = k.flights.front();
    if (!oldest.done || tokens_.can_give(e, tokens_of(program_[oldest.instruction].instruction).signal)) return false;
  }
  return true;
}

void TlmAccelerator::check_quiet() {
  if (!quiet()) return;
  std::string text = "deadlock: no engine can make progress";
  uint32_t oldest = UINT32_MAX;
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Engine& k = engines_[e];
    if (k.queue.empty() && k.flights.empty()) continue;
    const size_t i = k.flights.empty() ? k.queue.front() : k.flights.front().instruction;
    oldest = std::min(oldest, program_[i].index);
    text += fmt::format("\n  {}: {} {}; {} more in its queue", spec::name(static_cast<spec::Engine>(e)), describe(i),
                        k.flights.empty() ? "waits for tokens" : "cannot give its tokens, a counter is full",
                        k.queue.size() - (k.flights.empty() ? 1 : 0));
  }
  if (oldest == UINT32_MAX) return end(StopCode::kNone, 0);
  if (fetch_blocked_on_) {
    text +=
        fmt::format("\n  fetch finds the queue of {} full", spec::name(static_cast<spec::Engine>(*fetch_blocked_on_)));
  }
  stop(StopCode::kDeadlock, oldest, std::move(text));
}

void TlmAccelerator::record(size_t e, Interval::Kind kind, size_t instruction, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  (kind == Interval::Kind::kBusy ? counters_.busy : counters_.stall)[e] += end - begin;
  if (!record_) return;
  timeline_.push_back({static_cast<uint8_t>(e), kind, program_[instruction].index, begin - begin_, end - begin_});
}

// Fetch
// -----------------------------------------------------------------------------------------------------------

// Copies slots [first, first + count) to the window; a read error stops the run at slot `first`.
bool TlmAccelerator::fetch_slots(uint64_t first, uint32_t count) {
  const uint64_t address = stream_ + first * spec::kSlotBytes, bytes = uint64_t{count} * spec::kSlotBytes;
  const bool inside = address >= stream_ && address <= window_.size() && bytes <= window_.size() - address;
  if (inside && memory.read(address, window_.data() + address, bytes)) return true;
  stop(StopCode::kReadError, static_cast<uint32_t>(first),
       fmt::format("slot {} at {:#x} is outside the memory", first, address));
  return false;
}

void TlmAccelerator::fetch() {
  until([this] { return !fetched_; });
  const spec::Config& config = isa_.config();
  const auto refuse = [&](StopCode code, uint32_t slot, std::string why) {
    stop(code, slot, fmt::format("instruction {}: {}", slot, why));
  };
  const bool has_profile = profile_ == spec::Profile::kBase ? config.base : config.native;
  if (!has_profile) {
    return refuse(StopCode::kProfileOff, 0,
                  fmt::format("configuration {} has no {} profile", config.name, spec::name(profile_)));
  }
  if (stream_ % spec::kSlotBytes != 0) {
    return refuse(StopCode::kUnaligned, 0,
                  fmt::format("the stream's address {:#x} must be a multiple of {}", stream_, spec::kSlotBytes));
  }
  const uint32_t count = registers_.count();
  const uint32_t width = profile_ == spec::Profile::kNative ? 2 : 1;
  std::vector<spec::Slot> slots;
  bool finished = false;
  uint32_t fetched = 0;
  for (uint32_t slot = 0; slot < count; slot += width) {
    if (fetched < std::min(slot + width, count)) {
      // A burst of the fetcher: at most 16 beats, and not across 4 KiB.
      std::vector<timing::Burst> bursts;
      const uint64_t address = stream_ + uint64_t{fetched} * spec::kSlotBytes;
      const uint64_t max_bytes = std::max<uint64_t>(16 * static_cast<uint64_t>(config.axi_bytes()), 32);
      const uint64_t to_boundary = timing::kBurstBoundary - address % timing::kBurstBoundary;
      const uint64_t bytes = std::min({uint64_t{count - fetched} * spec::kSlotBytes, max_bytes,
                                       std::max<uint64_t>(to_boundary, width * spec::kSlotBytes)});
      const auto burst_slots = static_cast<uint32_t>(bytes / spec::kSlotBytes);
      timing::append_bursts(config, address, bytes, 16, bursts);
      for (const timing::Burst& burst : bursts) {
        const uint64_t first = take_channel(burst.beats);
        if (fetched == 0) pause_until(first + burst.beats);  // later bursts arrive before their use
      }
      if (!fetch_slots(fetched, burst_slots)) return;
      fetched += burst_slots;
      slots.resize(fetched);
      std::memcpy(slots.data() + fetched - burst_slots, window_.data() + address, bytes);
    }
    if (finished) return refuse(StopCode::kAfterFinish, slot, "an instruction after FINISH");
    auto instruction = isa_.decode(slots, slot, profile_);
    if (!instruction) return refuse(instruction.error().code, instruction.error().index, instruction.error().message);
    finished = std::holds_alternative<spec::base::Finish>(*instruction) ||
               std::holds_alternative<spec::native::Finish>(*instruction);
    pause(slot == 0 ? static_cast<uint64_t>(parameters_.decode) : width);
    const auto e = static_cast<size_t>(spec::engine_of(*instruction));
    Engine& k = engines_[e];
    fetch_blocked_on_ = e;
    until([&] { return has_room(e); });
    fetch_blocked_on_.reset();
    k.queue.push_back(program_.size());
    program_.push_back({std::move(*instruction), slot});
    decoded_ = std::min(slot + width, count);
    changed();
  }
  fetched_ = true;
  changed();
}

// Engines
// -----------------------------------------------------------------------------------------------------------

void TlmAccelerator::start_next(size_t e) {
  Engine& k = engines_[e];
  until([&] { return !k.queue.empty(); });
  const uint64_t came = now_in_cycles();
  const size_t i = k.queue.front();
  until([&] { return has_tokens(k, e); });
  record(e, Interval::Kind::kWaitTokens, i, came, now_in_cycles());
  until([&] { return can_start(k, e); });
  tokens_.take(e, tokens_of(program_[i].instruction).wait);
  k.queue.pop_front();
  k.starting = true;
  changed();

  const uint64_t begin = now_in_cycles();
  uint64_t due = begin + 1;
  const spec::Instruction instruction = program_[i].instruction;  // program_ grows while time passes
  const Unit unit = timing::unit_of(isa_.config(), instruction);
  const auto dma = dma_of(isa_.config(), instruction, bases_);
  const uint64_t work = std::max<uint64_t>(timing::steps(isa_.config(), instruction), 1);
  switch (unit) {
    case Unit::kLdi:
    case Unit::kLdw:
    case Unit::kLdm: load(*dma, i, due); break;
    case Unit::kGemm:
      pause(work);
      execute(i);
      due = now_in_cycles() + static_cast<uint64_t>(parameters_.gemm_pipeline);
      break;
    case Unit::kAlu:
    case Unit::kRq:
      pause(work + static_cast<uint64_t>(unit == Unit::kAlu ? parameters_.alu_pipeline : parameters_.rq_pipeline));
      execute(i);
      due = now_in_cycles();
      break;
    case Unit::kSt: store(*dma, i, due); break;
    case Unit::kNone: execute(i); break;
  }
  k.flights.push_back({i, unit, begin, due});
  k.starting = false;
  changed();
}

void TlmAccelerator::retire_next(size_t e) {
  Engine& k = engines_[e];
  until([&] { return !k.flights.empty(); });
  pause_until(k.flights.front().due);
  k.flights.front().done = true;
  changed();
  const size_t i = k.flights.front().instruction;
  const unsigned signal = tokens_of(program_[i].instruction).signal;
  until([&] { return tokens_.can_give(e, signal); });
  tokens_.give(e, signal);
  const uint64_t now = now_in_cycles();
  record(e, Interval::Kind::kBusy, i, std::max(k.flights.front().begin, k.retired_at), now);
  k.retired_at = now;
  k.flights.pop_front();
  ++instructions_done_;
  changed();
}

// Checks and executes the whole instruction, and transfers the data that it loads or stores.
void TlmAccelerator::execute(size_t i) {
  const spec::Decoded& d = program_[i];
  if (auto outside = find_footprint(isa_, d.instruction, bases_, executor_->uops(), footprint_)) {
    stop(StopCode::kScratchpadRange, d.index, describe(i) + " " + outside->message);
    throw Abandoned();
  }
  const auto fail = [&](const Dma& dma, std::string_view where) {
    const Range range = bounding_range(dma);
    stop(dma.store ? StopCode::kWriteError : StopCode::kReadError, d.index,
         fmt::format("{} {} dram[{:#x}..{:#x}], which {}", describe(i), dma.store ? "writes" : "reads", range.begin,
                     range.end - 1, where));
    throw Abandoned();
  };
  const auto& dma = footprint_.dma;
  const bool moves = dma && dma->units() > 0;
  if (moves && executor_->outside_dram(*dma)) fail(*dma, "is outside the accelerator's addresses");
  if (moves && !dma->store && !move_ranges(*dma)) fail(*dma, "the bus answers with an error");
  executor_->execute(d.instruction, footprint_);
  if (moves && dma->store && !move_ranges(*dma)) fail(*dma, "the bus answers with an error");
  macs_ += footprint_.macs;
  if (observer_ != nullptr) executor_->report(d.instruction, d.index, footprint_, *observer_);
}

// Copies the ranges of the transfer, and no other byte, between the memory socket and the window.
bool TlmAccelerator::move_ranges(const Dma& dma) {
  std::vector<Range> ranges;
  for (int64_t y = 0; y < dma.rows; ++y) {
    ranges.clear();
    append_row_ranges(dma, y, ranges);
    for (const Range& range : ranges) {
      std::byte* at = window_.data() + range.begin;
      const uint64_t bytes = range.end - range.begin;
      if (!(dma.store ? memory.write(range.begin, at, bytes) : memory.read(range.begin, at, bytes))) return false;
    }
  }
  return true;
}

uint64_t TlmAccelerator::take_channel(uint32_t beats) {
  const uint64_t first =
      std::max(now_in_cycles() + static_cast<uint64_t>(parameters_.memory.read_latency), channel_free_);
  channel_free_ = first + beats;
  counters_.read_beats += beats;
  ++counters_.read_bursts;
  return first;
}

// Requests bursts as long as the unit's FIFO has room for them, one address per cycle, on the shared read channel.
void TlmAccelerator::load(const Dma& dma, size_t i, uint64_t& due) {
  const timing::TransferPlan plan = timing::plan(isa_.config(), dma);
  const spec::Config& config = isa_.config();
  const bool native = profile_ == spec::Profile::kNative;
  const auto capacity = static_cast<uint32_t>(native ? config.read_fifo_beats() : config.base_read_beats());
  std::deque<std::pair<uint64_t, uint32_t>> held;  // (cycle at which the last beat is used, beats) of each burst
  uint32_t beats = 0;
  const auto beat = static_cast<uint64_t>(parameters_.beat);
  uint64_t used = now_in_cycles() + 1;
  if (!plan.bursts.empty()) pause(static_cast<uint64_t>(parameters_.address));
  for (const timing::Burst& burst : plan.bursts) {
    while (!held.empty() && (beats + burst.beats > capacity || held.front().first <= now_in_cycles())) {
      pause_until(held.front().first);
      beats -= held.front().second;
      held.pop_front();
    }
    const uint64_t first = take_channel(burst.beats);
    const uint64_t begin = std::max(first + beat, used + burst.idle_work);
    used = std::max(first + burst.beats + beat, begin + burst.work);
    held.emplace_back(used, burst.beats);
    beats += burst.beats;
    pause(1);
  }
  // The next load may request its bursts while the last beats of this load arrive: this load stays in flight until
  // `due`.
  due = used + plan.tail + 1;
  execute(i);
}

void TlmAccelerator::store(const Dma& dma, size_t i, uint64_t& due) {
  const timing::TransferPlan plan = timing::plan(isa_.config(), dma);
  uint64_t work = static_cast<uint64_t>(parameters_.store_pipeline) + plan.tail;
  for (const timing::Burst& burst : plan.bursts) {
    work += burst.idle_work + burst.work;
    counters_.write_beats += burst.beats;
    ++counters_.write_bursts;
  }
  // An overlapping store is in flight until the memory has answered, and another one begins meanwhile.
  const uint64_t answer = plan.bursts.empty() ? 0 : static_cast<uint64_t>(parameters_.memory.write_latency);
  const bool overlaps = isa_.config().overlapping_stores;
  pause(overlaps ? work : work + answer);
  execute(i);
  due = now_in_cycles() + (overlaps ? answer : 0);
}

}  // namespace tenon::sim::systemc
