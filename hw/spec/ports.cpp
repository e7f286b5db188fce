#include "hw/spec/ports.h"

#include <fmt/format.h>

#include "hw/spec/arguments.h"

namespace tenon::spec {
namespace {

struct Signal {
  std::string_view name;
  bool output;
  int bits;
  std::string_view ignored;
};
constexpr bool kIn = false, kOut = true;
constexpr int kData = -1, kStrobes = -2;  // bits that depend on the configuration

constexpr Signal kControl[] = {
    {"awvalid", kIn, 1, ""}, {"awready", kOut, 1, ""}, {"awaddr", kIn, 12, ""}, {"wvalid", kIn, 1, ""},
    {"wready", kOut, 1, ""}, {"wdata", kIn, 32, ""},   {"wstrb", kIn, 4, ""},   {"bvalid", kOut, 1, ""},
    {"bready", kIn, 1, ""},  {"bresp", kOut, 2, ""},   {"arvalid", kIn, 1, ""}, {"arready", kOut, 1, ""},
    {"araddr", kIn, 12, ""}, {"rvalid", kOut, 1, ""},  {"rready", kIn, 1, ""},  {"rdata", kOut, 32, ""},
    {"rresp", kOut, 2, ""},
};

constexpr Signal kMemory[] = {
    {"awvalid", kOut, 1, ""},
    {"awready", kIn, 1, ""},
    {"awaddr", kOut, 64, ""},
    {"awid", kOut, 2, ""},
    {"awlen", kOut, 8, ""},
    {"awsize", kOut, 3, ""},
    {"awburst", kOut, 2, ""},
    {"awlock", kOut, 2, ""},
    {"awcache", kOut, 4, ""},
    {"awprot", kOut, 3, ""},
    {"awqos", kOut, 4, ""},
    {"wvalid", kOut, 1, ""},
    {"wready", kIn, 1, ""},
    {"wdata", kOut, kData, ""},
    {"wstrb", kOut, kStrobes, ""},
    {"wlast", kOut, 1, ""},
    {"bvalid", kIn, 1, ""},
    {"bready", kOut, 1, ""},
    {"bid", kIn, 2, "there is one writer"},
    {"bresp", kIn, 2, "bit 1 is the error"},
    {"arvalid", kOut, 1, ""},
    {"arready", kIn, 1, ""},
    {"araddr", kOut, 64, ""},
    {"arid", kOut, 2, ""},
    {"arlen", kOut, 8, ""},
    {"arsize", kOut, 3, ""},
    {"arburst", kOut, 2, ""},
    {"arlock", kOut, 2, ""},
    {"arcache", kOut, 4, ""},
    {"arprot", kOut, 3, ""},
    {"arqos", kOut, 4, ""},
    {"rvalid", kIn, 1, ""},
    {"rready", kOut, 1, ""},
    {"rdata", kIn, kData, ""},
    {"rid", kIn, 2, ""},
    {"rlast", kIn, 1, ""},
    {"rresp", kIn, 2, "bit 1 is the error"},
};

std::vector<Port> ports(std::string_view bus, std::span<const Signal> signals, int data_bits) {
  std::vector<Port> result;
  for (const Signal& s : signals) {
    const int bits = s.bits == kData ? data_bits : s.bits == kStrobes ? data_bits / 8 : s.bits;
    result.push_back({fmt::format("{}_{}", bus, s.name), s.output, bits, s.ignored});
  }
  return result;
}

}  // namespace

std::vector<Port> control_ports() { return ports(kControlPort, kControl, 32); }

std::vector<Port> memory_ports(const Config& config) { return ports(kMemoryPort, kMemory, config.axi_data_bits); }

}  // namespace tenon::spec
