// Converters of the operators of the domain com.microsoft: those that ONNX Runtime's quantizer and its optimizer for
// transformers write. Each is a formula of other operators; quantized ones compute with dequantized values, as those of
// ONNX do.
#include <fmt/format.h>

#include <cmath>

#include "compiler/frontend/onnx/attention.h"
#include "compiler/frontend/onnx/quantize.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// ---- Activations and products

enum class GeluKind : uint8_t { kExact, kTanh };
// GELU of x, or of x plus a bias in input 1.
template <GeluKind kind>
Status gelu(NodeImport& node) {
  NodeFormula f(node);
  const Term x = node.has_input(1) ? f.input(0) + f.input(1) : f.input(0);
  return f.result(f.apply(kind == GeluKind::kTanh ? ops::kGeluTanh : ops::kGelu, {x}));
}

Status quick_gelu(NodeImport& node) {
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.702));
  NodeFormula f(node);
  const Term x = f.input(0);
  return f.result(x * sigmoid(x * *alpha));
}

// The activation named by an attribute, as fused operators have it.
Term activated(NodeFormula& f, const Term& x, const std::string& name, const std::vector<double>& params) {
  const auto param = [&](size_t i, double fallback) { return i < params.size() ? params[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu") return f.apply(ops::kRelu, {x});
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "LeakyRelu") return f.apply(ops::kLeakyRelu, {x}, {{"alpha", param(0, 0.01)}});
  if (name == "Clip") {
    return f.apply(ops::kClip, {x}, {{"min", param(0, -HUGE_VAL)}, {"max", param(1, HUGE_VAL)}});
  }
  if (name == "HardSigmoid") {
    return f.apply(ops::kHardSigmoid, {x}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  }
  f.fail(fmt::format("the activation '{}' is not supported", name));
  return x;
}

Status fused_conv(NodeImport& node) {
  TENON_TRY_ASSIGN(name, node.string("activation", ""));
  TENON_TRY_ASSIGN(params, node.reals("activation_params", {}));
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(w, node.input(1));
  NodeFormula f(node);
  Term y = f.term(convolution(node, *x, *w));
  if (node.has_input(2)) y = f.apply(ops::kBiasAdd, {y, f.input(2)});
  if (node.has_input(3)) y = y + f.input(3);
  return f.result(activated(f, y, *name, *params));
}

Status fused_gemm(NodeImport& node) {
  TENON_TRY_ASSIGN(name, node.string("activation", ""));
  TENON_TRY_ASSIGN(trans_a, node.integer("transA", 0));
  TENON_TRY_ASSIGN(trans_b, node.integer("transB", 0));
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  TENON_TRY_ASSIGN(beta, node.real("beta", 1.0));
  std::vector<double> params;
  for (const char* attr : {"activation_alpha", "activation_beta"}) {
    if (!node.has(attr)) continue;
    TENON_TRY_ASSIGN(value, node.real(attr));
    params.push_back(*value);
  }
  NodeFormula f(node);
  const Term a = f.input(0), b = f.input(1);
  Term y = matmul(*trans_a ? a.swap_last_axes() : a, *trans_b ? b.swap_last_axes() : b);
  if (*alpha != 1) y = y * *alpha;
  if (node.has_input(2)) y = y + (*beta == 1 ? f.input(2) : f.input(2) * *beta);
  return f.result(activated(f, y, *name, params));
}

// A product of matrices, transposed, whose batch axes may be between rows and columns ("transBatch").
Term factor(const Term& x, bool transposed, bool batch_inside) {
  Ints order;
  const int64_t rank = x.rank();
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (batch_inside && rank > 2) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed && rank > 1) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return std::ranges::is_sorted(order) ? x : x.transpose(order);
}
Status fused_matmul(NodeImport& node) {
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  bool flags[4] = {};
  for (size_t i = 0; const char* attr : {"transA", "transB", "transBatchA", "transBatchB"}) {
    TENON_TRY_ASSIGN(value, node.integer(attr, 0));
    flags[i++] = *value != 0;
  }
  NodeFormula f(node);
  const Term a = f.input(0), b = f.input(1);
  f.expect(a.rank() >= 2 && b.rank() >= 2, "vectors are not supported");
  const Term y = matmul(factor(a, flags[0], flags[2]), factor(b, flags[1], flags[3]));
  return f.result(*alpha == 1 ? y : y * *alpha);
}

// ---- Normalizations

Term layer_norm(NodeFormula& f, const Term& x, const Term& scale, std::optional<Term> bias, double epsilon) {
  if (!bias) bias = f.zeros(scale.dtype(), {f.known_size(scale, 0, "the size of the scale")});
  return f.apply(ops::kLayerNorm, {x, scale, *bias}, {{"epsilon", epsilon}});
}

// The sum of input and skip, normalized: by mean and variance, or (rms) by the mean square alone.
template <bool rms>
Status skip_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-12));
  NodeFormula f(node);
  Term sum = f.input(0) + f.input(1);
  constexpr size_t kBias = rms ? 3 : 4;
  if (node.has_input(kBias)) sum = sum + f.input(kBias);
  const Term y =
      rms ? f.apply(ops::kRmsNorm, {sum, f.input(2)}, {{"epsilon", *epsilon}})
          : layer_norm(f, sum, f.input(2), node.has_input(3) ? std::optional(f.input(3)) : std::nullopt, *epsilon);
  return f.results({y, std::nullopt, std::nullopt, sum});
}

