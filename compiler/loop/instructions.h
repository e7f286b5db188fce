// Instructions that back ends know by name, declared as loop functions: what `tensorize` matches against, what the
// evaluator runs, and what a back end without them computes instead.
#pragma once

#include <span>
#include <string_view>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// vnni_dot_16, _8, _4: x86 vpdpbusd, a lane each: z[j] += sum over k in 4 of u8 x[k] * i8 y[j, k], of i32 lanes.
// neon_sdot_4: AArch64 sdot by element: the same of i8 and i8. neon_udot_4: of u8 and u8, into i32 as it wraps.
std::span<const std::string_view> instruction_names();
Expected<Function> instruction(TypeContext& context, std::string_view name);

}  // namespace tenon::compiler::loop
