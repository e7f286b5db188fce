#include "driver/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/allocator.h"
#include "driver/checks.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

// The cycles of a call of advance(); only the last call has fewer, so the limit is exact.
constexpr uint64_t kCyclesAtATime = 1 << 20;

class Simulated final : public Accelerator {
 public:
  Simulated(std::string uri, std::unique_ptr<sim::Simulator> simulator, bool cycle_accurate,
            const spec::MemoryTiming& memory)
      : simulator_(std::move(simulator)),
        info_{std::move(uri), simulator_->config(), true, cycle_accurate, kNominalHz, memory},
        allocator_(simulator_->memory().size()) {}

  const Info& info() const override { return info_; }

  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    auto address = allocator_.allocate(bytes, alignment);
    if (!address) return locate(std::move(address.error()));
    return Buffer{*address, bytes};
  }

  void free(const Buffer& buffer) override { release_or_abort(allocator_, buffer, info_.uri); }

  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "write", info_.uri));
    if (!data.empty()) std::memcpy(simulator_->memory().data() + buffer.address + offset, data.data(), data.size());
    return {};
  }

  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "read", info_.uri));
    if (!data.empty()) std::memcpy(data.data(), simulator_->memory().data() + buffer.address + offset, data.size());
    return {};
  }

  Expected<uint32_t> read_register(uint32_t offset) override {
    TENON_TRY(check_register(offset, info_.uri));
    return simulator_->read_register(offset);
  }

  Status write_register(uint32_t offset, uint32_t value) override {
    TENON_TRY(check_register(offset, info_.uri));
    simulator_->write_register(offset, value);
    return {};
  }

  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    auto remaining = static_cast<uint64_t>(std::max(0.0, static_cast<double>(limit.count()) * 1e-9 * kNominalHz));
    while (remaining > 0) {
      const uint64_t cycles = std::min(remaining, kCyclesAtATime);
      if (!simulator_->advance(cycles)) return true;
      remaining -= cycles;
    }
    return (simulator_->read_register(spec::reg::kStatus) & spec::kStatusBusy) == 0;
  }

  std::string explain() override { return simulator_->explain(); }
  sim::Simulator* simulator() override { return simulator_.get(); }

 private:
  std::unexpected<Diagnostic> locate(Diagnostic diagnostic) const {
    diagnostic.where = info_.uri;
    return std::unexpected(std::move(diagnostic));
  }

  std::unique_ptr<sim::Simulator> simulator_;
  Info info_;
  Allocator allocator_;
};

}  // namespace

std::unique_ptr<Accelerator> make_simulated(std::string uri, std::unique_ptr<sim::Simulator> simulator,
                                            bool cycle_accurate, const spec::MemoryTiming& memory) {
  return std::make_unique<Simulated>(std::move(uri), std::move(simulator), cycle_accurate, memory);
}

}  // namespace tenon::driver
