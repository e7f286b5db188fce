// Sums of many terms for a GPU: where rows and columns make few blocks of threads, the terms are divided into parts,
// whose sums are products of their own, and a second launch adds the sums of the parts (split-K, as NVIDIA's CUTLASS
// calls it).
//
//   split, rfactor, reorder      the sums of each part
//   cache_write                  what is computed in registers, and its copy to memory
//   compute_at, fuse, split      the results, each by one thread, from the sums of all parts
#pragma once

#include "compiler/schedules/product.h"

namespace tenon::compiler::schedules {

// Applies the steps, where parts are estimated to be faster; returns the product that remains to be scheduled: of the
// parts, whose number is the first axis of its batch, or the given one.
Expected<ProductStages> split_terms(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                                    const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
