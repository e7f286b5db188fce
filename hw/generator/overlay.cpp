#include "hw/generator/overlay.h"

#include <fmt/format.h>

#include "hw/spec/registers.h"

namespace tenon::generator {
namespace {

// The facts of a family: labels of the kernel's device trees, and addresses of the PL.
struct Facts {
  const char *name, *interrupts, *clocks;
  int clock;  // index of the PL's first clock
  int cells;  // of an address
  uint64_t address, end;
  uint32_t interrupt;
};

const Facts& facts(Family family) {
  static constexpr Facts kZynq{"Zynq-7000", "intc", "clkc", 15, 1, 0x43c0'0000, uint64_t{1} << 32, 29};
  static constexpr Facts kMp{"Zynq UltraScale+", "gic", "zynqmp_clk", 71, 2, 0xa000'0000, uint64_t{1} << 40, 89};
  return family == Family::kZynq7000 ? kZynq : kMp;
}

std::string cells(uint64_t value, int count) {
  if (count == 1) return fmt::format("{:#x}", value);
  return fmt::format("{:#x} {:#x}", value >> 32, value & 0xffff'ffff);
}

std::unexpected<Diagnostic> refuse(std::string what) { return error(std::move(what), {}, {}, Fault::kUsage); }

}  // namespace

uint64_t register_address(Family family) { return facts(family).address; }

Expected<std::string> overlay_text(const spec::Config& config, const OverlayOptions& options) {
  const Facts& f = facts(options.family);
  const uint64_t address = options.address == 0 ? f.address : options.address;
  const uint32_t interrupt = options.interrupt == 0 ? f.interrupt : options.interrupt;
  if (address % spec::kRegisterSpaceBytes != 0 || address >= f.end) {
    return refuse(fmt::format("the address is {:#x}, must be a multiple of {:#x} below {:#x}", address,
                              spec::kRegisterSpaceBytes, f.end));
  }
  if (interrupt > 987) return refuse(fmt::format("the interrupt is {}, must be in [1, 987]", interrupt));
  if (options.clock_mhz < 1 || options.clock_mhz > 1000) {
    return refuse(fmt::format("the clock is {} MHz, must be in [1, 1000]", options.clock_mhz));
  }
  if (options.memory_bytes == 0 || options.memory_bytes % 4096 != 0 || options.memory_bytes > uint64_t{2} << 30) {
    return refuse(
        fmt::format("{} bytes of memory: must be a multiple of 4096, and 2 GiB at most", options.memory_bytes));
  }
  if (options.firmware.empty() || options.firmware.find_first_of("\"\\/\n") != std::string::npos) {
    return refuse(fmt::format("\"{}\" is not a valid file name in /lib/firmware", options.firmware));
  }
  std::string name;  // in a string of the device tree
  for (const char c : config.name) name += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
  const uint64_t hash = spec::hash(config);
  return fmt::format(
      R"(// Configuration {name} ({hash:016x}) on {family}: generated, not to be edited.
//   dtc -@ -I dts -O dtb -o tenon.dtbo tenon.dtso
// The kernel needs uio_pdrv_genirq with of_id=generic-uio, and u-dma-buf.
/dts-v1/;
/plugin/;

&fpga_full {{
	#address-cells = <{n}>;
	#size-cells = <{n}>;
	firmware-name = "{firmware}";
}};

&amba {{
	#address-cells = <{n}>;
	#size-cells = <{n}>;

	tenon_clock: tenon-clock {{
		compatible = "xlnx,fclk";
		clocks = <&{clocks} {clock}>;
		assigned-clocks = <&{clocks} {clock}>;
		assigned-clock-rates = <{hertz}>;
	}};

	tenon@{address:x} {{
		compatible = "generic-uio";
		linux,uio-name = "tenon";
		reg = <{reg} {window}>;
		interrupt-parent = <&{interrupts}>;
		interrupts = <0 {interrupt} 4>;
		tenon,configuration = "{name}";
		tenon,hash = <{high:#x} {low:#x}>;
	}};

	udmabuf0 {{
		compatible = "ikwzm,u-dma-buf";
		device-name = "udmabuf0";
		size = <{memory}>;
	}};
}};
)",
      fmt::arg("name", name), fmt::arg("hash", hash), fmt::arg("family", f.name), fmt::arg("n", f.cells),
      fmt::arg("firmware", options.firmware), fmt::arg("clocks", f.clocks), fmt::arg("clock", f.clock),
      fmt::arg("hertz", options.clock_mhz * 1'000'000), fmt::arg("address", address),
      fmt::arg("reg", cells(address, f.cells)), fmt::arg("window", cells(spec::kRegisterSpaceBytes, f.cells)),
      fmt::arg("interrupts", f.interrupts), fmt::arg("interrupt", interrupt), fmt::arg("high", hash >> 32),
      fmt::arg("low", hash & 0xffff'ffff), fmt::arg("memory", fmt::format("{:#x}", options.memory_bytes)));
}

}  // namespace tenon::generator
