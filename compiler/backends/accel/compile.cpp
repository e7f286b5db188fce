#include "compiler/backends/accel/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/accel/prefetch.h"
#include "compiler/backends/accel/schedule.h"
#include "compiler/backends/accel/tokens.h"
#include "compiler/base/first_fit.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

constexpr int64_t kMaxOffset = int64_t{1} << 32;

// Tensors between layers share memory only where they would take more than this: separate ones can be compared after a
// run, and no store waits for a load from the same memory.
constexpr int64_t kLargestSeparateWorkspace = int64_t{64} << 20;

struct Workspace {
  int64_t bytes = 0;
  std::vector<bool> kept;  // by tensor: in the workspace, and intact after the run
};

// Places the tensors between layers in the workspace, but those that stay on the chip; positions of live ranges are
// steps, since fused layers write parts of their output before they have read all of their input. Reuse is safe: the
// tokens order a store after earlier loads from the same memory.
Workspace plan_workspace(const spec::Config& config, const Region& region, std::span<const Step> steps,
                         std::vector<Location>& at) {
  std::vector<uint32_t> step_of;  // by layer
  std::vector<bool> on_chip(region.tensors.size(), false);
  for (const Step& step : steps) {
    step_of.insert(step_of.end(), step.count, static_cast<uint32_t>(&step - steps.data()));
    for (size_t i = step.first; i + 1 < step.first + step.count; ++i) on_chip[region.layers[i].output] = true;
  }
  std::vector<int> tensors;
  std::vector<LiveBuffer> buffers;
  int64_t separate = 0;
  const auto layers = static_cast<uint32_t>(region.layers.size());
  for (uint32_t i = 0; i < layers; ++i) {
    const int tensor = region.layers[i].output;
    if (on_chip[tensor] || std::ranges::find(region.outputs, tensor) != region.outputs.end()) continue;
    uint32_t last = i;
    for (uint32_t j = i; j < layers; ++j) {
      const Layer& reader = region.layers[j];
      if (reader.input == tensor || reader.residual == tensor || reader.computed_weights == tensor) last = j;
    }
    const int64_t bytes = runtime::element_count(boundary_shape(region.tensors[tensor], Layout::kBlocked, config));
    tensors.push_back(tensor);
    buffers.push_back({step_of[i], step_of[last], aligned_bytes(bytes)});
    separate += buffers.back().bytes;
  }
  if (separate <= kLargestSeparateWorkspace) {
    for (LiveBuffer& buffer : buffers) buffer.last = static_cast<uint32_t>(steps.size());
  }
  const ArenaPlan plan = first_fit(buffers);
  Workspace workspace{plan.bytes, std::vector<bool>(region.tensors.size())};
  for (size_t i = 0; i < tensors.size(); ++i) {
    at[tensors[i]] = {runtime::kBaseWorkspace, plan.offsets[i]};
    bool intact = true;
    for (size_t j = i + 1; j < tensors.size(); ++j) {
      intact &= plan.offsets[j] >= plan.offsets[i] + buffers[i].bytes ||
                plan.offsets[i] >= plan.offsets[j] + buffers[j].bytes;
    }
    workspace.kept[tensors[i]] = intact;
  }
  return workspace;
}

std::vector<Operands> operands_of(const Region& region, const std::vector<Layout>& layouts,
                                  const std::vector<Location>& at) {
  std::vector<Operands> operands;
  for (const Layer& layer : region.layers) {
    operands.push_back({layer, region.tensors[layer.input], region.tensors[layer.output],
                        layouts[layer.input] == Layout::kRows, at[layer.input],
                        layer.residual == -1 ? Location{} : at[layer.residual], at[layer.output],
                        layer.computed_weights == -1 ? Location{} : at[layer.computed_weights]});
  }
  return operands;
}

// By layer: the next one reads its output, and no other layer and no caller does.
std::vector<bool> internal(const Region& region) {
  std::vector<int> readers(region.tensors.size(), 0);
  for (const Layer& layer : region.layers) {
    ++readers[layer.input];
    if (layer.residual != -1) ++readers[layer.residual];
    if (layer.computed_weights != -1) ++readers[layer.computed_weights];
  }
  for (const int tensor : region.outputs) ++readers[tensor];
  std::vector<bool> result(region.layers.size(), false);
  for (size_t i = 0; i + 1 < region.layers.size(); ++i) {
    const int tensor = region.layers[i].output;
    result[i] = readers[tensor] == 1 && region.layers[i + 1].input == tensor;
  }
  return result;
}

int64_t macs(const Layer& layer, const RegionTensor& in, const RegionTensor& out) {
  const int64_t outputs = out.n * out.c * out.h * out.w;
  switch (layer.kind) {
    case LayerKind::kConv2d: return outputs * in.c / layer.groups * layer.kernel_h * layer.kernel_w;
    case LayerKind::kAdd: return outputs;
    case LayerKind::kGlobalSumPool: return in.n * in.c * in.h * in.w;
    case LayerKind::kMaxPool2d: return 0;  // it selects
    case LayerKind::kMatmul: return outputs * (in.n * in.c / layer.batch);
  }
  assert(false && "unknown layer kind");
  return 0;
}

