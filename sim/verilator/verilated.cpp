#include "sim/verilator/verilated.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "hw/spec/registers.h"
#include "sim/verilator/abi.h"
#include "sim/verilator/builder.h"
#include "sim/verilator/elements.h"
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
    }
    api_->write_register(rtl_, offset, value);
  }

  std::span<std::byte> memory() override { return memory_; }

  bool advance(uint64_t cycles) override {
    while (true) {
      if (*api_->failure(rtl_) != '\0') return true;
      if ((read_register(spec::reg::kStatus) & spec::kStatusBusy) == 0) return *api_->failure(rtl_) != '\0';
      if (cycles == 0) return true;
      const uint64_t count = std::min(cycles, kPollCycles);
      api_->step(rtl_, count);
      cycles -= count;
    }
  }

  std::string explain() override {
    const char* failure = api_->failure(rtl_);
    return *failure == '\0' ? std::string() : fmt::format("the RTL model broke a rule: {}", failure);
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
  uint64_t launch_ = 0;  // the cycle of the last launch
  std::vector<Interval> timeline_;
};

}  // namespace

Expected<std::unique_ptr<Simulator>> make_verilated(const spec::Config& config, const VerilatedOptions& options) {
  TENON_TRY_ASSIGN(file, build_verilated_model(config, {.vcd = !options.vcd.empty(), .progress = options.progress}));
  // The library is never closed: closing gains nothing, and a later open of the same model finds the library loaded.
  void* library = dlopen(file->c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get =
      library == nullptr ? nullptr : reinterpret_cast<const tenon_rtl_api* (*)()>(dlsym(library, "tenon_rtl_get"));
  if (get == nullptr || get()->abi != TENON_RTL_ABI) {
    return error(fmt::format("the Verilated model of {} cannot be opened: {}", config.name,
                             library == nullptr ? dlerror() : "it belongs to another version of Tenon"),
                 file->string(), fmt::format("remove {}; the next use builds it again", file->parent_path().string()),
                 Fault::kInternal);
  }
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
                                      .seed = options.seed,
                                      .trace_path = options.vcd.empty() ? nullptr : options.vcd.c_str()};
  tenon_rtl* rtl = get()->create(&rtl_options);
  return std::make_unique<Verilated>(config, get(), rtl, std::move(pages), memory);
}

}  // namespace tenon::sim
