// Packed rows: the tensors of several instances as one tensor, whose rows follow one another along an axis.
//
// Semantics: the axes before it have size 1, so that the elements of an instance are adjacent in memory. Instance i has
// lengths[i] rows, the rows offsets[i] .. offsets[i + 1] - 1 of the packed tensor; no instances, and instances without
// rows, are legal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// The instances' tensors: parts of the packed tensor's memory where they are aligned there, else copies. Errors: no
// such axis, a size before it that is not 1; a negative length, lengths whose sum is not the number of rows, more than
// 2^31 rows. `name` is that of the lengths, for errors.
Expected<std::vector<Tensor>> unpack(const Tensor& packed, size_t axis, std::span<const int64_t> lengths,
                                     std::string_view name);
// The same by offsets, one more than there are instances. Errors: none, a first one that is not 0, one that is less
// than the one before it, a last one that is not the number of rows, and those of unpack().
Expected<std::vector<Tensor>> unpack_offsets(const Tensor& packed, size_t axis, std::span<const int64_t> offsets,
                                             std::string_view name);
// The inverse of unpack(): the tensors, which differ in the size of `axis` alone, as one. Errors: none, no such axis, a
// size before it that is not 1, tensors that differ in their dtype or in another size, more than 2^31 rows.
Expected<Tensor> pack(std::span<const Tensor> parts, size_t axis);

}  // namespace tenon::runtime
