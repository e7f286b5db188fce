// A small executable with all features, for the tests of this folder: a kernel call, an accelerator program that
// multiplies 16-vectors by a matrix and requantizes them, a called function, a branch, constants, notes and a graph.
#pragma once

#include <random>

#include "hw/spec/requantize.h"
#include "runtime/executable/executable.h"

namespace tenon::runtime::sample {

inline constexpr int kRows = 4;

inline spec::Config config() { return spec::load_config("default").value(); }

// out[r][o] = requantize(sum_i in[r][i] * w[o][i]).
inline std::vector<int8_t> weights() {
  std::mt19937 random(1);
  std::vector<int8_t> w(256);
  for (auto& x : w) x = static_cast<int8_t>(random());
  return w;
}
inline spec::ChannelParameters channel(int o) { return {o * 100 - 700, static_cast<uint16_t>(32768 + 1000 * o), 16}; }

inline std::vector<int8_t> expected(std::span<const int8_t> in) {
  auto w = weights();
  std::vector<int8_t> out;
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < 16; ++o) {
      int32_t acc = 0;
      for (int i = 0; i < 16; ++i) acc += in[r * 16 + i] * w[o * 16 + i];
      out.push_back(spec::requantize(acc, channel(o), {}));
    }
  }
  return out;
}

// Another one, with the same instructions.
inline spec::Config deep_config() {
  spec::Config deep = config();
  deep.name = "deep";
  deep.queue_depth *= 2;
  return deep;
}

inline AcceleratorProgram program(const spec::Config& on = config()) {
  using namespace spec;
  AcceleratorProgram p;
  p.name = "region_0";
  p.config = on;
  p.memory = {200, 100, 8};
  for (int8_t x : weights()) p.constants.push_back(static_cast<std::byte>(x));
  for (int o = 0; o < 16; ++o) {
    auto c = channel(o);
    for (int i = 0; i < 8; ++i) {
      uint64_t lane = static_cast<uint32_t>(c.bias) | uint64_t{c.multiplier} << 32 | uint64_t{c.shift} << 48;
      p.constants.push_back(static_cast<std::byte>(lane >> (8 * i)));
    }
  }
  p.inputs = {{"x", DType::kI8, {kRows, 16}, 2}};
  p.outputs = {{"y", DType::kI8, {kRows, 16}, 3}};
  p.layers = {{"dense_1", "accel.dense", kRows * 256, kRows * 256, kRows * 16 + 384, kRows * 16}};
  auto move = [](native::MoveFunction f, int base, int offset, int vectors, int unit) {
    native::Move m;
    m.function = static_cast<int>(f), m.base = base, m.offset = offset, m.rows = 1, m.vectors = vectors;
    m.x_step = unit, m.row_bytes = vectors * unit, m.y_step = m.row_bytes, m.source_rows = 1;
    return m;
  };
  auto inp = move(native::MoveFunction::kInp, 2, 0, kRows, 16);
  inp.signal = bit(Engine::kGemm);
  auto wgt = move(native::MoveFunction::kWgt, 0, 0, 16, 16);
  wgt.signal = bit(Engine::kGemm);
  auto par = move(native::MoveFunction::kPar, 0, 256, 8, 16);
  par.signal = bit(Engine::kRq);
  native::Gemm gemm;
  gemm.wait = bit(Engine::kLdi) | bit(Engine::kLdw), gemm.signal = bit(Engine::kRq), gemm.first = 1;
  gemm.r0 = gemm.r1 = gemm.r2 = gemm.y = 1, gemm.x = kRows, gemm.dst_x = gemm.src_x = 1;
  native::Requantize rq;
  rq.wait = bit(Engine::kGemm) | bit(Engine::kLdm), rq.signal = bit(Engine::kSt);
  rq.rows = 1, rq.cols = kRows, rq.acc_step = 1;
  auto out = move(native::MoveFunction::kOut, 3, 0, kRows, 16);
  out.wait = bit(Engine::kRq);
  Isa isa(p.config);
  uint32_t at = 0;
  for (const spec::Instruction& i :
       {spec::Instruction(inp), spec::Instruction(wgt), spec::Instruction(par), spec::Instruction(gemm),
        spec::Instruction(rq), spec::Instruction(out), spec::Instruction(native::Finish{})}) {
    auto status = isa.encode(i, p.instructions);
    if (!status) throw std::runtime_error(status.error().str());
    p.notes.push_back({at, 0, isa.disassemble(i)});
    at = static_cast<uint32_t>(p.instructions.size());
  }
  p.workspace_bytes = 256;
  p.probes = {{"hidden", DType::kI8, {4, 16}, 64}};
  return p;
}

// main(x: i8 (4, 16), pick: bool ()) = pick ? program(x) : id(x), where the first goes through a function.
inline Executable executable() {
  Executable e;
  e.name = "sample";
  e.facts = {{"model", "sample.onnx"}};
  Port x{"x", DType::kI8, {kRows, 16}}, y{"y", DType::kI8, {kRows, 16}}, pick{"pick", DType::kBool, {}};
  e.functions.push_back(
      {"main",
       {x, pick},
       {y},
       5,
       {{Branch{1, 4}, ""},
        {CallFunction{1, {0}, {2}}, ""},
        {Kill{{0}}, ""},
        {Return{{2}}, ""},
        {LoadConstant{3, 0}, ""},
        {CallKernel{"test.add", {{"axis", int64_t{1}}, {"note", std::string("a")}}, {0, 3}, {4}}, "add_2"},
        {Return{{4}}, ""}}});
  e.functions.push_back(
      {"region", {x}, {y}, 3, {{CallProgram{0, {0}, {1}}, "dense_1"}, {Move{2, 1}, ""}, {Return{{2}}, ""}}});
  Tensor ones(DType::kI8, {kRows, 16});
  for (auto& b : ones.data<int8_t>()) b = 1;
  e.constants = {ones, Tensor::of<double>({3}, std::vector<double>{1, 2, 3})};
  e.programs = {program()};
  e.graph.nodes = {
      {"x", "input", "input", "i8 (4, 16)"}, {"dense_1", "dense", "accel", "i8 (4, 16)"}, {"add_2", "add", "cpu", ""}};
  e.graph.edges = {{0, 1}, {0, 2}};
  e.units = {{.function = 1, .batched = 1, .own = {true}, .own_results = {true}}};
  return e;
}

// main(x: i8 (4, 16)) = program(program(x)), the first on default, the second on deep.
inline Executable on_two_accelerators() {
  Executable e;
  e.name = "two";
  Port x{"x", DType::kI8, {kRows, 16}}, y{"y", DType::kI8, {kRows, 16}};
  e.functions.push_back(
      {"main",
       {x},
       {y},
       3,
       {{CallProgram{0, {0}, {1}}, "dense_1"}, {CallProgram{1, {1}, {2}}, "dense_2"}, {Return{{2}}, ""}}});
  e.programs = {program(), program(deep_config())};
  e.programs[0].device = "accel:default";
  e.programs[1].device = "accel:deep";
  e.programs[1].name = "region_1";
  return e;
}

}  // namespace tenon::runtime::sample
