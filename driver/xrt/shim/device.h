// An XRT device whose compute units are simulators: memory, buffers, units, and the functions of XRT's kernel driver.
//
// Semantics: host and device copies of a buffer are two memories, which only sync() copies. Units share device memory.
// A command packet is taken by one of the worker threads, one per unit, and run on the first free unit of its mask; its
// state word is written last. A unit that is controlled by registers (xrt::ip) simulates kEmulatedPollCycles after each
// read of its control or status register. All methods may be called from any thread.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "driver/allocator.h"
#include "driver/xrt/emulated.h"
#include "driver/xrt/xclbin.h"
#include "sim/simulator.h"

struct ert_packet;

namespace tenon::driver::shim {

class Device {
 public:
  enum class Model : uint8_t { kBehavioral, kRtl };

  explicit Device(Model model);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Loads a design, and frees the buffers and units of the previous design; while a client uses a unit, only the same
  // file is accepted, and changes nothing. The results of the functions below are 0 or a negative errno.
  Status load(std::span<const std::byte> xclbin);

  int open_context(uint32_t unit, bool shared);
  int close_context(uint32_t unit);

  static constexpr uint32_t kNoBuffer = 0xffffffff;
  uint32_t allocate(void* host, size_t bytes, uint32_t flags);  // host: the caller's memory, or nullptr
  void free(uint32_t handle);
  void* map(uint32_t handle);
  struct Properties {
    uint64_t address, bytes;
    uint32_t flags;
  };
  std::optional<Properties> properties(uint32_t handle);
  int sync(uint32_t handle, bool to_device, uint64_t bytes, uint64_t offset);
  int copy(uint32_t to, uint32_t from, uint64_t bytes, uint64_t to_offset, uint64_t from_offset);
  int access(uint64_t address, void* data, uint64_t bytes, bool write);

  int execute(uint32_t packet);
  // 1: packets were completed since the client had seen `seen` of them; 0: no packet was completed.
  int wait(int milliseconds, uint64_t& seen);

  int read_register(uint32_t unit, uint32_t offset, uint32_t& value);
  int write_register(uint32_t unit, uint32_t offset, uint32_t value);

  // Runs the unit until it raises its interrupt: true; or until the limit has passed, in simulated time while the unit
  // is busy and in wall time while it is idle: false. Without a limit the wait is unbounded. The interrupt is a level,
  // which stays until the client clears it in the status register.
  bool wait_interrupt(uint32_t unit, std::optional<std::chrono::milliseconds> limit);

 private:
  struct Buffer;
  struct Unit;

  void clear();
  void stop_workers();
  void work();
  bool run(ert_packet& packet);
  bool run_unit(ert_packet& packet);
  bool run_copy(ert_packet& packet);
  bool inside(const Buffer& buffer, uint64_t offset, uint64_t bytes) const;
  std::shared_ptr<Buffer> find(uint32_t handle);
  bool stopping();

  const Model model_;
  std::mutex mutex_;  // guards all members below but the state of the units
  std::span<std::byte> memory_;
  uint32_t memory_index_ = 0;
  std::array<uint8_t, 16> uuid_{};
  std::unique_ptr<Allocator> allocator_;
  std::map<uint32_t, std::shared_ptr<Buffer>> buffers_;
  uint32_t next_handle_ = 1;
  std::vector<std::unique_ptr<Unit>> units_;
  std::deque<std::shared_ptr<Buffer>> queue_;
  std::condition_variable queued_, completed_;
  uint64_t completions_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tenon::driver::shim
