#include "driver/xrt/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "hw/spec/arguments.h"
#include "hw/spec/registers.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

// Records as in XRT's xclbin.h; natural alignment results in the same layout.
struct MemoryRecord {
  uint8_t type, used, padding[6];
  uint64_t kib, base;
  char tag[16];
};
struct UnitRecord {
  uint32_t type, properties;
  uint64_t base;
  char name[64];
};
struct ConnectionRecord {
  int32_t argument, unit, memory;
};
struct ClockRecord {
  uint16_t mhz;
  uint8_t type, unused[5];
  char name[128];
};
static_assert(sizeof(MemoryRecord) == 40 && sizeof(UnitRecord) == 80 && sizeof(ConnectionRecord) == 12 &&
              sizeof(ClockRecord) == 136);
constexpr uint8_t kMemDdr4 = 1, kClockKernel = 2;
constexpr uint32_t kIpKernel = 1;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, std::back_inserter(to));
}

// A section with a count, padding to `first`, and the records.
template <class Count, class Record>
XclbinSection table(SectionKind kind, size_t first, std::span<const Record> records) {
  XclbinSection section{kind, "", std::vector<std::byte>(first)};
  const auto count = static_cast<Count>(records.size());
  std::memcpy(section.data.data(), &count, sizeof count);
  append(section.data, std::as_bytes(records));
  return section;
}

template <class Count, class Record>
Expected<std::vector<Record>> records(const XclbinSection& section, size_t first, std::string_view where) {
  const auto wrong = [&](auto count) {
    return error(
        fmt::format("section {} has {} bytes, too few for {} records", name(section.kind), section.data.size(), count),
        std::string(where), "write the file again");
  };
  if (section.data.size() < first) return wrong("their count and");
  Count count;
  std::memcpy(&count, section.data.data(), sizeof count);
  if (count < 0 || static_cast<size_t>(count) > (section.data.size() - first) / sizeof(Record)) return wrong(count);
  std::vector<Record> list(static_cast<size_t>(count));
  if (count > 0) std::memcpy(list.data(), section.data.data() + first, list.size() * sizeof(Record));
  return list;
}

std::string xml(const XclbinOptions& options, const spec::Config& config) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<project name=\"tenon\">\n"
      " <platform vendor=\"tenon\" boardid=\"any\" name=\"any\" featureRomTime=\"0\">\n"
      "  <version major=\"0\" minor=\"1\"/>\n  <device name=\"fpga0\">\n"
      "   <core name=\"OCL_REGION_0\" target=\"bitstream\" type=\"clc_region\" clockFreq=\"{0}MHz\">\n"
      "    <kernelClocks><clock port=\"KERNEL_CLK\" frequency=\"{0}MHz\"/></kernelClocks>\n"
      "    <kernel name=\"{1}\" language=\"ip_c\" vlnv=\"tenon:kernel:{1}:1.0\" hwControlProtocol=\"ap_ctrl_hs\" "
      "workGroupSize=\"1\" interrupt=\"true\">\n"
      "     <port name=\"s_axi_control\" mode=\"slave\" range=\"{2:#x}\" dataWidth=\"32\" portType=\"addressable\" "
      "base=\"0x0\"/>\n"
      "     <port name=\"m_axi_gmem\" mode=\"master\" range=\"0xFFFFFFFFFFFFFFFF\" dataWidth=\"{3}\" "
      "portType=\"addressable\" base=\"0x0\"/>\n",
      options.clock_mhz, spec::kKernelName, spec::kRegisterSpaceBytes, 8 * config.axi_bytes());
  int id = 0;
  for (const spec::Argument& a : spec::arguments()) {
    text += fmt::format(
        "     <arg name=\"{}\" addressQualifier=\"{}\" id=\"{}\" port=\"{}\" size=\"{:#x}\" offset=\"{:#x}\" "
        "hostOffset=\"0x0\" hostSize=\"{:#x}\" type=\"{}\"/>\n",
        a.name, a.pointer ? 1 : 0, id++, a.pointer ? "m_axi_gmem" : "s_axi_control", a.bytes(), a.offset, a.bytes(),
        a.pointer ? "void*" : "unsigned int");
  }
  for (int i = 0; i < options.units; ++i) {
    text +=
        fmt::format("     <instance name=\"tenon_{}\"><addrRemap base=\"{:#x}\" port=\"s_axi_control\"/></instance>\n",
                    i + 1, kUnitBase + kUnitBytes * static_cast<uint64_t>(i));
  }
  return text + "    </kernel>\n   </core>\n  </device>\n </platform>\n</project>\n";
}

}  // namespace

