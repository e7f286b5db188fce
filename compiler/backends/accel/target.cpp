#include "compiler/backends/accel/target.h"

#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "compiler/backends/accel/schedule.h"
#include "compiler/backends/accel/translate.h"
#include "compiler/base/first_fit.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

constexpr const char* kMatmul = "accel.matmul";

std::vector<TargetPattern> patterns(const spec::Config& config) {
  const auto accepts = [config](Context& context, const Module& module, const Function& function,
                                const Match& match) -> Status {
    TENON_TRY_ASSIGN(translated, translate_layer(context, module, function, match.bindings));
    return supports(config, translated->layer, translated->input, translated->output,
                    translated->weights ? &*translated->weights : nullptr);
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
  rows.push_back({"accel.max_pool2d", op(ops::kMaxPool2d, {any()}), accepts});
  for (TargetPattern& row : rows) row.rows = true;  // images of maps, rows of matrices (layer.h)
  // Heads that are parts of the channels of a matrix, before the product and after it, are no transposes then.
  const GraphPattern parts = op(ops::kTranspose, {either({op(ops::kReshape, {any()}), any()})});
  const GraphPattern matmul = requantize(op(ops::kMatmul, {either({parts, any()}), either({parts, any()})}));
  rows.push_back({kMatmul, either({op(ops::kReshape, {op(ops::kTranspose, {matmul})}), matmul}), accepts});
  return rows;
}

// Each parameter and result of a region needs a base register, and a value between layers has one layout.
Status fits(Context& context, const Module& module, const Function& region) {
  int64_t results = 1;
  if (const auto* packed =
          region.body.bindings.empty() ? nullptr : std::get_if<Tuple>(&region.body.bindings.back().value)) {
    results = static_cast<int64_t>(packed->fields.size());
  }
  TENON_TRY(check_boundary_tensor_count(static_cast<int64_t>(region.params.size()) + results, "region"));
  const auto multiplies = [&](const Binding& binding) {
    const auto* call = std::get_if<Call>(&binding.value);
    return call && module.function(std::get<Symbol>(call->callee))->composite == kMatmul;
  };
  if (std::ranges::any_of(region.body.bindings, multiplies))
    TENON_TRY(translate_region(context, module, "region", region));
  return {};
}

Expected<Boundary> boundary(const spec::Config& config, Context& context, const Module& module,
                            const Function& function) {
  TENON_TRY_ASSIGN(region, translate_region(context, module, "region", function));
  const auto layout = [&](int tensor) -> BoundaryLayout {
    const RegionTensor& t = region->tensors[tensor];
    if (boundary_layout(*region, tensor, config) == Layout::kRows) return {"NCHW", "NHWC"};
    // The letters of the model's axes, and of those in memory but for the blocks.
    std::string plain = "NCHW", stored = "NCHW";
    if (t.rank == 2) {
      plain = t.transposed ? "CN" : "NC";
      stored = t.w > 1 || t.transposed ? "CN" : "NC";
    } else if (t.rank == 3) {
      const std::string images = t.outer != 0 ? "DN" : "N";
      plain = images + (t.transposed ? "CW" : "WC");
      stored = images + "CW";
    }
    return {plain, fmt::format("{}{}c", stored, lane_block(config))};
  };
  Boundary boundary;
  for (const int tensor : region->inputs) boundary.params.push_back(layout(tensor));
  for (const int tensor : region->outputs) boundary.results.push_back(layout(tensor));
  return boundary;
}

// Of a launch of these layers.
Expected<Price> cost(const spec::Config& config, const spec::MemoryTiming& memory, Context& context,
                     const Module& module, std::span<const RegionLayer> layers, double mhz, Tilings& known) {
  std::vector<TranslatedLayer> translated;
  for (const RegionLayer& each : layers) {
    std::vector<size_t> bindings(each.composite->body.bindings.size());
    std::iota(bindings.begin(), bindings.end(), size_t{0});
    TENON_TRY_ASSIGN(layer, translate_layer(context, module, *each.composite, bindings));
    translated.push_back(*std::move(layer));
  }
  // Locations that do not overlap, where the region would have its own: time does not depend on them.
  std::vector<Operands> operands;
  int64_t workspace = 0, outside = 0;
  const auto bytes = [&](const RegionTensor& tensor) {
    return aligned_bytes(runtime::element_count(boundary_shape(tensor, Layout::kBlocked, config)));
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    auto& [layer, input, output, weights, input_atom, residual_atom, weights_atom] = translated[i];
    const std::vector<VarId>& params = layers[i].composite->params;
    const auto layer_of = [&](const Atom& param) {
      return layers[i].args[static_cast<size_t>(std::ranges::find(params, std::get<VarId>(param)) - params.begin())];
    };
    const auto location = [&](const Atom& param, const RegionTensor& tensor) {
      if (const int from = layer_of(param); from != -1) return operands[static_cast<size_t>(from)].output_at;
      const Location at{runtime::kBaseFirstTensor, outside};
      outside += bytes(tensor);
      return at;
    };
    layer.input = 0, layer.output = 1;
    const Location input_at = location(input_atom, input);
    Location residual_at;
    if (layer.parameters.residual) layer.residual = 2, residual_at = location(residual_atom, output);
    Location weights_at;
    if (weights) layer.computed_weights = 3, weights_at = location(weights_atom, *weights);
    Region alone{.name = "", .tensors = {input, output, output}, .layers = {layer}, .inputs = {0}, .outputs = {1}};
    if (weights) alone.tensors.push_back(*weights);
    const bool rows = layer_of(input_atom) == -1 && boundary_layout(alone, 0, config) == Layout::kRows;
    operands.push_back(
        {layer, input, output, rows, input_at, residual_at, {runtime::kBaseWorkspace, workspace}, weights_at});
    workspace += bytes(output);
  }
  const double cycles = cycles_of(config, operands, memory, known);
  return Price{.seconds = cycles / (mhz * 1e6), .source = fmt::format("{:.0f} cycles at {} MHz", cycles, mhz)};
}

}  // namespace

