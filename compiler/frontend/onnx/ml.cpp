// Converters of operators on features: counts of n-grams, thresholds, selections of columns.
#include <fmt/format.h>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// The n-grams of one length: their items, and the column of the result that counts each.
struct NGrams {
  int64_t length = 1;
  Ints items, columns;
  std::vector<double> weights;
  int64_t count() const { return static_cast<int64_t>(columns.size()); }
};

Expected<std::vector<NGrams>> read_ngrams(NodeImport& node) {
  TENON_TRY_ASSIGN(pool, node.list("pool_int64s"));
  TENON_TRY_ASSIGN(starts, node.list("ngram_counts"));
  TENON_TRY_ASSIGN(columns, node.list("ngram_indexes"));
  TENON_TRY_ASSIGN(weights, node.reals("weights", std::vector<double>(columns->size(), 1.0)));
  if (weights->size() != columns->size())
    return node.fail(fmt::format("there are {} weights for {} n-grams", weights->size(), columns->size()));
  std::vector<NGrams> levels;
  size_t next = 0;
  for (size_t level = 0; level < starts->size(); ++level) {
    const auto size = static_cast<int64_t>(pool->size()), length = static_cast<int64_t>(level) + 1;
    const int64_t begin = (*starts)[level], end = level + 1 < starts->size() ? (*starts)[level + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      return node.fail(fmt::format("the n-grams of length {} are items {} .. {} of {}", length, begin, end, size));
    NGrams grams{length, Ints(pool->begin() + begin, pool->begin() + end), {}, {}};
    const auto count = static_cast<size_t>((end - begin) / length);
    if (count > columns->size() - next) return node.fail("ngram_indexes has fewer elements than there are n-grams");
    for (size_t i = 0; i < count; ++i, ++next) {
      if ((*columns)[next] < 0 || (*columns)[next] > (1 << 24))
        return node.fail(fmt::format("ngram_indexes has the element {}", (*columns)[next]));
      grams.columns.push_back((*columns)[next]);
      grams.weights.push_back((*weights)[next]);
    }
    levels.push_back(std::move(grams));
  }
  return levels;
}

// How often each n-gram is in the rows of x [N, C], with `skip` items between two of its items: [N, n-grams].
Term occurrences(NodeFormula& f, const Term& x, int64_t length, const NGrams& grams, int64_t skip) {
  const int64_t step = skip + 1, windows = length - (grams.length - 1) * step;
  std::optional<Term> equal;
  for (int64_t j = 0; j < grams.length; ++j) {
    runtime::Tensor items(DType::kI64, {grams.count()});
    for (int64_t i = 0; i < grams.count(); ++i) items.data<int64_t>()[i] = grams.items[i * grams.length + j];
    const Term window = x.slice(1, j * step, j * step + windows).expand_dims({2});
    const Term same = f.apply(ops::kEqual, {window, f.constant(std::move(items))});
    equal = equal ? f.apply(ops::kLogicalAnd, {*equal, same}) : same;
  }
  return equal->cast(DType::kF32).reduce(ops::kSum, {1});
}

// [n-grams, columns]: the weight of each n-gram in its column.
runtime::Tensor column_weights(const NGrams& grams, int64_t columns, bool weighted) {
  runtime::Tensor matrix(DType::kF32, {grams.count(), columns});
  for (int64_t i = 0; i < grams.count(); ++i)
    matrix.data<float>()[i * columns + grams.columns[i]] = weighted ? static_cast<float>(grams.weights[i]) : 1.0f;
  return matrix;
}

Status tf_idf_vectorizer(NodeImport& node) {
  if (node.has("pool_strings")) return node.fail("n-grams of strings are not supported", "map words to numbers before");
  TENON_TRY_ASSIGN(mode, node.string("mode", ""));
  if (*mode != "TF" && *mode != "IDF" && *mode != "TFIDF")
    return node.fail(fmt::format("the mode '{}' is not supported, only TF, IDF and TFIDF", *mode));
  TENON_TRY_ASSIGN(shortest, node.integer("min_gram_length"));
  TENON_TRY_ASSIGN(longest, node.integer("max_gram_length"));
  TENON_TRY_ASSIGN(skips, node.integer("max_skip_count"));
  TENON_TRY_ASSIGN(levels, read_ngrams(node));
  int64_t columns = 0;
  for (const NGrams& grams : *levels) {
    for (int64_t column : grams.columns) columns = std::max(columns, column + 1);
  }
  if (columns == 0) return node.fail("there are no n-grams");
  NodeFormula f(node);
  Term x = f.input(0).cast(DType::kI64);
  f.expect(x.rank() == 1 || x.rank() == 2, fmt::format("x must have one or two dims, found {}", x.rank()));
  const bool batch = x.rank() == 2;
  if (!batch) x = x.reshape({1, -1});
  const int64_t length = f.known_size(x, 1, "the length of x");
  TENON_TRY(f.status());
  // Without any n-gram in x, the sum over no items is zero.
  Term result = x.slice(1, 0, 0).cast(DType::kF32).reduce(ops::kSum, {1}, true) *
                f.constant(runtime::Tensor(DType::kF32, {columns}));
  for (const NGrams& grams : *levels) {
    if (grams.length < *shortest || grams.length > *longest || grams.count() == 0) continue;
    std::optional<Term> counts;
    for (int64_t skip = 0; skip <= (grams.length == 1 ? 0 : *skips); ++skip) {
      if ((grams.length - 1) * (skip + 1) >= length) break;
      const Term found = occurrences(f, x, length, grams, skip);
      counts = counts ? *counts + found : found;
    }
    if (!counts) continue;
    if (*mode == "IDF") counts = f.apply(ops::kGreater, {*counts, f.scalar(0, DType::kF32)}).cast(DType::kF32);
    result = result + matmul(*counts, f.constant(column_weights(grams, columns, *mode != "TF")));
  }
  return f.result(batch ? result : result.reshape({-1}));
}

Status binarizer(NodeImport& node) {
  TENON_TRY_ASSIGN(threshold, node.real("threshold", 0.0));
  NodeFormula f(node);
  const Term x = f.input(0);
  return f.result(f.apply(ops::kGreater, {x, f.scalar(*threshold, x.dtype())}).cast(x.dtype()));
}

// Columns of the last axis, by indices in any shape.
Status array_feature_extractor(NodeImport& node) {
  NodeFormula f(node);
  Term x = f.input(0);
  if (x.rank() == 1) x = x.reshape({1, -1});
  return f.result(gather(x, f.input(1).reshape({-1}), -1));
}

}  // namespace

std::span<const Converter> ml_converters() {
  static constexpr Converter kTable[] = {
      {"TfIdfVectorizer", 1, 1, tf_idf_vectorizer},
      {"ai.onnx.ml.ArrayFeatureExtractor", 2, 2, array_feature_extractor},
      {"ai.onnx.ml.Binarizer", 1, 1, binarizer},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