std::vector<XclbinSection> metadata_sections(const spec::Config& config, const XclbinOptions& options) {
  MemoryRecord memory{
      .type = kMemDdr4, .used = 1, .padding = {}, .kib = options.memory_bytes / 1024, .base = 0, .tag = "DDR[0]"};
  std::vector<UnitRecord> units;
  std::vector<ConnectionRecord> connections;
  const auto list = spec::arguments();
  for (int i = 0; i < options.units; ++i) {
    UnitRecord unit{.type = kIpKernel,
                    .properties = 1u | static_cast<uint32_t>(i) << 1,
                    .base = kUnitBase + kUnitBytes * static_cast<uint64_t>(i),
                    .name = {}};
    fmt::format_to_n(unit.name, sizeof unit.name - 1, "{}:tenon_{}", spec::kKernelName, i + 1);
    units.push_back(unit);
    for (size_t a = 0; a < list.size(); ++a) {
      if (list[a].pointer) connections.push_back({static_cast<int32_t>(a), i, 0});
    }
  }
  ClockRecord clock{
      .mhz = static_cast<uint16_t>(options.clock_mhz), .type = kClockKernel, .unused = {}, .name = "KERNEL_CLK"};
  XclbinSection metadata{SectionKind::kEmbeddedMetadata, "", {}};
  const std::string text = xml(options, config);
  append(metadata.data, std::as_bytes(std::span(text)));
  std::vector<XclbinSection> sections;
  sections.push_back(table<int32_t, MemoryRecord>(SectionKind::kMemTopology, 8, std::span(&memory, 1)));
  sections.push_back(table<int32_t, UnitRecord>(SectionKind::kIpLayout, 8, units));
  sections.push_back(table<int32_t, ConnectionRecord>(SectionKind::kConnectivity, 4, connections));
  sections.push_back(table<int16_t, ClockRecord>(SectionKind::kClockFreqTopology, 2, std::span(&clock, 1)));
  sections.push_back(std::move(metadata));
  return sections;
}

Expected<XclbinDesign> design_of(const Xclbin& xclbin, std::string_view where) {
  const auto section = [&](SectionKind kind) -> Expected<const XclbinSection*> {
    if (const XclbinSection* found = xclbin.find(kind)) return found;
    return error(fmt::format("the file has no section {}", name(kind)), std::string(where),
                 "write the file again; tenon xclbin show lists sections");
  };
  const auto text = [](const auto& array) { return std::string(array, strnlen(array, sizeof array)); };
  XclbinDesign design;
  TENON_TRY_ASSIGN(memories, section(SectionKind::kMemTopology));
  TENON_TRY_ASSIGN(memory_records, records<int32_t, MemoryRecord>(**memories, 8, where));
  for (const MemoryRecord& m : *memory_records)
    design.memories.push_back({text(m.tag), m.base, m.kib * 1024, m.used != 0});
  TENON_TRY_ASSIGN(units, section(SectionKind::kIpLayout));
  TENON_TRY_ASSIGN(unit_records, records<int32_t, UnitRecord>(**units, 8, where));
  for (const UnitRecord& u : *unit_records) {
    design.units.push_back({text(u.name), u.base, u.properties >> 1 & 0x7f, u.type == kIpKernel});
  }
  if (const XclbinSection* clocks = xclbin.find(SectionKind::kClockFreqTopology)) {
    TENON_TRY_ASSIGN(clock_records, records<int16_t, ClockRecord>(*clocks, 2, where));
    for (const ClockRecord& c : *clock_records) {
      if (c.type == kClockKernel) design.clock_mhz = c.mhz;
    }
  }
  return design;
}

}  // namespace tenon::driver
