#include "driver/bringup/recorder.h"

#include <algorithm>
#include <utility>

#include "driver/allocator.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver {

namespace reg = spec::reg;

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
  arguments_[offset] = value;
  if (offset == reg::kControl && (value & spec::kApStart) != 0) {
    if (!only_ || *only_ == *launches_) {
      TENON_TRY(record());
    }
    ++*launches_;
  }
  return inner_.write_register(offset, value);
}

Expected<bool> Recorder::wait_idle(std::chrono::nanoseconds limit) {
  if (std::exchange(limit_pending_, false)) reproducer_->limit = limit;
  return inner_.wait_idle(limit);
}

Status Recorder::record() {
  const auto word64 = [this](uint32_t offset) { return arguments_[offset] | uint64_t{arguments_[offset + 4]} << 32; };
  const uint64_t first = buffers_.empty() ? 0 : buffers_.begin()->first / kPageBytes * kPageBytes;
  const uint64_t shift = first - std::min(first, Allocator::kFirstAddress);
  // An address outside all buffers is wrong, and stays unchanged.
  const auto lowered = [&](uint64_t address) {
    const auto next = buffers_.upper_bound(address);
    if (next == buffers_.begin()) return address;
    const Buffer& buffer = std::prev(next)->second;
    return address - buffer.address < buffer.size ? address - shift : address;
  };
  Reproducer reproducer;
  reproducer.device = inner_.info().uri;
  reproducer.config = inner_.info().config;
  Launch launch;
  launch.profile = (arguments_[reg::kMode] & spec::kModeNative) != 0 ? spec::Profile::kNative : spec::Profile::kBase;
  launch.instructions = lowered(word64(reg::kInstructions));
  launch.count = arguments_[reg::kCount];
  for (uint32_t i = 0; i < spec::kBases; ++i) launch.bases[i] = lowered(word64(reg::kBase0 + 8 * i));
  reproducer.launches.push_back(launch);
  for (const auto& [address, buffer] : buffers_) {
    std::vector<std::byte> bytes(buffer.size);
    TENON_TRY(inner_.read(buffer, 0, bytes));
    add_contents(reproducer, address - shift, bytes);
    reproducer.memory_bytes = std::max(reproducer.memory_bytes, address - shift + buffer.size);
  }
  reproducer_ = std::move(reproducer);
  recorded_ = *launches_;
  limit_pending_ = true;
  return {};
}

Recorders::Recorders(std::span<Accelerator* const> inner, std::optional<size_t> only) {
  for (Accelerator* device : inner) recorders_.push_back(std::make_unique<Recorder>(*device, only, &launches_));
}

std::vector<Accelerator*> Recorders::accelerators() const {
  std::vector<Accelerator*> all;
  for (const auto& recorder : recorders_) all.push_back(recorder.get());
  return all;
}

const Recorder* Recorders::recorder() const {
  const Recorder* last = nullptr;
  for (const auto& recorder : recorders_) {
    if (recorder->reproducer() && (!last || recorder->recorded() > last->recorded())) last = recorder.get();
  }
  return last;
}

}  // namespace tenon::driver
