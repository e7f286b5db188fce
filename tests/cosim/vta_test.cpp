// Every VTA program leaves VTA's memory on each simulator. Prints the RTL's cycles beside VTA's own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/clock.h"
#include "tests/cosim/vta_programs.h"

namespace tenon::driver {
namespace {

using namespace std::chrono_literals;

void run_all(const std::string& uri) {
  auto accelerator = open(uri);
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  fmt::print("{}\n{:<32}{:>12}{:>12}{:>8}{:>8}{:>12}\n", uri, "program", "cycles", "VTA", "ratio", "MAC %",
             "kcycles/s");
  for (const VtaEntry& entry : vta_index()) {
    auto program = sim::vta::read_program(std::string(TENON_SOURCE_DIR "/tests/vta/") + entry.name + ".bin");
    ASSERT_TRUE(program) << program.error().str();
    // Every program starts from reset: no tokens. All of them leave none.
    const double begin = cpu_seconds();
    const auto counters = run_vta(**accelerator, *program, 100ms);
    const double seconds = cpu_seconds() - begin;
    ASSERT_TRUE(counters) << entry.name << ": " << counters.error().str();
    const auto cycles = static_cast<double>(counters->cycles);
    fmt::print("{:<32}{:>12}{:>12}{:>8}{:>8.1f}{:>12.0f}\n", entry.name, counters->cycles,
               entry.vta_cycles ? std::to_string(entry.vta_cycles) : "-",
               entry.vta_cycles ? fmt::format("{:.2f}", cycles / static_cast<double>(entry.vta_cycles)) : "-",
               100 * static_cast<double>(counters->macs) / (256 * cycles), cycles / seconds / 1000);
  }
}

TEST(VtaPrograms, BehavioralLeavesTheirMemory) { run_all("behavioral:default"); }
TEST(VtaPrograms, RtlLeavesTheirMemory) { run_all("verilator:default"); }
TEST(VtaPrograms, RtlLeavesTheirMemoryUnderStalls) {
  run_all("verilator:default?stalls=30&stall_seed=7&latency=20&interleave=on");
}
TEST(VtaPrograms, RtlEqualsBehavioralWriteByWrite) { run_all("lockstep:default?stalls=10&stall_seed=3"); }

}  // namespace
}  // namespace tenon::driver
