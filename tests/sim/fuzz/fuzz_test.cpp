// Properties of random programs that hold without RTL.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/behavioral/kernels.h"
#include "sim/fuzz/builder.h"
#include "sim/fuzz/campaign.h"
#include "sim/fuzz/coverage.h"
#include "sim/fuzz/generator.h"
#include "sim/fuzz/shrink.h"
#include "tests/rounds.h"
#include "tests/sim/oracle.h"
#include "tests/sim/random_config.h"

namespace tenon::spec {

void PrintTo(const Config& config, std::ostream* out) { *out << config.name; }

}  // namespace tenon::spec

namespace tenon::sim::fuzz {
namespace {

std::vector<spec::Config> configs() {
  std::vector<spec::Config> list;
  for (const char* name : {"tiny", "wide-8x16", "default-128"}) list.push_back(*spec::load_config(name));
  // The smallest configuration, and two random ones.
  spec::Config smallest{
      .name = "smallest", .block_in = 2, .block_out = 2, .axi_data_bits = 32, .max_burst_beats = 1, .queue_depth = 2};
  for (size_t m = 0; m < spec::kScratchpads; ++m)
    smallest.bytes[m] = 2 * smallest.element_bytes(static_cast<spec::Memory>(m));
  list.push_back(smallest);
  for (uint64_t seed : {1, 2}) list.push_back(sim::testing::random_config(seed));
  return list;
}

// Records the last written value of each scratchpad element.
class LastValues final : public WriteObserver {
 public:
  void on_write(const Write& w) override {
    if (w.memory != spec::Memory::kDram) values[{w.memory, w.address}].assign(w.value.begin(), w.value.end());
  }
  void on_done(uint32_t) override { ++done; }
  std::map<std::pair<spec::Memory, uint64_t>, std::vector<std::byte>> values;
  size_t done = 0;
};

class Fuzz : public ::testing::TestWithParam<spec::Config> {};

TEST_P(Fuzz, programs_run_without_race_and_equal_sequential_execution) {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(rounds(60)); ++seed) {
    const Program program = generate(GetParam(), seed);
    SCOPED_TRACE(fmt::format("--config {} --seed {}", program.config.name, seed));
    for (const KernelSet* kernels : kernel_sets()) {
      if (!kernels->supported() || (seed > 20 && kernels != find_kernel_set(""))) continue;
      auto simulator = make_behavioral(program.config,
                                       {.memory_bytes = program.memory.size(), .kernels = std::string(kernels->name)});
      ASSERT_TRUE(simulator) << simulator.error().str();
      LastValues last;
      (*simulator)->observe(&last);
      load(**simulator, program);
      sim::testing::Oracle oracle(program.config, {(*simulator)->memory().begin(), (*simulator)->memory().end()});
      for (const Launch& l : program.launches)
        for (const auto& i : l.instructions) oracle.execute(i, program.bases);
      const Status status = run(**simulator, program);
      ASSERT_TRUE(status) << kernels->name << ": " << status.error().str() << "\n" << to_text(program);
      EXPECT_TRUE(std::ranges::equal((*simulator)->memory(), oracle.dram)) << kernels->name << "\n" << to_text(program);
      EXPECT_EQ(last.done, program.length());
      for (const auto& [element, value] : last.values) {
        const auto& [memory, index] = element;
        const auto& pad = oracle.pads[index_of(memory)];
        ASSERT_TRUE(std::equal(value.begin(), value.end(), pad.begin() + static_cast<ptrdiff_t>(index * value.size())))
            << kernels->name << ": " << name(memory) << "[" << index << "]";
      }
    }
  }
}

TEST_P(Fuzz, encoding_and_assembly_round_trip) {
  const spec::Isa isa(GetParam());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const Launch& launch : generate(GetParam(), seed).launches) {
      std::vector<spec::Slot> slots;
      for (const auto& i : launch.instructions) ASSERT_TRUE(isa.encode(i, slots)) << isa.disassemble(i);
      ASSERT_EQ(slots.size(), launch.slots());
      const auto decoded = isa.decode_all(slots, launch.profile);
      ASSERT_TRUE(decoded) << decoded.error().message;
      ASSERT_EQ(decoded->size(), launch.instructions.size());
      for (size_t i = 0; i < decoded->size(); ++i) {
        EXPECT_TRUE((*decoded)[i].instruction == launch.instructions[i]) << isa.disassemble(launch.instructions[i]);
        const auto again = isa.assemble(isa.disassemble(launch.instructions[i]), "line");
        ASSERT_TRUE(again) << again.error().str();
        EXPECT_TRUE(*again == launch.instructions[i]) << isa.disassemble(launch.instructions[i]);
      }
    }
  }
}

TEST_P(Fuzz, a_seed_identifies_a_program) {
  EXPECT_EQ(to_text(generate(GetParam(), 7)), to_text(generate(GetParam(), 7)));
  EXPECT_NE(to_text(generate(GetParam(), 7)), to_text(generate(GetParam(), 8)));
}

