// The register map as software sees it.
#include "sim/behavioral/machine.h"

namespace tenon::sim {

using spec::tokens_of;
namespace reg = spec::reg;

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

}  // namespace tenon::sim
