// Any bytes are logs of training steps or errors, and what is a log can be replayed under a budget.
#include <cstdlib>
#include <string_view>

#include "runtime/remat/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::runtime::remat;
  const auto log = parse_log({reinterpret_cast<const char*>(data), size}, "input");
  if (!log) return 0;
  const Replay base = undisturbed(*log);
  for (const Policy policy : kPolicies) {
    CoreOptions options = options_for(*log, base, 0.6, 2);
    options.policy = policy;
    options.release = size % 2 == 0 ? Release::kEvict : Release::kBanish;
    if (replay(*log, options).peak > options.budget) std::abort();
  }
  return 0;
}
