#include "sim/behavioral/behavioral.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/behavioral/machine.h"
#include "support/try.h"

namespace tenon::sim {

const timing::Result& Behavioral::counters() {
  if (!timing_) {
    const timing::Launch launch{profile_, stream_, bases_, tokens_at_start_.counters()};
    // Of a run that stopped, what was dispatched.
    auto result =
        timing::run(isa_.config(), launch, std::span(program_).first(dispatched_), record_timeline_, options_.timing);
    if (registers_.busy()) return running_ = std::move(result);  // not over: asked again, it will be longer
    timing_ = std::move(result);
  }
  return *timing_;
}

Expected<std::unique_ptr<Simulator>> make_behavioral(const spec::Config& config, const BehavioralOptions& options) {
  TENON_TRY(spec::validate(config, config.name));
  const Kernels* kernels = find_kernels(options.kernels);
  if (kernels == nullptr) {
    std::string known;
    for (const Kernels* k : all_kernels()) known += fmt::format("{}{}", known.empty() ? "" : ", ", k->name);
    return error(fmt::format("this machine has no kernels \"{}\"", options.kernels), "behavioral simulator",
                 fmt::format("the sets are {}; leave the option out for the fastest that runs here", known));
  }
  // calloc leaves pages untouched until they are used.
  Dram dram;
  if (options.memory.empty())
    dram.reset(static_cast<std::byte*>(std::calloc(std::max<size_t>(options.memory_bytes, 1), 1)));
  if (!dram && options.memory.empty()) {
    return error(fmt::format("cannot allocate {} bytes for the accelerator's memory", options.memory_bytes),
                 "behavioral simulator", "ask for less memory");
  }
  return std::make_unique<Behavioral>(config, options, *kernels, std::move(dram));
}

}  // namespace tenon::sim
