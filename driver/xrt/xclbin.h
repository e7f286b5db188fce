// The reader and writer of Xilinx's design files (xclbin, "axlf"), whose own tool is not packaged for Debian.
//
// Layout: a 456-byte header, 40-byte section headers, then the sections at multiples of 8, as in XRT's xclbin.h, little
// endian. The supported sections are those that an XRT program requires: memories, units, their connections, the clock
// and the kernel's arguments as XML.
//
// Metadata: files of Tenon have a section "tenon" with the accelerator's configuration and a SHA-256 over the whole
// file. XRT itself checks very little and crashes on some damaged files, so a device is opened only with a file whose
// metadata are valid. add_metadata() adds metadata to a file of v++.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/config.h"

namespace tenon::driver {

enum class SectionKind : uint32_t {
  kBitstream = 0,
  kEmbeddedMetadata = 2,
  kMemTopology = 6,
  kConnectivity = 7,
  kIpLayout = 8,
  kClockFreqTopology = 11,
  kUserMetadata = 16,
};
std::string_view name(SectionKind kind);  // "MEM_TOPOLOGY"; empty for a kind that is not listed

struct XclbinSection {
  SectionKind kind{};
  std::string name;
  std::vector<std::byte> data;
};

struct Xclbin {
  std::string platform;  // vendor:board:name:version
  uint64_t timestamp = 0;
  uint16_t mode = 0;  // 0: flat, for hardware
  std::array<uint8_t, 16> uuid{};
  std::vector<XclbinSection> sections;
  std::optional<spec::Config> config;  // of the metadata

  const XclbinSection* find(SectionKind kind) const;
};

// The design that the sections describe, for XRT programs and the emulated device.
struct XclbinMemory {
  std::string name;
  uint64_t base = 0, bytes = 0;
  bool used = false;
};
struct XclbinUnit {
  std::string name;  // "tenon_kernel:tenon_1"
  uint64_t base = 0;
  uint32_t interrupt = 0;
  bool kernel = true;  // false: a part of the platform
};
struct XclbinDesign {
  std::vector<XclbinMemory> memories;
  std::vector<XclbinUnit> units;
  uint32_t clock_mhz = 0;  // 0: unknown
};

struct XclbinOptions {
  int units = 1;
  uint64_t memory_bytes = uint64_t{256} << 20;
  uint32_t clock_mhz = 100;
  std::vector<std::byte> bitstream;
};

// A file with metadata for the accelerator of a configuration: `units` units and one memory at address 0.
Xclbin make_xclbin(const spec::Config& config, const XclbinOptions& options = {});
// Adds or replaces the metadata, with `config` as the configuration of the design.
void add_metadata(Xclbin& xclbin, const spec::Config& config);

// The bytes of the file; its uuid is computed from its contents, so that equal designs result in equal files.
std::vector<std::byte> to_bytes(Xclbin& xclbin);
// Checks every offset, length and count, and the metadata if the file has some.
Expected<Xclbin> read_xclbin(std::span<const std::byte> file, std::string_view where);
Expected<Xclbin> load_xclbin(const std::string& path);
Expected<XclbinDesign> design_of(const Xclbin& xclbin, std::string_view where);
std::string uuid_text(const Xclbin& xclbin);

}  // namespace tenon::driver
