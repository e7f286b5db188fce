// Attention as a formula, for the converters of ONNX's and ONNX Runtime's operators.
#pragma once

#include <limits>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {

struct Attention {
  Term query, key, value;  // [B, heads, S, D], [B, key heads, L, D] and [B, key heads, L, D']
  // What takes part, broadcast with the scores [B, heads, S, L]: bool, or a number that is added.
  std::vector<Term> masks;
  // The query at i sees the keys up to i + `past`; nothing: all keys. A past is a constant or a computed i64.
  std::optional<Term> past;
  double scale = 1, soft_cap = 0;  // 0: no cap
  double hidden = -kInfinity;      // the score of what takes no part
  std::optional<DType> precision;  // of the softmax; nothing: that of the query
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
};
// Every stage of the computation; of all but the result, [B, heads, S, D'], the shape is [B, heads, S, L].
struct AttentionStages {
  Term scaled, capped, masked, weights, result;
};
AttentionStages attend(NodeFormula& f, const Attention& attention);

// [B, S, heads * D] as [B, heads, S, D], and back.
Term split_heads(const Term& x, int64_t heads);
Term join_heads(const Term& x);
// Rotates pairs of elements of the last axis, the halves or neighbours, by the angles with these cosines and sines,
// which broadcast with half of `width` elements; elements after `width` are kept.
Term rotate_pairs(NodeFormula& f, const Term& x, const Term& cosine, const Term& sine, int64_t width, bool interleaved);

}  // namespace tenon::compiler::onnx
