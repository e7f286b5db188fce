// The instructions that back ends support by name, declared as loop functions: `tensorize` matches nests against the
// declaration, the evaluator executes it, and so does a back end that does not support the instruction.
#pragma once

#include <span>
#include <string_view>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// mma_s8_16x8x32: a warp's mma.sync, as each of its threads sees it: the sums of two rows and two columns over 32
// terms, z[r, c] += sum over k of i8 x[r, k] * i8 y[c, k]. vnni_dot_16, _8, _4: x86 vpdpbusd, a lane each: z[j] += sum
// over k in 4 of u8 x[k] * i8 y[j, k], of i32 lanes. neon_sdot_4: AArch64 sdot by element: the same sum for i8 and i8.
// neon_udot_4: for u8 and u8, wrapping in i32.
std::span<const std::string_view> instruction_names();
Expected<Function> instruction(TypeContext& context, std::string_view name);

}  // namespace tenon::compiler::loop