Target make_target(const spec::Config& config, const ScheduleOptions& options, const std::string& name) {
  Target target;
  target.name = name;
  target.integer_layers = true;
  target.documentation = fmt::format("the generated accelerator, configuration {}", config.name);
  target.patterns = patterns(config);
  target.fits = fits;
  target.boundary = [config](Context& context, const Module& module, const Function& region) {
    return boundary(config, context, module, region);
  };
  // The copies of the target share what they have found.
  const auto known = std::make_shared<Tilings>();
  target.region_cost = [config, memory = options.memory, name, known](Context& context, const Module& module,
                                                                      std::span<const RegionLayer> layers,
                                                                      const Costs& costs) -> Expected<Price> {
    const Costs::Device* device = costs.device(name);
    if (device && device->mhz) return cost(config, memory, context, module, layers, *device->mhz, *known);
    return error(fmt::format("the entry devices.{}.mhz is missing", name), costs.source,
                 "it is the clock of the accelerator");
  };
  target.cost = [whole = target.region_cost](Context& context, const Module& module, const Function& composite,
                                             const Costs& costs) {
    const RegionLayer layer{.composite = &composite, .args = std::vector<int>(composite.params.size(), -1)};
    return whole(context, module, std::span(&layer, 1), costs);
  };
  target.generate = [config, options](Context& context, const Module& module, Symbol name,
                                      const Function& function) -> Expected<RegionKernel> {
    TENON_TRY_ASSIGN(region, translate_region(context, module, context.name(name), function));
    TENON_TRY_ASSIGN(program, compile(config, *region, options));
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
           .make =
               [](const TargetOptions& options) {
                 return make_target(options.accelerator->config,
                                    {.memory = options.accelerator->memory,
                                     .fusing = options.fuse ? Fusing::kCheapest : Fusing::kNever},
                                    options.name.empty() ? "accel" : options.name);
               },
           .of_configuration = true}};
}

}  // namespace tenon::compiler::accel
