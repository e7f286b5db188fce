#include "compiler/schedules/transposed_convolution.h"

#include <fmt/format.h>

#include <optional>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"
#include "compiler/schedules/elements.h"
#include "compiler/schedules/product.h"
#include "compiler/schedules/product_steps.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kUnknownCount = 32;  // assumed pixels along a spatial dim that is not constant

class TransposedConvolutionTemplate {
 public:
  TransposedConvolutionTemplate(TypeContext& context, loop::Schedule& schedule,
                                const TransposedConvolutionStages& stages, const Machine& machine,
                                const ChooseOption& choose)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        stages_(stages),
        machine_(machine),
        choose_(choose) {}

  Status run() {
    if (machine_.threads > 0)
      return schedule_product(context_, schedule_, {.sums = stages_.sums, .results = stages_.results}, machine_,
                              choose_);
    TENON_TRY_ASSIGN(axes, steps_.axes_of(stages_.sums));
    TENON_TRY(read_operands(*axes));
    const int64_t vector = lanes_of(schedule_.function().buffer(axes->buffer).dtype);
    const int64_t outputs = axes->rows.extent.constant().value_or(0),
                  pixels = axes->columns.extent.constant().value_or(0);
    const auto groups = axes->batch[1].extent.constant();
    int64_t terms = 1;  // of the phase with the most kernel taps
    for (const loop::Axis& axis : axes->terms) terms *= largest(axis.extent, axes->batch);
    bool is_constant = pixels > 0, channels_are_lanes = false;
    double all_pixels = static_cast<double>(pixels > 0 ? pixels : kUnknownCount);
    for (size_t i = 3; i < axes->batch.size(); i += 2) {
      const auto count = axes->batch[i].extent.constant();
      is_constant &= count.has_value(), all_pixels *= static_cast<double>(count.value_or(kUnknownCount));
    }
    TileShape shape;
    if (is_constant && vector == kTransposeSide && (groups == 1 || outputs % kTransposeSide == 0)) {
      shape = choose_transposed_tile(machine_, pixels, outputs, terms, Factors::kElements);
      const double row = choose_tile(machine_, outputs, pixels, vector, {}).cycles * static_cast<double>(terms);
      channels_are_lanes = choose_("lanes", {{"pixels", row}, {"channels", shape.cycles}}) == 1;
    }
    if (!channels_are_lanes) {
      const std::vector<TileShape> shapes =
          tile_shapes(machine_, outputs, pixels > 0 ? pixels : 2 * vector, vector, {.strided_rows = pixels == 0});
      shape = choose_tile(choose_, shapes);
    }
    // The costs are the weights, or the elements, that the inner loop reloads for each block of the outer one.
    const auto channels = static_cast<double>(axes->terms[0].extent.constant().value_or(1));
    const bool weights_outer =
        choose_("outer", {{"pixels", static_cast<double>(num_weights_)}, {"weights", channels * all_pixels}}) == 1;
    TENON_TRY(copy_elements(axes->columns.extent, channels_are_lanes ? 1 : vector));
    ProductStages product{.sums = stages_.sums,
                          .results = stages_.results,
                          .order = TileOrder{.tile = shape,
                                             .rows_outer = weights_outer != channels_are_lanes,
                                             .lines = weights_outer ? axes->batch.size() - 2 : 0,
                                             .transposed = channels_are_lanes,
                                             .rolled = true}};
    const Symbol weights = schedule_.function().buffer(*weights_).name;
    if (!channels_are_lanes) {
      product.row_panels = weights;
      return schedule_product(context_, schedule_, product, machine_, choose_);
    }
    product.panels = weights, product.matrix = MatrixAxes{axes->columns.var, axes->rows.var};
    const std::vector<Symbol> loops = steps_.loops_of(stages_.results);
    TENON_TRY(steps_.step("reorder({}, {}, {})", stages_.results, loops.back(), loops[loops.size() - 2]));
    return schedule_product(context_, schedule_, product, machine_, choose_);
  }

 private:
  // The largest value of a size, which may depend on axes of the batch.
  int64_t largest(Dim size, const std::vector<loop::Axis>& batch) const {
    DimBounds bounds;
    for (const loop::Axis& axis : batch)
      if (const auto count = axis.extent.constant()) bounds[axis.var] = {0, *count - 1};
    return DimProver(context_, bounds).range_of(size).hi.value_or(1);
  }

  Status read_operands(const ProductAxes& axes) {
    loop::Function& function = steps_.function();
    TENON_TRY_ASSIGN(path, loop::find_stage(context_, function, stages_.sums));
    loop::for_each_access(path->stage(), [&](const loop::Access& access) {
      if (access.writes || access.buffer == axes.buffer) return;
      (loop::mentions(access.indices, axes.rows.var) ? weights_ : elements_) = access.buffer;
    });
    if (!weights_ || !elements_ || axes.batch.size() < 3 || axes.terms.empty())
      return error(
          fmt::format("the stage '{}' is not a transposed convolution: it does not multiply weights and "
                      "elements, in phases",
                      context_.name(stages_.sums)));
    const std::vector<loop::BufferAxis>& sizes = function.buffer(*weights_).axes;
    num_weights_ = axes.rows.extent.constant().value_or(1) * axes.terms[0].extent.constant().value_or(1);
    for (size_t i = 2; i < sizes.size(); ++i) num_weights_ *= sizes[i].extent.constant().value_or(1);
    return {};
  }

  // Stores the padding first, and copies the elements as far as the last vector of a row reads.
  Status copy_elements(Dim columns, int64_t vector) {
    Elements elements(context_, schedule_, stages_.sums, *elements_);
    const auto stage = elements.stage();
    if (!stage) return {};
    TENON_TRY(elements.extend_to_vectors(*stage, columns, vector, 1));
    return elements.fill(*stage);
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const TransposedConvolutionStages stages_;
  const Machine& machine_;
  const ChooseOption& choose_;
  std::optional<loop::BufferId> weights_, elements_;
  int64_t num_weights_ = 1;  // of a group
};

}  // namespace

Status schedule_transposed_convolution(TypeContext& context, loop::Schedule& schedule,
                                       const TransposedConvolutionStages& stages, const Machine& machine,
                                       const ChooseOption& choose) {
  return TransposedConvolutionTemplate(context, schedule, stages, machine, choose).run();
}

}  // namespace tenon::compiler::schedules
