#include "sim/verilator/verilated.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/verilator/builder.h"
#include "sim/verilator/elements.h"
#include "sim/verilator/model.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

using spec::Memory;

class Verilated final : public Simulator {
 public:
  Verilated(const spec::Config& config, const tenon_rtl_api* api, tenon_rtl* rtl, Pages pages,
            std::span<std::byte> memory)
      : config_(config), api_(api), rtl_(rtl), pages_(std::move(pages)), memory_(memory), elements_(config) {}
  ~Verilated() override { api_->destroy(rtl_); }

  const spec::Config& config() const override { return config_; }
  uint32_t read_register(uint32_t offset) override { return api_->read_register(rtl_, offset); }

  void write_register(uint32_t offset, uint32_t value) override {
    if (offset == spec::reg::kControl && (value & spec::kApStart) != 0) {
      // Instructions that were in flight when the last run was aborted are not finished by this run.
      connect();
      elements_.forget();
      timeline_.clear();
      launch_ = api_->cycles(rtl_);
      api_->counts(rtl_, &before_);
      counted_ = observing_;
    }
    if (offset == spec::reg::kCommand && (value & spec::kSoftReset) != 0) counted_ = false;
    api_->write_register(rtl_, offset, value);
  }

  std::span<std::byte> memory() override { return memory_; }

  bool advance(uint64_t cycles) override {
    while (true) {
      if (!failure().empty()) return true;
      const uint32_t status = read_register(spec::reg::kStatus);
      if ((status & spec::kStatusBusy) == 0) {
        check_end(status);
        return !failure().empty();
      }
      if (cycles == 0) return true;
      const uint64_t count = std::min(cycles, kPollCycles);
      api_->step(rtl_, count);
      cycles -= count;
    }
  }

  std::string explain() override {
    const std::string rule = failure();
    return rule.empty() ? std::string() : fmt::format("the RTL model broke a rule: {}", rule);
  }

  void observe(WriteObserver* observer) override {
    observing_ = observer != nullptr;
    elements_.set_observer(observer);
    connect();
  }
  void record_timeline(bool on) override {
    recording_ = on;
    connect();
  }
  std::span<const Interval> timeline() const override { return timeline_; }

 private:
  std::string failure() const { return miscount_.empty() ? api_->failure(rtl_) : miscount_; }

  uint64_t counter(uint32_t offset) { return read_register(offset) | uint64_t{read_register(offset + 4)} << 32; }

  // At the end of an observed launch: the interrupt output against the registers that software sees.
  void check_interrupt() {
    const bool enabled = (read_register(spec::reg::kGlobalInterruptEnable) & 1) != 0;
    const bool wanted = enabled && read_register(spec::reg::kInterruptStatus) != 0;
    const bool found = api_->interrupt(rtl_) != 0;
    if (found == wanted || !failure().empty()) return;
    miscount_ = fmt::format("the interrupt output is {:d}, and its registers ask for {:d}", found, wanted);
  }

  // The counters of an observed launch against what passed the ports since its start. The engines' cycles are compared
  // for launches without an error alone, since nothing waits any more at their end.
  void check_end(uint32_t status) {
    if (!std::exchange(counted_, false)) return;
    check_interrupt();
    if (!config_.counters) return;
    namespace reg = spec::reg;
    tenon_rtl_counts now{};
    api_->counts(rtl_, &now);
    const auto check = [&](const std::string& name, uint32_t offset, uint64_t seen) {
      const uint64_t value = counter(offset);
      if (value == seen || !failure().empty()) return;
      miscount_ = fmt::format("the counter of {} has {}, and the harness saw {}", name, value, seen);
    };
    check("read beats", reg::kReadBeats, now.read_beats - before_.read_beats);
    check("write beats", reg::kWriteBeats, now.write_beats - before_.write_beats);
    check("read bursts", reg::kReadBursts, now.read_bursts - before_.read_bursts);
    check("write bursts", reg::kWriteBursts, now.write_bursts - before_.write_bursts);
    if ((status & 0xff) != 0) return;
    for (uint32_t e = 0; e < spec::kEngines; ++e) {
      const auto engine = spec::name(static_cast<spec::Engine>(e));
      check(fmt::format("busy cycles of {}", engine), reg::kBusy0 + 8 * e, now.busy[e] - before_.busy[e]);
      check(fmt::format("stalled cycles of {}", engine), reg::kStall0 + 8 * e, now.waiting[e] - before_.waiting[e]);
    }
  }

