// The recorder: an accelerator that forwards every call to another, and records the memory before a launch as a
// reproducer.
//
// Cost: recording a launch reads all live buffers; so a run is recorded when it is repeated, not always.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/bringup/reproducer.h"

namespace tenon::driver {

class Recorder final : public Accelerator {
 public:
  // Records the launch with index `only`, or by default the last launch. The inner accelerator must outlive the
  // recorder, and so must `launches`, where recorders count theirs together.
  explicit Recorder(Accelerator& inner, std::optional<size_t> only = {}, size_t* launches = nullptr)
      : inner_(inner), only_(only), launches_(launches ? launches : &own_launches_) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Accelerator& inner() const { return inner_; }
  size_t launches() const { return *launches_; }
  // The index of the launch of reproducer().
  size_t recorded() const { return recorded_; }
  // The recorded reproducer: its device, configuration, memory, one launch and the limit of its wait are set. Addresses
  // begin low, as on a simulator, at any base address of the device's memory.
  const std::optional<Reproducer>& reproducer() const { return reproducer_; }

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
  Status record();

  Accelerator& inner_;
  std::optional<size_t> only_;
  size_t own_launches_ = 0, recorded_ = 0;
  size_t* launches_;
  bool limit_pending_ = false;  // the reproducer lacks its limit, which the next wait sets
  std::map<uint64_t, Buffer> buffers_;
  std::map<uint32_t, uint32_t> arguments_;  // the last written value of each register
  std::optional<Reproducer> reproducer_;
};

// Recorders of several accelerators, whose launches are counted together.
class Recorders {
 public:
  // Records as Recorder.
  explicit Recorders(std::span<Accelerator* const> inner, std::optional<size_t> only = {});
  Recorders(const Recorders&) = delete;  // the recorders count in this object
  Recorders& operator=(const Recorders&) = delete;

  size_t launches() const { return launches_; }
  std::vector<Accelerator*> accelerators() const;  // in the order of the inner ones
  // The one with the launch `only`, or the last launch of all; nullptr where there is none.
  const Recorder* recorder() const;

 private:
  size_t launches_ = 0;
  std::vector<std::unique_ptr<Recorder>> recorders_;
};

}  // namespace tenon::driver