// Redundant tokens (random extra tokens, or those that a chain of others replaces) may be removed; most tokens may not.
TEST_P(Fuzz, a_lost_token_is_found_as_race_or_deadlock) {
  int removed = 0, races = 0, deadlocks = 0, uninitialised = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Program program = generate(GetParam(), seed, {.max_launches = 1});
    Random random(seed);
    auto& instructions = program.launches[0].instructions;
    for (int tries = 0; tries < 50; ++tries) {
      const auto i = static_cast<size_t>(random.between(0, static_cast<int64_t>(instructions.size()) - 1));
      spec::TokenMasks masks = spec::tokens_of(instructions[i]);
      if (masks.signal == 0) continue;
      Program broken = program;
      // Removes the token alone, or the token and its partner.
      if (random.chance(50)) {
        masks.signal &= masks.signal - 1;
        set_tokens(broken.launches[0].instructions[i], masks);
      } else {
        const Program cut = without(program, 0, i);
        broken = cut;
        auto bare = instructions[i];
        set_tokens(bare, {});
        broken.launches[0].instructions.insert(broken.launches[0].instructions.begin() + static_cast<ptrdiff_t>(i),
                                               bare);
      }
      auto simulator = make_behavioral(broken.config, {.memory_bytes = broken.memory.size()});
      ++removed;
      if (!run(**simulator, broken)) {
        const auto code = static_cast<spec::StopCode>((*simulator)->read_register(spec::reg::kStatus) & 0xff);
        EXPECT_TRUE(code == spec::StopCode::kRace || code == spec::StopCode::kDeadlock ||
                    code == spec::StopCode::kUninitialised)
            << (*simulator)->explain();
        (code == spec::StopCode::kRace ? races : code == spec::StopCode::kDeadlock ? deadlocks : uninitialised)++;
      }
      break;
    }
  }
  fmt::print("{}: of {} lost tokens, {} races, {} deadlocks, {} uninitialised reads\n", GetParam().name, removed, races,
             deadlocks, uninitialised);
  EXPECT_GT(races + deadlocks + uninitialised, removed / 4);
  EXPECT_GT(races, 0);
}

TEST_P(Fuzz, a_failing_program_shrinks_to_the_instructions_that_matter) {
  // A program fails if it has a MAX (base) or an RQ with residual (native): such an instruction must remain.
  const auto matters = [](const spec::Instruction& i) {
    if (const auto* a = std::get_if<spec::base::Alu>(&i)) return a->alu_opcode == 1 && a->iter_in > 0;
    if (const auto* q = std::get_if<spec::native::Requantize>(&i)) return q->residual != 0 && q->rows > 0;
    return false;
  };
  const Fails fails = [&](const Program& p) {
    return std::ranges::any_of(p.launches,
                               [&](const Launch& l) { return std::ranges::any_of(l.instructions, matters); });
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Program program = generate(GetParam(), seed, {.max_length = 80});
    if (!fails(program)) continue;
    const Program small = shrink(program, fails, 600);
    EXPECT_TRUE(legal(small));
    EXPECT_TRUE(fails(small));
    EXPECT_LE(small.length(), 16u) << to_text(small);
  }
}

TEST_P(Fuzz, a_campaign_reports_seed_command_and_the_smallest_program) {
  const auto all_pass = campaign(GetParam(), {.seed = 100, .count = 5}, behavioral_runner());
  EXPECT_FALSE(all_pass.failure);
  EXPECT_EQ(all_pass.programs, 5);
  // A faulty machine that stores no more than one row.
  const Runner broken = [](const Program& p) -> Status {
    for (const Launch& l : p.launches) {
      for (const auto& i : l.instructions) {
        const auto dma = dma_of(p.config, i, p.bases);
        if (dma && dma->store && dma->rows > 1 && dma->vectors > 0) return error("row 1 is lost");
      }
    }
    return {};
  };
  const auto found = campaign(GetParam(), {.seed = 1, .count = 50}, broken);
  ASSERT_TRUE(found.failure);
  const std::string& report = found.failure->report;
  const std::string repeat =
      fmt::format("repeat with: tenon fuzz accel --config {} --seed {} --count 1 --length 50..200", GetParam().name,
                  found.failure->seed);
  EXPECT_NE(report.find(repeat), std::string::npos) << report;
  EXPECT_LE(found.failure->smallest.length(), 12u) << report;
  EXPECT_NE(report.find("row 1 is lost"), std::string::npos) << report;
}