Status simplified_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;  // the dtype of the sums; the operator uses the dtype of x
  return node.result(node.apply(ops::kRmsNorm, {0, 1}, {{"axis", *axis}, {"epsilon", *epsilon}}));
}

// Embeddings of words, positions and segments, summed and normalized.
Status embed_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-12));
  TENON_TRY_ASSIGN(kind, node.integer("mask_index_type", 0));
  NodeFormula f(node);
  const Term ids = f.input(0), positions = f.input(3);
  Term sum = gather(f.input(2), ids, 0);
  sum = sum + gather(positions, node.has_input(8) ? f.input(8) : f.positions(ids, 1), 0);
  if (node.has_input(1) && node.has_input(4)) sum = sum + gather(f.input(4), f.input(1), 0);
  const Term y = layer_norm(f, sum, f.input(5), f.input(6), *epsilon);
  std::optional<Term> lengths;
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    f.expect(*kind == 0 || *kind == 1, fmt::format("mask_index_type {} is not supported", *kind));
    lengths = node.has_input(7) ? f.input(7).cast(DType::kI32).reduce(ops::kSum, {1})
                                : f.positions(ids, 0).reshape({-1}).cast(DType::kI32) * 0;
  }
  return f.results({y, lengths, sum});
}

// ---- Attention

// What is added to the scores for a mask: 0 where it is 1. A mask is [B, L], [B, S, L] or [B, 1, S, L], or the length
// of each sequence, [B].
Term mask_bias(NodeFormula& f, const Term& mask, const Term& key, double hidden) {
  const DType dtype = key.dtype();
  if (mask.rank() == 1) {
    const Term ends = mask.cast(DType::kI64).reshape({-1, 1, 1, 1});
    const Term inside = f.apply(ops::kLess, {f.positions(key, 2).reshape({1, 1, 1, -1}), ends});
    f.expect(mask.size(0) == key.size(0) || mask.size(0) == 1, "a mask of start and end positions is not supported");
    return (1.0 - inside.cast(dtype)) * hidden;
  }
  const Term outside = (1.0 - mask.cast(dtype)) * hidden;
  if (mask.rank() == 2) return outside.expand_dims({1, 2});
  return mask.rank() == 3 ? outside.expand_dims({1}) : outside;
}

struct HeadAttributes {
  int64_t heads;
  bool causal;
  double scale, hidden;
};
Expected<HeadAttributes> head_attributes(NodeImport& node) {
  TENON_TRY_ASSIGN(heads, node.integer("num_heads"));
  TENON_TRY_ASSIGN(causal, node.integer("unidirectional", 0));
  TENON_TRY_ASSIGN(scale, node.real("scale", 0.0));
  TENON_TRY_ASSIGN(hidden, node.real("mask_filter_value", -10000.0));
  for (const char* attr : {"do_rotary", "rotary_embedding_dim", "past_present_share_buffer"}) {
    TENON_TRY_ASSIGN(value, node.integer(attr, 0));
    if (*value != 0) return node.fail(fmt::format("{} is not supported", attr));
  }
  if (*heads < 1) return node.fail("num_heads must be positive");
  return HeadAttributes{*heads, *causal != 0, *scale, *hidden};
}

