// The instructions that back ends support by name, declared as loop functions: `tensorize` matches nests against the
// declaration, the evaluator executes it, and so does a back end that does not support the instruction.
#pragma once

#include <span>
#include <string_view>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// mma_s8_16x8x32: a warp's mma.sync, as each of its threads sees it: the sums of two rows and two columns over 32
// terms, which are two halves of 16 bytes, z[r, c] += sum over h, k of i8 x[r, h, k] * i8 y[c, h, k].
// mma_s8_u8_16x8x32, mma_u8_s8_16x8x32, mma_u8_16x8x32: of u8 y, u8 x, or both.
// mma_f16_16x8x16, mma_bf16_16x8x16: of 16 terms, in f32. mma_tf32_16x8x8: of 8 terms in f32, whose factors the
// instruction rounds to 11 significant bits. The float ones are inexact. Their bounds: of the 2^-18 for 16-bit factors,
// whose products are exact, a tensor core loses at most 2^-23 of the largest term for each of the up to 9 terms that it
// aligns and adds at a time, and for each rounded sum, by truncation (Fasi et al., "Numerical behavior of NVIDIA tensor
// cores", PeerJ CS 2021); of the 2^-8 for tf32, the factors' rounding is 2^-10. vnni_dot_16, _8, _4: x86 vpdpbusd, a
// lane each: z[j] += sum over k in 4 of u8 x[k] * i8 y[j, k], of i32 lanes. neon_sdot_4: AArch64 sdot by element: the
// same sum for i8 and i8. neon_udot_4: for u8 and u8, wrapping in i32.
std::span<const std::string_view> instruction_names();
Expected<Function> instruction(TypeContext& context, std::string_view name);

}  // namespace tenon::compiler::loop
