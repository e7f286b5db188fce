#include "compiler/quantize/requantization.h"

namespace tenon::compiler {

Expected<Atom> requantize(Builder& builder, Atom accumulators, std::span<const spec::ChannelParameters> channels,
                          const spec::LayerParameters& layer, std::optional<Atom> residual, std::string_view name,
                          std::optional<Atom> bias, size_t axis) {
  std::vector<int32_t> biases;
  std::vector<uint16_t> multiplier;
  std::vector<uint8_t> shift;
  for (const spec::ChannelParameters& p : channels) {
    biases.push_back(p.bias);
    multiplier.push_back(p.multiplier);
    shift.push_back(p.shift);
  }
  const runtime::Shape shape{static_cast<int64_t>(channels.size())};
  Atoms args{accumulators, bias ? *bias : builder.constant(shape, biases), builder.constant(shape, multiplier),
             builder.constant(shape, shift)};
  Attrs attrs{{"axis", static_cast<int64_t>(axis)},
              {"zero", int64_t{layer.zero}},
              {"lo", int64_t{layer.lo}},
              {"hi", int64_t{layer.hi}},
              {"v_lo", int64_t{layer.v_lo}},
              {"v_hi", int64_t{layer.v_hi}}};
  if (residual) {
    args.push_back(*residual);
    attrs["r_zero"] = int64_t{layer.r_zero};
    attrs["r_multiplier"] = int64_t{layer.r_multiplier};
    attrs["r_shift"] = int64_t{layer.r_shift};
  }
  return builder.apply(residual ? ops::kRequantizeAdd : ops::kRequantize, std::move(args), std::move(attrs), name);
}

}  // namespace tenon::compiler
