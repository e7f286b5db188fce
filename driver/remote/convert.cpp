#include "driver/remote/convert.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::driver::remote {
namespace {

constexpr std::chrono::nanoseconds kYear = std::chrono::hours(24 * 365);

// Copies a counter for each engine; a message of another build may have fewer.
template <class From, class To>
void copy_counters(const From& from, To& to) {
  for (size_t i = 0; i < std::min(static_cast<size_t>(from.size()), to.size()); ++i) {
    to[i] = from[static_cast<int>(i)];
  }
}

}  // namespace

wire::Failure to_wire(const Diagnostic& diagnostic) {
  wire::Failure failure;
  failure.set_what(diagnostic.what);
  failure.set_where(diagnostic.where);
  failure.set_help(diagnostic.help);
  failure.set_fault(static_cast<uint32_t>(diagnostic.fault));
  return failure;
}

Diagnostic from_wire(const wire::Failure& failure) {
  Diagnostic diagnostic{failure.what(), failure.where(), failure.help(), Fault::kInternal};
  for (const Fault fault : {Fault::kInput, Fault::kUsage}) {
    if (failure.fault() == static_cast<uint32_t>(fault)) diagnostic.fault = fault;
  }
  return diagnostic;
}

wire::Buffer to_wire(const Buffer& buffer) {
  wire::Buffer message;
  message.set_address(buffer.address);
  message.set_size(buffer.size);
  return message;
}

Buffer from_wire(const wire::Buffer& buffer) { return {.address = buffer.address(), .size = buffer.size()}; }

wire::Launch to_wire(const Launch& launch) {
  wire::Launch message;
  message.set_native(launch.profile == spec::Profile::kNative);
  message.set_instructions(launch.instructions);
  message.set_count(launch.count);
  for (const uint64_t base : launch.bases) message.add_bases(base);
  return message;
}

Expected<Launch> from_wire(const wire::Launch& launch) {
  Launch result{.profile = launch.native() ? spec::Profile::kNative : spec::Profile::kBase,
                .instructions = launch.instructions(),
                .count = launch.count()};
  if (launch.bases_size() != static_cast<int>(result.bases.size())) {
    return error(fmt::format("a launch with {} base addresses, must be {}", launch.bases_size(), result.bases.size()));
  }
  std::ranges::copy(launch.bases(), result.bases.begin());
  return result;
}

wire::Counters to_wire(const Counters& counters) {
  wire::Counters message;
  message.set_cycles(counters.cycles);
  message.set_instructions(counters.instructions);
  message.set_macs(counters.macs);
  message.set_read_beats(counters.read_beats);
  message.set_write_beats(counters.write_beats);
  message.set_read_bursts(counters.read_bursts);
  message.set_write_bursts(counters.write_bursts);
  for (const uint64_t cycles : counters.busy) message.add_busy(cycles);
  for (const uint64_t cycles : counters.stall) message.add_stall(cycles);
  return message;
}

Counters from_wire(const wire::Counters& message) {
  Counters counters{.cycles = message.cycles(),
                    .instructions = message.instructions(),
                    .macs = message.macs(),
                    .read_beats = message.read_beats(),
                    .write_beats = message.write_beats(),
                    .read_bursts = message.read_bursts(),
                    .write_bursts = message.write_bursts()};
  copy_counters(message.busy(), counters.busy);
  copy_counters(message.stall(), counters.stall);
  return counters;
}

std::chrono::nanoseconds limit_from_wire(uint64_t nanoseconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(nanoseconds, static_cast<uint64_t>(kYear.count()))));
}

uint64_t to_wire(std::chrono::nanoseconds limit) {
  return static_cast<uint64_t>(std::clamp(limit, std::chrono::nanoseconds(0), kYear).count());
}

}  // namespace tenon::driver::remote
