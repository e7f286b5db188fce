#include "hw/spec/registers.h"

#include <array>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"

namespace tenon::spec {
namespace {

constexpr std::array kRegisters = {
    Register{"CONTROL", reg::kControl, "rw", "bit 0 ap_start, 1 ap_done (cleared by reading), 2 ap_idle, 3 ap_ready"},
    Register{"GLOBAL_INTERRUPT_ENABLE", reg::kGlobalInterruptEnable, "rw", "bit 0 enables the interrupt output"},
    Register{"INTERRUPT_ENABLE", reg::kInterruptEnable, "rw", "bit 0 on ap_done, bit 1 on ap_ready"},
    Register{"INTERRUPT_STATUS", reg::kInterruptStatus, "rw",
             "bit 0 ap_done, bit 1 ap_ready has occurred; writing 1 toggles"},
    Register{"INSTRUCTIONS", reg::kInstructions, "rw", "64 bits: address of the instruction stream, a multiple of 16"},
    Register{"COUNT", reg::kCount, "rw", "16-byte slots of the stream"},
    Register{"MODE", reg::kMode, "rw", "bit 0: profile of the launch, 0 base, 1 native"},
    Register{"BASE0", reg::kBase0, "rw",
             "64 bits each, eight of them: base addresses; base profile: uop, wgt, inp, acc, out"},
    Register{"COMMAND", reg::kCommand, "w", "bit 0 SOFT_RESET, bit 1 TOKEN_CLEAR"},
    Register{"STATUS", reg::kStatus, "r", "bits 7:0 stop code, bit 8 busy"},
    Register{"ERROR_INDEX", reg::kErrorIndex, "r", "slot of the instruction that caused the stop code"},
    Register{"VERSION", reg::kVersion, "r", "bits 31:16 version of the instruction set, 15:0 of this map"},
    Register{"CONFIG_HASH", reg::kConfigHash, "r", "64 bits: hash of the configuration"},
    Register{"CAPABILITIES", reg::kCapabilities, "r",
             "bit 0 base, bit 1 native profile, bit 2 counters, bit 3 weights' load engine, bits 5:4 passes of a base "
             "MUL, bit 6 own lanes, bit 7 results to inp, 15:8 engines present, 23:16 bits of an address, 30:24 passes "
             "of the requantizer, bit 31 its maximum over windows"},
    Register{"TOKEN_WAIT", reg::kTokenWait, "r", "bit i: the head of engine i's queue waits for tokens"},
    Register{"TOKENS", reg::kTokens, "r",
             "a byte a counter: (producer p, consumer c) in byte p times the number of engines, plus c"},
    Register{"CYCLES", reg::kCycles, "r", "64 bits: cycles of the launch"},
    Register{"INSTRUCTIONS_DONE", reg::kInstructionsDone, "r", "64 bits: instructions that are done"},
    Register{"MACS", reg::kMacs, "r", "64 bits: multiply-accumulates of the tensor core"},
    Register{"READ_BEATS", reg::kReadBeats, "r", "64 bits: AXI read beats"},
    Register{"WRITE_BEATS", reg::kWriteBeats, "r", "64 bits: AXI write beats"},
    Register{"READ_BURSTS", reg::kReadBursts, "r", "64 bits: AXI read bursts"},
    Register{"WRITE_BURSTS", reg::kWriteBursts, "r", "64 bits: AXI write bursts"},
    Register{"BUSY0", reg::kBusy0, "r", "64 bits for each engine i: cycles in which it executes"},
    Register{"STALL0", reg::kStall0, "r", "64 bits for each engine i: cycles in which its head waits for tokens"},
    Register{"HEAD0", reg::kHead0, "r",
             "32 bits for each engine i: slot of its oldest instruction, in flight or queued; 0 between "
             "launches, as the next three registers"},
    Register{"ACTIVITY", reg::kActivity, "r",
             "bits 7:0 engines that have an instruction, 15:8 those with one in flight"},
    Register{"DECODED", reg::kDecoded, "r", "slots whose instructions have reached their queues"},
    Register{"OUTSTANDING", reg::kOutstanding, "r", "outstanding bursts: bits 15:0 of reads, 31:16 of writes"},
};

}  // namespace

std::span<const Register> registers() { return kRegisters; }

uint32_t capabilities(const Config& config) {
  return (config.base ? 1u : 0u) | (config.native ? 2u : 0u) | (config.counters ? 4u : 0u) |
         (config.weight_engine ? 8u : 0u) | static_cast<uint32_t>(config.alu_multiply_passes) << 4 |
         (config.own_lanes ? 64u : 0u) | (config.results_to_inp ? 128u : 0u) | kPresentEngines << 8 |
         static_cast<uint32_t>(config.address_bits) << 16 | static_cast<uint32_t>(config.requantizer_passes) << 24 |
         (config.window_maximum ? 1u << 31 : 0u);
}

uint32_t argument_bits(const Config& config, uint32_t offset) {
  if (offset == reg::kCount) return ~uint32_t{0} >> (32 - config.slot_bits());
  const bool is_base = offset >= reg::kBase0 && offset < reg::kBase0 + 8 * kBases;
  if (is_base && (offset - reg::kBase0) / 8 >= static_cast<uint32_t>(config.base_addresses())) return 0;
  const uint64_t mask = config.address_mask();
  return is_base || (offset & ~uint32_t{4}) == reg::kInstructions
             ? static_cast<uint32_t>((offset & 4) != 0 ? mask >> 32 : mask)
             : ~uint32_t{0};
}

}  // namespace tenon::spec
