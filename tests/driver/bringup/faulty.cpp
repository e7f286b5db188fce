// The transport faulty: -- the behavioral simulator with a selectable fault, for tests of fault detection:
// faulty:CONFIG?fault=KIND; without the option, TENON_FAULT names the kind. Options of other simulators' memories are
// accepted and ignored.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "driver/behavioral.h"
#include "driver/plugin_export.h"
#include "driver/simulated.h"
#include "sim/lockstep/lockstep.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace reg = spec::reg;

constexpr std::string_view kKinds[] = {"none",      "version",      "hash",    "register", "read-only",
                                       "data-line", "address-line", "pattern", "store",    "clock",
                                       "mac",       "hang",         "write"};

class FaultySimulator final : public sim::Simulator, public sim::WriteObserver {
 public:
  FaultySimulator(std::unique_ptr<sim::Simulator> inner, std::string kind)
      : inner_(std::move(inner)), kind_(std::move(kind)) {}

  const spec::Config& config() const override { return inner_->config(); }
  uint32_t read_register(uint32_t offset) override {
    const uint32_t value = inner_->read_register(offset);
    if (kind_ == "version" && offset == reg::kVersion) return 0xffffffff;
    if (kind_ == "hash" && offset == reg::kConfigHash) return value ^ 1;
    if (kind_ == "register" && offset == reg::kInstructions) return value & ~8u;
    if (kind_ == "read-only" && offset == reg::kVersion && scribbled_) return 7;
    if (kind_ == "clock" && (offset == reg::kCycles || offset == reg::kCycles + 4)) return 0;
    if (kind_ == "hang" && offset == reg::kStatus && started_) return spec::kStatusBusy;
    return value;
  }
  void write_register(uint32_t offset, uint32_t value) override {
    if (offset == reg::kVersion) scribbled_ = true;
    if (offset == reg::kControl && (value & spec::kApStart) != 0) started_ = true;
    inner_->write_register(offset, value);
  }
  std::span<std::byte> memory() override { return inner_->memory(); }
  bool advance(uint64_t cycles) override {
    if (inner_->advance(cycles) || (kind_ == "hang" && started_)) return true;
    if (std::exchange(started_, false) &&
        (kind_ == "store" || (kind_ == "mac" && inner_->read_register(reg::kMacs) > 0))) {
      spoil();
    }
    return false;
  }
  std::string explain() override { return inner_->explain(); }
  void observe(sim::WriteObserver* observer) override {
    observer_ = observer;
    inner_->observe(observer == nullptr ? nullptr : this);
  }
  void record_timeline(bool on) override { inner_->record_timeline(on); }
  std::span<const sim::Interval> timeline() const override { return inner_->timeline(); }

  // With the fault "write", GEMM writes wrong values to the accumulators.
  void on_write(const sim::Write& write) override {
    if (kind_ == "write" && write.memory == spec::Memory::kAcc && write.address % 2 == 1) {
      std::vector<std::byte> bytes(write.value.begin(), write.value.end());
      bytes[0] ^= std::byte{4};
      return observer_->on_write({write.instruction, write.memory, write.address, bytes});
    }
    observer_->on_write(write);
  }
  void on_done(uint32_t instruction) override { observer_->on_done(instruction); }

 private:
  // Corrupts a byte of the launch's last store, whose destination is the highest base in use.
  void spoil() {
    uint64_t last = 0;
    for (uint32_t i = 0; i < spec::kBases; ++i) {
      const uint32_t at = reg::kBase0 + 8 * i;
      last = std::max(last, inner_->read_register(at) | uint64_t{inner_->read_register(at + 4)} << 32);
    }
    if (last + 5 < memory().size()) memory()[last + 5] ^= std::byte{1};
  }

  std::unique_ptr<sim::Simulator> inner_;
  const std::string kind_;
  sim::WriteObserver* observer_ = nullptr;
  bool scribbled_ = false, started_ = false;
};

// Faults of the host's data transfers.
class FaultyAccelerator final : public Accelerator {
 public:
  FaultyAccelerator(std::unique_ptr<Accelerator> inner, std::string kind)
      : inner_(std::move(inner)), kind_(std::move(kind)) {}
  const Info& info() const override { return inner_->info(); }
  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override { return inner_->allocate(bytes, alignment); }
  void free(const Buffer& buffer) override { inner_->free(buffer); }
  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    std::vector<std::byte> bytes(data.begin(), data.end());
    if (kind_ == "data-line") {
      for (size_t i = 3; i < bytes.size(); i += 8) bytes[i] &= ~std::byte{0x20};
    } else if (kind_ == "address-line") {  // bit 12 is always 0
      for (size_t i = 0; i < bytes.size(); ++i) {
        if ((i & 0x1000) != 0) bytes[i & ~size_t{0x1000}] = bytes[i];
      }
    } else if (kind_ == "pattern") {
      for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + i, 8);
        if (std::popcount(word) > 40) bytes[i] ^= std::byte{1};
      }
    }
    return inner_->write(buffer, offset, bytes);
  }
  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    auto status = inner_->read(buffer, offset, data);
    if (kind_ == "address-line") {
      for (size_t i = 0; i < data.size(); ++i) {
        if ((i & 0x1000) != 0) data[i] = data[i & ~size_t{0x1000}];
      }
    }
    return status;
  }
  Expected<uint32_t> read_register(uint32_t offset) override { return inner_->read_register(offset); }
  Status write_register(uint32_t offset, uint32_t value) override { return inner_->write_register(offset, value); }
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    return inner_->wait_idle(kind_ == "hang" ? std::chrono::nanoseconds(1000) : limit);
  }
  std::string explain() override { return inner_->explain(); }
  sim::Simulator* simulator() override { return inner_->simulator(); }

 private:
  std::unique_ptr<Accelerator> inner_;
  const std::string kind_;
};

Expected<std::unique_ptr<Accelerator>> open_faulty(std::string_view target) {
  const std::string uri = fmt::format("faulty:{}", target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  const char* variable = std::getenv("TENON_FAULT");
  const std::string kind = options->text("fault", variable == nullptr ? "none" : variable);
  const bool lockstep = options->flag("lockstep", kind == "write");
  for (const char* ignored :
       {"stall_seed", "stalls", "latency", "write_latency", "outstanding", "interleave", "late_ready", "writes"}) {
    (void)options->text(ignored, "");
  }
  const sim::BehavioralOptions read = behavioral_options(*options);
  TENON_TRY(options->finish());
  if (std::ranges::find(kKinds, kind) == std::end(kKinds)) return error("no such fault", kind);
  TENON_TRY_ASSIGN(config, spec::load_config(options->name()));
  TENON_TRY_ASSIGN(inner, sim::make_behavioral(*config, read));
  std::unique_ptr<sim::Simulator> simulator = std::make_unique<FaultySimulator>(std::move(*inner), kind);
  if (lockstep) {
    TENON_TRY_ASSIGN(reference, sim::make_behavioral(*config, read));
    TENON_TRY_ASSIGN(both,
                     sim::Lockstep::make({"faulty", std::move(simulator)}, {"behavioral", std::move(*reference)}));
    simulator = std::move(*both);
  }
  return std::make_unique<FaultyAccelerator>(make_simulated(uri, std::move(simulator), false), kind);
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {
      .scheme = "faulty", .doc = "a simulator with a fault, for tests: faulty:CONFIG?fault=KIND", .open = open_faulty};
}
