// Units and batches of random modules beside their single instances.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/fuzz/oracle.h"
#include "compiler/ir/run_value.h"

namespace tenon::compiler::fuzz {

// How the module with units (compiler/batch) differs from the module; nothing where it computes the same of these
// inputs, and each batched unit has in its rows, bit for bit, what the unit computes in the calls of this run. Which
// inputs the instances share is drawn by `seed`.
std::optional<std::string> batches_differ(Context& context, const Module& module, std::span<const RunValue> inputs,
                                          uint64_t seed, int64_t steps, Counts& counts);

// The values of several instances as one with a leading axis in each tensor. `own`: of each tensor, in order, of which
// the others are the first instance's; none: all of them.
RunValue stacked(std::span<const RunValue> values, std::vector<bool> own = {});

// The rows of several calls' tensors along their first `axes` axes as those of one call (Function::joined_axes); of
// tuples, field by field.
RunValue joined_rows(std::span<const RunValue> values, size_t axes);

// Whether the values have the same bits, of which all NaN are one.
bool equal_bits(const RunValue& a, const RunValue& b);

}  // namespace tenon::compiler::fuzz
