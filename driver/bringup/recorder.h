// An accelerator that passes everything on to another and keeps, as a bundle, what memory held before a launch.
//
// Cost: each launch that is kept reads all live buffers back; so a run is recorded when it is run again, not always.
#pragma once

#include <map>
#include <optional>

#include "driver/bringup/bundle.h"

namespace tenon::driver {

class Recorder final : public Accelerator {
 public:
  // Keeps launch number `only`, counted from 0, or without it the last one that was started. The inner one must outlive
  // this one.
  explicit Recorder(Accelerator& inner, std::optional<size_t> only = {}) : inner_(inner), only_(only) {}

  size_t launches() const { return launches_; }
  // What was kept: device, configuration, memory, one launch and the limit of its wait are set. Addresses begin low, as
  // those of a simulator do, wherever the device has its memory.
  const std::optional<Bundle>& bundle() const { return bundle_; }

  const Info& info() const override { return inner_.info(); }
  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override;
  void free(const Buffer& buffer) override;
  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    return inner_.write(buffer, offset, data);
  }
  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    return inner_.read(buffer, offset, data);
  }
  Expected<uint32_t> read_register(uint32_t offset) override { return inner_.read_register(offset); }
  Status write_register(uint32_t offset, uint32_t value) override;
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override;
  std::string explain() override { return inner_.explain(); }
  sim::Simulator* simulator() override { return inner_.simulator(); }

 private:
  Status keep();

  Accelerator& inner_;
  std::optional<size_t> only_;
  size_t launches_ = 0;
  bool waits_ = false;  // for what was kept, and has not waited so far
  std::map<uint64_t, Buffer> buffers_;
  std::map<uint32_t, uint32_t> words_;  // arguments as they were written last
  std::optional<Bundle> bundle_;
};

}  // namespace tenon::driver
