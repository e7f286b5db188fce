// One GPU: memory from a pool, compiled kernels, and a stream on which copies and launches run in their order.
//
// A GPU is used by one thread at a time. Launches return when they are queued; wait() returns when all are done, and
// reports the first fault of a kernel by the site that compiler/backends/llvm/ptx.h recorded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/pinned_copies.h"

namespace tenon::runtime::cuda {

struct Memory {
  Address address = 0;
  uint64_t bytes = 0;  // as many as asked for
};

// The kernels of one PTX text.
struct Code {
  CodeModule* module = nullptr;
  Address fault_record = 0;                             // 0: none of the kernels can fail
  std::vector<std::pair<uint32_t, std::string>> sites;  // a tn_fault and the location
};

class Gpu {
 public:
  // Errors: no driver, no such GPU, a GPU that is too old.
  static Expected<Gpu> open(int ordinal = 0, const std::string& library = "libcuda.so.1");
  Gpu(Gpu&& other) noexcept;
  Gpu& operator=(Gpu&&) = delete;
  ~Gpu();

  const std::string& name() const { return name_; }
  int capability() const { return capability_; }  // 80: sm_80
  uint64_t memory_bytes() const { return memory_bytes_; }

  // Released memory is kept for later allocations of the same size class, and given back to the driver before an
  // allocation fails: then the error has both sizes.
  Expected<Memory> allocate(uint64_t bytes);
  void release(const Memory& memory);
  uint64_t pooled_bytes() const { return pooled_bytes_; }

  Status upload(const Memory& to, std::span<const std::byte> from);
  Status download(std::span<std::byte> to, const Memory& from);  // waits

  // Translates PTX for this GPU; an error has the driver's log. The code belongs to the GPU.
  Expected<const Code*> load(const std::string& ptx, std::vector<std::pair<uint32_t, std::string>> sites);
  // `arguments`: addresses and dims, 8 bytes each. Errors: an unknown kernel, a grid beyond the GPU's limits.
  Status launch(const Code& code, const std::string& kernel, std::array<int64_t, 3> grid,
                std::array<int64_t, 3> threads, std::span<const uint64_t> arguments);
  Status wait();

  // Launches between the first two calls are recorded as a list and not executed; the list, whose arguments are those
  // of the recording, is executed by the third. An error where the driver records no lists; nothing was recorded then.
  bool records_lists() const { return driver_->has_graphs(); }
  Status begin_list();
  Expected<GraphExec*> end_list();
  Status launch(GraphExec* list);
  void destroy(GraphExec* list);  // waits

  // An interval of the stream's work: its begin and end are queued as launches are, and its seconds by the GPU's clock
  // are known after the next wait.
  Status begin_interval();
  Status end_interval();
  Expected<double> interval_seconds();

 private:
  Gpu(const Driver& driver, int device) : driver_(&driver), device_(device) {}
  Status start();
  Status check(int status, const std::string& action) const;
  Status fault_of(const Code& code);
  void empty_pool();

  const Driver* driver_;
  int device_;
  bool has_context_ = false;
  std::string name_;
  int capability_ = 0;
  uint64_t memory_bytes_ = 0, pooled_bytes_ = 0, used_bytes_ = 0;
  Stream* stream_ = nullptr;
  Event *begin_ = nullptr, *end_ = nullptr;        // of the last interval
  std::map<uint64_t, std::vector<Address>> pool_;  // by size class
  PinnedCopies copies_;
  std::vector<std::unique_ptr<Code>> codes_;
};

}  // namespace tenon::runtime::cuda
