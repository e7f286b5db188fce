// Converters of the operators that ONNX Runtime's optimizer writes for language and diffusion models: attention with
// shared heads and a cache, normalizations and activations fused with what is before them, embeddings in blocks.
#include <fmt/format.h>

#include <cmath>

#include "compiler/frontend/onnx/attention.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// ---- Attention with a cache

struct GroupedHeads {
  int64_t query = 1, key = 1, window = -1;
  bool rotary = false, interleaved = false;
  double scale = 0, soft_cap = 0;
};
Expected<GroupedHeads> grouped_heads(NodeImport& node) {
  GroupedHeads heads;
  TENON_TRY_ASSIGN(query, node.integer("num_heads"));
  TENON_TRY_ASSIGN(key, node.integer("kv_num_heads"));
  TENON_TRY_ASSIGN(window, node.integer("local_window_size", -1));
  TENON_TRY_ASSIGN(rotary, node.integer("do_rotary", 0));
  TENON_TRY_ASSIGN(interleaved, node.integer("rotary_interleaved", 0));
  TENON_TRY_ASSIGN(scale, node.real("scale", 0.0));
  TENON_TRY_ASSIGN(soft_cap, node.real("softcap", 0.0));
  for (const auto& [attr, usual] : {std::pair{"smooth_softmax", int64_t{0}}, {"qk_output", int64_t{0}}}) {
    TENON_TRY_ASSIGN(value, node.integer(attr, usual));
    if (*value > 0) return node.fail(fmt::format("{} is not supported", attr));
  }
  if (*query < 1 || *key < 1 || *query % *key != 0)
    return node.fail(fmt::format("num_heads {} must be a multiple of kv_num_heads {}", *query, *key));
  return GroupedHeads{*query, *key, *window, *rotary != 0, *interleaved != 0, *scale, *soft_cap};
}

// The cache [B, heads, P, D] with the new keys or values from index `begin` [B, 1, 1, 1] on, which may differ from
// sequence to sequence.
Term appended(NodeFormula& f, const Term& cache, const Term& added, const Term& begin, int64_t heads) {
  const int64_t width = f.known_size(added, 3, "the size of a head");
  const Term index = (f.positions(added, 2) + begin).broadcast({-1, heads, -1, width});
  return f.apply(ops::kScatterElements, {concat({cache, added}, 2), index, added}, {{"axis", int64_t{2}}});
}

// The query of a sequence at i sees the keys of its past, and those up to i of its own.
Status group_query_attention(NodeImport& node) {
  TENON_TRY_ASSIGN(heads, grouped_heads(node));
  if (node.has_input(11)) return node.fail("head_sink is not supported");
  NodeFormula f(node);
  Term q = f.input(0);
  std::optional<Term> k, v;
  if (node.has_input(1)) {
    k = f.input(1), v = f.input(2);
  } else {  // query, key and value are packed
    const int64_t head = f.known_size(q, 2, "the hidden size") / (heads->query + 2 * heads->key);
    const int64_t keys = heads->query * head, values = keys + heads->key * head;
    k = q.slice(2, keys, values), v = q.slice(2, values, INT64_MAX), q = q.slice(2, 0, keys);
  }
  q = split_heads(q, heads->query), k = split_heads(*k, heads->key), v = split_heads(*v, heads->key);
  // Of each sequence, the tokens before those of the query, [B, 1, 1, 1].
  const Term length = f.apply(ops::kShapeOf, {q}).slice(0, 2, 3);
  const Term all = f.input(5).cast(DType::kI64).reshape({-1, 1, 1, 1}) + f.scalar(1, DType::kI64);
  const Term past = f.apply(ops::kMaximum, {all - length, f.scalar(0, DType::kI64)});
  if (heads->rotary) {
    const Term cosine = f.input(7), sine = f.input(8);
    const int64_t width = 2 * f.known_size(cosine, 1, "the width of the angles");
    const Term positions = node.has_input(9) ? f.input(9) : (past + f.positions(q, 2)).squeeze({1, 3});
    const auto rotated = [&](const Term& x) {
      return rotate_pairs(f, x, gather(cosine, positions, 0).expand_dims({1}),
                          gather(sine, positions, 0).expand_dims({1}), width, heads->interleaved);
    };
    q = rotated(q), k = rotated(*k);
  }
  if (node.has_input(3)) {
    k = appended(f, f.input(3), *k, past, heads->key);
    v = appended(f, f.input(4), *v, past, heads->key);
  }
  const Term last = past + f.positions(q, 2), keys = f.positions(*k, 2).reshape({1, 1, 1, -1});
  std::vector<Term> masks{f.apply(ops::kGreaterEqual, {last, keys})};
  if (heads->window > 0)
    masks.push_back(f.apply(ops::kGreater, {keys, last - f.scalar(static_cast<double>(heads->window), DType::kI64)}));
  if (node.has_input(10)) masks.push_back(f.input(10));
  const double scale =
      heads->scale != 0 ? heads->scale : 1 / std::sqrt(static_cast<double>(f.known_size(q, 3, "the size of a head")));
  const Term y = join_heads(attend(f, {.query = q,
                                       .key = *k,
                                       .value = *v,
                                       .masks = std::move(masks),
                                       .past = std::nullopt,
                                       .scale = scale,
                                       .soft_cap = heads->soft_cap,
                                       .precision = std::nullopt})
                                .result);
  return f.results({y, *k, *v});
}