// Heads [B, heads, S, D] attended with masks; [B, S, heads * D'].
Term attended(NodeFormula& f, const HeadAttributes& attrs, const Term& q, const Term& k, const Term& v,
              std::vector<Term> masks) {
  const double width = static_cast<double>(f.known_size(q, 3, "the size of a head"));
  std::optional<Term> past;
  if (attrs.causal) {
    const auto keys = k.size(2), queries = q.size(2);
    const auto length = [&](const Term& x) { return f.apply(ops::kShapeOf, {x}).slice(0, 2, 3); };
    past = keys && queries ? f.scalar(static_cast<double>(*keys - *queries), DType::kI64)
                           : (length(k) - length(q)).squeeze({0});
  }
  const double scale = attrs.scale == 0 ? 1 / std::sqrt(width) : attrs.scale;
  return join_heads(attend(f, {q, k, v, std::move(masks), past, scale, 0, -Attention::kInfinity, std::nullopt}).result);
}

// Query, key and value as one product of x with packed weights; past and present are [2, B, heads, S, D].
Status packed_attention(NodeFormula& f, const Term& x, const Term& w, std::optional<size_t> bias, size_t mask,
                        size_t past, std::optional<size_t> added) {
  NodeImport& node = f.node();
  TENON_TRY_ASSIGN(attrs, head_attributes(node));
  const int64_t all = f.known_size(w, 1, "the number of columns of the weights");
  TENON_TRY_ASSIGN(sizes, node.list("qkv_hidden_sizes", Ints(3, all / 3)));
  f.expect(sizes->size() == 3 && (*sizes)[0] + (*sizes)[1] + (*sizes)[2] == all,
           "qkv_hidden_sizes must be three that sum to the columns of the weights");
  Term packed = matmul(x, w);
  if (bias && node.has_input(*bias)) packed = packed + f.input(*bias);
  if (!f.ok()) return f.status();
  const Term q = split_heads(packed.slice(2, 0, (*sizes)[0]), attrs->heads);
  Term k = split_heads(packed.slice(2, (*sizes)[0], (*sizes)[0] + (*sizes)[1]), attrs->heads);
  Term v = split_heads(packed.slice(2, (*sizes)[0] + (*sizes)[1], all), attrs->heads);
  if (node.has_input(past)) {
    k = compiler::concat({f.input(past).slice(0, 0, 1).squeeze({0}), k}, 2);
    v = compiler::concat({f.input(past).slice(0, 1, 2).squeeze({0}), v}, 2);
  }
  std::vector<Term> masks;
  if (node.has_input(mask)) masks.push_back(mask_bias(f, f.input(mask), k, attrs->hidden));
  if (added && node.has_input(*added)) masks.push_back(f.input(*added));
  std::optional<Term> present;
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    present = f.apply(ops::kStack, {k, v}, {{"axis", int64_t{0}}});
  }
  return f.results({attended(f, *attrs, q, k, v, std::move(masks)), present});
}

Status fused_attention(NodeImport& node) {
  NodeFormula f(node);
  return packed_attention(f, f.input(0), f.input(1), 2, 3, 4, 5);
}

Status quantized_attention(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.term(dequantized(node, 0, 3, 6, {})), w = f.term(dequantized(node, 1, 4, 7, {}));
  return packed_attention(f, x, w, 2, 5, 8, {});
}

