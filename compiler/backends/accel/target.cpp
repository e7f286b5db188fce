#include "compiler/backends/accel/target.h"

#include <fmt/format.h>

#include <numeric>

#include "compiler/backends/accel/schedule.h"
#include "compiler/backends/accel/translate.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

std::vector<TargetPattern> patterns(const spec::Config& config) {
  const auto accepts = [config](Context& context, const Module& module, const Function& function,
                                const Match& match) -> Status {
    TENON_TRY_ASSIGN(translated, translate_layer(context, module, function, match.bindings));
    return supports(config, translated->layer, translated->input, translated->output);
  };
  const GraphPattern c = constant();
  const auto requantize = [&](GraphPattern product) { return op(ops::kRequantize, {std::move(product), c, c, c}); };
  const auto requantize_add = [&](GraphPattern product) {
    return op(ops::kRequantizeAdd, {std::move(product), c, c, c, any()});
  };
  const GraphPattern conv = op(ops::kConv2d, {any(), c});
  // A flattened value that has other users is an operand as it is.
  const GraphPattern dense =
      op(ops::kDense, {either({op(ops::kFlatten, {any()}), op(ops::kReshape, {any()}), any()}), c});
  std::vector<TargetPattern> rows{{"accel.conv2d", requantize(conv), accepts},
                                  {"accel.conv2d_add", requantize_add(conv), accepts},
                                  {"accel.dense", requantize(dense), accepts},
                                  {"accel.dense_add", requantize_add(dense), accepts}};
  rows.push_back({"accel.add", requantize_add(op(ops::kCast, {any()})), accepts});
  rows.push_back({"accel.requantize", requantize(op(ops::kCast, {any()})), accepts});
  rows.push_back({"accel.global_sum_pool", requantize(op(ops::kGlobalSumPool, {any()})), accepts});
  for (TargetPattern& row : rows) row.rows = true;  // images of maps, rows of matrices (layer.h)
  return rows;
}

// Each parameter and result of a region needs a base register.
Status fits(const Function& region) {
  int64_t results = 1;
  if (const auto* packed =
          region.body.bindings.empty() ? nullptr : std::get_if<Tuple>(&region.body.bindings.back().value)) {
    results = static_cast<int64_t>(packed->fields.size());
  }
  return check_boundary_tensor_count(static_cast<int64_t>(region.params.size()) + results, "region");
}

Expected<Boundary> boundary(const spec::Config& config, Context& context, const Module& module,
                            const Function& function) {
  TENON_TRY_ASSIGN(region, translate_region(context, module, "region", function));
  const auto layout = [&](int tensor) -> BoundaryLayout {
    const RegionTensor& t = region->tensors[tensor];
    const std::string plain = t.rank == 4 ? "NCHW" : "NC";
    if (boundary_layout(*region, tensor, config) == Layout::kRows) return {plain, "NHWC"};
    return {plain, fmt::format("{}{}c", t.rank == 2 && t.w > 1 ? "CN" : plain, lane_block(config))};
  };
  Boundary boundary;
  for (const int tensor : region->inputs) boundary.params.push_back(layout(tensor));
  for (const int tensor : region->outputs) boundary.results.push_back(layout(tensor));
  return boundary;
}

// Of a composite, as a launch of its own.
Expected<Price> cost(const spec::Config& config, const spec::MemoryTiming& memory, Context& context,
                     const Module& module, const Function& composite, const Costs& costs) {
  const auto device = costs.devices.find("accel");
  if (device == costs.devices.end() || !device->second.mhz) {
    return error("the entry devices.accel.mhz is missing", costs.source, "it is the clock of the accelerator");
  }
  std::vector<size_t> bindings(composite.body.bindings.size());
  std::iota(bindings.begin(), bindings.end(), size_t{0});
  TENON_TRY_ASSIGN(translated, translate_layer(context, module, composite, bindings));
  Layer& layer = translated->layer;
  layer.input = 0, layer.output = 1;
  if (layer.parameters.residual) layer.residual = 2;
  Region region{.name = "alone",
                .tensors = {translated->input, translated->output},
                .layers = {layer},
                .inputs = {0},
                .outputs = {1}};
  const bool rows = boundary_layout(region, 0, config) == Layout::kRows;
  const int base = runtime::kBaseFirstTensor;
  const double cycles = cycles_alone(
      config, {layer, translated->input, translated->output, rows, {base, 0}, {base + 1, 0}, {base + 2, 0}}, memory);
  const double mhz = *device->second.mhz;
  return Price{.seconds = cycles / (mhz * 1e6), .source = fmt::format("{:.0f} cycles at {} MHz", cycles, mhz)};
}

}  // namespace

Target make_target(const spec::Config& config, const spec::MemoryTiming& memory) {
  Target target;
  target.name = "accel";
  target.integer_layers = true;
  target.documentation = fmt::format("the generated accelerator, configuration {}", config.name);
  target.patterns = patterns(config);
  target.fits = [](Context&, const Module&, const Function& region) { return fits(region); };
  target.boundary = [config](Context& context, const Module& module, const Function& region) {
    return boundary(config, context, module, region);
  };
  target.cost = [config, memory](Context& context, const Module& module, const Function& composite,
                                 const Costs& costs) {
    return cost(config, memory, context, module, composite, costs);
  };
  target.generate = [config, memory](Context& context, const Module& module, Symbol name,
                                     const Function& function) -> Expected<RegionKernel> {
    TENON_TRY_ASSIGN(region, translate_region(context, module, context.name(name), function));
    TENON_TRY_ASSIGN(program, compile(config, *region, memory));
    // Regions that were partitioned before may have boundaries for another target or configuration.
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      const auto shape = function.type(function.params[i]).tensor()->shape();
      if (shape == program->inputs[i].shape) continue;
      return error(fmt::format("parameter {} of region {} is {}, must be {} for this configuration", i + 1,
                               context.name(name), shape ? runtime::to_string(*shape) : "of unknown shape",
                               runtime::to_string(program->inputs[i].shape)));
    }
    return *std::move(program);
  };
  return target;
}

std::vector<TargetRecord> records() {
  return {{.name = "accel",
           .documentation = "the generated accelerator",
           .make = [](const TargetOptions& options) { return make_target(*options.accelerator, options.memory); },
           .of_configuration = true}};
}

}  // namespace tenon::compiler::accel
