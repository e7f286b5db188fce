// A reproducer: a directory with all data that reproduces a mismatch on a device.
//
// Layout: `reproducer.json` has the metadata (configuration, launches, device, first difference, versions),
// `memory.bin` the nonzero bytes of DRAM before the first launch and the expected bytes after the last launch,
// `program.txt` the instructions as assembly for readers. Loading trusts no input: every field, length and address is
// checked.
//
// Semantics: the launches run in order on a device without tokens, and must not depend on the initial contents of
// scratchpads. A difference is detected by the device itself (a stop, a race, a divergence of lockstep) or by comparing
// memory with `expected`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "driver/accelerator.h"

namespace tenon::driver {

// A region of DRAM: bytes at an address.
struct Region {
  std::string name;  // of the expected result, for messages; empty for initial contents
  uint64_t address = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Region&) const = default;
};

struct Reproducer {
  std::string version;  // of Tenon, when the reproducer was written
  std::string device;   // the URI of the device with the mismatch
  std::string origin;   // the command, or a description of the activity
  spec::Config config;
  uint64_t seed = 0;                                          // of a random program; 0: of another program
  uint64_t memory_bytes = 0;                                  // the minimum of the device
  std::chrono::nanoseconds limit = std::chrono::seconds(60);  // of the wait for each launch
  std::vector<Region> memory;
  std::vector<Launch> launches;
  std::vector<Region> expected;
  std::string reported;  // the original message
  std::string found;     // the first difference, as replay() returns it; empty: the replay showed none
};

// Adds the nonzero pages of `bytes` as regions, from `address` on.
void add_contents(Reproducer& reproducer, uint64_t address, std::span<const std::byte> bytes);

// Bytes of the reproducer's memory before the first launch; bytes outside all regions are 0.
std::vector<std::byte> contents(const Reproducer& reproducer, uint64_t address, uint64_t bytes);

// The instructions of one launch, or the error of the decoder.
Expected<std::vector<spec::Decoded>> instructions(const Reproducer& reproducer, size_t launch);

Status save_reproducer(const Reproducer& reproducer, const std::filesystem::path& directory);
Expected<Reproducer> load_reproducer(const std::filesystem::path& directory);

// The path of "mismatch-1" in `parent`, or of the first such name that does not exist.
std::filesystem::path free_name(const std::filesystem::path& parent);

}  // namespace tenon::driver