Status multi_head_attention(NodeImport& node) {
  TENON_TRY_ASSIGN(attrs, head_attributes(node));
  if (!node.has_input(1) || !node.has_input(2)) return node.fail("packed key and value are not supported");
  NodeFormula f(node);
  Term q = f.input(0), k = f.input(1), v = f.input(2);
  const int64_t width = f.known_size(q, 2, "the hidden size");
  if (node.has_input(3)) {
    const Term bias = f.input(3);
    const bool split = k.rank() == 3;
    q = q + bias.slice(0, 0, width);
    if (split) k = k + bias.slice(0, width, 2 * width), v = v + bias.slice(0, 2 * width, INT64_MAX);
    else f.fail("a bias of keys that are split into heads is not supported");
  }
  q = split_heads(q, attrs->heads);
  if (k.rank() == 3) k = split_heads(k, attrs->heads), v = split_heads(v, attrs->heads);
  if (node.has_input(6)) k = compiler::concat({f.input(6), k}, 2), v = compiler::concat({f.input(7), v}, 2);
  std::vector<Term> masks;
  if (node.has_input(4)) masks.push_back(mask_bias(f, f.input(4), k, attrs->hidden));
  if (node.has_input(5)) masks.push_back(f.input(5));
  return f.results({attended(f, *attrs, q, k, v, std::move(masks)), k, v});
}

// x [B, heads, S, D] or [B, S, hidden]; positions [B, S], or the first of all sequences, [1].
Status fused_rotary_embedding(NodeImport& node) {
  TENON_TRY_ASSIGN(interleaved, node.integer("interleaved", 0));
  TENON_TRY_ASSIGN(heads, node.integer("num_heads", 0));
  TENON_TRY_ASSIGN(width, node.integer("rotary_embedding_dim", 0));
  TENON_TRY_ASSIGN(scale, node.real("scale", 1.0));
  TENON_TRY_ASSIGN(packed, node.integer("is_packed_batching", 0));
  if (*scale != 1 || *packed) return node.fail("scale and is_packed_batching are not supported");
  NodeFormula f(node);
  Term x = f.input(0), positions = f.input(1), cosine = f.input(2), sine = f.input(3);
  const bool flat = x.rank() == 3;
  const int64_t half = f.known_size(cosine, 1, "the width of the angles");
  const auto hidden = x.size(-1);
  if (*width == 0) *width = 2 * half;
  if (flat) {
    if (*heads == 0) *heads = hidden.value_or(0) / std::max<int64_t>(*width, 1);
    x = x.reshape({0, 0, *heads, -1});
  }
  if (positions.rank() == 1) positions = (f.positions(x, flat ? 1 : 2).reshape({1, -1}) + positions);
  const Ints axis{flat ? 2 : 1};
  const Term result = rotate_pairs(f, x, gather(cosine, positions, 0).expand_dims(axis),
                                   gather(sine, positions, 0).expand_dims(axis), *width, *interleaved != 0);
  if (!flat) return f.result(result);
  f.expect(hidden.has_value(), "the size of the last axis must be known");
  return f.result(result.reshape({0, 0, hidden.value_or(1)}));
}

// ---- Quantized operators

// `value` quantized by the scale and zero point of inputs `scale` and `scale + 1`.
Status quantized_result(NodeFormula& f, const Term& value, size_t scale) {
  DType dtype = DType::kU8;
  TENON_TRY(f.status());
  return f.result(f.term(quantized(f.node(), value.atom(), scale, scale + 1, {}, dtype)));
}

Term real_input(NodeFormula& f, size_t i) { return f.term(dequantized(f.node(), i, i + 1, i + 2, {})); }

Status refuse_channels_last(NodeImport& node) {
  TENON_TRY_ASSIGN(last, node.integer("channels_last", 0));
  if (*last) return node.fail("channels in the last axis are not supported");
  return {};
}

template <OperatorId op>
Status qlinear_binary(NodeImport& node) {
  NodeFormula f(node);
  return quantized_result(f, f.apply(op, {real_input(f, 0), real_input(f, 3)}), 6);
}

Status qlinear_concat(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis"));
  if (node.inputs() % 3 != 2) return node.fail("requires a scale and a zero point of the result and of each input");
  NodeFormula f(node);
  std::vector<Term> parts;
  for (size_t i = 2; i < node.inputs(); i += 3) parts.push_back(real_input(f, i));
  return quantized_result(f, concat(parts, *axis), 0);
}

Status qlinear_sigmoid(NodeImport& node) {
  NodeFormula f(node);
  return quantized_result(f, sigmoid(real_input(f, 0)), 3);
}

