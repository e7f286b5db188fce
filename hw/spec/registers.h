// The register map of s_axi_control, laid out as Xilinx's ap_ctrl_hs kernels are: the single source for RTL, drivers,
// kernel.xml and the reference page.
//
// Access: 32-bit registers at byte offsets. "r" read only, "rw" read and write, "w" write only (reads 0), "cor" clear
// on read. Counters start at 0 with each launch and hold their values when it is over. Sixty-four-bit values are two
// registers, low word first.
//
// Launch: write instructions, count, mode and bases, then 1 to CONTROL. ap_done rises when the stream is complete or
// the accelerator stopped with an error; it falls when CONTROL is read. Tokens survive between launches: ap_start
// keeps them; hardware reset and both bits of COMMAND zero them. SOFT_RESET stops a run: no new addresses are sent,
// outstanding reads are drained, write bursts end with strobes 0, responses are collected, then all state but the
// arguments clears and ap_idle rises.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hw/spec/isa.h"

namespace tenon::spec {

inline constexpr int kRegisterMapVersion = 3;
inline constexpr uint32_t kRegisterSpaceBytes = 0x1000;
inline constexpr int kBases = 8;

struct Config;

struct Register {
  std::string_view name;
  uint32_t offset;
  std::string_view access;
  std::string_view doc;
};
std::span<const Register> registers();

// The value of the register CAPABILITIES.
uint32_t capabilities(const Config& config);

// The bits that an argument register (kInstructions to kBase0 + 63) keeps in this configuration; the others read 0.
uint32_t argument_bits(const Config& config, uint32_t offset);

namespace reg {
inline constexpr uint32_t kControl = 0x00, kGlobalInterruptEnable = 0x04, kInterruptEnable = 0x08,
                          kInterruptStatus = 0x0c;
inline constexpr uint32_t kInstructions = 0x10, kCount = 0x18, kMode = 0x1c, kBase0 = 0x20;  // base i at kBase0 + 8 i
inline constexpr uint32_t kCommand = 0x80, kStatus = 0x84, kErrorIndex = 0x88, kVersion = 0x8c, kConfigHash = 0x90,
                          kCapabilities = 0x98, kTokenWait = 0x9c;
inline constexpr uint32_t kTokens = 0xc0;  // counter (producer p, consumer c) in byte kEngines * p + c from here
// 64-bit counters.
inline constexpr uint32_t kCycles = 0x100, kInstructionsDone = 0x108, kMacs = 0x110, kReadBeats = 0x118,
                          kWriteBeats = 0x120, kReadBursts = 0x128, kWriteBursts = 0x130;
inline constexpr uint32_t kBusy0 = 0x140;   // cycles in which engine i executes, at kBusy0 + 8 i
inline constexpr uint32_t kStall0 = 0x180;  // cycles in which engine i's head waits for tokens, at kStall0 + 8 i
// Progress of a running launch; 0 when it is over.
inline constexpr uint32_t kHead0 =
    0x1c0;  // slot of engine i's oldest instruction, in flight or queued; at kHead0 + 4 i
inline constexpr uint32_t kActivity = kHead0 + 4 * kEngines, kDecoded = kActivity + 4, kOutstanding = kDecoded + 4;
}  // namespace reg

// Bits of kControl.
inline constexpr uint32_t kApStart = 1, kApDone = 2, kApIdle = 4, kApReady = 8;
// Bits of kCommand.
inline constexpr uint32_t kSoftReset = 1, kTokenClear = 2;
// Bits of kMode: bit 0 is the profile of the launch (0 base, 1 native).
inline constexpr uint32_t kModeNative = 1;
// kStatus: bits 7:0 the StopCode, bit 8 busy. kVersion: ISA in 31:16, register map in 15:0.
// kCapabilities: bit 0 base, bit 1 native, bit 2 counters, bit 3 the weights' engine; bits 5:4 alu_multiply_passes,
// bit 6 own lanes, bit 7 results to inp, 15:8 the engines present, 23:16 address_bits, 30:24 requantizer_passes,
// bit 31 window_maximum. kTokenWait: bit i: engine i's head waits.
inline constexpr uint32_t kStatusBusy = 1u << 8;
// kActivity: bits 7:0 the engines that have an instruction, 15:8 those that have one in flight. kDecoded: slots whose
// instructions have reached their queues. kOutstanding: outstanding bursts, 15:0 of reads, 31:16 of writes; models
// without bursts report 0.
// Base addresses of the base profile, by memory type: uop, wgt, inp, acc and acc8, out. The native profile's eight are
// free.
inline constexpr int kBaseUop = 0, kBaseWgt = 1, kBaseInp = 2, kBaseAcc = 3, kBaseOut = 4;

}  // namespace tenon::spec
