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

// Places the tensors between layers in the workspace; positions of live ranges are layers. Reuse is safe: the tokens
// order a store after earlier loads from the same memory.
int64_t plan_workspace(const spec::Config& config, const Region& region, const CompileOptions& options,
                       std::vector<Location>& at) {
  std::vector<int> tensors;
  std::vector<LiveBuffer> buffers;
  for (uint32_t i = 0; i < region.layers.size(); ++i) {
    const int tensor = region.layers[i].output;
    if (std::ranges::find(region.outputs, tensor) != region.outputs.end()) continue;
    uint32_t last = i;
    for (uint32_t j = i; j < region.layers.size(); ++j) {
      if (region.layers[j].input == tensor || region.layers[j].residual == tensor) last = j;
    }
    if (options.keep_intermediates) last = static_cast<uint32_t>(region.layers.size());
    const int64_t bytes = runtime::element_count(boundary_shape(region.tensors[tensor], Layout::kBlocked, config));
    tensors.push_back(tensor);
    buffers.push_back({i, last, aligned_bytes(bytes)});
  }
  const ArenaPlan plan = first_fit(buffers);
  for (size_t i = 0; i < tensors.size(); ++i) at[tensors[i]] = {runtime::kBaseWorkspace, plan.offsets[i]};
  return plan.bytes;
}

int64_t macs(const Layer& layer, const RegionTensor& in, const RegionTensor& out) {
  const int64_t outputs = out.n * out.c * out.h * out.w;
  switch (layer.kind) {
    case LayerKind::kConv2d: return outputs * in.c / layer.groups * layer.kernel_h * layer.kernel_w;
    case LayerKind::kAdd: return outputs;
    case LayerKind::kGlobalSumPool: return in.n * in.c * in.h * in.w;
  }
  assert(false && "unknown layer kind");
  return 0;
}

}  // namespace

Expected<runtime::AcceleratorProgram> compile(const spec::Config& config, const Region& region,
                                              const CompileOptions& options) {
  TENON_TRY(validate(config, region));

  runtime::AcceleratorProgram program;
  program.name = region.name;
  program.config = config;
  std::vector<Location> at(region.tensors.size());
  std::vector<Layout> layouts(region.tensors.size(), Layout::kBlocked);
  int base = runtime::kBaseFirstTensor;
  const auto boundary = [&](int tensor, std::vector<runtime::TensorSlot>& slots) {
    layouts[tensor] = boundary_layout(region, tensor, config);
    at[tensor] = {base, 0};
    slots.push_back({region.tensors[tensor].name, runtime::DType::kI8,
                     boundary_shape(region.tensors[tensor], layouts[tensor], config), base++});
  };
  for (const int tensor : region.inputs) boundary(tensor, program.inputs);
  for (const int tensor : region.outputs) boundary(tensor, program.outputs);
  const int64_t workspace = plan_workspace(config, region, options, at);
  program.workspace_bytes = static_cast<uint64_t>(workspace);
  if (workspace > kMaxOffset) {
    return error(fmt::format("the region needs {} bytes between its layers, a transfer's offset holds 2^32", workspace),
                 region.name, "split the region");
  }

  std::vector<Operands> operands;
  for (const Layer& layer : region.layers) {
    operands.push_back({layer, region.tensors[layer.input], region.tensors[layer.output],
                        layouts[layer.input] == Layout::kRows, at[layer.input],
                        layer.residual == -1 ? Location{} : at[layer.residual], at[layer.output]});
  }
  const std::vector<Tiling> tilings = choose_tilings(config, operands);
  TileProgram tiles(config);
  for (size_t i = 0; i < region.layers.size(); ++i) {
    const auto& [layer, in, out, rows, in_at, residual_at, out_at] = operands[i];
    tiles.emit(static_cast<uint32_t>(i), operands[i], tilings[i]);
    const Contraction c = contraction(config, layer, in, out, rows);
    program.layers.push_back({.name = layer.name,
                              .op = layer.op,
                              .macs = macs(layer, in, out),
                              .padded_macs = c.gemm_cycles() * config.macs_per_cycle()});
    if (options.keep_intermediates && at[layer.output].base == runtime::kBaseWorkspace) {
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

  std::vector<TileOp> ops = prefetched(config, tiles.ops());
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