Status qlinear_leaky_relu(NodeImport& node) {
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 0.01));
  NodeFormula f(node);
  return quantized_result(f, f.apply(ops::kLeakyRelu, {real_input(f, 0)}, {{"alpha", *alpha}}), 3);
}

Status qlinear_softmax(NodeImport& node) {
  TENON_TRY_ASSIGN(opset, node.integer("opset", 13));
  TENON_TRY_ASSIGN(axis, node.integer("axis", *opset < 13 ? 1 : -1));
  NodeFormula f(node);
  const Term x = real_input(f, 0);
  f.expect(*opset >= 13 || *axis == x.rank() - 1 || *axis == -1, "a softmax over several axes is not supported");
  return quantized_result(f, softmax(x, *axis), 3);
}

Status qlinear_global_average_pool(NodeImport& node) {
  TENON_TRY(refuse_channels_last(node));
  NodeFormula f(node);
  return quantized_result(f, f.apply(ops::kGlobalAvgPool, {real_input(f, 0)}), 3);
}

Status qlinear_average_pool(NodeImport& node) {
  TENON_TRY(refuse_channels_last(node));
  NodeFormula f(node);
  const Term x = real_input(f, 0);
  TENON_TRY(f.status());
  return quantized_result(f, f.term(average_pool(node, x.atom())), 3);
}

Status qlinear_reduce_mean(NodeImport& node) {
  TENON_TRY_ASSIGN(axes, node.list("axes", Ints{}));
  TENON_TRY_ASSIGN(keep, node.integer("keepdims", 1));
  NodeFormula f(node);
  return quantized_result(f, real_input(f, 0).reduce(ops::kMean, *axes, *keep != 0), 3);
}

Status qlinear_where(NodeImport& node) {
  NodeFormula f(node);
  return quantized_result(f, select(f.input(0), real_input(f, 1), real_input(f, 4)), 7);
}

// The bias is i32 in units of the scales of a and b; the result is real where it has no scale.
Status quantized_gemm(NodeImport& node) {
  TENON_TRY_ASSIGN(trans_a, node.integer("transA", 0));
  TENON_TRY_ASSIGN(trans_b, node.integer("transB", 0));
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  NodeFormula f(node);
  const Term a = real_input(f, 0), b = f.term(dequantized(node, 3, 4, 5, {.axis = *trans_b ? 0 : 1}));
  Term y = matmul(*trans_a ? a.swap_last_axes() : a, *trans_b ? b.swap_last_axes() : b);
  if (node.has_input(6)) y = y + f.input(6).cast(DType::kF32) * (f.input(1) * f.input(4));
  if (*alpha != 1) y = y * *alpha;
  return node.has_input(7) ? quantized_result(f, y, 7) : f.result(y);
}

// The sums of (a - a_zero) * (b - b_zero) in i32, where the products are of the bytes of a.
Term integer_product(NodeFormula& f, const Term& a, std::optional<Term> a_zero, const Term& b,
                     std::optional<size_t> b_zero) {
  Term weights = b.cast(DType::kI32);
  if (b_zero && f.node().has_input(*b_zero)) weights = weights - f.input(*b_zero).cast(DType::kI32);
  const Term sum = matmul(a.cast(DType::kI32), weights);
  return a_zero ? sum - a_zero->cast(DType::kI32) * weights.reduce(ops::kSum, {-2}, true) : sum;
}

Status matmul_integer_to_float(NodeImport& node) {
  NodeFormula f(node);
  std::optional<Term> zero;
  if (node.has_input(4)) zero = f.input(4);
  f.expect(!zero || zero->rank() == 0 || zero->size(0) == 1, "a zero point of each row is not supported");
  const Term sum = integer_product(f, f.input(0), zero, f.input(1), 5);
  const Term y = sum.cast(DType::kF32) * (f.input(2) * f.input(3));
  return f.result(node.has_input(6) ? y + f.input(6) : y);
}

