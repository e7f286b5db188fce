// The frames between a host and the bridge of a board with a serial line: the single source for the driver, the model
// of the bridge and its RTL (hw/serial).
//
// Framing is SLIP's (RFC 1055): kEnd before and after each frame; inside, kEnd and kEscape are sent as two bytes. So a
// receiver is synchronized again at the next kEnd after any fault, without a time limit. A CRC is zlib's CRC-32. All
// numbers are little endian.
//
//   request   operation 1, sequence 1, address 4, data 4, CRC 4 of these ten bytes
//             kWriteMemory: then `data` words and their CRC
//   response  sequence 1, result 1, data 4, CRC 4; of kReadMemory: `data` words in place of the four bytes
//
// Semantics: the bridge executes one request at a time, and drops what arrives before its response is sent. A damaged
// request has the response kCorrupt. A register request with the sequence number of the last executed one is not
// executed again, since registers have side effects; its response is repeated. Memory requests are executed each time.
// The words of kWriteMemory are written as they arrive, at addresses that the header's CRC has confirmed: after
// kCorrupt, the addressed words are undefined and no others. kHello sets the sequence number that later requests are
// compared with, and its data is the identification word.
#pragma once

#include <cstdint>

namespace tenon::spec::serial {

inline constexpr uint8_t kEnd = 0xc0, kEscape = 0xdb, kEscapedEnd = 0xdc, kEscapedEscape = 0xdd;

enum class Operation : uint8_t { kHello, kReadRegister, kWriteRegister, kReadMemory, kWriteMemory };
inline constexpr uint32_t kOperations = 5;

enum class Result : uint8_t {
  kDone,
  kCorrupt,      // the frame's length or a CRC is wrong
  kUnsupported,  // the operation is unknown
  kRange,        // an address is outside the registers or the memory, or the count of words is 0 or above kMaxWords
};

inline constexpr uint32_t kHeaderBytes = 10, kCrcBytes = 4, kResponseBytes = 2;  // of a response: before its data
inline constexpr uint32_t kWordBytes = 4, kMaxWords = 256;
// The value of the CRC register after a frame with its CRC.
inline constexpr uint32_t kCrcResidue = 0xdebb20e3;

// The identification word: kMagic in 31:16, kVersion in 15:8, bit 7 set by models of the bridge, log2 of the memory's
// bytes in 6:0.
inline constexpr uint32_t kMagic = 0x544e, kVersion = 1, kSimulatedBit = 1u << 7;

// Time of a model of the bridge, which sets kSimulatedBit: a frame takes kFrameCycles; of consecutive reads of the
// status register each takes twice as long as the one before, up to kMaxPollCycles. So a client that waits for the end
// of a long launch need not wait for the line, a launch ends in the same cycle on every machine, and the client knows
// the time.
inline constexpr uint64_t kFrameCycles = 16, kMaxPollCycles = 1 << 20;
constexpr uint64_t next_poll(uint64_t cycles) { return cycles < kMaxPollCycles ? 2 * cycles : kMaxPollCycles; }

// The memory of B bytes, a power of two, is at addresses [B, 2 B): so the upper bits of an address decide alone.
inline constexpr uint64_t kSmallestMemory = 4096, kLargestMemory = uint64_t{1} << 30;
constexpr uint64_t memory_base(uint64_t bytes) { return bytes; }
constexpr uint64_t memory_end(uint64_t bytes) { return 2 * bytes; }

}  // namespace tenon::spec::serial