  static void on_write(void* context, uint32_t kind, uint32_t instruction, uint64_t address, const uint8_t* bytes) {
    ElementWriter& elements = static_cast<Verilated*>(context)->elements_;
    const auto* data = reinterpret_cast<const std::byte*>(bytes);
    switch (kind) {
      case TENON_RTL_UOP: return elements.unit(Memory::kUop, instruction, address, data);
      case TENON_RTL_WGT: return elements.unit(Memory::kWgt, instruction, address, data);
      case TENON_RTL_INP: return elements.unit(Memory::kInp, instruction, address, data);
      case TENON_RTL_ACC: return elements.unit(Memory::kAcc, instruction, address, data);
      case TENON_RTL_PAR: return elements.unit(Memory::kPar, instruction, address, data);
      case TENON_RTL_RES: return elements.unit(Memory::kRes, instruction, address, data);
      case TENON_RTL_ACC8: return elements.widen(instruction, address, data);
      case TENON_RTL_ACC_ELEMENT: return elements.element(Memory::kAcc, instruction, address, data);
      case TENON_RTL_OUT_ELEMENT: return elements.element(Memory::kOut, instruction, address, data);
      default: return;
    }
  }
  static void on_dram(void* context, uint32_t instruction, uint64_t address, const uint8_t* data, uint32_t bytes) {
    static_cast<Verilated*>(context)->elements_.dram(instruction, address, reinterpret_cast<const std::byte*>(data),
                                                     bytes);
  }
  static void on_done(void* context, uint32_t instruction) {
    static_cast<Verilated*>(context)->elements_.done(instruction);
  }
  static void on_interval(void* context, uint32_t engine, uint32_t kind, uint32_t instruction, uint64_t begin,
                          uint64_t end) {
    auto* self = static_cast<Verilated*>(context);
    if (end <= self->launch_) return;
    self->timeline_.push_back({static_cast<uint8_t>(engine),
                               kind == 0 ? Interval::Kind::kBusy : Interval::Kind::kWaitTokens, instruction,
                               std::max(begin, self->launch_) - self->launch_, end - self->launch_});
  }

  void connect() {
    const tenon_rtl_observer observer{.context = this,
                                      .write = observing_ ? &on_write : nullptr,
                                      .dram = observing_ ? &on_dram : nullptr,
                                      .done = observing_ ? &on_done : nullptr,
                                      .interval = recording_ ? &on_interval : nullptr};
    api_->observe(rtl_, &observer);
  }

  const spec::Config config_;
  const tenon_rtl_api* api_;
  tenon_rtl* rtl_;
  Pages pages_;  // unused where memory_ is the caller's
  std::span<std::byte> memory_;
  ElementWriter elements_;
  bool observing_ = false, recording_ = false;
  bool counted_ = false;       // the launch in progress has been observed from its start
  tenon_rtl_counts before_{};  // at its start
  std::string miscount_;       // the first wrong counter, or interrupt
  uint64_t launch_ = 0;        // the cycle of the last launch
  std::vector<Interval> timeline_;
};

}  // namespace

Expected<OpenModel> open_model(const spec::Config& config, const std::filesystem::path& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get =
      library == nullptr ? nullptr : reinterpret_cast<const tenon_rtl_api* (*)()>(dlsym(library, "tenon_rtl_get"));
  if (get == nullptr || get()->abi != TENON_RTL_ABI) {
    return error(fmt::format("the Verilated model of {} cannot be opened: {}", config.name,
                             library == nullptr ? dlerror() : "it belongs to another version of Tenon"),
                 file.string(), fmt::format("remove {}; the next use builds it again", file.parent_path().string()),
                 Fault::kInternal);
  }
  return OpenModel{library, get()};
}

Expected<std::unique_ptr<Simulator>> make_simulator(const spec::Config& config, const tenon_rtl_api& api,
                                                    const VerilatedOptions& options) {
  const bool owns_memory = options.memory.empty();
  const uint64_t bytes = owns_memory ? whole_pages(options.memory_bytes) : options.memory.size();
  Pages pages(owns_memory ? bytes : kPageBytes);
  const std::span<std::byte> memory = owns_memory ? pages.span() : options.memory;
  if (pages.span().empty()) {
    return error(fmt::format("cannot reserve {} bytes for the model's memory", bytes), config.name,
                 "request less memory: append ?memory=64M to the name");
  }
  const tenon_rtl_options rtl_options{.memory = reinterpret_cast<uint8_t*>(memory.data()),
                                      .memory_bytes = bytes,
                                      .read_latency = options.read_latency,
                                      .write_latency = options.write_latency,
                                      .outstanding = options.outstanding,
                                      .max_beats = static_cast<uint32_t>(config.max_burst_beats),
                                      .stall_percent = options.stall_percent,
                                      .interleave = options.interleave ? 1u : 0u,
                                      .write_order = static_cast<uint32_t>(options.write_order),
                                      .late_ready = options.late_ready ? 1u : 0u,
                                      .read_error = options.read_error,
                                      .seed = options.seed,
                                      .trace_path = options.vcd.empty() ? nullptr : options.vcd.c_str(),
                                      .coverage_path = options.coverage.empty() ? nullptr : options.coverage.c_str()};
  tenon_rtl* rtl = api.create(&rtl_options);
  return std::make_unique<Verilated>(config, &api, rtl, std::move(pages), memory);
}

Expected<std::unique_ptr<Simulator>> make_verilated(const spec::Config& config, const VerilatedOptions& options) {
  TENON_TRY_ASSIGN(file, build_verilated_model(config, {.vcd = !options.vcd.empty(),
                                                        .coverage = !options.coverage.empty(),
                                                        .fast_dot = options.fast_dot,
                                                        .progress = options.progress}));
  TENON_TRY_ASSIGN(model, open_model(config, *file));
  return make_simulator(config, *model->api, options);
}

}  // namespace tenon::sim
