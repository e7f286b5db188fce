// Results of accelerator programs that are still in device memory, so that a later program of the same run reads them
// there and not from a second copy.
//
// Semantics: a tensor is found by its memory, which belongs to it alone (results of programs are in no arena) and is
// never written while a run can see it. An entry is valid until its buffer is written, or another run begins to use the
// device: the caller of the session may write its tensors between runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

class DeviceCopies {
 public:
  // Forgets the tensors of all other runs; `run` is a number that no other run of the session has.
  void begin(uint64_t run) {
    if (run != run_) entries_.clear();
    run_ = run;
  }
  void add(const Tensor& tensor, const driver::Buffer& buffer) { entries_.push_back({tensor.memory(), buffer}); }
  // The buffer is written.
  void forget(const driver::Buffer& buffer) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.buffer.address == buffer.address; });
  }
  std::optional<driver::Buffer> find(const Tensor& tensor) const {
    for (const Entry& entry : entries_) {
      const auto memory = entry.memory.lock();
      if (memory && memory.get() == tensor.bytes().data() && entry.buffer.size >= tensor.bytes().size())
        return entry.buffer;
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    std::weak_ptr<const std::byte[]> memory;
    driver::Buffer buffer;
  };
  std::vector<Entry> entries_;
  uint64_t run_ = 0;
};

}  // namespace tenon::runtime
