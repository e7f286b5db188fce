// Folds the addition of a constant per channel after a layer into the layer's bias.
#include <algorithm>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

bool is_layer(const Builder& builder, const Atom& atom) {
  const Apply* apply = builder.application(atom);
  if (apply && apply->op->is(ops::kBiasAdd)) apply = builder.application(apply->args[0]);
  return apply && (apply->op->is(ops::kConv2d) || apply->op->is(ops::kDense));
}

// The constant as a vector over axis 1, where it has that form and a float type.
std::optional<Tensor> as_bias(const Tensor& tensor, const TensorType& type) {
  if (tensor.dtype() != DType::kF32 || type.dtype != DType::kF32 || type.rank() < 2) return std::nullopt;
  const auto channels = type.dims[1].constant();
  const auto& shape = tensor.shape();
  if (!channels || static_cast<int64_t>(shape.size()) > type.rank()) return std::nullopt;
  for (size_t back = 1; back <= shape.size(); ++back) {
    const bool is_channel = static_cast<int64_t>(back) == type.rank() - 1;
    if (shape[shape.size() - back] != (is_channel ? *channels : 1)) return std::nullopt;
  }
  if (tensor.size() != *channels) return std::nullopt;
  return tensor.reshaped({*channels});
}

}  // namespace

Expected<Module> fold_bias(Context& context, Module module) {
  return rewrite(context, std::move(module), [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply) return std::nullopt;
    // add(layer, constant) -> bias_add(layer, vector)
    if (apply->op->is(ops::kAdd)) {
      for (size_t i : {0, 1}) {
        const Tensor* constant = constant_of(builder.module(), apply->args[1 - i]);
        const TensorType* type = builder.tensor_type(apply->args[i]);
        if (!constant || !type || !is_layer(builder, apply->args[i])) continue;
        auto bias = as_bias(*constant, *type);
        if (!bias) continue;
        const Operator* op = &context.op(ops::kBiasAdd);
        TENON_TRY_ASSIGN(attrs, complete_attrs(*op, {}));
        binding.value = Apply{op, std::move(*attrs), {apply->args[i], builder.constant(std::move(*bias))}};
        apply = &std::get<Apply>(binding.value);
        break;
      }
    }
    // bias_add(bias_add(x, a), b) -> bias_add(x, a + b)
    if (!apply->op->is(ops::kBiasAdd)) return std::nullopt;
    const Apply* inner = builder.application(apply->args[0], ops::kBiasAdd);
    if (!inner || inner->attrs != apply->attrs) return std::nullopt;
    const Tensor *a = constant_of(builder.module(), inner->args[1]), *b = constant_of(builder.module(), apply->args[1]);
    if (!a || !b || a->dtype() != DType::kF32) return std::nullopt;
    Tensor sum = a->clone();
    std::ranges::transform(sum.data<float>(), b->data<float>(), sum.data<float>().begin(), std::plus<>());
    apply->args = {inner->args[0], builder.constant(std::move(sum))};
    return std::nullopt;
  });
}

Pass fold_bias_pass() {
  return {"fold_bias", "Constants added after a convolution or dense layer become its bias.", fold_bias};
}

}  // namespace tenon::compiler
