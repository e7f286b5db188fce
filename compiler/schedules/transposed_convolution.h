// The template of transposed convolutions, whose phases are axes of a product's batch: decides by a machine's record
// whether pixels or channels are lanes, and leaves the product to its template (product.h).
#pragma once

#include "compiler/loop/schedule/schedule.h"
#include "compiler/machine/machine.h"
#include "compiler/schedules/option.h"

namespace tenon::compiler::schedules {

// Two stages of a function. `sums` has the axes image and group, for each spatial dim a phase and a pixel, and before
// the last pixel the output channel in the group, which are those of its buffer; its terms are a channel of the group,
// and kernel taps, whose number may depend on the phases. It adds products of weights [channel of all groups, output,
// kernel ...] and elements [image, channel, ...]. `results`, in loops over the same axes, computes results from the
// sums.
struct TransposedConvolutionStages {
  Symbol sums{}, results{};
};

// Applies the steps; stops at the first one that is refused.
Status schedule_transposed_convolution(TypeContext& context, loop::Schedule& schedule,
                                       const TransposedConvolutionStages& stages, const Machine& machine,
                                       const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