Status dynamic_quantize_matmul(NodeImport& node) {
  NodeFormula f(node);
  const Term quantized = f.apply(ops::kDynamicQuantize, {f.input(0)});
  const Term sum = integer_product(f, f.field(quantized, 0), f.field(quantized, 2), f.input(1), 3);
  const Term y = sum.cast(DType::kF32) * (f.field(quantized, 1) * f.input(2));
  return f.result(node.has_input(4) ? y + f.input(4) : y);
}

// Weights [directions, inputs, gates] of an LSTM, dequantized and transposed to [directions, gates, inputs]; scale and
// zero point are of each direction, or of each of its gates.
Term gate_weights(NodeFormula& f, size_t input, size_t scale, size_t zero) {
  const auto aligned = [&](size_t i) {
    const Term x = f.input(i);
    return x.rank() == 2 ? x.expand_dims({1}) : x.reshape({-1, 1, 1});
  };
  Term w = f.input(input).cast(DType::kF32);
  if (f.node().has_input(zero)) w = w - aligned(zero).cast(DType::kF32);
  return (w * aligned(scale)).transpose({0, 2, 1});
}

// ONNX Runtime also rounds x and the states to bytes before each product; here these stay as they are.
Status dynamic_quantize_lstm(NodeImport& node) {
  NodeFormula f(node);
  const Term w = gate_weights(f, 1, 8, 9), r = gate_weights(f, 2, 10, 11);
  TENON_TRY(f.status());
  return import_lstm(node, w.atom(), r.atom());
}

}  // namespace

std::span<const Converter> microsoft_converters() {
  static constexpr Converter kTable[] = {
      {"com.microsoft.Attention", 2, 6, fused_attention},
      {"com.microsoft.BiasGelu", 2, 2, gelu<GeluKind::kExact>},
      {"com.microsoft.DynamicQuantizeLSTM", 12, 12, dynamic_quantize_lstm},
      {"com.microsoft.DynamicQuantizeMatMul", 3, 5, dynamic_quantize_matmul},
      {"com.microsoft.EmbedLayerNormalization", 7, 9, embed_normalization},
      {"com.microsoft.FastGelu", 1, 2, gelu<GeluKind::kTanh>},
      {"com.microsoft.FusedConv", 2, 4, fused_conv},
      {"com.microsoft.FusedGemm", 2, 3, fused_gemm},
      {"com.microsoft.FusedMatMul", 2, 2, fused_matmul},
      {"com.microsoft.Gelu", 1, 1, gelu<GeluKind::kExact>},
      {"com.microsoft.MatMulIntegerToFloat", 4, 7, matmul_integer_to_float},
      {"com.microsoft.MultiHeadAttention", 1, 8, multi_head_attention},
      {"com.microsoft.QAttention", 5, 9, quantized_attention},
      {"com.microsoft.QGemm", 6, 9, quantized_gemm},
      {"com.microsoft.QLinearAdd", 7, 8, qlinear_binary<ops::kAdd>},
      {"com.microsoft.QLinearAveragePool", 4, 5, qlinear_average_pool},
      {"com.microsoft.QLinearConcat", 5, 4096, qlinear_concat},
      {"com.microsoft.QLinearGlobalAveragePool", 5, 5, qlinear_global_average_pool},
      {"com.microsoft.QLinearLeakyRelu", 4, 5, qlinear_leaky_relu},
      {"com.microsoft.QLinearMul", 7, 8, qlinear_binary<ops::kMultiply>},
      {"com.microsoft.QLinearReduceMean", 4, 5, qlinear_reduce_mean},
      {"com.microsoft.QLinearSigmoid", 4, 5, qlinear_sigmoid},
      {"com.microsoft.QLinearSoftmax", 4, 5, qlinear_softmax},
      {"com.microsoft.QLinearWhere", 9, 9, qlinear_where},
      {"com.microsoft.QuickGelu", 1, 1, quick_gelu},
      {"com.microsoft.RotaryEmbedding", 4, 4, fused_rotary_embedding},
      {"SimplifiedLayerNormalization", 2, 2, simplified_normalization},
      {"com.microsoft.SkipLayerNormalization", 3, 5, skip_normalization<false>},
      {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, skip_normalization<true>},
      {"com.microsoft.TransposeMatMul", 2, 2, fused_matmul},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
