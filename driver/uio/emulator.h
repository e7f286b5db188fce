// The emulator: a process that emulates a Zynq's PL and kernel for the transport uio:, in a directory that replaces the
// board's root.
//
// Semantics: the accelerator is a simulator. Its memory is private to the emulator; the file /dev/udmabufN is the view
// of the client's CPU through its cache, and bytes are copied between the two, by whole cache lines, only when the
// client synchronizes them: a missing sync or a sync of a wrong range results in wrong data. Registers behave as in
// hardware, clear on read included. The PL's clock runs while a client waits, at most for the limit of the wait, so
// that a run does not depend on the load of the machine; or it runs freely, as on a board. The emulator serves any
// number of clients in sequence: the next client finds the state that a killed client has left. A "bitstream" is the
// JSON of a configuration.
#pragma once

#include <filesystem>
#include <memory>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::driver::uio {

struct EmulatorOptions {
  std::filesystem::path root;
  spec::Config config;
  bool empty = false;  // no design is loaded yet
  bool rtl = false;    // the Verilated RTL instead of the behavioral simulator
  bool own_clock = false;
  bool interrupt = true;  // false: the line is not connected
  uint64_t memory_bytes = uint64_t{64} << 20;
  uint64_t physical = 0x1000'0000;  // physical address of the memory
};

class Emulator {
 public:
  // Creates the files of the directory, and replaces existing ones.
  static Expected<std::unique_ptr<Emulator>> create(EmulatorOptions options);
  virtual ~Emulator() = default;
  // Serves clients until an error.
  virtual Status run() = 0;
};

}  // namespace tenon::driver::uio
