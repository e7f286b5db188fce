// A launch of an accelerator program that has begun: the device is held until the launch has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "runtime/profile/profile.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

struct StartedProgram {
  // The end of a launch, and when it was.
  struct End {
    Status status;
    int64_t time_ns = 0;
  };

  // Whether it is the launch of this program with these inputs, which have kept their memory since.
  bool is(uint32_t program, std::span<const Tensor> inputs) const {
    if (program != record.program || inputs.size() != addresses.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].bytes().data() != addresses[i]) return false;
    }
    return true;
  }

  std::unique_lock<std::mutex> device;
  std::vector<const std::byte*> addresses = {};  // of the inputs
  LaunchRecord record = {};                      // without its end
  sim::Simulator* recorded = nullptr;            // whose timeline is being recorded
  std::future<End> end = {};                     // the last member: its destructor waits while the device is held
};

}  // namespace tenon::runtime
