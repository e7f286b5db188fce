// The accelerator as registers and buffers, the same on a simulator and on a board; a device is named by a URI.
//
// Ownership: the accelerator owns its buffers' memory; a Buffer is a handle that allocate() returns and free() ends.
// Destroying the accelerator frees its buffers. Addresses are physical, as the hardware sees them. Data is transferred
// to the device only by write() and from it only by read(). Not thread-safe; one client at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "hw/spec/memory_timing.h"
#include "hw/spec/registers.h"
#include "support/diagnostic.h"

namespace tenon::sim {
class Simulator;
}

namespace tenon::driver {

class Launcher;
class Server;
struct ServeOptions;
struct ServedDevice;

struct Info {
  std::string uri;
  spec::Config config;
  bool simulated = false;
  bool cycle_accurate = false;
  double clock_hz = 0;  // 0: unknown
  // What programs are scheduled for, unless a user says otherwise: a simulator's own, or the usual one of a board.
  spec::MemoryTiming memory = {};
};

struct Buffer {
  uint64_t address = 0;
  uint64_t size = 0;
};

struct Launch {
  spec::Profile profile = spec::Profile::kNative;
  uint64_t instructions = 0;  // physical address, a multiple of 16
  uint32_t count = 0;         // slots
  std::array<uint64_t, spec::kBases> bases{};
};

// The counters after a launch, in cycles unless the name says otherwise.
struct Counters {
  uint64_t cycles = 0, instructions = 0, macs = 0;
  uint64_t read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
  std::array<uint64_t, spec::kEngines> busy{}, stall{};
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  virtual const Info& info() const = 0;  // constant
  // The hash of the configuration, computed once, because the computation takes longer than a launch.
  uint64_t config_hash() const {
    if (!hash_) hash_ = spec::hash(info().config);
    return *hash_;
  }

  virtual Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment = 64) = 0;
  virtual void free(const Buffer& buffer) = 0;
  virtual Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) = 0;
  virtual Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) = 0;

  virtual Expected<uint32_t> read_register(uint32_t offset) = 0;
  virtual Status write_register(uint32_t offset, uint32_t value) = 0;

  // Waits until the accelerator is idle or the limit has passed; returns whether the accelerator is idle. The transport
  // defines how it waits: by simulated cycles, an interrupt or sleep.
  virtual Expected<bool> wait_idle(std::chrono::nanoseconds limit) = 0;

  // The transport's human-readable explanation of a stop or hang; may be empty.
  virtual std::string explain() { return {}; }

  // Where a register access is a round trip to another machine: the way to launch there by one (control.h); or nullptr.
  virtual Launcher* launcher() { return nullptr; }

  // The simulator of the device, or nullptr: for lockstep, timelines and debuggers.
  virtual sim::Simulator* simulator() { return nullptr; }

 protected:
  Accelerator() = default;

 private:
  mutable std::optional<uint64_t> hash_;
};

// Reads two consecutive registers, the low half first.
Expected<uint64_t> read_register64(Accelerator& accelerator, uint32_t offset);

// Writes the arguments and starts; a busy accelerator is an error.
Status start(Accelerator& accelerator, const Launch& launch);

// Waits for the end of a launch. A stop with an error, or a limit that passes, is a Diagnostic with the stop code, the
// instruction's index, token counts and the transport's explanation; after either the accelerator has been soft-reset
// and has no tokens. On a simulator the limit counts simulated time (simulated.h).
Status finish(Accelerator& accelerator, std::chrono::nanoseconds limit);

Expected<Counters> read_counters(Accelerator& accelerator);

// Opens a device: "behavioral:default", "verilator:tiny", "verilator:/path/my.json". Options follow after '?':
// "verilator:default?latency=80&stalls=1". The error of an unknown scheme lists the available schemes.
Expected<std::unique_ptr<Accelerator>> open(std::string_view uri);

// A transport: the form of its URIs, and the function that opens them.
struct Transport {
  std::string scheme;
  std::string doc;
  std::function<Expected<std::unique_ptr<Accelerator>>(std::string_view target)>
      open;  // target: the URI after "SCHEME:"
  // Requirements that this machine lacks, with the remedy; empty: usable.
  std::function<std::string()> missing = [] { return std::string(); };
  // Of the transport to other machines only (serve.h).
  std::function<Expected<std::unique_ptr<Server>>(const ServeOptions&)> serve = {};
  std::function<Expected<std::vector<ServedDevice>>(std::string_view server)> list = {};
};

// The transports of this build: the linked ones and the shared libraries tenon-driver-SCHEME.so in the driver
// directories (next to the program's libraries, and TENON_DRIVER_PATH).
std::vector<Transport> transports();

}  // namespace tenon::driver
