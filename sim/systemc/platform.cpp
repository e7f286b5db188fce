#include "sim/systemc/platform.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "hw/spec/registers.h"
#include "sim/systemc/bus.h"
#include "sim/systemc/cpu.h"
#include "sim/systemc/rtl.h"
#include "sim/systemc/tlm_accelerator.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

using namespace systemc;

// Pages come when they are touched.
class Pages {
 public:
  explicit Pages(uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) bytes_ = {static_cast<std::byte*>(p), bytes};
  }
  ~Pages() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&&) = delete;
  std::span<std::byte> span() const { return bytes_; }
  void zero() { madvise(bytes_.data(), bytes_.size(), MADV_DONTNEED); }

 private:
  std::span<std::byte> bytes_;
};

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
  std::string description;  // of all that makes one platform different from another
  bool used = false;
};

// The process's one platform. It is never destroyed: SystemC's own globals may be gone first.
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

  // As it was when it was made.
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

constexpr char kOneAProcess[] =
    "SystemC has one simulation a process; use another process for the second device, or behavioral: or verilator:, "
    "which have no such limit";

Expected<std::unique_ptr<Simulator>> take_up(const spec::Config& config, const std::string& description) {
  Platform& platform = *the_platform();
  if (platform.used) return error("this process has a systemc: device open already", config.name, kOneAProcess);
  if (platform.description != description) {
    return error(fmt::format("this process has had another systemc: device: {}; asked for: {}", platform.description,
                             description),
                 config.name, kOneAProcess);
  }
  auto simulator = std::make_unique<PlatformSimulator>(config, platform);
  if (!simulator->reset()) {
    return error("the model does not become idle after a soft reset", config.name, kOneAProcess, Fault::kInternal);
  }
  return simulator;
}

}  // namespace

Expected<std::unique_ptr<Simulator>> make_systemc(const spec::Config& config, const SystemcOptions& options) {
  TENON_TRY(spec::validate(config, config.name));
  const bool rtl = options.model == SystemcOptions::Model::kRtl;
  if (rtl && !options.dmi) {
    return error("the Verilated RTL reaches memory by DMI only", config.name, "leave out dmi=off, or take model=tlm");
  }
  const std::string description = describe(config, options);
  if (the_platform() != nullptr) return take_up(config, description);

  const uint64_t bytes = (options.memory_bytes + 4095) & ~uint64_t{4095};
  Pages dram(bytes), window(bytes);
  if (dram.span().empty() || window.span().empty()) {
    return error(fmt::format("cannot reserve {} bytes for the platform's memory", bytes), config.name,
                 "ask for less: ?memory=64M behind the name");
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
    platform->accelerator = std::make_unique<TlmAccelerator>("accelerator", config, *find_kernels({}),
                                                             platform->window.span(), options.timing);
  platform->connect();
  platform->description = description;
  the_platform() = platform.release();
  return std::make_unique<PlatformSimulator>(config, *the_platform());
}

}  // namespace tenon::sim
