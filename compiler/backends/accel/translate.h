// Translates the IR to layers: the only file of the back end that interprets operators.
#pragma once

#include <optional>
#include <span>

#include "compiler/backends/accel/layer.h"
#include "compiler/ir/module.h"

namespace tenon::compiler::accel {

// The layer for a group of bindings (a match, or the body of a composite), with its tensors.
struct TranslatedLayer {
  Layer layer;  // its tensor indices are not set
  RegionTensor input, output;
  std::optional<RegionTensor> weights;           // of a matmul
  Atom input_atom, residual_atom, weights_atom;  // the latter two only where parameters.residual, and of a matmul
};
Expected<TranslatedLayer> translate_layer(Context& context, const Module& module, const Function& function,
                                          std::span<const size_t> bindings);

// A region function, with or without the layout_transforms of its boundary.
Expected<Region> translate_region(Context& context, const Module& module, std::string_view name,
                                  const Function& function);

}  // namespace tenon::compiler::accel
