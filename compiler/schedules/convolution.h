// The template of convolutions: decides by a machine's record whether pixels or channels are lanes, copies the elements
// that windows read as these lanes read them, and leaves the product to its template (product.h).
//
//   fill                                     padding is stored first, so that no element of a copy has a condition
//   cache_read, pad, split, reorder, layout  a copy with the columns of each remainder by the stride side by side
//   pad, cache_write, layout                 vectors that cross rows: sums of a row as wide as the copy's
//   fuse_axes, fuse                          the pixels of all rows as one axis
//   reorder                                  rows and columns of the product as the innermost loops
#pragma once

#include "compiler/loop/schedule/schedule.h"
#include "compiler/machine/machine.h"
#include "compiler/schedules/option.h"

namespace tenon::compiler::schedules {

// Two stages of a function. `sums` has the axes image, group, output channel in the group, and one to three of pixels,
// which are those of its buffer, and as terms a channel of the group, and the kernel's axes. It adds products of
// weights [group, output, channel, kernel ...] and elements [image, channel, ...], at pixel * stride + kernel index *
// dilation. `results`, in loops over the same axes, computes results from the sums.
struct ConvolutionStages {
  Symbol sums{}, results{};
};

// Applies the steps; stops at the first one that is refused.
Status schedule_convolution(TypeContext& context, loop::Schedule& schedule, const ConvolutionStages& stages,
                            const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
