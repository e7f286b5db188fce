// start, finish and read_counters: the register protocol of a launch, the same for every transport.
#include "driver/control.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

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

// The registers of a narrower memory port keep the low bits alone: the launch would read other memory.
Status check_address(const Accelerator& accelerator, std::string_view name, uint64_t address) {
  const Info& info = accelerator.info();
  if ((address & ~info.config.address_mask()) == 0) return {};
  return error(fmt::format("{} is {:#x}, and configuration {} has addresses of {} bits", name, address,
                           info.config.name, info.config.address_bits),
               info.uri, "use memory at lower addresses, or build hardware with more address_bits");
}

}  // namespace

Expected<uint64_t> read_register64(Accelerator& accelerator, uint32_t offset) {
  TENON_TRY_ASSIGN(low, accelerator.read_register(offset));
  TENON_TRY_ASSIGN(high, accelerator.read_register(offset + 4));
  return uint64_t{*high} << 32 | *low;
}

Status start(Accelerator& accelerator, const Launch& launch) {
  if (Launcher* launcher = accelerator.launcher()) return launcher->start(launch);
  TENON_TRY(check_identity(accelerator));
  TENON_TRY_ASSIGN(status, accelerator.read_register(reg::kStatus));
  if (*status & kStatusBusy) {
    return error("the accelerator is busy with another launch", accelerator.info().uri,
                 "wait for the launch with finish() before the next start()");
  }
  TENON_TRY(check_address(accelerator, "the instruction stream's address", launch.instructions));
  for (size_t i = 0; i < kBases; ++i) {
    TENON_TRY(check_address(accelerator, fmt::format("base address {}", i), launch.bases[i]));
  }
  if (const uint32_t most = argument_bits(accelerator.info().config, reg::kCount); launch.count > most) {
    return error(
        fmt::format("the stream has {} slots, and configuration {} counts {} at most: its addresses have {} bits",
                    launch.count, accelerator.info().config.name, most, accelerator.info().config.address_bits),
        accelerator.info().uri, "split the program, or build hardware with more address_bits");
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
  if (Launcher* launcher = accelerator.launcher()) return launcher->finish(limit);
  TENON_TRY_ASSIGN(idle, accelerator.wait_idle(limit));
  return conclude(accelerator, *idle, limit);
}

Status conclude(Accelerator& accelerator, bool idle, std::chrono::nanoseconds limit) {
  TENON_TRY_ASSIGN(status, accelerator.read_register(reg::kStatus));
  const auto code = static_cast<StopCode>(*status & 0xff);
  if (idle && code == StopCode::kNone) {
    TENON_TRY(accelerator.read_register(reg::kControl));  // clears ap_done
    return {};
  }

  std::string what, help;
  if (!idle) {
    TENON_TRY_ASSIGN(done, read_register64(accelerator, reg::kInstructionsDone));
    TENON_TRY_ASSIGN(count, accelerator.read_register(reg::kCount));
    what =
        fmt::format("the accelerator is still busy after {:.3g} ms; {} instructions of a stream of {} slots are done",
                    std::chrono::duration<double, std::milli>(limit).count(), *done, *count);
    TENON_TRY_ASSIGN(progress, explain_progress(accelerator));
    what += *progress;
    help = "increase the limit, or look for an engine that waits for a late token";
  } else {
    TENON_TRY_ASSIGN(index, accelerator.read_register(reg::kErrorIndex));
    TENON_TRY_ASSIGN(instruction, explain_instruction(accelerator, *index));
    what = fmt::format("the accelerator stopped: {} (code {}), {}", describe(code), *status & 0xff, *instruction);
  }
  TENON_TRY_ASSIGN(tokens, explain_tokens(accelerator));
  what += fmt::format("\n  {}", *tokens);
  if (const std::string more = accelerator.explain(); !more.empty()) what += fmt::format("\n  {}", more);
  // The message has the values of the registers before the reset.
  if (const Status idle_again = reset(accelerator); !idle_again) {
    const Diagnostic& failure = idle_again.error();
    return error(fmt::format("{}\n  and {}", what, failure.what), accelerator.info().uri, failure.help, failure.fault);
  }
  return error(std::move(what), accelerator.info().uri, std::move(help));
}

Expected<Counters> read_counters(Accelerator& accelerator) {
  if (Launcher* launcher = accelerator.launcher()) return launcher->read_counters();
  Counters counters;
  std::vector<std::pair<uint32_t, uint64_t*>> registers = {{reg::kCycles, &counters.cycles},
                                                           {reg::kInstructionsDone, &counters.instructions},
                                                           {reg::kMacs, &counters.macs},
                                                           {reg::kReadBeats, &counters.read_beats},
                                                           {reg::kWriteBeats, &counters.write_beats},
                                                           {reg::kReadBursts, &counters.read_bursts},
                                                           {reg::kWriteBursts, &counters.write_bursts}};
  for (uint32_t i = 0; i < kEngines; ++i) {
    registers.emplace_back(reg::kBusy0 + 8 * i, &counters.busy[i]);
    registers.emplace_back(reg::kStall0 + 8 * i, &counters.stall[i]);
  }
  for (const auto& [offset, value] : registers) {
    TENON_TRY_ASSIGN(read, read_register64(accelerator, offset));
    *value = *read;
  }
  return counters;
}

}  // namespace tenon::driver
