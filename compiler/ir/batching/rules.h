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

// The rules of kinds, and whether rows are independent. Rules of single operators call the former.
Status of_elements(BatchBuilder& b);
Status of_broadcast(BatchBuilder& b);
Status of_rows(BatchBuilder& b);
Status of_axis(BatchBuilder& b);
Status of_axes(BatchBuilder& b);
Status of_same_elements(BatchBuilder& b);
Status of_joined(BatchBuilder& b);
bool rows_of_elements(const RowsInput& input);
bool rows_of_broadcast(const RowsInput& input);
bool rows_of_rows(const RowsInput& input);
bool rows_of_axis(const RowsInput& input);
bool rows_of_axes(const RowsInput& input);
bool rows_of_same_elements(const RowsInput& input);
bool rows_of_joined(const RowsInput& input);

// Each element, or each of the last dims, of the result depends on those of the argument at its own index: instances
// are more of them.
inline constexpr Batching elementwise{of_elements, rows_of_elements};
// Arguments broadcast with each other.
inline constexpr Batching broadcast{of_broadcast, rows_of_broadcast};
// Each row of the result, along its first axis, depends on the same row of the first argument, and on other arguments
// that are shared: the rows of all instances are one first axis.
inline constexpr Batching rows{of_rows, rows_of_rows};
// The attribute `axis` of the first argument moves by one, unless it counts from the end. Other arguments are shared.
inline constexpr Batching along_axis{of_axis, rows_of_axis};
// So do the attribute `axes`, of which none stand for all, and those of a transposition.
inline constexpr Batching along_axes{of_axes, rows_of_axes};
// The result has the elements of the argument in their order.
inline constexpr Batching same_elements{of_same_elements, rows_of_same_elements};
// The arguments are joined along the attribute `axis`.
inline constexpr Batching joined{of_joined, rows_of_joined};

// Each dim is padded by `before` and `after`, the instances' by nothing.
Status padded(BatchBuilder& b);

// The attribute, which has a value for each dim, with `first` for the leading axis. `attrs` and `computed` receive it.
void set_first(BatchBuilder& b, std::string_view name, int64_t first, Attrs& attrs, ComputedAttrs& computed);

}  // namespace tenon::compiler::batching
