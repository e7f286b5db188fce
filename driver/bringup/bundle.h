// A mismatch that can be repeated: a directory with all that a device needs to show it again.
//
// Layout: `bundle.json` holds the facts (configuration, launches, device, first difference, versions), `memory.bin` the
// bytes of DRAM that are not 0 before the first launch and those that must be there behind the last one, `program.txt`
// the instructions for people. Loading trusts nothing: every field, length and address is checked.
//
// Semantics: the launches run one after the other on a device whose tokens are cleared and whose scratchpads hold
// nothing that counts. What differs is found by the device itself (a stop, a race, a divergence of lockstep) or by
// comparing memory with `expected`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "driver/accelerator.h"

namespace tenon::driver {

// Bytes at an address.
struct Region {
  std::string name;  // of what is expected there, for people; empty for contents
  uint64_t address = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Region&) const = default;
};

struct Bundle {
  std::string version;  // of the Tenon that wrote it
  std::string device;   // the URI on which it was seen
  std::string origin;   // what was being done, as a command where there is one
  spec::Config config;
  uint64_t seed = 0;                                          // of a random program; 0: it was none
  uint64_t memory_bytes = 0;                                  // that the device must have at least
  std::chrono::nanoseconds limit = std::chrono::seconds(60);  // of the wait for each launch
  std::vector<Region> memory;
  std::vector<Launch> launches;
  std::vector<Region> expected;
  std::string reported;  // what was said when it happened
  std::string found;     // the first difference, as replay() says it; empty: replaying found none
};

// Adds the pages of `bytes` that are not 0 as regions from `address` on.
void add_contents(Bundle& bundle, uint64_t address, std::span<const std::byte> bytes);

// Bytes of the bundle's memory before the first launch; what no region holds is 0.
std::vector<std::byte> contents(const Bundle& bundle, uint64_t address, uint64_t bytes);

// The instructions of one launch, or why they cannot be decoded.
Expected<std::vector<spec::Decoded>> instructions(const Bundle& bundle, size_t launch);

Status save_bundle(const Bundle& bundle, const std::filesystem::path& directory);
Expected<Bundle> load_bundle(const std::filesystem::path& directory);

// "mismatch-1" in `parent`, or the first such name that is free.
std::filesystem::path free_name(const std::filesystem::path& parent);

}  // namespace tenon::driver
