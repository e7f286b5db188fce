#include "sim/bench/bench.h"

#include <algorithm>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/behavioral/kernels.h"
#include "sim/vta/vta_program.h"
#include "support/clock.h"
#include "support/pages.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::sim::bench {
namespace {

using spec::Engine;
using spec::Memory;

uint64_t counter(Simulator& s, uint32_t offset) {
  return s.read_register(offset) | uint64_t{s.read_register(offset + 4)} << 32;
}

// The median time of `runs` calls of `run_once`, which returns a Status, after a first call that warms up.
template <class F>
Expected<double> median_seconds(int runs, F&& run_once) {
  std::vector<double> seconds;
  for (int i = 0; i <= runs; ++i) {
    const double begin = cpu_seconds();
    TENON_TRY(run_once());
    if (i > 0) seconds.push_back(cpu_seconds() - begin);
  }
  return median(std::move(seconds));
}

Status launch(Simulator& simulator, const fuzz::Program& program) {
  fuzz::start(simulator, program, 0);
  while (simulator.advance(uint64_t{1} << 30)) {
  }
  const auto code = static_cast<spec::StopCode>(simulator.read_register(spec::reg::kStatus) & 0xff);
  if (code == spec::StopCode::kNone) return {};
  return error(std::string(spec::describe(code)) + ": " + simulator.explain(), "benchmark", {}, Fault::kInternal);
}

template <class F>
Expected<std::vector<Measurement>> measure_kernel_sets(const spec::Config& config, uint64_t memory_bytes,
                                                       F&& measure_simulator) {
  std::vector<Measurement> measurements;
  for (const KernelSet* kernels : kernel_sets()) {
    if (!kernels->supported()) continue;
    TENON_TRY_ASSIGN(simulator,
                     make_behavioral(config, {.memory_bytes = memory_bytes, .kernels = std::string(kernels->name)}));
    TENON_TRY_ASSIGN(measurement, measure_simulator(**simulator, "behavioral, " + std::string(kernels->name)));
    measurements.push_back(std::move(*measurement));
  }
  return measurements;
}

}  // namespace

