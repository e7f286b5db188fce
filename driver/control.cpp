// start, finish and read_counters: the register protocol of a launch, the same for every transport.
#include <fmt/format.h>

#include <utility>

#include "driver/accelerator.h"
#include "driver/explain.h"
#include "driver/identity.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using namespace spec;

Status write64(Accelerator& accelerator, uint32_t offset, uint64_t value) {
  TENON_TRY(accelerator.write_register(offset, static_cast<uint32_t>(value)));
  return accelerator.write_register(offset + 4, static_cast<uint32_t>(value >> 32));
}

Expected<uint64_t> read64(Accelerator& accelerator, uint32_t offset) {
  const auto low = accelerator.read_register(offset);
  if (!low) return std::unexpected(low.error());
  const auto high = accelerator.read_register(offset + 4);
  if (!high) return std::unexpected(high.error());
  return uint64_t{*high} << 32 | *low;
}

}  // namespace

Status start(Accelerator& accelerator, const Launch& launch) {
  TENON_TRY(check_identity(accelerator));
  const auto status = accelerator.read_register(reg::kStatus);
  if (!status) return std::unexpected(status.error());
  if (*status & kStatusBusy) {
    return error("the accelerator is busy with another launch", accelerator.info().uri,
                 "wait for it with finish() before the next start()");
  }
  TENON_TRY(write64(accelerator, reg::kInstructions, launch.instructions));
  TENON_TRY(accelerator.write_register(reg::kCount, launch.count));
  const uint32_t mode = launch.profile == Profile::kNative ? kModeNative : 0;
  TENON_TRY(accelerator.write_register(reg::kMode, mode));
  for (uint32_t i = 0; i < kBases; ++i) {
    TENON_TRY(write64(accelerator, reg::kBase0 + 8 * i, launch.bases[i]));
  }
  return accelerator.write_register(reg::kControl, kApStart);
}

Status finish(Accelerator& accelerator, std::chrono::nanoseconds limit) {
  TENON_TRY_ASSIGN(idle, accelerator.wait_idle(limit));
  const auto status = accelerator.read_register(reg::kStatus);
  if (!status) return std::unexpected(status.error());
  const auto code = static_cast<StopCode>(*status & 0xff);
  if (*idle && code == StopCode::kNone) {
    const auto control = accelerator.read_register(reg::kControl);  // takes ap_done away
    if (!control) return std::unexpected(control.error());
    return {};
  }

  std::string what, help;
  if (!*idle) {
    const auto done = read64(accelerator, reg::kInstructionsDone);
    const auto count = accelerator.read_register(reg::kCount);
    if (!done || !count) return std::unexpected(!done ? done.error() : count.error());
    what =
        fmt::format("the accelerator is still busy after {:.3g} ms; {} instructions of a stream of {} slots are done",
                    std::chrono::duration<double, std::milli>(limit).count(), *done, *count);
    TENON_TRY_ASSIGN(progress, explain_progress(accelerator));
    what += *progress;
    help = "give it more time, or look for an engine that waits for a token that comes too late";
  } else {
    const auto index = accelerator.read_register(reg::kErrorIndex);
    if (!index) return std::unexpected(index.error());
    TENON_TRY_ASSIGN(place, explain_instruction(accelerator, *index));
    what = fmt::format("the accelerator stopped: {} (code {}), {}", describe(code), *status & 0xff, *place);
  }
  TENON_TRY_ASSIGN(tokens, explain_tokens(accelerator));
  what += fmt::format("\n  {}", *tokens);
  if (const std::string more = accelerator.explain(); !more.empty()) what += fmt::format("\n  {}", more);
  if (auto done = reset(accelerator); !done) {  // what was seen before is what explains it
    return error(fmt::format("{}\n  and {}", what, done.error().what), accelerator.info().uri, done.error().help,
                 done.error().fault);
  }
  return error(std::move(what), accelerator.info().uri, std::move(help));
}

Expected<Counters> read_counters(Accelerator& accelerator) {
  Counters counters;
  std::vector<std::pair<uint32_t, uint64_t*>> all = {{reg::kCycles, &counters.cycles},
                                                     {reg::kInstructionsDone, &counters.instructions},
                                                     {reg::kMacs, &counters.macs},
                                                     {reg::kReadBeats, &counters.read_beats},
                                                     {reg::kWriteBeats, &counters.write_beats},
                                                     {reg::kReadBursts, &counters.read_bursts},
                                                     {reg::kWriteBursts, &counters.write_bursts}};
  for (uint32_t i = 0; i < kEngines; ++i) {
    all.emplace_back(reg::kBusy0 + 8 * i, &counters.busy[i]);
    all.emplace_back(reg::kStall0 + 8 * i, &counters.stall[i]);
  }
  for (const auto& [offset, value] : all) {
    TENON_TRY_ASSIGN(read, read64(accelerator, offset));
    *value = *read;
  }
  return counters;
}

}  // namespace tenon::driver
