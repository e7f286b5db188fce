#include "driver/bringup/recorder.h"

#include <algorithm>
#include <utility>

#include "driver/allocator.h"
#include "support/try.h"

namespace tenon::driver {

namespace reg = spec::reg;

constexpr uint64_t kPage = 4096;

Expected<Buffer> Recorder::allocate(uint64_t bytes, uint64_t alignment) {
  auto buffer = inner_.allocate(bytes, alignment);
  if (buffer) buffers_[buffer->address] = *buffer;
  return buffer;
}

void Recorder::free(const Buffer& buffer) {
  buffers_.erase(buffer.address);
  inner_.free(buffer);
}

Status Recorder::write_register(uint32_t offset, uint32_t value) {
  words_[offset] = value;
  if (offset == reg::kControl && (value & spec::kApStart) != 0) {
    if (!only_ || *only_ == launches_) {
      TENON_TRY(keep());
    }
    ++launches_;
  }
  return inner_.write_register(offset, value);
}

Expected<bool> Recorder::wait_idle(std::chrono::nanoseconds limit) {
  if (std::exchange(waits_, false)) bundle_->limit = limit;
  return inner_.wait_idle(limit);
}

Status Recorder::keep() {
  const auto word64 = [this](uint32_t offset) { return words_[offset] | uint64_t{words_[offset + 4]} << 32; };
  const uint64_t first = buffers_.empty() ? 0 : buffers_.begin()->first / kPage * kPage;
  const uint64_t down = first - std::min(first, Allocator::kFirstAddress);
  // An address that lies in no buffer stays as wrong as it is.
  const auto lowered = [&](uint64_t address) {
    const auto behind = buffers_.upper_bound(address);
    if (behind == buffers_.begin()) return address;
    const Buffer& buffer = std::prev(behind)->second;
    return address - buffer.address < buffer.size ? address - down : address;
  };
  Bundle bundle;
  bundle.device = inner_.info().uri;
  bundle.config = inner_.info().config;
  Launch launch;
  launch.profile = (words_[reg::kMode] & spec::kModeNative) != 0 ? spec::Profile::kNative : spec::Profile::kBase;
  launch.instructions = lowered(word64(reg::kInstructions));
  launch.count = words_[reg::kCount];
  for (uint32_t i = 0; i < spec::kBases; ++i) launch.bases[i] = lowered(word64(reg::kBase0 + 8 * i));
  bundle.launches.push_back(launch);
  for (const auto& [address, buffer] : buffers_) {
    std::vector<std::byte> bytes(buffer.size);
    TENON_TRY(inner_.read(buffer, 0, bytes));
    add_contents(bundle, address - down, bytes);
    bundle.memory_bytes = std::max(bundle.memory_bytes, address - down + buffer.size);
  }
  bundle_ = std::move(bundle);
  waits_ = true;
  return {};
}

}  // namespace tenon::driver
