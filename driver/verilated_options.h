// The options of the Verilated model in a URI, which verilator: and lockstep: share.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "driver/behavioral.h"
#include "driver/uri.h"
#include "sim/verilator/verilated.h"
#include "support/output.h"

namespace tenon::driver {

inline sim::VerilatedOptions verilated_options(Options& options) {
  sim::VerilatedOptions read;
  read.memory_bytes = options.bytes("memory", read.memory_bytes, 8 << 10, uint64_t{64} << 30);
  const spec::MemoryTiming memory = memory_timing(options);
  read.read_latency = static_cast<uint32_t>(memory.read_latency);
  read.write_latency = static_cast<uint32_t>(memory.write_latency);
  read.outstanding = static_cast<uint32_t>(memory.outstanding);
  read.stall_percent = static_cast<uint32_t>(options.integer("stalls", read.stall_percent, 0, 99));
  read.seed = options.integer("stall_seed", read.seed, 0, UINT64_MAX);
  read.interleave = options.flag("interleave", read.interleave);
  read.write_order =
      static_cast<sim::WriteOrder>(options.one_of("writes", sim::kWriteOrders, static_cast<size_t>(read.write_order)));
  read.late_ready = options.flag("late_ready", read.late_ready);
  read.read_error = options.integer("read_error", read.read_error, 0, UINT64_MAX);
  read.fast_dot = options.flag("fast_dot", read.fast_dot);
  read.vcd = options.text("trace", read.vcd);
  read.coverage = options.text("coverage", read.coverage);
  read.progress = [](const std::string& line) { print_stderr("{}\n", line); };
  return read;
}

inline constexpr char kVerilatedOptionsDoc[] =
    "memory=256M&latency=60&write_latency=40&outstanding=16&stalls=PERCENT&stall_seed=N&interleave=on&"
    "writes=address|data|together|any&late_ready=on&read_error=ADDRESS&fast_dot=off&trace=FILE.vcd&coverage=FILE";

}  // namespace tenon::driver
