// The template of sliding windows over single channels, as of depthwise convolutions and pooling: a list of checked
// steps that turns plain sums over the kernel taps of each pixel, and the stage that computes results from the sums,
// into register tiles for a machine.
//
//   compute_at, store_at                        the elements that windows read, if a stage computes them, by channel
//   split, reorder                              blocks of rows times one vector of columns; the last vector of a row
//                                               overlaps the one before, so that it is stored whole
//   clone, compute_at, store_at                 the sums of each block, in registers
//   reorder, split_init                         the micro-kernel: rows and kernel taps unrolled, columns a vector
//   partition                                   blocks whose windows are inside the input, which need no condition
//   skew                                        rows of the input instead of rows of the tile, each of which is loaded
//                                               once
#pragma once

#include "compiler/loop/schedule/schedule.h"
#include "compiler/machine/machine.h"
#include "compiler/schedules/option.h"

namespace tenon::compiler::schedules {

// Two stages of a function. `sums` adds terms into a buffer whose last two axes are rows and columns, of constant
// sizes, the preceding ones images and channels; its loops are those of the buffer's axes and of the terms: the columns
// of a window, then its rows, if it has several. `results`, in loops over the same axes, computes results from the
// sums.
struct WindowStages {
  Symbol sums{}, results{};
};

// Applies the steps; stops at the first one that is refused.
Status schedule_windows(TypeContext& context, loop::Schedule& schedule, const WindowStages& windows,
                        const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