// The locations and layouts of the tensors that cross the region's boundary.
void locate_boundary(const spec::Config& config, const Region& region, std::vector<Location>& at,
                     std::vector<Layout>& layouts) {
  int base = runtime::kBaseFirstTensor;
  for (const auto* tensors : {&region.inputs, &region.outputs}) {
    for (const int tensor : *tensors) {
      layouts[tensor] = boundary_layout(region, tensor, config);
      at[tensor] = {base++, 0};
    }
  }
}

// The operands of all layers, each tensor between them at a location of its own.
std::vector<Operands> separate_operands(const spec::Config& config, const Region& region) {
  std::vector<Location> at(region.tensors.size());
  std::vector<Layout> layouts(region.tensors.size(), Layout::kBlocked);
  locate_boundary(config, region, at, layouts);
  std::vector<Step> steps(region.layers.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i].first = i;
  plan_workspace(config, region, steps, at);
  return operands_of(region, layouts, at);
}

}  // namespace

Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const ScheduleOptions& options) {
  TENON_TRY(validate(config, region));
  // Time does not depend on where a tensor is.
  return compile(
      config, region,
      choose_steps(config, separate_operands(config, region), internal(region), options.fusing, options.memory),
      options);
}

Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              std::span<const Step> steps, const ScheduleOptions& options) {
  TENON_TRY(validate(config, region));

  runtime::AcceleratorProgram program;
  program.name = region.name;
  program.config = config;
  program.memory = options.memory;
  std::vector<Location> at(region.tensors.size());
  std::vector<Layout> layouts(region.tensors.size(), Layout::kBlocked);
  locate_boundary(config, region, at, layouts);
  const auto boundary = [&](int tensor, std::vector<runtime::TensorSlot>& slots) {
    slots.push_back({region.tensors[tensor].name, runtime::DType::kI8,
                     boundary_shape(region.tensors[tensor], layouts[tensor], config), at[tensor].base});
  };
  for (const int tensor : region.inputs) boundary(tensor, program.inputs);
  for (const int tensor : region.outputs) boundary(tensor, program.outputs);
  const Workspace workspace = plan_workspace(config, region, steps, at);
  const std::vector<Operands> operands = operands_of(region, layouts, at);
  program.workspace_bytes = static_cast<uint64_t>(workspace.bytes);
  if (workspace.bytes > kMaxOffset) {
    return error(
        fmt::format("the region needs {} bytes between its layers, a transfer's offset holds 2^32", workspace.bytes),
        region.name, "split the region");
  }

  TileProgram tiles(config);
  for (const Step& step : steps) emit(tiles, operands, step);
  for (const Operands& each : operands) {
    const auto& [layer, in, out, rows, in_at, residual_at, out_at, weights_at] = each;
    const Contraction c = contraction(config, layer, in, out, rows);
    const bool pools = layer.kind == LayerKind::kMaxPool2d;
    program.layers.push_back({.name = layer.name,
                              .op = layer.op,
                              .macs = macs(layer, in, out),
                              .padded_macs = pools ? 0 : c.gemm_cycles() * config.macs_per_cycle()});
    if (workspace.kept[layer.output]) {
      program.probes.push_back({out.name, runtime::DType::kI8, boundary_shape(out, Layout::kBlocked, config),
                                static_cast<uint64_t>(at[layer.output].offset)});
    }
  }
  program.constants = tiles.constants().take();
  if (static_cast<int64_t>(program.constants.size()) > kMaxOffset) {
    return error(
        fmt::format("the region has {} bytes of weights, a transfer's offset holds 2^32", program.constants.size()),
        region.name, "split the region");
  }

  std::vector<TileOp> ops = prefetched(config, tiles.ops(), options.memory);
  std::vector<spec::Instruction> instructions;
  instructions.reserve(ops.size());
  for (const TileOp& op : ops) instructions.push_back(op.instruction);
  derive_tokens(config, instructions);

  const spec::Isa isa(config);
  for (size_t i = 0; i < instructions.size(); ++i) {
    TileOp& op = ops[i];
    program.notes.push_back({static_cast<uint32_t>(program.instructions.size()), op.layer, std::move(op.text)});
    TENON_TRY(isa.encode(instructions[i], program.instructions));
    if (const auto* move = std::get_if<spec::native::Move>(&instructions[i])) {
      runtime::LayerNote& note = program.layers[op.layer];
      const bool store = move->function == static_cast<int>(spec::native::MoveFunction::kOut);
      (store ? note.write_bytes : note.read_bytes) += dram_bytes(config, *move);
    }
  }
  TENON_TRY(isa.encode(spec::native::Finish{}, program.instructions));
  return program;
}

}  // namespace tenon::compiler::accel
