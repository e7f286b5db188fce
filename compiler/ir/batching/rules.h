// What the tables of batching rules share: the kinds of rules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/batching.h"

namespace tenon::compiler::batching {

// The tables of all families.
std::vector<std::span<const BatchingRow>> batching_families();

// Each element, or each of the last dims, of the result depends on those of the argument at its own index: instances
// are more of them.
Status elementwise(BatchBuilder& b);
// Arguments broadcast with each other.
Status broadcast(BatchBuilder& b);
// Each row of the result, along its first axis, depends on the same row of the first argument, and on other arguments
// that are shared: the rows of all instances are one first axis.
Status rows(BatchBuilder& b);
// The attribute `axis` of the first argument moves by one, unless it counts from the end. Other arguments are shared.
Status along_axis(BatchBuilder& b);
// So do the attribute `axes`, of which none stand for all, and those of a transposition.
Status along_axes(BatchBuilder& b);
// The result has the elements of the argument in their order.
Status same_elements(BatchBuilder& b);

// The arguments are joined along the attribute `axis`.
Status joined(BatchBuilder& b);
// Each dim is padded by `before` and `after`, the instances' by nothing.
Status padded(BatchBuilder& b);

// The attribute, which has a value for each dim, with `first` for the leading axis. `attrs` and `computed` receive it.
void set_first(BatchBuilder& b, std::string_view name, int64_t first, Attrs& attrs, ComputedAttrs& computed);

}  // namespace tenon::compiler::batching
