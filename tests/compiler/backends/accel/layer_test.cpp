// Unsupported layers, layouts, and the notes of a program.
#include "compiler/backends/accel/layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "compiler/backends/accel/compile.h"
#include "compiler/backends/accel/contraction.h"
#include "compiler/backends/accel/pooled.h"
#include "compiler/backends/accel/schedule.h"
#include "compiler/backends/accel/tile_program.h"
#include "hw/spec/isa.h"
#include "sim/timing/model.h"
#include "tests/compiler/backends/accel/random_region.h"

namespace tenon::compiler::accel {
namespace {

spec::Config config(const char* name = "default") { return spec::load_config(name).value(); }

Region region_of(const Case& c) { return problem_of(c).region; }
std::string refusal(const Region& region, const spec::Config& c = config()) {
  const auto program = compile(c, region);
  return program ? "compiles" : program.error().str();
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(AccelLayer, BrokenRegionsAreErrorsThatNameTheLayer) {
  const Case same{.c = 4, .h = 5, .w = 5, .o = 4, .data = 1};
  Region region = region_of(same);
  region.layers[0].weights.pop_back();
  EXPECT_HAS(refusal(region), "first: error: 15 weights, must be 16");
  region = region_of(same);
  region.layers[0].channels.pop_back();
  EXPECT_HAS(refusal(region), "first: error: 3 channel parameters for 4 channels");
  region = region_of(same);
  region.layers[0].output = 7;
  EXPECT_HAS(refusal(region), "first: error: a tensor index is out of range");
  region = region_of(same);
  region.tensors[1].h = 6;
  EXPECT_HAS(refusal(region), "the output is 6 x 5, the convolution computes 5 x 5");
  region = region_of(same);
  region.layers[0].stride_x = 0;
  EXPECT_HAS(refusal(region), "a kernel, stride or dilation is 0");
  region = region_of(same);
  region.layers[0].groups = 3;
  EXPECT_HAS(refusal(region), "groups is 3, must divide the 4 input channels and the 4 output channels");
  region = region_of(same);
  region.layers[0].parameters.residual = true;
  EXPECT_HAS(refusal(region), "residual flag disagree");
  region = region_of(same);
  region.tensors[0].c = 0;
  EXPECT_HAS(refusal(region), "every dimension must be at least 1");
  region = region_of(same);
  region.inputs.clear();
  EXPECT_HAS(refusal(region), "a layer reads a tensor before it is computed");
  region = region_of(same);
  region.outputs.push_back(region.outputs[0]);
  EXPECT_HAS(refusal(region), "output 1 is not computed, or is listed twice");
  spec::Config base = config();
  base.native = false;
  EXPECT_HAS(refusal(region_of(same), base), "has no native profile");
}

// Two products of 5 x 16 and 16 x 7.
Region products() {
  const auto matrices = [](const char* name, int64_t n, int64_t w, int64_t c) {
    RegionTensor t{.name = name, .n = n, .c = c, .rank = 3};
    t.w = w;
    return t;
  };
  Layer layer;
  layer.name = "product";
  layer.kind = LayerKind::kMatmul;
  layer.input = 0, layer.computed_weights = 1, layer.output = 2;
  layer.batch = 2;
  layer.channels.resize(7);
  return {.name = "test",
          .tensors = {matrices("a", 2, 5, 16), matrices("b", 1, 7, 32), matrices("y", 2, 5, 7)},
          .layers = {layer},
          .inputs = {0, 1},
          .outputs = {2}};
}

TEST(AccelLayer, BrokenProductsAreErrorsThatNameTheTensor) {
  EXPECT_EQ(refusal(products()), "compiles");
  Region region = products();
  region.layers[0].computed_weights = -1;
  EXPECT_HAS(refusal(region), "product: error: a matmul has a tensor of weights, no other layer has one");
  region = products();
  region.layers[0].batch = 0;
  EXPECT_HAS(refusal(region), "the batch is 0, must be at least 1");
  region = products();
  region.tensors[2].rank = 4;
  EXPECT_HAS(refusal(region), "tensor y is a map, must be matrices");
  region = products();
  region.tensors[0].n = 3;
  EXPECT_HAS(refusal(region), "tensor a has 3 images of 16 channels, which are not 2 matrices");
  region = products();
  region.tensors[1].c = 24;
  EXPECT_HAS(refusal(region), "a group of channels of tensor b has 12 of them, must be a multiple of 16");
  region = products();
  region.tensors[1].w = 8;
  EXPECT_HAS(refusal(region), "matrices of 5 x 16 and 16 x 8 have no product of 5 x 7");
  region = products();
  region.layers[0].weight_groups = 2;
  EXPECT_HAS(refusal(region), "1 images of 7 positions in 2 groups are no weights of 2 products");
  region.tensors[1].c = 16, region.tensors[1].w = 14;
  EXPECT_EQ(refusal(region), "compiles");
  region.tensors[1].rank = 4;
  EXPECT_HAS(refusal(region), "tensor b is a map, must be matrices");
  region.tensors[1].rank = 3, region.tensors[1].h = 2;
  EXPECT_HAS(refusal(region), "tensor b is a map, must be matrices");
}

TEST(AccelLayer, MoreBoundaryTensorsThanBaseRegistersAreAnError) {
  Region region = region_of({.c = 4, .h = 5, .w = 5, .o = 4, .data = 1});
  for (int i = 0; i < 5; ++i) {
    region.inputs.push_back(static_cast<int>(region.tensors.size()));
    region.tensors.push_back(region.tensors[0]);
  }
  EXPECT_HAS(refusal(region), "the region has 7 inputs and outputs, base registers are available for 6");
}

TEST(AccelLayer, AFirstConvolutionReadsRowsWhereThatTakesFewerProducts) {
  const Region first = region_of({.c = 3, .h = 9, .w = 9, .o = 4, .kernel_h = 3, .kernel_w = 3, .data = 1});
  EXPECT_EQ(boundary_layout(first, 0, config()), Layout::kRows);
  EXPECT_EQ(boundary_shape(first.tensors[0], Layout::kRows, config()), (runtime::Shape{1, 9, 9, 3}));
  EXPECT_EQ(contraction(config(), first.layers[0], first.tensors[0], first.tensors[1], true).gemm_cycles(), 7 * 7 * 3);
  EXPECT_EQ(contraction(config(), first.layers[0], first.tensors[0], first.tensors[1], false).gemm_cycles(), 7 * 7 * 9);
  const Region deep = region_of({.c = 32, .h = 9, .w = 9, .o = 4, .kernel_h = 3, .kernel_w = 3, .data = 1});
  EXPECT_EQ(boundary_layout(deep, 0, config()), Layout::kBlocked);
  EXPECT_EQ(boundary_shape(deep.tensors[0], Layout::kBlocked, config()), (runtime::Shape{1, 2, 9, 9, 16}));
  const Region pointwise = region_of({.c = 3, .h = 9, .w = 9, .o = 4, .data = 1});
  EXPECT_EQ(boundary_layout(pointwise, 0, config()), Layout::kBlocked);
}

// A depthwise convolution of 37 channels of 56 x 56.
Case depthwise(int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  return {.c = 37,
          .h = 56,
          .w = 56,
          .o = 37,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_y = stride,
          .stride_x = stride,
          .dilation_y = dilation,
          .dilation_x = dilation,
          .top = pad,
          .left = pad,
          .bottom = pad,
          .right = pad,
          .groups = 37,
          .data = 3};
}

// Steps of the tensor core for an output vector of a depthwise convolution, whose results are the reference's.
double steps_of_depthwise(const Case& c, const spec::Config& of = config()) {
  const Problem problem = problem_of(c);
  const auto program = compile(of, problem.region).value();
  const spec::Isa isa(of);
  uint64_t steps = 0;
  const auto decoded = isa.decode_all(program.instructions, spec::Profile::kNative).value();
  for (const auto& [instruction, index] : decoded) {
    if (std::holds_alternative<spec::native::Gemm>(instruction)) steps += sim::timing::steps(of, instruction);
  }
  const auto found = run_on_simulator(of, problem.region, problem.inputs);
  EXPECT_EQ(found.value()[0], reference(problem.region, problem.inputs)[problem.region.outputs[0]]);
  const int64_t blocks = ceil_div(c.o, lane_block(of)) * (lane_block(of) / of.block_out);
  return static_cast<double>(steps) / static_cast<double>(c.out_h() * c.out_w() * blocks);
}

TEST(AccelLayer, OwnLanesTakeAStepForAColumnOfAWindow) {
  EXPECT_LT(steps_of_depthwise(depthwise(3, 1, 1, 1)), 1.15);
  EXPECT_LT(steps_of_depthwise(depthwise(5, 1, 1, 2)), 2.5);
  EXPECT_LT(steps_of_depthwise(depthwise(7, 1, 1, 3)), 6.6);
  EXPECT_LT(steps_of_depthwise(depthwise(3, 2, 1, 1)), 2.2);
  EXPECT_LT(steps_of_depthwise(depthwise(5, 2, 1, 2)), 4.6);
  EXPECT_LT(steps_of_depthwise(depthwise(3, 1, 2, 2)), 2.3);  // the third row is in the first one's bank
  EXPECT_LT(steps_of_depthwise(depthwise(3, 1, 3, 3)), 1.4);
  Case uneven = depthwise(5, 2, 1, 0);
  uneven.kernel_w = 2, uneven.left = 1, uneven.bottom = 2;
  EXPECT_LT(steps_of_depthwise(uneven), 4.6);
  spec::Config diagonal = config();
  diagonal.own_lanes = false;
  EXPECT_EQ(steps_of_depthwise(depthwise(3, 1, 1, 1), diagonal), 9);
}

// Where tiles are equal, the estimate of a tiling has as many commands as are emitted.
TEST(AccelLayer, TheEstimateCountsTheCommandsOfOwnLanes) {
  for (const auto& [kernel, dilation] : {std::pair{3, 1}, {5, 1}, {7, 1}, {3, 2}}) {
    const int64_t pad = (kernel - 1) / 2 * dilation;
    const Region region = region_of(depthwise(kernel, 1, dilation, pad));
    const Operands operands{region.layers[0], region.tensors[0], region.tensors[1], false, {}, {}, {}};
    const Contraction c = contraction(config(), operands.layer, operands.input, operands.output, false);
    int compared = 0;
    for (const Tiling& t : candidate_tilings(config(), c, 48)) {
      const bool equal = c.out_h % t.rows == 0 && c.out_w % t.cols == 0 && t.rows % t.subtile_rows == 0 &&
                         t.kernel_h == kernel && t.kernel_w == kernel;
      if (!equal) continue;
      TileProgram sketch(config(), true);
      sketch.emit(0, operands, t);
      const int64_t emitted = std::ranges::count_if(
          sketch.ops(), [](const TileOp& op) { return std::holds_alternative<spec::native::Gemm>(op.instruction); });
      EXPECT_EQ(emitted, c.out_h / t.rows * (c.out_w / t.cols) * c.out_blocks * own_commands(c, t, kernel, kernel));
      ++compared;
    }
    EXPECT_GT(compared, 3) << kernel << " " << dilation;
  }
}

// The instructions of a program of this kind, decoded.
template <class T>
std::vector<T> instructions_of(const runtime::AcceleratorProgram& program) {
  std::vector<T> found;
  const auto decoded = spec::Isa(program.config).decode_all(program.instructions, spec::Profile::kNative).value();
  for (const auto& [instruction, index] : decoded) {
    if (const auto* t = std::get_if<T>(&instruction)) found.push_back(*t);
  }
  return found;
}

// Expand, depthwise with a stride, project: MobileNetV2's block.
constexpr Case kBlock{
    .c = 16, .h = 56, .w = 56, .o = 96, .tail = static_cast<int64_t>(Tail::kDepthwiseProject), .data = 4};

uint64_t modeled(const spec::Config& of, const runtime::AcceleratorProgram& program) {
  const auto stream = spec::Isa(of).decode_all(program.instructions, spec::Profile::kNative).value();
  return sim::timing::run(of, {}, stream).cycles;
}

TEST(AccelLayer, FusedLayersKeepTheirValuesOnTheChip) {
  const Problem problem = problem_of(kBlock);
  const auto fused = compile(config(), problem.region, {.fusing = Fusing::kWherePossible}).value();
  ASSERT_EQ(fused.layers.size(), 3u);
  EXPECT_EQ(fused.layers[0].write_bytes, 0);
  EXPECT_EQ(fused.layers[1].write_bytes, 0);
  EXPECT_EQ(fused.workspace_bytes, 0u);
  EXPECT_TRUE(fused.probes.empty());
  const auto to_inp = [](const runtime::AcceleratorProgram& program) {
    return std::ranges::count_if(instructions_of<spec::native::Requantize>(program),
                                 [](const spec::native::Requantize& rq) { return rq.to_inp != 0; });
  };
  EXPECT_GT(to_inp(fused), 2 * 6 - 1);  // both layers of each of six hidden blocks
  const auto separate = compile(config(), problem.region, {.fusing = Fusing::kNever}).value();
  EXPECT_EQ(to_inp(separate), 0);
  EXPECT_EQ(separate.probes.size(), 2u);
  EXPECT_GT(separate.layers[0].write_bytes, 0);
  for (const ScheduleOptions& options :
       {ScheduleOptions{.fusing = Fusing::kWherePossible}, {.fusing = Fusing::kNever}}) {
    const auto found = run_on_simulator(config(), problem.region, problem.inputs, options);
    EXPECT_EQ(found.value()[0], reference(problem.region, problem.inputs)[problem.region.outputs[0]]);
  }
  spec::Config without = config();
  without.results_to_inp = false;
  EXPECT_EQ(to_inp(compile(without, problem.region, {.fusing = Fusing::kWherePossible}).value()), 0);
}

// Also small tiles, which the cycle model seldom chooses: the first ones in both directions begin at the map's edge.
TEST(AccelLayer, FusedLayersOfAllTilingsEqualTheReference) {
  for (const auto& [kernel, stride, pad] : {std::tuple{3, 1, 1}, {5, 1, 2}, {3, 2, 1}}) {
    Case c{.c = 8, .h = 6, .w = 6, .o = 20, .tail = static_cast<int64_t>(Tail::kDepthwiseProject), .data = 4};
    Problem problem = problem_of(c);
    Region& region = problem.region;
    Layer& depthwise = region.layers[1];
    depthwise.kernel_h = depthwise.kernel_w = kernel;
    depthwise.stride_y = depthwise.stride_x = stride;
    depthwise.dilation_y = depthwise.dilation_x = 1;
    depthwise.pad_top = depthwise.pad_left = depthwise.pad_bottom = depthwise.pad_right = pad;
    depthwise.weights.resize(static_cast<size_t>(c.o * kernel * kernel));
    for (size_t i = 0; i < depthwise.weights.size(); ++i) depthwise.weights[i] = static_cast<int8_t>(i * 37 % 251);
    for (size_t i = 1; i < region.layers.size(); ++i) {
      RegionTensor& out = region.tensors[region.layers[i].output];
      out.h = out.w = stride == 1 ? c.h : c.h / 2;
    }
    ASSERT_EQ(region.layers.size(), 3u);
    std::vector<Operands> operands;
    for (const Layer& layer : region.layers)
      operands.push_back({layer, region.tensors[layer.input], region.tensors[layer.output], false, {}, {}, {}});
    const auto expected = reference(region, problem.inputs)[region.outputs[0]];
    for (const char* name : {"default", "tiny"}) {
      const auto tilings = fused_tilings(config(name), operands, SIZE_MAX);
      ASSERT_GT(tilings.size(), 10u);
      for (const FusedTiling& tiling : tilings) {
        const Step step{.first = 0, .count = 3, .tiling = {}, .fused = tiling};
        const auto program = compile(config(name), region, std::span(&step, 1)).value();
        const auto found = run_on_simulator(config(name), region, problem.inputs, program);
        ASSERT_TRUE(found) << found.error().str();
        ASSERT_EQ((*found)[0], expected) << name << " kernel " << kernel << " tile " << tiling.rows << "x"
                                         << tiling.cols << " group " << tiling.group << " buffers " << tiling.buffers;
      }
    }
  }
}

// A convolution of `c`, and a pool of its results; the values of the first tensor.
Problem pooled_problem(const Case& c, const Layer& windows, int64_t bottom, int64_t right) {
  Problem problem = problem_of(c);
  Layer pool = windows;
  pool.name = "pool";
  pool.op = "accel.max_pool2d";
  pool.kind = LayerKind::kMaxPool2d;
  pool.input = problem.region.layers.back().output;
  RegionTensor out = problem.region.tensors[static_cast<size_t>(pool.input)];
  out.h = (out.h + pool.pad_top + bottom - pool.kernel_h) / pool.stride_y + 1;
  out.w = (out.w + pool.pad_left + right - pool.kernel_w) / pool.stride_x + 1;
  problem.region.tensors.push_back(out);
  pool.output = static_cast<int>(problem.region.tensors.size()) - 1;
  problem.region.outputs = {pool.output};
  problem.region.layers.push_back(pool);
  return problem;
}

// Pools as networks have them: kernel, stride, pads at the top and left, at the bottom and right.
struct Pool {
  int64_t kernel, stride, before, after;
  Layer layer() const {
    Layer l;
    l.kernel_h = l.kernel_w = kernel;
    l.stride_y = l.stride_x = stride;
    l.pad_top = l.pad_left = before;
    return l;
  }
};
constexpr Pool kPools[] = {{2, 2, 0, 0}, {3, 2, 1, 1}, {3, 2, 0, 1}, {3, 2, 1, 0},
                           {3, 2, 0, 0}, {3, 1, 1, 1}, {2, 1, 1, 0}};

TEST(AccelLayer, PoolsOfAllTilingsEqualTheReference) {
  for (const Pool& p : kPools) {
    const Case c{.c = 6,
                 .h = 9,
                 .w = 11,
                 .o = 20,
                 .kernel_h = 3,
                 .kernel_w = 3,
                 .top = 1,
                 .left = 1,
                 .bottom = 1,
                 .right = 1,
                 .data = 4};
    Problem problem = pooled_problem(c, p.layer(), p.after, p.after);
    const Region& region = problem.region;
    std::vector<Operands> operands;
    for (const Layer& layer : region.layers)
      operands.push_back({layer, region.tensors[layer.input], region.tensors[layer.output], false, {}, {}, {}});
    const auto expected = reference(region, problem.inputs)[region.outputs[0]];
    for (const char* name : {"default", "tiny"}) {
      const auto fused = pooled_tilings(config(name), operands, SIZE_MAX);
      const auto alone = pooled_tilings(config(name), std::span(operands).subspan(1), SIZE_MAX);
      ASSERT_GT(fused.size(), 10u);
      ASSERT_GT(alone.size(), 10u);
      const auto check = [&](std::span<const Step> steps, const Tiling& t) {
        const auto program = compile(config(name), region, steps).value();
        const auto found = run_on_simulator(config(name), region, problem.inputs, program);
        ASSERT_TRUE(found) << found.error().str();
        ASSERT_EQ((*found)[0], expected) << name << " pool " << p.kernel << "x" << p.kernel << "/" << p.stride << " of "
                                         << steps.size() << " steps, tile " << t.out_blocks << "x" << t.rows << "x"
                                         << t.cols;
      };
      for (size_t i = 0; i < fused.size(); i += 1 + fused.size() / 25) {
        const Step step{.first = 0, .count = 2, .tiling = fused[i]};
        check(std::span(&step, 1), fused[i]);
      }
      const Tiling first = candidate_tilings(
          config(name), contraction(config(name), region.layers[0], region.tensors[0], region.tensors[1], false), 1)[0];
      for (size_t i = 0; i < alone.size(); i += 1 + alone.size() / 25) {
        const std::array steps{Step{.first = 0, .count = 1, .tiling = first},
                               Step{.first = 1, .count = 1, .tiling = alone[i]}};
        check(steps, alone[i]);
      }
    }
  }
}

// A row of accumulators is computed once, and read once where windows share a column.
TEST(AccelLayer, APoolReadsWhatItsWindowsDoNotShare) {
  const Case c{.c = 16,
               .h = 56,
               .w = 56,
               .o = 16,
               .kernel_h = 3,
               .kernel_w = 3,
               .top = 1,
               .left = 1,
               .bottom = 1,
               .right = 1,
               .data = 4};
  const Problem problem = pooled_problem(c, Pool{3, 2, 1, 1}.layer(), 1, 1);
  const auto program = compile(config(), problem.region).value();
  EXPECT_EQ(program.layers[0].write_bytes, 0);
  EXPECT_EQ(program.workspace_bytes, 0u);
  EXPECT_TRUE(program.probes.empty());
  int64_t products = 0, reads = 0;
  for (const auto& g : instructions_of<spec::native::Gemm>(program)) products += g.r0 * g.r1 * g.r2 * g.y * g.x;
  for (const auto& q : instructions_of<spec::native::Requantize>(program)) reads += q.rows * q.cols * q.window_size();
  EXPECT_EQ(products, 56 * 56 * 9);
  EXPECT_EQ(reads, 28 * (2 + 27 * 3) * 2);  // of two columns; the first row of windows has two rows
  EXPECT_EQ(run_on_simulator(config(), problem.region, problem.inputs).value()[0],
            reference(problem.region, problem.inputs)[problem.region.outputs[0]]);
  const auto separate = compile(config(), problem.region, {.fusing = Fusing::kNever}).value();
  EXPECT_EQ(separate.probes.size(), 1u);
  EXPECT_GT(separate.layers[0].write_bytes, 0);
  EXPECT_LT(modeled(config(), program), modeled(config(), separate));
}

TEST(AccelLayer, PoolsThatCannotBeAreErrors) {
  const Case c{.c = 8, .h = 12, .w = 12, .o = 8, .data = 4};
  const auto refused = [&](const spec::Config& of, const std::function<void(Region&)>& change) {
    Region region = pooled_problem(c, Pool{3, 2, 1, 1}.layer(), 1, 1).region;
    change(region);
    return refusal(region, of);
  };
  const auto with = [&](int64_t Layer::*field, int64_t value) {
    return refused(config(), [field, value](Region& region) { region.layers[1].*field = value; });
  };
  spec::Config without = config(), small = config();
  without.window_maximum = false;
  EXPECT_HAS(refused(without, [](Region&) {}), "pool: error: configuration default has no maximum over windows");
  small.bytes[static_cast<size_t>(spec::Memory::kAcc)] = 8 * 64;
  EXPECT_HAS(refused(small, [](Region&) {}), "a window of 3 x 3 needs 16 accumulators, and acc has 8");
  small = config();
  small.bytes[static_cast<size_t>(spec::Memory::kInp)] = 2 * small.element_bytes(spec::Memory::kInp);
  EXPECT_HAS(refused(small,
                     [](Region& region) {  // of the pool alone
                       region.tensors[0] = region.tensors[static_cast<size_t>(region.layers[1].input)];
                       region.layers[1].input = 0;
                       region.layers.erase(region.layers.begin());
                     }),
             "a window of 3 columns needs 3 vectors, and inp has 2");
  EXPECT_HAS(with(&Layer::kernel_h, 8), "the window is 8 x 3, RQ holds 1 .. 7");
  EXPECT_HAS(with(&Layer::stride_x, 65), "a stride of the window is 65, must be 1 .. 64");
  EXPECT_HAS(with(&Layer::dilation_x, 2), "the dilation of the window is 1, 2, must be 1");
  EXPECT_HAS(with(&Layer::pad_top, 3), "a window of the pool is outside of its map");
  EXPECT_HAS(refused(config(), [](Region& region) { region.layers[1].channels.resize(8); }),
             "8 channel parameters for 0 channels");
  EXPECT_HAS(refused(config(), [](Region& region) { region.tensors.back().c = 9; }),
             "the pool's output has other channels than its input");
  EXPECT_HAS(refused(config(),
                     [](Region& region) {
                       region.layers[1].residual = 0;
                       region.layers[1].parameters.residual = true;
                     }),
             "a pool has no residual");
}

// The output of fused layers is written before their input is read to the end: the two have memory of their own.
TEST(AccelLayer, FusedLayersShareNoMemoryBetweenInputAndOutput) {
  Case c{.n = 24, .c = 16, .h = 224, .w = 224, .o = 16, .data = 4};
  Region region = region_of(c);
  const auto add = [&](int64_t kernel, int64_t groups) {
    Layer layer = region.layers.back();
    layer.name = "l" + std::to_string(region.layers.size());
    layer.input = region.layers.back().output;
    region.tensors.push_back(region.tensors[layer.input]);
    layer.output = static_cast<int>(region.tensors.size()) - 1;
    layer.groups = groups;
    layer.kernel_h = layer.kernel_w = kernel;
    layer.pad_top = layer.pad_left = layer.pad_bottom = layer.pad_right = kernel / 2;
    layer.weights.assign(static_cast<size_t>(16 * 16 / groups * kernel * kernel), 1);
    region.layers.push_back(layer);
  };
  for (int i = 0; i < 6; ++i) add(3, 16), add(1, 1);
  add(1, 1);
  region.outputs = {region.layers.back().output};
  const auto program = compile(config(), region, {.fusing = Fusing::kWherePossible}).value();
  const auto separate = compile(config(), region, {.fusing = Fusing::kNever}).value();
  const int64_t tensor = int64_t{24} * 16 * 224 * 224;
  EXPECT_EQ(static_cast<int64_t>(program.workspace_bytes), 2 * tensor);
  EXPECT_EQ(static_cast<int64_t>(separate.workspace_bytes), 2 * tensor);
}

TEST(AccelLayer, LayersAreFusedWhereThatIsFaster) {
  const Region region = region_of(kBlock);
  const uint64_t chosen = modeled(config(), compile(config(), region).value());
  EXPECT_LT(chosen, modeled(config(), compile(config(), region, {.fusing = Fusing::kNever}).value()));
  // A value that is a result as well goes to memory.
  Region read = region;
  read.outputs.insert(read.outputs.begin(), read.layers[0].output);
  EXPECT_GT(compile(config(), read, {.fusing = Fusing::kWherePossible}).value().layers[0].write_bytes, 0);
}

TEST(AccelLayer, CompilationIsDeterministic) {
  const Region region =
      region_of({.c = 20, .h = 30, .w = 30, .o = 40, .kernel_h = 3, .kernel_w = 3, .tail = 1, .data = 3});
  EXPECT_EQ(*compile(config("tiny"), region), *compile(config("tiny"), region));
}

TEST(AccelLayer, ProgramsTellWhereEachInstructionComesFrom) {
  const Region region =
      region_of({.c = 20, .h = 30, .w = 30, .o = 40, .kernel_h = 3, .kernel_w = 3, .tail = 1, .data = 3});
  const auto program = compile(config(), region);
  ASSERT_TRUE(program) << program.error().str();
  ASSERT_EQ(program->layers.size(), 2u);
  EXPECT_EQ(program->layers[0].name, "first");
  EXPECT_EQ(program->layers[0].macs, 28 * 28 * 40 * 20 * 9);
  EXPECT_EQ(program->layers[0].padded_macs, 28 * 28 * 48 * 64 * 3);  // 3 * 20 bytes unfolded into 4 blocks
  EXPECT_EQ(program->layers[0].write_bytes, 28 * 28 * 48);
  ASSERT_EQ(program->probes.size(), 1u);
  EXPECT_EQ(program->probes[0].shape, (runtime::Shape{1, 3, 28, 28, 16}));
  ASSERT_EQ(program->notes.size() + 1, program->instructions.size() / 2);  // but FINISH
  EXPECT_EQ(program->notes[0].slot, 0u);
  EXPECT_HAS(program->notes[0].tile, "load ");
}

TEST(AccelLayer, WeightsAreLoadedOnceWhereTheyFit) {
  // 9 * 4 * 4 matrices of 256 bytes fit wgt; so does every tile's input.
  const Region region = region_of({.c = 64,
                                   .h = 56,
                                   .w = 56,
                                   .o = 64,
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .top = 1,
                                   .left = 1,
                                   .bottom = 1,
                                   .right = 1,
                                   .data = 3});
  const auto program = compile(config(), region);
  ASSERT_TRUE(program) << program.error().str();
  const int64_t weights = 64 * 64 * 9, parameters = 64 * 8, input = 56 * 56 * 64;
  EXPECT_GE(program->layers[0].read_bytes, weights + parameters + input);
  EXPECT_LE(program->layers[0].read_bytes, weights + parameters + input * 3 / 2);  // halos
}

}  // namespace
}  // namespace tenon::compiler::accel
