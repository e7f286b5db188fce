#include "sim/behavioral/behavioral.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/behavioral/machine.h"
#include "support/try.h"

namespace tenon::sim {

const timing::Result& Behavioral::counters() {
  if (!timing_) {
    const timing::Launch launch{profile_, stream_, bases_, tokens_at_start_.counters()};
    // Of a run that stopped, only the dispatched instructions are timed.
    auto result =
        timing::run(isa_.config(), launch, std::span(program_).first(dispatched_), record_timeline_, options_.timing);
    if (registers_.busy()) return running_ = std::move(result);  // the run goes on, so this result is not kept
    timing_ = std::move(result);
  }
  return *timing_;
}

Expected<std::unique_ptr<Simulator>> make_behavioral(const spec::Config& config, const BehavioralOptions& options) {
  TENON_TRY(spec::validate(config, config.name));
  const KernelSet* kernels = find_kernel_set(options.kernels);
  if (kernels == nullptr) {
    std::string names;
    for (const KernelSet* set : kernel_sets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", set->name);
    return error(fmt::format("the kernel set \"{}\" is not available on this machine", options.kernels),
                 "behavioral simulator",
                 fmt::format("expected one of {}; without the option, the fastest set of this machine is used", names));
  }
  // calloc leaves pages untouched until they are used.
  Dram dram;
  if (options.memory.empty())
    dram.reset(static_cast<std::byte*>(std::calloc(std::max<size_t>(options.memory_bytes, 1), 1)));
  if (!dram && options.memory.empty()) {
    return error(fmt::format("cannot allocate {} bytes for the accelerator's memory", options.memory_bytes),
                 "behavioral simulator", "request less memory");
  }
  return std::make_unique<Behavioral>(config, options, *kernels, std::move(dram));
}

}  // namespace tenon::sim
