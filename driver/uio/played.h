// How a played PL (player.h) is spoken to: the messages between the transport and the process that stands for the
// board.
//
// Where a path below the root is a socket in place of a device or a sysfs attribute, what the kernel would do at once
// is a request and its answer. All sockets are of kind SOCK_SEQPACKET: a message is a packet, and the client waits for
// each answer, so that its accesses happen in its order, as on a bus. Both sides are little endian.
//   /dev/uioN            as the device: the client writes 1 to unmask the interrupt and reads the count of interrupts
//   /dev/uioN.registers  Request and Answer; in place of the mapped window, which no other process can watch
//   an attribute         the text that is written; the answer is an errno as int32_t
#pragma once

#include <cstdint>

namespace tenon::driver::uio {

inline constexpr char kRegistersSuffix[] = ".registers";

struct Request {
  enum class Kind : uint32_t { kRead, kWrite, kWait };
  Kind kind = Kind::kRead;
  uint32_t offset = 0;
  uint64_t value = 0;  // kWrite: the register's; kWait: cycles that the client waits at most
};

struct Answer {
  uint64_t value = 0;  // kRead: the register's; kWait: kRunsByItself, or 0
};

// The PL of a player with its own clock does not care how long its client waits.
inline constexpr uint64_t kRunsByItself = 1;

}  // namespace tenon::driver::uio
