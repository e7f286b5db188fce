// The cycle model against the RTL: beats and bursts are equal, cycles are close. Prints the error of each program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/bench/bench.h"
#include "sim/fuzz/generator.h"
#include "sim/verilator/builder.h"
#include "sim/verilator/process.h"
#include "sim/verilator/verilated.h"
#include "sim/vta/vta_program.h"
#include "support/file.h"

namespace tenon::sim {
namespace {

namespace reg = spec::reg;

constexpr uint64_t kMemory = 8 << 20;

uint64_t counter(Simulator& s, uint32_t offset) {
  return s.read_register(offset) | uint64_t{s.read_register(offset + 4)} << 32;
}

class ModelAndRtl {
 public:
  explicit ModelAndRtl(const spec::Config& config, const spec::MemoryTiming& memory = {}) {
    VerilatedOptions options;
    options.memory_bytes = kMemory;
    options.read_latency = static_cast<uint32_t>(memory.read_latency);
    options.write_latency = static_cast<uint32_t>(memory.write_latency);
    options.outstanding = static_cast<uint32_t>(memory.outstanding);
    rtl = std::move(*make_verilated(config, options));
    model = std::move(*make_behavioral(config, {.memory_bytes = kMemory, .timing = {.memory = memory}}));
  }
  // Prints one line; returns the model's error in percent.
  double compare(const std::string& name) {
    const auto cycles = static_cast<double>(counter(*rtl, reg::kCycles));
    const auto estimate = static_cast<double>(counter(*model, reg::kCycles));
    const double error = 100 * (estimate / cycles - 1);
    fmt::print("{:<28}{:>10.0f} cycles in the RTL,{:>10.0f} in the model, {:+6.2f} %\n", name, cycles, estimate, error);
    for (const uint32_t offset : {reg::kReadBeats, reg::kReadBursts, reg::kWriteBeats, reg::kWriteBursts}) {
      EXPECT_EQ(counter(*model, offset), counter(*rtl, offset)) << name << ", counter at " << offset;
    }
    EXPECT_EQ(counter(*model, reg::kMacs), counter(*rtl, reg::kMacs)) << name;
    EXPECT_EQ(counter(*model, reg::kInstructionsDone), counter(*rtl, reg::kInstructionsDone)) << name;
    return error;
  }
  std::unique_ptr<Simulator> rtl, model;
};

TEST(Timing, of_vta_programs_is_close_to_the_rtl) {
  ModelAndRtl pair(*spec::load_config("default"));
  double sum = 0, worst = 0;
  int programs = 0;
  for (const char* name :
       {"conv_C2", "conv_C4", "conv_C8", "conv_C10", "gemm_16x16x16_b16_vt1", "gemm_64x64x64_b32_vt2",
        "gemm_128x128x128_b64_vt2", "gemm_128x128x128_b128_vt1", "gemm_256x256x256_b128_vt2",
        "gemm_1x1024x1024_b256_vt2", "vadd_4x64", "vadd_1x1024", "vadd_16x1024", "vmul_4x64"}) {
    const auto program = vta::read_program(std::string(TENON_SOURCE_DIR "/tests/vta/") + name + ".bin");
    ASSERT_TRUE(program) << program.error().str();
    for (Simulator* s : {pair.rtl.get(), pair.model.get()}) {
      std::ranges::fill(s->memory(), std::byte{});
      const auto status = vta::run(*s, *program);
      ASSERT_TRUE(status) << status.error().str();
    }
    const double error = std::abs(pair.compare(name));
    sum += error, worst = std::max(worst, error), ++programs;
  }
  fmt::print("mean {:.2f} %, worst {:.2f} %\n", sum / programs, worst);
  EXPECT_LT(sum / programs, 3);
  EXPECT_LT(worst, 6);
}

// A deadlock is one after sixteen cycles in which nothing can start; a program that does not wait ends two cycles after
// the first of them.
TEST(Timing, of_a_deadlock_is_its_window) {
  const auto config = *spec::load_config("tiny");
  const spec::Isa isa(config);
  const auto cycles = [&](const char* text) {
    fuzz::Program program{.config = config, .memory = std::vector<std::byte>(4096), .launches = {}};
    program.launches.push_back({.instructions = isa.assemble_all(text, "test").value(), .stream = 0});
    const auto rtl = make_verilated(config, {.memory_bytes = kMemory}).value();
    (void)fuzz::run(*rtl, program);
    return std::pair(counter(*rtl, reg::kCycles), rtl->read_register(reg::kStatus));
  };
  const auto [ended, no_code] = cycles("sync engine=0");
  const auto [stopped, code] = cycles("sync engine=0 wait=gemm");
  EXPECT_EQ(no_code, 0u);
  EXPECT_EQ(code, static_cast<uint32_t>(spec::StopCode::kDeadlock));
  EXPECT_EQ(stopped - ended, 16u - 2);
}

// A convolution of 3 x 3 whose results are pooled, 3 x 3 with stride 2: two rows of accumulators a tile, in a ring of
// sixteen rows that is all of acc. The requantizer reads more than GEMM leaves to it.
fuzz::Program pooled_convolution(const spec::Config& config, bool carry) {
  const int64_t row = config.depth(spec::Memory::kAcc) / 16, cols = row - 2;
  std::string text = fmt::format(
      "move function=0 rows=1 vectors={} signal=gemm\nmove function=1 rows=1 vectors={} signal=gemm\n"
      "move function=2 rows=1 vectors=8 signal=rq\n",
      4 * row, 9 * config.block_out);
  constexpr int kTiles = 30;
  for (int64_t t = 0; t < kTiles; ++t) {
    text += fmt::format(
        "mac first=1 r0=1 r1=3 r2=3 y=2 x={} dst_base={} dst_y={} dst_x=1 src_r1={} src_r2=1 src_y={} src_x=1 wgt_r1=3 "
        "wgt_r2=1 wait={} signal=rq\n",
        cols, t % 8 * 2 * row, row, row, row,
        t == 0  ? "ldi,ldw"
        : t > 1 ? "rq"
                : "0");
    const int64_t first = t == 0 ? 0 : 2 * t - 1;  // row of the windows
    text += fmt::format(
        "rq rows=1 cols={} acc_base={} acc_step=2 win_rows={} win_cols={} win_pitch={} win_carry={} wait={} "
        "signal={}\n",
        cols / 2 - 1, first % 16 * row, t == 0 ? 2 : 3, carry ? 2 : 3, row, carry ? 1 : 0, t == 0 ? "ldm,gemm" : "gemm",
        t + 2 < kTiles ? "gemm" : "0");
  }
  fuzz::Program program{.config = config, .memory = std::vector<std::byte>(1 << 16), .launches = {}};
  program.launches.push_back({.profile = spec::Profile::kNative,
                              .instructions = spec::Isa(config).assemble_all(text, "test").value(),
                              .stream = 0});
  return program;
}

TEST(Timing, of_windows_of_accumulators_is_close_to_the_rtl) {
  for (const char* name : {"tiny", "default"}) {
    const auto config = *spec::load_config(name);
    ModelAndRtl pair(config);
    for (const bool carry : {false, true}) {
      const auto program = pooled_convolution(config, carry);
      for (Simulator* s : {pair.rtl.get(), pair.model.get()}) {
        const auto status = fuzz::run(*s, program);
        ASSERT_TRUE(status) << status.error().str();
      }
      EXPECT_LT(std::abs(pair.compare(fmt::format("{} pool{}", name, carry ? " carry" : ""))), 3);
    }
  }
}

TEST(Timing, of_native_programs_is_close_to_the_rtl) {
  // "wide-8x16" has one store at a time and the shallowest FIFOs.
  for (const auto& [config_name, memory] : {std::pair("tiny", spec::MemoryTiming{}),
                                            {"default", {}},
                                            {"default", {200, 200, 16}},
                                            {"wide-8x16", {200, 200, 16}}}) {
    const auto config = *spec::load_config(config_name);
    ModelAndRtl pair(config, memory);
    fmt::print("{}, memory {}\n", config_name, spec::to_string(memory));
    const auto run = [&](const fuzz::Program& program, const std::string& name) {
      EXPECT_TRUE(fuzz::run(*pair.rtl, program));
      EXPECT_TRUE(fuzz::run(*pair.model, program));
      return std::abs(pair.compare(name));
    };
    EXPECT_LT(run(bench::convolution(config, 3), std::string(config_name) + " conv3x3"), 1);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const auto program = fuzz::generate(config, seed, {.profile = spec::Profile::kNative, .max_launches = 1});
      EXPECT_LT(run(program, fmt::format("{} random {}", config_name, seed)), 6);
    }
  }
}

// The speed of a model, unlike its cycles, depends on the profile, whose absence nothing else would tell.
TEST(Timing, comes_from_a_model_with_a_profile_where_clang_is_installed) {
  if (!find_program("clang++-19") || !find_program("llvm-profdata-19")) {
    GTEST_SKIP() << "clang-19 or llvm-19 is not installed";
  }
  const auto model = build_verilated_model(*spec::load_config("tiny"));
  ASSERT_TRUE(model) << model.error().str();
  const auto log = read_text(model->parent_path() / "build.log");
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_NE(log->find("the model is compiled with the profile of a run"), std::string::npos)
      << "is libclang-rt-19-dev installed? " << *log;
}

}  // namespace
}  // namespace tenon::sim
