// Converters of ONNX's attention and of operators that language models use beside it.
#include "compiler/frontend/onnx/attention.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Each head of [B, heads, L, D], `count` times in a row.
Term repeat_heads(NodeFormula& f, const Term& x, int64_t count) {
  if (count == 1) return x;
  const int64_t heads = f.known_size(x, 1, "the number of heads"), width = f.known_size(x, 3, "the size of a head");
  return x.expand_dims({2}).broadcast({-1, -1, count, -1, -1}).reshape({0, heads * count, -1, width});
}

Term where_allowed(NodeFormula& f, const Term& allowed, const Term& scores, double hidden) {
  return select(allowed, scores, f.scalar(hidden, scores.dtype()));
}

}  // namespace

AttentionStages attend(NodeFormula& f, const Attention& attention) {
  const int64_t heads = f.known_size(attention.query, 1, "the number of heads of the query");
  const int64_t shared = f.known_size(attention.key, 1, "the number of heads of the key");
  f.expect(shared > 0 && heads % std::max<int64_t>(shared, 1) == 0,
           fmt::format("the query has {} heads, which is no multiple of the key's {}", heads, shared));
  const int64_t count = f.ok() ? heads / shared : 1;
  const Term key = repeat_heads(f, attention.key, count), value = repeat_heads(f, attention.value, count);
  const Term query = attention.scale == 1 ? attention.query : attention.query * attention.scale;
  const Term scaled = matmul(query, key.swap_last_axes());
  const double cap = attention.soft_cap;
  const Term capped = cap == 0 ? scaled : tanh(scaled / cap) * cap;
  Term masked = capped;
  for (const Term& mask : attention.masks) {
    masked = mask.dtype() == DType::kBool ? where_allowed(f, mask, masked, attention.hidden)
                                          : masked + mask.cast(masked.dtype());
  }
  if (attention.past) {
    const Term last = f.positions(scaled, 2) + *attention.past;
    masked = where_allowed(f, f.apply(ops::kGreaterEqual, {last, f.positions(scaled, 3)}), masked, attention.hidden);
  }
  const Term weights = softmax(attention.precision ? masked.cast(*attention.precision) : masked);
  const DType exact = widest_of(query.dtype(), value.dtype());
  return {scaled, capped, masked, weights.cast(query.dtype()), matmul(weights.cast(exact), value.cast(exact))};
}

Term split_heads(const Term& x, int64_t heads) { return x.reshape({0, 0, heads, -1}).transpose({0, 2, 1, 3}); }

Term join_heads(const Term& x) {
  NodeFormula& f = formula_of(x);
  const int64_t width = f.known_size(x, 1, "the number of heads") * f.known_size(x, 3, "the size of a head");
  return x.transpose({0, 2, 1, 3}).reshape({0, 0, width});
}

Term rotate_pairs(NodeFormula& f, const Term& x, const Term& cosine, const Term& sine, int64_t width,
                  bool interleaved) {
  const Term rotated = x.slice(-1, 0, width);
  const Term a = interleaved ? rotated.slice(-1, 0, INT64_MAX, 2) : rotated.slice(-1, 0, width / 2);
  const Term b = interleaved ? rotated.slice(-1, 1, INT64_MAX, 2) : rotated.slice(-1, width / 2, width);
  const Term real = a * cosine - b * sine, imaginary = a * sine + b * cosine;
  Term result = compiler::concat({real, imaginary}, -1);
  if (interleaved) {
    Ints shape(static_cast<size_t>(x.rank()), 0);
    if (!shape.empty()) shape.back() = width;
    result = f.apply(ops::kStack, {real, imaginary}, {{"axis", int64_t{-1}}}).reshape(shape);
  }
  return x.size(-1) == width ? result : compiler::concat({result, x.slice(-1, width, INT64_MAX)}, -1);
}

