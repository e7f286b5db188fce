// The protocol of an emulated PL (emulator.h): the messages between the transport and the process that emulates the
// board.
//
// Where a path below the root is a socket instead of a device or a sysfs attribute, an access is a request and its
// answer. All sockets are of kind SOCK_SEQPACKET: a message is a packet, and the client waits for each answer, so that
// its accesses happen in program order, as on a bus. Both sides are little endian.
//   /dev/uioN            as the device: the client writes 1 to unmask the interrupt and reads the count of interrupts
//   /dev/uioN.registers  Request and Answer; replaces the mapped window, which another process cannot observe
//   an attribute         the written text; the answer is an errno as int32_t
#pragma once

#include <cstdint>

namespace tenon::driver::uio {

inline constexpr char kRegistersSuffix[] = ".registers";

struct Request {
  enum class Kind : uint32_t { kRead, kWrite, kWait };
  Kind kind = Kind::kRead;
  uint32_t offset = 0;
  uint64_t value = 0;  // kWrite: the register's value; kWait: the limit of the client's wait in cycles
};

struct Answer {
  uint64_t value = 0;  // kRead: the register's value; kWait: kRunsFreely, or 0
};

// The answer of an emulator whose clock runs freely, independent of its client's waits.
inline constexpr uint64_t kRunsFreely = 1;

}  // namespace tenon::driver::uio
