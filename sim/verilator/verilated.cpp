#include "sim/verilator/verilated.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "hw/spec/registers.h"
#include "sim/verilator/abi.h"
#include "sim/verilator/builder.h"
#include "sim/verilator/elements.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

using spec::Memory;

// Pages come when they are touched, and go when the model does.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&&) = delete;
  std::byte* data() const { return data_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::byte* data_;
  uint64_t bytes_;
};

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
      // What was under way when the last run broke off is not finished by this one.
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
      const uint64_t some = std::min(cycles, kPollCycles);
      api_->step(rtl_, some);
      cycles -= some;
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
  Pages pages_;  // empty where memory_ is the caller's
  std::span<std::byte> memory_;
  ElementWriter elements_;
  bool observing_ = false, recording_ = false;
  uint64_t launch_ = 0;  // cycle of the last one
  std::vector<Interval> timeline_;
};

}  // namespace

Expected<std::unique_ptr<Simulator>> make_verilated(const spec::Config& config, const VerilatedOptions& options) {
  TENON_TRY_ASSIGN(file, build_verilated_model(config, {.vcd = !options.vcd.empty(), .progress = options.progress}));
  // Never closed: closing gains nothing, and a later open of the same model finds it loaded.
  void* library = dlopen(file->c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get =
      library == nullptr ? nullptr : reinterpret_cast<const tenon_rtl_api* (*)()>(dlsym(library, "tenon_rtl_get"));
  if (get == nullptr || get()->abi != TENON_RTL_ABI) {
    return error(fmt::format("the Verilated model of {} cannot be opened: {}", config.name,
                             library == nullptr ? dlerror() : "it is not of this version of Tenon"),
                 file->string(), fmt::format("remove {}; it is built again", file->parent_path().string()),
                 Fault::kInternal);
  }
  const bool own = options.memory.empty();
  const uint64_t bytes = own ? (options.memory_bytes + 4095) & ~uint64_t{4095} : options.memory.size();
  Pages pages(own ? bytes : 4096);
  const std::span<std::byte> memory = own ? pages.span() : options.memory;
  if (pages.data() == nullptr) {
    return error(fmt::format("cannot reserve {} bytes for the model's memory", bytes), config.name,
                 "ask for less: ?memory=64M behind the name");
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
