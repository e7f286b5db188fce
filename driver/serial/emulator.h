// The emulation of a board with a serial line: a pseudo-terminal whose far end is a Line, for clients in other
// processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "driver/serial/bridge.h"
#include "driver/uio/files.h"
#include "hw/spec/config.h"

namespace tenon::driver::serial {

// Faults of the line, each in a share of all bytes (in millionths), in both directions.
struct Noise {
  uint32_t lost = 0, flipped = 0, duplicated = 0;
  uint64_t seed = 1;
};

// The bridge with the behavioral simulator.
Expected<std::unique_ptr<Line>> make_bridge(const spec::Config& config, uint64_t memory_bytes);

class Emulator {
 public:
  // `link`: a symbolic link to the pseudo-terminal that is created, and replaced if it exists; may be empty.
  static Expected<std::unique_ptr<Emulator>> create(std::unique_ptr<Line> line, const Noise& noise,
                                                    const std::filesystem::path& link = {});
  const std::string& tty() const { return tty_; }
  Status run();  // until an error

 private:
  Emulator(std::unique_ptr<Line> line, const Noise& noise)
      : line_(std::move(line)), noise_(noise), random_(noise.seed) {}
  Bytes disturb(std::span<const uint8_t> bytes);
  bool happens(uint32_t millionths) { return millionths != 0 && random_() % 1'000'000 < millionths; }

  std::unique_ptr<Line> line_;
  Noise noise_;
  std::mt19937_64 random_;
  uio::Fd near_, far_;  // the client's end is kept open, because the far end fails while no client is there
  std::string tty_;
};

}  // namespace tenon::driver::serial