// ---- Embeddings

// Rows of a quantized table, by indices: (row - zero point) * scale of the whole table.
Term quantized_rows(NodeFormula& f, const Term& steps, size_t scale, size_t zero) {
  return (steps.cast(DType::kF32) - f.input(zero).cast(DType::kF32)) * f.input(scale);
}

// Embeddings of words, positions and segments, of bytes, summed and normalized.
Status quantized_embed_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-12));
  NodeFormula f(node);
  const Term ids = f.input(0);
  Term sum = quantized_rows(f, gather(f.input(2), ids, 0), 8, 13) +
             quantized_rows(f, gather(f.input(3), f.positions(ids, 1), 0), 9, 14);
  if (node.has_input(1) && node.has_input(4)) sum = sum + quantized_rows(f, gather(f.input(4), f.input(1), 0), 10, 15);
  const Term scale = quantized_rows(f, f.input(5), 11, 16), bias = quantized_rows(f, f.input(6), 12, 17);
  const Term y = f.apply(ops::kLayerNorm, {sum, scale, bias}, {{"epsilon", *epsilon}});
  std::optional<Term> lengths;
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    lengths = node.has_input(7) ? f.input(7).cast(DType::kI32).reduce(ops::kSum, {1})
                                : f.positions(ids, 0).reshape({-1}).cast(DType::kI32) * 0;
  }
  return f.results({y, lengths});
}

// The elements of bytes with two of 4 bits each, the lower one first, along the last axis.
runtime::Tensor halves_of_bytes(const runtime::Tensor& packed) {
  runtime::Shape shape = packed.shape();
  shape.back() *= 2;
  runtime::Tensor result(DType::kU8, std::move(shape));
  const auto from = packed.data<uint8_t>();
  const auto to = result.data<uint8_t>();
  for (size_t i = 0; i < from.size(); ++i)
    to[2 * i] = from[i] & 0xfu, to[2 * i + 1] = static_cast<uint8_t>(from[i] >> 4);
  return result;
}

// Rows of a constant table of blocks along its rows, which have a scale each, by indices.
Status gather_block_quantized(NodeImport& node) {
  TENON_TRY_ASSIGN(bits, node.integer("bits", 4));
  TENON_TRY_ASSIGN(block, node.integer("block_size", 128));
  TENON_TRY_ASSIGN(gather_axis, node.integer("gather_axis", 0));
  TENON_TRY_ASSIGN(quantize_axis, node.integer("quantize_axis", 1));
  TENON_TRY_ASSIGN(data, node.constant(0, "the table"));
  constexpr int64_t kLargestBlock = int64_t{1} << 20;
  const bool bytes = data->dtype() == DType::kU8 && (*bits == 4 || *bits == 8);
  if (!bytes && data->dtype() != DType::kI4 && data->dtype() != DType::kU4)
    return node.fail(fmt::format("{} bits in {} are not supported", *bits, runtime::name(data->dtype())));
  if (data->shape().size() != 2 || *gather_axis != 0 || (*quantize_axis != 1 && *quantize_axis != -1) || *block < 1 ||
      *block > kLargestBlock) {
    return node.fail(fmt::format("a table {} gathered along axis {} in blocks of {} along axis {} is not supported",
                                 runtime::to_string(data->shape()), *gather_axis, *block, *quantize_axis),
                     "the rows of a table of two dims in blocks along its rows are");
  }
  const bool packed = data->dtype() == DType::kU8 && *bits == 4, is_signed = data->dtype() == DType::kI4;
  const double middle = is_signed ? 0 : *bits == 4 ? 8 : 128;
  NodeFormula f(node);
  const auto table = [&](const runtime::Tensor& given) { return f.constant(packed ? halves_of_bytes(given) : given); };
  const Term indices = f.input(1), steps = gather(table(*data), indices, 0);
  const int64_t width = f.known_size(steps, -1, "the width of the table"), blocks = (width + *block - 1) / *block;
  const auto repeated = [&](const Term& per_block) {  // [..., blocks] as [..., width]
    f.expect(per_block.rank() == steps.rank() && per_block.size(-1) == blocks,
             fmt::format("scales and zero points must be {} to a row", blocks));
    if (!f.ok()) return per_block;
    Ints shape(static_cast<size_t>(per_block.rank()) + 1, -1), joined(static_cast<size_t>(per_block.rank()), 0);
    shape.back() = *block, joined.back() = blocks * *block;
    return per_block.expand_dims({-1}).broadcast(shape).reshape(joined).slice(-1, 0, width);
  };
  const Term scale = gather(f.input(2), indices, 0);
  Term centered = steps.cast(scale.dtype());
  if (node.has_input(3)) {
    TENON_TRY_ASSIGN(zeros, node.constant(3, "the zero points"));
    if (zeros->dtype() != data->dtype() || zeros->shape().size() != 2)
      return node.fail("the zero points must be as the table");
    const Term zero = gather(table(*zeros), indices, 0).slice(-1, 0, blocks);
    centered = centered - repeated(zero.cast(scale.dtype()));
  } else if (middle != 0) {
    centered = centered - middle;
  }
  return f.result(centered * repeated(scale));
}