fuzz::Program convolution(const spec::Config& config, int tiles) {
  constexpr int64_t kMap = 14, kPadded = kMap + 2, kKernel = 3;  // widths of the map, the padded map and the kernel
  const auto depth = [&](Memory m) { return config.depth(m); };
  const int64_t rows = std::clamp<int64_t>(depth(Memory::kOut) / kMap, 1, kMap);
  const int64_t padded_size = (rows + 2) * kPadded;
  const int64_t in = std::clamp<int64_t>(depth(Memory::kInp) / padded_size, 1, 64);
  int64_t out = std::max<int64_t>(
      std::min(depth(Memory::kAcc) / (rows * kMap), depth(Memory::kWgt) / (kKernel * kKernel * in)), 1);
  out = std::min(out, depth(Memory::kPar));

  fuzz::Program program;
  program.config = config;
  program.memory.resize(size_t{1} << 21);
  Random random(1);
  for (std::byte& b : program.memory) b = static_cast<std::byte>(random.next());
  program.launches.push_back({.profile = spec::Profile::kNative, .instructions = {}, .stream = program.memory.size()});
  auto& code = program.launches[0].instructions;
  const auto bits = [](auto... engines) { return static_cast<int64_t>((spec::bit(engines) | ...)); };

  const auto dense = [&](spec::native::MoveFunction function, int64_t units, int64_t unit, int64_t offset) {
    spec::native::Move m;
    m.function = static_cast<int64_t>(function);
    m.rows = m.source_rows = std::max<int64_t>(units / kPadded, 1);
    m.vectors = std::min<int64_t>(units, kPadded);
    m.x_step = unit;
    m.row_bytes = m.vectors * unit;
    m.y_step = m.row_bytes;
    m.offset = offset;
    return m;
  };
  const int64_t weights = kKernel * kKernel * in * out;
  for (int tile = 0; tile < tiles; ++tile) {
    // Each engine waits for the engines that read the elements it overwrites.
    auto input = dense(spec::native::MoveFunction::kInp, padded_size * in, config.block_in, 4096 * (tile % 8));
    input.wait = tile > 0 ? bits(Engine::kGemm) : 0;
    input.signal = bits(Engine::kGemm);
    code.push_back(input);
    spec::native::Move weight = dense(spec::native::MoveFunction::kWgt, 0, config.block_in, 65536);
    weight.rows = weight.source_rows = weights;
    weight.vectors = config.block_out;
    weight.row_bytes = weight.y_step = int64_t{config.block_in} * config.block_out;
    weight.wait = input.wait;
    weight.signal = bits(Engine::kGemm);
    code.push_back(weight);
    spec::native::Move parameter = dense(spec::native::MoveFunction::kPar, 8, config.block_out, 1 << 19);
    parameter.rows = parameter.source_rows = out;
    parameter.wait = tile > 0 ? bits(Engine::kRq) : 0;
    parameter.signal = bits(Engine::kRq);
    code.push_back(parameter);
    for (int64_t o = 0; o < out; ++o) {
      spec::native::Gemm g;
      g.first = 1;
      g.r0 = in, g.r1 = kKernel, g.r2 = kKernel, g.y = rows, g.x = kMap;
      g.dst_base = o * rows * kMap, g.dst_y = kMap, g.dst_x = 1;
      g.src_r0 = padded_size, g.src_r1 = kPadded, g.src_r2 = 1, g.src_y = kPadded, g.src_x = 1;
      g.wgt_base = o * kKernel * kKernel * in, g.wgt_r0 = kKernel * kKernel, g.wgt_r1 = kKernel, g.wgt_r2 = 1;
      g.wait = (o == 0 ? bits(Engine::kLdi, Engine::kLdw) : 0) | (tile > 0 ? bits(Engine::kRq) : 0);
      g.signal = bits(Engine::kRq) | (o == out - 1 && tile + 1 < tiles ? bits(Engine::kLdi, Engine::kLdw) : 0);
      code.push_back(g);
    }
    for (int64_t o = 0; o < out; ++o) {
      spec::native::Requantize q;
      q.rows = rows, q.cols = kMap;
      q.v_lo = -2048, q.v_hi = 2047, q.lo = -128, q.hi = 127;
      q.acc_base = o * rows * kMap, q.acc_pitch = kMap, q.acc_step = 1, q.out_pitch = kMap, q.par_base = o;
      q.wait = bits(Engine::kGemm) | (o == 0 ? bits(Engine::kLdm) : 0) | (tile + o > 0 ? bits(Engine::kSt) : 0);
      q.signal = bits(Engine::kSt) | (tile + 1 < tiles ? bits(Engine::kGemm) : 0) |
                 (o == out - 1 && tile + 1 < tiles ? bits(Engine::kLdm) : 0);
      code.push_back(q);
      auto store = dense(spec::native::MoveFunction::kOut, 0, config.block_out, (1 << 20) + o * 65536);
      store.rows = store.source_rows = rows;
      store.vectors = kMap;
      store.row_bytes = store.y_step = kMap * config.block_out;
      store.wait = bits(Engine::kRq);
      store.signal = tile + 1 == tiles && o == out - 1 ? 0 : bits(Engine::kRq);
      code.push_back(store);
    }
  }
  code.push_back(spec::native::Finish{});
  program.memory.resize(program.memory.size() + whole_pages(program.launches[0].slots() * size_t{spec::kSlotBytes}));
  return program;
}

Expected<Measurement> measure(Simulator& simulator, const fuzz::Program& program, const std::string& name,
                              const std::string& simulator_name, int runs) {
  fuzz::load(simulator, program);
  TENON_TRY_ASSIGN(seconds, median_seconds(runs, [&] { return launch(simulator, program); }));
  return Measurement{name, simulator_name, counter(simulator, spec::reg::kMacs), counter(simulator, spec::reg::kCycles),
                     *seconds};
}

Expected<std::vector<Measurement>> behavioral(const fuzz::Program& program, const std::string& name, int runs) {
  return measure_kernel_sets(program.config, program.memory.size(),
                             [&](Simulator& simulator, const std::string& simulator_name) {
                               return measure(simulator, program, name, simulator_name, runs);
                             });
}

Expected<std::vector<Measurement>> behavioral_vta(const std::filesystem::path& file, int runs) {
  TENON_TRY_ASSIGN(config, spec::load_config("default"));
  TENON_TRY_ASSIGN(program, vta::read_program(file));
  return measure_kernel_sets(*config, program->memory_bytes,
                             [&](Simulator& s, const std::string& name) -> Expected<Measurement> {
                               TENON_TRY_ASSIGN(seconds, median_seconds(runs, [&]() -> Status {
                                                  TENON_TRY(vta::start(s, *program));
                                                  while (s.advance(uint64_t{1} << 30)) {
                                                  }
                                                  return {};
                                                }));
                               return Measurement{file.stem().string(), name, counter(s, spec::reg::kMacs),
                                                  counter(s, spec::reg::kCycles), *seconds};
                             });
}

}  // namespace tenon::sim::bench
