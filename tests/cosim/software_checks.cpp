#include "tests/cosim/software_checks.h"

#include <fmt/format.h>

#include "driver/accelerator.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/fuzz/program.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

namespace reg = spec::reg;

constexpr uint64_t kStream = 0x1000;
constexpr uint64_t kMemory = 1 << 20;
constexpr uint64_t kCycles = 200'000;
constexpr int kPolls = 500;

Expected<std::unique_ptr<driver::Accelerator>> open_tiny(std::string_view scheme, std::string_view options) {
  return driver::open(fmt::format("{}:tiny?memory=1M{}", scheme, options));
}

Expected<fuzz::Program> program_of(std::string_view text) {
  TENON_TRY_ASSIGN(config, spec::load_config("tiny"));
  TENON_TRY_ASSIGN(instructions, spec::Isa(*config).assemble_all(text, "stream"));
  fuzz::Program program{.config = *config, .memory = std::vector<std::byte>(kMemory), .launches = {}};
  program.launches.push_back({.profile = spec::Profile::kNative, .instructions = *instructions, .stream = kStream});
  return program;
}

Status expect(std::string_view what, uint32_t found, uint32_t wanted) {
  if (found == wanted) return {};
  return error(fmt::format("{} is {:#x}, must be {:#x}", what, found, wanted));
}

}  // namespace

Status check_interrupts(std::string_view options) {
  TENON_TRY_ASSIGN(device, open_tiny("lockstep", options));
  Simulator& simulator = *(*device)->simulator();
  TENON_TRY_ASSIGN(program, program_of("sync engine=0"));
  for (const uint32_t global : {1, 0}) {
    for (const uint32_t enabled : {1, 1, 2, 2, 3, 3}) {
      simulator.write_register(reg::kGlobalInterruptEnable, global);
      simulator.write_register(reg::kInterruptEnable, enabled);
      TENON_TRY(fuzz::run(simulator, *program, kCycles));
      const std::string what = fmt::format("the interrupt status with {} enabled", enabled);
      TENON_TRY(expect(what, simulator.read_register(reg::kInterruptStatus), enabled));
      simulator.write_register(reg::kInterruptStatus, enabled);
      TENON_TRY(expect(what + ", acknowledged", simulator.read_register(reg::kInterruptStatus), 0));
      TENON_TRY(expect("a broken rule's length", static_cast<uint32_t>(simulator.explain().size()), 0));
    }
  }
  return {};
}

Status check_progress(std::string_view options) {
  TENON_TRY_ASSIGN(device, open_tiny("verilator", options));
  Simulator& simulator = *(*device)->simulator();
  const std::pair<spec::Engine, std::string_view> cases[] = {
      {spec::Engine::kGemm, "mac first=1 r0=100 r1=100 r2=1 y=1 x=1"},
      {spec::Engine::kLdi, "move function=0 rows=16 vectors=8 x_step=4 row_bytes=32 source_rows=16"},
      {spec::Engine::kLdw, "move function=1 rows=16 vectors=8 x_step=4 row_bytes=32 source_rows=16"},
      {spec::Engine::kLdm, "move function=3 rows=16 vectors=8 x_step=4 row_bytes=32 source_rows=16"},
      {spec::Engine::kRq, "rq rows=64 cols=8 acc_step=1 acc_pitch=0 out_pitch=0"},
      {spec::Engine::kSt, "move function=4 rows=16 vectors=8 x_step=4 row_bytes=32 source_rows=16 offset=65536"}};
  for (const auto& [engine, text] : cases) {
    TENON_TRY_ASSIGN(program, program_of(fmt::format("sync engine=0\nsync engine=0\n{}\nsync engine=6", text)));
    fuzz::load(simulator, *program);
    fuzz::start(simulator, *program, 0);
    bool seen = false;
    for (int polls = 0; polls < kPolls && !seen; ++polls) {
      simulator.advance(8);
      const uint32_t activity = simulator.read_register(reg::kActivity);
      const uint32_t head = simulator.read_register(reg::kHead0 + 4 * static_cast<uint32_t>(engine));
      seen = activity == (spec::bit(engine) | spec::bit(engine) << 8) && head == 4;
    }
    const bool busy = simulator.advance(kCycles);
    if (const std::string why = simulator.explain(); !why.empty()) return error(why);
    if (!seen) return error(fmt::format("{} is never reported busy with its instruction", spec::name(engine)));
    if (busy) return error(fmt::format("\"{}\" is not done after {} cycles", text, kCycles));
    TENON_TRY(expect(fmt::format("the status after \"{}\"", text), simulator.read_register(reg::kStatus), 0));
  }
  return {};
}

Status check_fetch_errors(std::string_view options) {
  TENON_TRY_ASSIGN(program, program_of("sync engine=0\nsync engine=0\nsync engine=0"));
  const uint64_t wrong = kStream + 2 * spec::kSlotBytes, end = wrong + 2 * spec::kSlotBytes;
  for (uint64_t address = wrong; address < end; address += program->config.axi_bytes()) {
    TENON_TRY_ASSIGN(device, open_tiny("verilator", fmt::format("{}&read_error={}", options, address)));
    Simulator& simulator = *(*device)->simulator();
    if (fuzz::run(simulator, *program, kCycles)) {
      return error(fmt::format("an error of the beat at {:#x}, of an instruction, is lost", address));
    }
    TENON_TRY(expect("the stop code of a fetch error", simulator.read_register(reg::kStatus),
                     static_cast<uint32_t>(spec::StopCode::kReadError)));
    TENON_TRY(expect("the slot of a fetch error", simulator.read_register(reg::kErrorIndex), 2));
  }
  return {};
}

}  // namespace tenon::sim
