#include "sim/systemc/platform.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "hw/spec/registers.h"
#include "sim/systemc/bus.h"
#include "sim/systemc/cpu.h"
#include "sim/systemc/rtl.h"
#include "sim/systemc/tlm_accelerator.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

using namespace systemc;

struct Platform {
  Platform(Pages dram_pages, Pages window_pages, bool dmi)
      : dram(std::move(dram_pages)), window(std::move(window_pages)), memory("memory", dram.span(), dmi) {}

  void connect() {
    cpu.socket.bind(interconnect.from_cpu);
    accelerator->memory.socket.bind(interconnect.from_accelerator);
    interconnect.to_memory.bind(memory.socket);
    interconnect.to_control.bind(accelerator->control);
    accelerator->interrupt.bind(interrupt);
    cpu.interrupt.bind(interrupt);
  }

  Pages dram, window;
  Memory memory;
  Cpu cpu{"cpu"};
  Interconnect interconnect{"interconnect"};
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> interrupt{"interrupt"};
  std::unique_ptr<AcceleratorModule> accelerator;
  std::string description;  // equal for two platforms that are interchangeable
  bool used = false;
};

// The platform of the process. It is never destroyed: SystemC's own globals may be destroyed first.
Platform*& the_platform() {
  static Platform* platform = nullptr;
  return platform;
}

class PlatformSimulator final : public Simulator {
 public:
  PlatformSimulator(const spec::Config& config, Platform& platform) : config_(config), platform_(platform) {
    platform_.used = true;
  }
  ~PlatformSimulator() override {
    platform_.accelerator->observe(nullptr);
    platform_.accelerator->record_timeline(false);
    platform_.used = false;
  }

  const spec::Config& config() const override { return config_; }
  uint32_t read_register(uint32_t offset) override { return platform_.cpu.read(offset); }
  void write_register(uint32_t offset, uint32_t value) override { platform_.cpu.write(offset, value); }
  std::span<std::byte> memory() override { return platform_.dram.span(); }
  bool advance(uint64_t cycles) override { return !platform_.cpu.wait_idle(cycles); }
  std::string explain() override { return platform_.accelerator->explain(); }
  void observe(WriteObserver* observer) override { platform_.accelerator->observe(observer); }
  void record_timeline(bool on) override { platform_.accelerator->record_timeline(on); }
  std::span<const Interval> timeline() const override { return platform_.accelerator->timeline(); }

  // Restores the initial state; returns false where the accelerator does not become idle.
  bool reset() {
    namespace reg = spec::reg;
    write_register(reg::kCommand, spec::kSoftReset | spec::kTokenClear);
    if (advance(10'000'000)) return false;
    read_register(reg::kControl);
    write_register(reg::kGlobalInterruptEnable, 0);
    write_register(reg::kInterruptEnable, 0);
    for (uint32_t at = reg::kInstructions; at < reg::kBase0 + 8 * spec::kBases; at += 4) write_register(at, 0);
    platform_.dram.zero();
    platform_.accelerator->power_on();
    return true;
  }

 private:
  const spec::Config config_;
  Platform& platform_;
};

std::string describe(const spec::Config& config, const SystemcOptions& o) {
  return fmt::format(
      "configuration {} ({:016x}), model {}, {} bytes, DMI {}, latency {}/{}, outstanding {}, stalls {}, "
      "seed {}, interleave {}, trace \"{}\"",
      config.name, spec::hash(config), o.model == SystemcOptions::Model::kRtl ? "rtl" : "tlm", o.memory_bytes,
      o.dmi ? "on" : "off", o.rtl.read_latency, o.rtl.write_latency, o.rtl.outstanding, o.rtl.stall_percent, o.rtl.seed,
      o.rtl.interleave, o.rtl.vcd);
}

constexpr char kOnePerProcess[] =
    "SystemC supports one simulation per process; use another process for the second device, or behavioral: or "
    "verilator:, which have no such limit";

Expected<std::unique_ptr<Simulator>> reuse_platform(const spec::Config& config, const std::string& description) {
  Platform& platform = *the_platform();
  if (platform.used) return error("this process has a systemc: device open already", config.name, kOnePerProcess);
  if (platform.description != description) {
    return error(fmt::format("this process supports only its first systemc: device: {}; requested: {}",
                             platform.description, description),
                 config.name, kOnePerProcess);
  }
  auto simulator = std::make_unique<PlatformSimulator>(config, platform);
  if (!simulator->reset()) {
    return error("the model does not become idle after a soft reset", config.name, kOnePerProcess, Fault::kInternal);
  }
  return simulator;
}

}  // namespace

Expected<std::unique_ptr<Simulator>> make_systemc(const spec::Config& config, const SystemcOptions& options) {
  TENON_TRY(spec::validate(config, config.name));
  const bool rtl = options.model == SystemcOptions::Model::kRtl;
  if (rtl && !options.dmi) {
    return error("the Verilated RTL requires DMI", config.name, "omit dmi=off, or use model=tlm");
  }
  const std::string description = describe(config, options);
  if (the_platform() != nullptr) return reuse_platform(config, description);

  const uint64_t bytes = whole_pages(options.memory_bytes);
  Pages dram(bytes), window(bytes);
  if (dram.span().empty() || window.span().empty()) {
    return error(fmt::format("cannot reserve {} bytes for the platform's memory", bytes), config.name,
                 "request less memory: append ?memory=64M to the name");
  }
  std::unique_ptr<Simulator> model;
  if (rtl) {
    VerilatedOptions rtl_options = options.rtl;
    rtl_options.memory = dram.span();
    TENON_TRY_ASSIGN(made, make_verilated(config, rtl_options));
    model = std::move(*made);
  }
  sc_core::sc_report_handler::set_actions("/IEEE_Std_1666/deprecated", sc_core::SC_DO_NOTHING);
  auto platform = std::make_unique<Platform>(std::move(dram), std::move(window), options.dmi);
  if (rtl) platform->accelerator = std::make_unique<RtlAccelerator>("accelerator", std::move(model));
  else
    platform->accelerator = std::make_unique<TlmAccelerator>("accelerator", config, *find_kernel_set({}),
                                                             platform->window.span(), options.timing);
  platform->connect();
  platform->description = description;
  the_platform() = platform.release();
  return std::make_unique<PlatformSimulator>(config, *the_platform());
}

}  // namespace tenon::sim
