// A process that plays a Zynq's PL and kernel for the transport uio:, in a directory that stands for the board's root.
//
// Semantics: the accelerator is a simulator. Its memory is the player's own; the file /dev/udmabufN is what the
// client's CPU sees through its cache, and bytes pass between the two, by whole cache lines, only when the client
// synchronizes them: a sync that is forgotten or has the wrong range shows as wrong data. Registers behave as in
// hardware, clear on read included. The PL's clock runs while a client waits, for as long as it waits at most, so that
// what happens does not depend on how busy the machine is; or by itself, as a board's. It is played for any number of
// clients in a row: what one that was killed left behind, the next one finds. A "bitstream" is the JSON of a
// configuration.
#pragma once

#include <filesystem>
#include <memory>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::driver::uio {

struct PlayerOptions {
  std::filesystem::path root;
  spec::Config config;
  bool empty = false;  // no design is loaded yet
  bool rtl = false;    // the Verilated RTL in place of the behavioral simulator
  bool own_clock = false;
  bool interrupt = true;  // false: the line leads nowhere
  uint64_t memory_bytes = uint64_t{64} << 20;
  uint64_t physical = 0x1000'0000;  // of the memory
};

class Player {
 public:
  // Lays out the directory; what lies there from before is replaced.
  static Expected<std::unique_ptr<Player>> create(PlayerOptions options);
  virtual ~Player() = default;
  // Serves clients until an error.
  virtual Status run() = 0;
};

}  // namespace tenon::driver::uio
