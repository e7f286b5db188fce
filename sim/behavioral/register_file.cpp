#include "sim/behavioral/register_file.h"

#include <utility>

namespace tenon::sim {
namespace {

namespace reg = spec::reg;

uint32_t token_word(const Tokens& tokens, uint32_t first) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < 4 && first + i < tokens.counters().size(); ++i) {
    value |= uint32_t{tokens.counters()[first + i]} << (8 * i);
  }
  return value;
}

template <class Has>
uint32_t engine_bits(const RegisterFile::Progress& progress, Has&& has) {
  uint32_t bits = 0;
  for (size_t e = 0; e < spec::kEngines; ++e) bits |= has(progress.engines[e]) ? 1u << e : 0u;
  return bits;
}

}  // namespace

RegisterFile::RegisterFile(const spec::Config& config)
    : hash_(spec::hash(config)),
      capabilities_(spec::capabilities(config)),
      config_(config),
      has_counters_(config.counters) {}

uint32_t RegisterFile::read(uint32_t offset, Run& run, const Tokens& tokens) {
  const auto half = [offset](uint64_t value) { return static_cast<uint32_t>((offset & 4) != 0 ? value >> 32 : value); };
  const auto in = [offset](uint32_t first, uint32_t bytes) { return offset >= first && offset < first + bytes; };
  if (!config_.progress && offset >= reg::kHead0 && offset <= reg::kOutstanding) return 0;
  if (!has_counters_ && offset >= reg::kCycles && offset < reg::kHead0) return 0;
  if (in(reg::kBusy0, 8 * spec::kEngines)) return half(run.counters().busy[(offset - reg::kBusy0) / 8]);
  if (in(reg::kStall0, 8 * spec::kEngines)) return half(run.counters().stall[(offset - reg::kStall0) / 8]);
  if (in(reg::kTokens, spec::kEngines * spec::kEngines)) return token_word(tokens, offset - reg::kTokens);
  if (in(reg::kHead0, 4 * spec::kEngines)) {
    const Progress::Engine engine = busy_ ? run.progress().engines[(offset - reg::kHead0) / 4] : Progress::Engine{};
    return engine.has ? engine.slot : 0;
  }
  switch (offset & ~uint32_t{4}) {
    case reg::kCycles: return half(run.counters().cycles);
    case reg::kInstructionsDone: return half(run.instructions_done());
    case reg::kMacs: return half(run.macs());
    case reg::kReadBeats: return half(run.counters().read_beats);
    case reg::kWriteBeats: return half(run.counters().write_beats);
    case reg::kReadBursts: return half(run.counters().read_bursts);
    case reg::kWriteBursts: return half(run.counters().write_bursts);
    case reg::kConfigHash: return half(hash_);
    default: break;
  }
  switch (offset) {
    case reg::kControl: {
      const bool done = std::exchange(done_, false);
      return (busy_ ? spec::kApStart : spec::kApIdle) | (done ? spec::kApDone | spec::kApReady : 0);
    }
    case reg::kInterruptStatus: return interrupts_;
    case reg::kCommand: return 0;
    case reg::kStatus: return static_cast<uint32_t>(code_) | (busy_ ? spec::kStatusBusy : 0);
    case reg::kErrorIndex: return error_slot_;
    case reg::kVersion: return uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion;
    case reg::kCapabilities: return capabilities_;
    case reg::kTokenWait: return engine_bits(run.progress(), [](const auto& engine) { return engine.waits; });
    case reg::kActivity: {
      if (!busy_) return 0;
      const Progress progress = run.progress();
      return engine_bits(progress, [](const auto& engine) { return engine.has; }) |
             engine_bits(progress, [](const auto& engine) { return engine.in_flight; }) << 8;
    }
    case reg::kDecoded: return busy_ ? run.progress().decoded : 0;
    case reg::kOutstanding: return 0;
    default: return arguments_[offset / 4];
  }
}

RegisterFile::Request RegisterFile::write(uint32_t offset, uint32_t value) {
  switch (offset) {
    case reg::kControl: return (value & spec::kApStart) != 0 && !busy_ ? Request::kStart : Request::kNone;
    case reg::kInterruptStatus: interrupts_ ^= value & 3; return Request::kNone;
    case reg::kCommand:
      if ((value & spec::kSoftReset) != 0) return Request::kReset;
      return (value & spec::kTokenClear) != 0 ? Request::kClearTokens : Request::kNone;
    default: break;
  }
  const bool writable = offset == reg::kGlobalInterruptEnable || offset == reg::kInterruptEnable ||
                        (offset >= reg::kInstructions && offset < reg::kBase0 + 8 * spec::kBases);
  if (writable) arguments_[offset / 4] = value & spec::argument_bits(config_, offset);
  return Request::kNone;
}

void RegisterFile::start() {
  busy_ = true;
  done_ = false;
  code_ = spec::StopCode::kNone;
  error_slot_ = 0;
}

void RegisterFile::end() {
  busy_ = false;
  done_ = true;
  interrupts_ |= arguments_[reg::kInterruptEnable / 4] & 3;
}

void RegisterFile::stop(spec::StopCode code, uint32_t slot) {
  code_ = code;
  error_slot_ = slot;
  end();
}

void RegisterFile::reset() {
  busy_ = done_ = false;
  code_ = spec::StopCode::kNone;
  error_slot_ = 0;
  interrupts_ = 0;
  arguments_[reg::kGlobalInterruptEnable / 4] = arguments_[reg::kInterruptEnable / 4] = 0;
}

}  // namespace tenon::sim
