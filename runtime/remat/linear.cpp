// Makes the step of a linear network as a log.
#include "runtime/remat/linear.h"

#include <algorithm>

namespace tenon::runtime::remat {

StepLog linear_network(int64_t layers) {
  StepLog log;
  log.name = "linear";
  const auto n = static_cast<uint32_t>(layers);
  const auto call = [&](const char* name, std::vector<uint32_t> args) {
    log.events.push_back({StepLog::Kind::kCall, static_cast<uint32_t>(log.calls.size())});
    log.calls.push_back({name, std::move(args), {{1, std::nullopt}}, 1});
    log.bytes.push_back(1);
    return static_cast<uint32_t>(log.bytes.size() - 1);
  };
  const auto release = [&](uint32_t tensor) { log.events.push_back({StepLog::Kind::kRelease, tensor}); };
  // Tensor i is layer i.
  for (uint32_t i = 0; i < n; ++i) call("layer", i == 0 ? std::vector<uint32_t>() : std::vector{i - 1});
  release(n - 1);
  uint32_t gradient = call("gradient", {});
  for (uint32_t i = n - 1; i-- > 0;) {
    release(i);
    const uint32_t next = call("gradient", i == 0 ? std::vector{gradient} : std::vector{i - 1, gradient});
    release(gradient);
    gradient = next;
  }
  log.results = {gradient};
  return log;
}

int64_t linear_budget(int64_t layers) {
  int64_t root = 1;
  while (root * root < layers) ++root;
  return std::max<int64_t>(2 * root, 3);
}

}  // namespace tenon::runtime::remat