// Also of the widest cores, whose vectors are as long as some fields allow, and under soft resets and bus errors.
TEST(FuzzConfigurations, programs_are_legal_on_every_configuration) {
  const auto passes = [](const spec::Config& config, int count) {
    SCOPED_TRACE(spec::to_json(config));
    const auto result = campaign(config, {.seed = 1, .count = count, .shrink_budget = 0}, behavioral_runner());
    EXPECT_FALSE(result.failure) << result.failure->report.substr(0, 2000);
  };
  for (const auto& [in, out] : {std::pair{64, 64}, {2, 64}, {64, 2}}) {
    spec::Config wide{.name = fmt::format("{}x{}", in, out), .block_in = in, .block_out = out};
    for (size_t m = 0; m < spec::kScratchpads; ++m)
      wide.bytes[m] = 256 * wide.element_bytes(static_cast<spec::Memory>(m));
    passes(wide, rounds(60));
  }
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(rounds(40)); ++seed) {
    passes(sim::testing::random_config(seed), 5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, ::testing::ValuesIn(configs()), [](const auto& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

// The memory that a configuration addresses holds its programs, their streams included.
TEST(FuzzMemory, ProgramsFitTheAddressesOfTheirConfiguration) {
  spec::Config nano = *spec::load_config("nano");
  ASSERT_TRUE(check_memory(nano));
  size_t longest = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(rounds(300)); ++seed) {
    const Program program = generate(nano, seed, {.min_length = 50, .max_length = 1000});
    EXPECT_LE(program.memory.size(), nano.address_mask() + 1) << seed;
    longest = std::max(longest, program.length());
  }
  EXPECT_GT(longest, 150u);
  nano.address_bits = 13;
  const Status status = check_memory(nano);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().str().find("need 16384 bytes of memory, of which the configuration addresses 8192"),
            std::string::npos)
      << status.error().str();
  EXPECT_NE(status.error().str().find("set address_bits to 14 or more"), std::string::npos) << status.error().str();
}

TEST(Coverage, counts_fields_by_value_and_start) {
  const auto config = *spec::load_config("tiny");
  const spec::Isa isa(config);
  Coverage coverage(config);
  const auto line = [&](std::string_view mnemonic, std::string_view field) {
    const std::string table = coverage.table();
    const size_t begin = table.find(fmt::format("\n{:<8}{} ", mnemonic, field));
    return begin == std::string::npos ? std::string()
                                      : table.substr(begin + 1, table.find('\n', begin + 1) - begin - 1);
  };
  EXPECT_EQ(coverage.covered(), 0u);
  EXPECT_EQ(line("mac", "own"), fmt::format("{:<8}{:<16}{:<26}{}", "mac", "own", "0/0/0 !", "0/0/0 !"));

  Launch launch{.profile = spec::Profile::kNative, .instructions = {}};
  for (const char* text : {"move wait=ldw rows=1", "move rows=2", "move rows=32768", "end"}) {
    const auto instruction = isa.assemble(text, "test");
    ASSERT_TRUE(instruction) << instruction.error().str();
    launch.instructions.push_back(*instruction);
  }
  // The first waits for a token, the second follows it without a cycle between, the third comes later.
  const std::vector<Interval> timeline = {{0, Interval::Kind::kWaitTokens, 0, 0, 5},
                                          {0, Interval::Kind::kBusy, 0, 5, 9},
                                          {0, Interval::Kind::kBusy, 2, 9, 12},
                                          {0, Interval::Kind::kBusy, 4, 20, 22}};
  const size_t cells = coverage.cells();
  coverage.add(launch, timeline);
  EXPECT_EQ(coverage.instructions(), 3u);
  EXPECT_EQ(coverage.cells(), cells);
  EXPECT_EQ(line("move", "rows"),
            fmt::format("{:<8}{:<16}{:<26}{:<26}{:<26}{}", "move", "rows", "0/0/0 !", "0/0/1 !", "0/1/0 !", "1/0/0 !"));
  EXPECT_EQ(line("end", "wait"), "");
  // A field of an extension that is off is zero.
  auto without = config;
  without.own_lanes = false;
  EXPECT_EQ(Coverage(without).cells(), cells - 3);
}

TEST(Coverage, of_random_programs_on_the_behavioral_simulator) {
  const auto config = *spec::load_config("tiny");
  Coverage coverage(config);
  size_t before = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Program program = generate(config, seed);
    auto simulator = make_behavioral(config, {.memory_bytes = program.memory.size()});
    ASSERT_TRUE(simulator) << simulator.error().str();
    Recorded recorded(**simulator);
    ASSERT_TRUE(run(recorded, program));
    ASSERT_EQ(recorded.timelines().size(), program.launches.size());
    for (size_t i = 0; i < program.launches.size(); ++i) coverage.add(program.launches[i], recorded.timelines()[i]);
    EXPECT_GE(coverage.covered(), before);
    before = coverage.covered();
  }
  EXPECT_GT(coverage.covered(), coverage.cells() / 2);
  EXPECT_LT(coverage.covered(), coverage.cells());
}

}  // namespace
}  // namespace tenon::sim::fuzz