// ---- Biases, activations, normalizations

Status bias_add(NodeImport& node) {
  NodeFormula f(node);
  return f.result(f.input(0) + f.input(1) + f.input(2));
}

// The first half of x + bias times the GELU of the second.
Status bias_split_gelu(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0) + f.input(1);
  const int64_t half = f.known_size(x, -1, "the size of the last axis") / 2;
  return f.result(x.slice(-1, 0, half) * f.apply(ops::kGelu, {x.slice(-1, half, INT64_MAX)}));
}

Status gemm_fast_gelu(NodeImport& node) {
  NodeFormula f(node);
  Term y = matmul(f.input(0), f.input(1));
  if (node.has_input(2)) y = y + f.input(2);
  return f.result(f.apply(ops::kGeluTanh, {y}));
}

Status bias_softmax(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", 1));
  TENON_TRY_ASSIGN(inner, node.integer("is_inner_broadcast"));
  (void)inner;  // the bias broadcasts by its shape
  NodeFormula f(node);
  const Term x = f.input(0);
  f.expect(*axis == -1 || *axis == x.rank() - 1, fmt::format("a softmax from axis {} on is not supported", *axis));
  return f.result(softmax(x + f.input(1)));
}

// Of x and, for the second operator, a skip and a bias; the channels are the last axis, unless an attribute says
// otherwise.
template <bool skips>
Status fused_group_norm(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(groups, node.integer("groups"));
  TENON_TRY_ASSIGN(activation, node.integer("activation", 0));
  TENON_TRY_ASSIGN(last, node.integer("channels_last", 1));
  if (*activation != 0 && *activation != 1)
    return node.fail(fmt::format("the activation {} is not supported", *activation));
  NodeFormula f(node);
  Term sum = f.input(0);
  if (skips) {
    Term skip = f.input(3);
    if (skip.rank() == 2) skip = skip.expand_dims(*last ? Ints{1, 2} : Ints{2, 3});  // of each image and channel
    sum = sum + skip;
    if (node.has_input(4)) sum = sum + (*last ? f.input(4) : f.input(4).reshape({1, -1, 1, 1}));
  }
  f.expect(sum.rank() == 4, fmt::format("x must have four dims, found {}", sum.rank()));
  const Term x = *last ? sum.transpose({0, 3, 1, 2}) : sum;
  const Term normalized = f.apply(ops::kGroupNorm, {x, f.input(1).cast(x.dtype()), f.input(2).cast(x.dtype())},
                                  {{"groups", *groups}, {"epsilon", *epsilon}});
  const Term y = *activation ? f.apply(ops::kSwish, {normalized}) : normalized;
  return f.results({*last ? y.transpose({0, 2, 3, 1}) : y, skips ? std::optional(sum) : std::nullopt});
}

}  // namespace

std::span<const Converter> microsoft_fused_converters() {
  static constexpr Converter kTable[] = {
      {"com.microsoft.BiasAdd", 3, 3, bias_add},
      {"com.microsoft.BiasSoftmax", 2, 2, bias_softmax},
      {"com.microsoft.BiasSplitGelu", 2, 2, bias_split_gelu},
      {"com.microsoft.GatherBlockQuantized", 3, 4, gather_block_quantized},
      {"com.microsoft.GemmFastGelu", 2, 3, gemm_fast_gelu},
      {"com.microsoft.GroupNorm", 3, 3, fused_group_norm<false>},
      {"com.microsoft.GroupQueryAttention", 7, 12, group_query_attention},
      {"com.microsoft.QEmbedLayerNormalization", 13, 18, quantized_embed_normalization},
      {"com.microsoft.SkipGroupNorm", 4, 5, fused_group_norm<true>},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
