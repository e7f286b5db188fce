// The operators requantize and requantize_add from the parameters of hw/spec/requantize.h.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/builder.h"
#include "hw/spec/requantize.h"

namespace tenon::compiler {

// The int8 form of i32 accumulators whose channels are `axis`, one of `channels` for each; with a residual,
// requantize_add. `bias` replaces those of the channels: i32, one for each.
Expected<Atom> requantize(Builder& builder, Atom accumulators, std::span<const spec::ChannelParameters> channels,
                          const spec::LayerParameters& layer, std::optional<Atom> residual, std::string_view name,
                          std::optional<Atom> bias = std::nullopt, size_t axis = 1);

}  // namespace tenon::compiler