namespace {

// A vector [B] as [B, 1, 1, 1].
Term per_batch(const Term& x) { return x.reshape({-1, 1, 1, 1}); }

// A mask of fewer keys, padded by keys that take no part.
Term padded_mask(NodeFormula& f, const Term& mask, const Term& key) {
  const auto given = mask.size(-1), keys = key.size(2);
  if (given == keys || given == 1 || !given || !keys) return mask;
  f.expect(*given < *keys, fmt::format("the mask is for {} keys, there are {}", *given, *keys));
  if (mask.dtype() == DType::kBool) return mask.pad(-1, 0, *keys - *given);
  return mask.pad(-1, 0, *keys - *given, -Attention::kInfinity);
}

std::optional<DType> optional_dtype(NodeFormula& f, int64_t number) {
  if (number == 0) return std::nullopt;
  const auto dtype = dtype_of_id(number);
  f.expect(dtype && runtime::kReals.contains(*dtype), fmt::format("the precision {} is not supported", number));
  return dtype;
}

Status attention(NodeImport& node) {
  TENON_TRY_ASSIGN(causal, node.integer("is_causal", 0));
  TENON_TRY_ASSIGN(query_heads, node.integer("q_num_heads", 0));
  TENON_TRY_ASSIGN(key_heads, node.integer("kv_num_heads", 0));
  TENON_TRY_ASSIGN(mode, node.integer("qk_matmul_output_mode", 0));
  TENON_TRY_ASSIGN(soft_cap, node.real("softcap", 0.0));
  TENON_TRY_ASSIGN(precision, node.integer("softmax_precision", 0));
  TENON_TRY_ASSIGN(scale, node.real("scale", 0.0));
  NodeFormula f(node);
  Term q = f.input(0), k = f.input(1), v = f.input(2);
  const bool flat = q.rank() == 3;
  if (flat) {
    f.expect(*query_heads > 0 && *key_heads > 0, "inputs of three dims require q_num_heads and kv_num_heads");
    q = split_heads(q, *query_heads), k = split_heads(k, *key_heads), v = split_heads(v, *key_heads);
  }
  f.expect(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "query, key and value must all have three or four dims");
  f.expect(node.has_input(4) == node.has_input(5), "past_key and past_value must be given together");
  std::optional<Term> past;
  if (*causal) past = f.scalar(0, DType::kI64);
  if (node.has_input(4) && f.ok()) {
    const Term before = f.input(4);
    if (*causal) {
      past = before.size(2) ? f.scalar(static_cast<double>(*before.size(2)), DType::kI64)
                            : f.apply(ops::kShapeOf, {before}).slice(0, 2, 3).squeeze({0});
    }
    k = compiler::concat({before, k}, 2), v = compiler::concat({f.input(5), v}, 2);
  }
  if (*scale == 0) *scale = 1 / std::sqrt(static_cast<double>(f.known_size(q, 3, "the size of a head")));
  std::vector<Term> masks;
  if (node.has_input(3)) masks.push_back(padded_mask(f, f.input(3), k));
  if (node.has_input(6)) {
    masks.push_back(f.apply(ops::kLess, {f.positions(k, 2).reshape({1, 1, 1, -1}), per_batch(f.input(6))}));
  }
  const AttentionStages stages =
      attend(f, {q, k, v, masks, past, *scale, *soft_cap, -Attention::kInfinity, optional_dtype(f, *precision)});
  f.expect(*mode >= 0 && *mode <= 3, fmt::format("qk_matmul_output_mode {} is not supported", *mode));
  const Term& shown = *mode == 0   ? stages.scaled
                      : *mode == 1 ? stages.capped
                      : *mode == 2 ? stages.masked
                                   : stages.weights;
  const Term result = stages.result.cast(f.input(0).dtype());
  return f.results({flat ? join_heads(result) : result, k, v, shown});
}

// Angles are from the caches [positions, D / 2] by the position of each token, or given for each token [B, S, D / 2].
Status rotary_embedding(NodeImport& node) {
  TENON_TRY_ASSIGN(heads, node.integer("num_heads", 0));
  TENON_TRY_ASSIGN(width, node.integer("rotary_embedding_dim", 0));
  TENON_TRY_ASSIGN(interleaved, node.integer("interleaved", 0));
  NodeFormula f(node);
  Term x = f.input(0), cosine = f.input(1), sine = f.input(2);
  const bool flat = x.rank() == 3;
  f.expect(!flat || *heads > 0, "an input of three dims requires num_heads");
  if (node.has_input(3)) cosine = gather(cosine, f.input(3), 0), sine = gather(sine, f.input(3), 0);
  const auto hidden = x.size(2);
  if (flat) x = x.reshape({0, 0, *heads, -1});
  const Ints axis{flat ? 2 : 1};  // of the heads
  cosine = cosine.expand_dims(axis), sine = sine.expand_dims(axis);
  if (*width == 0) *width = f.known_size(x, -1, "the size of a head");
  const Term result = rotate_pairs(f, x, cosine, sine, *width, *interleaved != 0);
  if (!flat) return f.result(result);
  f.expect(hidden.has_value(), "the size of the last axis must be known");
  return f.result(result.reshape({0, 0, hidden.value_or(1)}));
}

// A convolution of each channel over the elements up to its own, with what came before.
Status causal_convolution(NodeImport& node) {
  TENON_TRY_ASSIGN(activation, node.string("activation", "none"));
  NodeFormula f(node);
  Term x = f.input(0);
  const Term w = f.input(1);
  const int64_t channels = f.known_size(w, 0, "the number of channels"), kernel = f.known_size(w, 2, "the kernel");
  x = node.has_input(3) ? compiler::concat({f.input(3), x}, 2) : x.pad(2, kernel - 1, 0);
  Term result = f.apply(ops::kConv1d, {x, w}, {{"groups", channels}});
  if (node.has_input(2)) result = f.apply(ops::kBiasAdd, {result, f.input(2)});
  if (*activation == "silu" || *activation == "swish") result = f.apply(ops::kSwish, {result});
  else f.expect(*activation == "none", fmt::format("the activation '{}' is not supported", *activation));
  return f.results({result, kernel > 1 ? x.slice(2, -(kernel - 1), INT64_MAX) : x.slice(2, 0, 0)});
}

// The update written into the cache from an index of each batch on.
Status tensor_scatter(NodeImport& node) {
  TENON_TRY_ASSIGN(mode, node.string("mode", "linear"));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -2));
  NodeFormula f(node);
  const Term cache = f.input(0), update = f.input(1);
  const int64_t along = *axis < 0 ? *axis + cache.rank() : *axis;
  f.expect(along > 0 && along < cache.rank(), fmt::format("there is no axis {} beside the batch", *axis));
  Term index = f.positions(update, along);
  if (node.has_input(2)) {
    Ints shape(static_cast<size_t>(cache.rank()), 1);
    if (!shape.empty()) shape[0] = -1;
    index = index + f.input(2).reshape(shape);
  }
  if (*mode == "circular") {
    const int64_t size = f.known_size(cache, along, "the size of the cache");
    index = f.apply(ops::kModulo, {index, f.scalar(static_cast<double>(size), DType::kI64)});
  } else {
    f.expect(*mode == "linear", fmt::format("the mode '{}' is not supported, only linear and circular", *mode));
  }
  Ints shape;
  for (int64_t i = 0; i < update.rank(); ++i) shape.push_back(f.known_size(update, i, "a size of the update"));
  return f.result(f.apply(ops::kScatterElements, {cache, index.broadcast(shape), update}, {{"axis", along}}));
}

Status swish(NodeImport& node) {
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  NodeFormula f(node);
  const Term x = f.input(0);
  return f.result(*alpha == 1 ? f.apply(ops::kSwish, {x}) : x * sigmoid(x * *alpha));
}

}  // namespace

std::span<const Converter> attention_converters() {
  static constexpr Converter kTable[] = {
      {"Attention", 3, 7, attention},
      {"CausalConvWithState", 2, 4, causal_convolution},
      {"RotaryEmbedding", 3, 4, rotary_embedding},
      {"Swish", 1, 1, swish},
      {"TensorScatter", 2, 3, tensor_scatter},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
