// Converters of ONNX operators that gather, scatter, sort and create elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

template <OperatorId op>
Status gather(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", 0));
  return node.result(node.apply(op, {0, 1}, {{"axis", *axis}}));
}

Status gather_nd(NodeImport& node) {
  TENON_TRY_ASSIGN(batch, node.integer("batch_dims", 0));
  return node.result(node.apply(ops::kGatherNd, {0, 1}, {{"batch_dims", *batch}}));
}

Status scatter_elements(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", 0));
  TENON_TRY_ASSIGN(reduction, node.string("reduction", "none"));
  return node.result(node.apply(ops::kScatterElements, {0, 1, 2}, {{"axis", *axis}, {"reduction", *reduction}}));
}

Status scatter_nd(NodeImport& node) {
  TENON_TRY_ASSIGN(reduction, node.string("reduction", "none"));
  return node.result(node.apply(ops::kScatterNd, {0, 1, 2}, {{"reduction", *reduction}}));
}

// One integer from a constant input.
Expected<int64_t> integer_input(NodeImport& node, size_t input, std::string_view what) {
  TENON_TRY_ASSIGN(values, node.integers(input, what));
  if (values->size() != 1) return node.fail(fmt::format("{} must be one element", what));
  return (*values)[0];
}

Status one_hot(NodeImport& node) {
  TENON_TRY_ASSIGN(indices, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(depth, integer_input(node, 1, "the depth"));
  TENON_TRY_ASSIGN(values, node.constant(2, "the values"));
  if (values->size() != 2) return node.fail("the values must be two, off and on");
  double off = 0, on = 0;
  runtime::with_dtype<runtime::kAnyDType>(values->dtype(), [&]<class T>(T) {
    off = static_cast<double>(values->data<T>()[0]), on = static_cast<double>(values->data<T>()[1]);
  });
  if (!runtime::kIndices.contains(type->dtype)) {
    indices = node.apply(ops::kCast, {*indices}, {{"dtype", std::string("i64")}});
    if (!indices) return std::unexpected(indices.error());
  }
  return node.result(node.apply(ops::kOneHot, {*indices},
                                {{"depth", *depth},
                                 {"axis", *axis},
                                 {"on", on},
                                 {"off", off},
                                 {"dtype", std::string(runtime::name(values->dtype()))}}));
}

// k is an attribute up to opset 9.
Status top_k(NodeImport& node) {
  TENON_TRY_ASSIGN(k, node.opset() < 10 ? node.integer("k") : integer_input(node, 1, "k"));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(largest, node.integer("largest", 1));
  TENON_TRY_ASSIGN(sorted, node.integer("sorted", 1));
  (void)sorted;  // the operator always sorts
  return node.results(node.apply(ops::kTopK, {0}, {{"k", *k}, {"axis", *axis}, {"largest", *largest}}));
}

Status unique(NodeImport& node) {
  TENON_TRY_ASSIGN(sorted, node.integer("sorted", 1));
  Ints axes;
  if (node.has("axis")) {
    TENON_TRY_ASSIGN(axis, node.integer("axis"));
    axes = {*axis};
  }
  return node.results(node.apply(ops::kUnique, {0}, {{"sorted", *sorted}, {"axes", axes}}));
}

Status compress(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(condition, node.input(1));
  if (node.has("axis")) {
    TENON_TRY_ASSIGN(axis, node.integer("axis"));
    return node.result(node.apply(ops::kCompress, {*x, *condition}, {{"axis", *axis}}));
  }
  TENON_TRY_ASSIGN(flat, node.apply(ops::kReshape, {*x}, {{"shape", Ints{-1}}}));
  return node.result(node.apply(ops::kCompress, {*flat, *condition}));
}

Status trilu(NodeImport& node) {
  TENON_TRY_ASSIGN(upper, node.integer("upper", 1));
  int64_t diagonal = 0;
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(given, integer_input(node, 1, "the diagonal"));
    diagonal = *given;
  }
  return node.result(node.apply(ops::kTriangle, {0}, {{"upper", *upper}, {"diagonal", diagonal}}));
}

Status reverse_sequence(NodeImport& node) {
  TENON_TRY_ASSIGN(batch, node.integer("batch_axis", 1));
  TENON_TRY_ASSIGN(time, node.integer("time_axis", 0));
  return node.result(node.apply(ops::kReverseSequence, {0, 1}, {{"batch_axis", *batch}, {"time_axis", *time}}));
}

Status range(NodeImport& node) {
  TENON_TRY_ASSIGN(start, node.constant(0, "the start"));
  TENON_TRY_ASSIGN(limit, node.constant(1, "the limit"));
  TENON_TRY_ASSIGN(delta, node.constant(2, "the step"));
  const DType dtype = start->dtype();
  if (limit->dtype() != dtype || delta->dtype() != dtype || !runtime::kNumericTypes.contains(dtype) ||
      start->size() != 1 || limit->size() != 1 || delta->size() != 1) {
    return node.fail("start, limit and step must be one element each, of one dtype");
  }
  constexpr double kMost = 1 << 24;
  std::optional<runtime::Tensor> result;
  runtime::with_dtype<runtime::kNumericTypes>(dtype, [&]<class T>(T) {
    const T first = start->data<T>()[0], step = delta->data<T>()[0];
    const double count =
        std::ceil((static_cast<double>(limit->data<T>()[0]) - static_cast<double>(first)) / static_cast<double>(step));
    if (!(count <= kMost)) return;
    std::vector<T> values;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      values.push_back(static_cast<T>(static_cast<double>(first) + static_cast<double>(i) * static_cast<double>(step)));
    }
    result = runtime::Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
  });
  if (!result) return node.fail("the range has no end, or more than 2^24 elements");
  return node.result(node.constant(std::move(*result)));
}

Status eye_like(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(diagonal, node.integer("k", 0));
  DType dtype = type->dtype;
  if (node.has("dtype")) {
    TENON_TRY_ASSIGN(number, node.integer("dtype"));
    const auto known = onnx_dtype(*number);
    if (!known) return node.fail(fmt::format("ONNX's data type {} is not supported", *number));
    dtype = *known;
  }
  const auto shape = type->shape();
  if (!shape || shape->size() != 2) return node.fail("requires a matrix of known sizes", "bind them with --shapes");
  return node.result(node.apply(ops::kEye, Atoms{},
                                {{"rows", (*shape)[0]},
                                 {"columns", (*shape)[1]},
                                 {"diagonal", *diagonal},
                                 {"dtype", std::string(runtime::name(dtype))}}));
}

}  // namespace

std::span<const OnnxConverter> onnx_index_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"Compress", 2, 2, compress},
      {"EyeLike", 1, 1, eye_like},
      {"Gather", 2, 2, gather<ops::kGather>},
      {"GatherElements", 2, 2, gather<ops::kGatherElements>},
      {"GatherND", 2, 2, gather_nd},
      {"NonZero", 1, 1, convert_plain<ops::kNonzero>},
      {"OneHot", 3, 3, one_hot},
      {"Range", 3, 3, range},
      {"ReverseSequence", 2, 2, reverse_sequence},
      {"Scatter", 3, 3, scatter_elements},
      {"ScatterElements", 3, 3, scatter_elements},
      {"ScatterND", 3, 3, scatter_nd},
      {"TopK", 1, 2, top_k},
      {"Trilu", 1, 2, trilu},
      {"Unique", 1, 1, unique},
  };
  return kTable;
}

}  // namespace tenon::compiler
