// A bitstream onto its board, and the proof that it runs there.
#pragma once

#include <filesystem>
#include <string>

#include "driver/boards/bitstream.h"
#include "hw/generator/boards.h"

namespace tenon::driver::boards {

struct FlashOptions {
  std::string port;    // empty: the board's own
  std::string device;  // URI by which the accelerator is identified; empty: the board's own
  bool force = false;  // also where the bitstream misses its clock
};

// Runs the board's program with its output on this terminal, then opens the device: the configuration hash in its
// registers must be the bitstream's. Returns the URI of the device. `directory` is that of the build.
Expected<std::string> flash(const Bitstream& bitstream, const generator::Board& board,
                            const std::filesystem::path& directory, const FlashOptions& options);

}  // namespace tenon::driver::boards
