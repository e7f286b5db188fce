// The passes as functions, for tests and other folders; each is one file, with its record at the end.
#pragma once

#include "compiler/ir/rewrite.h"
#include "compiler/passes/partial_evaluate.h"
#include "compiler/passes/pass.h"

namespace tenon::compiler {

Expected<Module> infer(Context& context, Module module);
Expected<Module> simplify(Context& context, Module module);
Expected<Module> fold_constants(Context& context, Module module);
// The constant that an application of an operator to constants computes; std::nullopt where an operand is not constant,
// where the kernel fails, which must happen at run time, and where the result has more bytes than `max_bytes`, or four
// times as many as the operands if this is more.
std::optional<Atom> fold(Builder& builder, const Value& value, int64_t max_bytes);
// The q of quantize(dequantize(q)) by the same scale, which it is: the division is within half an ulp of the integer.
// std::nullopt for other applications of `quantize`.
std::optional<Atom> requantized_integers(const Builder& builder, const Apply& quantize);
Expected<Module> fold_scales(Context& context, Module module);
Expected<Module> fold_bias(Context& context, Module module);
Expected<Module> dead_code(Context& context, Module module);
Expected<Module> dead_references(Context& context, Module module);
Expected<Module> inline_calls(Context& context, Module module);
Expected<Module> fold_scale_axis(Context& context, Module module);
Expected<Module> cancel_layouts(Context& context, Module module);
Expected<Module> cse(Context& context, Module module);
Expected<Module> canonical_layers(Context& context, Module module);
Expected<Module> integer_layers(Context& context, Module module);
Expected<Module> hoist_rows(Context& context, Module module);
Expected<Module> slice_splits(Context& context, Module module);
Expected<Module> specialize(Context& context, Module module);
Expected<Module> copy_widenings(Context& context, Module module);
Expected<Module> fuse(Context& context, Module module);

// Binds dim variables of one function to sizes, as --shapes does, and infers its types again.
Expected<Module> bind_shapes(Context& context, Module module, Symbol function,
                             const std::map<std::string, int64_t>& shapes);

}  // namespace tenon::compiler
