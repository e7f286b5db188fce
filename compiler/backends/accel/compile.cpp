#include "compiler/backends/accel/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/backends/accel/prefetch.h"
#include "compiler/backends/accel/schedule.h"
#include "compiler/backends/accel/tokens.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMaxOffset = int64_t{1} << 32;

// Places the tensors between layers in the workspace: largest first, each at the lowest address that is free for as
// long as it lives. Reuse costs no correctness: the tokens order the new stores behind the old loads.
int64_t plan_workspace(const spec::Config& config, const Region& region, const CompileOptions& options,
                       std::vector<Location>& at) {
  struct Live {
    int tensor;
    int64_t bytes;
    size_t begin, end;  // layers, inclusive
    int64_t offset = 0;
  };
  std::vector<Live> all;
  for (size_t i = 0; i < region.layers.size(); ++i) {
    const int tensor = region.layers[i].output;
    if (std::find(region.outputs.begin(), region.outputs.end(), tensor) != region.outputs.end()) continue;
    size_t end = i;
    for (size_t j = i; j < region.layers.size(); ++j) {
      if (region.layers[j].input == tensor || region.layers[j].residual == tensor) end = j;
    }
    const int64_t bytes = runtime::element_count(border_shape(region.tensors[tensor], Layout::kBlocked, config));
    if (options.keep_intermediates) end = region.layers.size();
    all.push_back({tensor, ceil_div(bytes, kAlignment) * kAlignment, i, end});
  }
  std::stable_sort(all.begin(), all.end(), [](const Live& a, const Live& b) { return a.bytes > b.bytes; });
  int64_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j = 0; j < i; ++j) {
      if (all[j].begin <= all[i].end && all[i].begin <= all[j].end) taken.emplace_back(all[j].offset, all[j].bytes);
    }
    std::sort(taken.begin(), taken.end());
    for (const auto& [offset, bytes] : taken) {
      if (all[i].offset + all[i].bytes <= offset) break;
      all[i].offset = std::max(all[i].offset, offset + bytes);
    }
    at[all[i].tensor] = {runtime::kBaseWorkspace, all[i].offset};
    total = std::max(total, all[i].offset + all[i].bytes);
  }
  return total;
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
  const auto border = [&](int tensor, std::vector<runtime::TensorSlot>& slots) {
    layouts[tensor] = border_layout(region, tensor, config);
    at[tensor] = {base, 0};
    slots.push_back({region.tensors[tensor].name, runtime::DType::kI8,
                     border_shape(region.tensors[tensor], layouts[tensor], config), base++});
  };
  for (const int tensor : region.inputs) border(tensor, program.inputs);
  for (const int tensor : region.outputs) border(tensor, program.outputs);
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
      program.taps.push_back({out.name, runtime::DType::kI8, border_shape(out, Layout::kBlocked, config),
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
