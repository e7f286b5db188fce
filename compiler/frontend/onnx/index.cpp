// Converters of ONNX operators that gather, scatter, sort and create elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"

namespace tenon::compiler::onnx {
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

Status one_hot(NodeImport& node) {
  TENON_TRY_ASSIGN(indices, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(values, node.input(2));
  TENON_TRY_ASSIGN(values_type, node.type(2));
  if (values_type->rank() != 1 || values_type->dims[0].constant() != 2)
    return node.fail("the values must be two, off and on");
  OperatorAttributes attrs({{"axis", *axis}, {"dtype", std::string(runtime::name(values_type->dtype))}});
  if (const runtime::Tensor* known = node.constant_tensor(*values)) {
    runtime::with_dtype<runtime::kAnyDType>(known->dtype(), [&]<class T>(T) {
      attrs.set("off", static_cast<double>(known->data<T>()[0]));
      attrs.set("on", static_cast<double>(known->data<T>()[1]));
    });
  } else {
    for (const auto& [name, index] : {std::pair{"off", int64_t{0}}, std::pair{"on", int64_t{1}}}) {
      TENON_TRY_ASSIGN(part, node.apply(ops::kSlice, {*values},
                                        {{"begin", Ints{index}}, {"end", Ints{index + 1}}, {"step", Ints{1}}}));
      TENON_TRY_ASSIGN(scalar, node.apply(ops::kReshape, {*part}, {{"shape", Ints{}}}));
      TENON_TRY_ASSIGN(real, node.apply(ops::kCast, {*scalar}, {{"dtype", std::string("f64")}}));
      attrs.set_operand(name, *real);
    }
  }
  // Any type is allowed for the depth.
  TENON_TRY_ASSIGN(depth_type, node.type(1));
  if (runtime::kIndices.contains(depth_type->dtype)) {
    TENON_TRY_ASSIGN(depth, Integers::input(node, 1, "the depth"));
    TENON_TRY(attrs.set_scalar(node, "depth", *depth));
  } else {
    TENON_TRY_ASSIGN(depth, node.apply(ops::kReshape, {1}, {{"shape", Ints{}}}));
    TENON_TRY_ASSIGN(integer, node.apply(ops::kCast, {*depth}, {{"dtype", std::string("i64")}}));
    attrs.set_operand("depth", *integer);
  }
  if (!runtime::kIndices.contains(type->dtype)) {
    indices = node.apply(ops::kCast, {*indices}, {{"dtype", std::string("i64")}});
    if (!indices) return std::unexpected(indices.error());
  }
  return node.result(attrs.apply(node, ops::kOneHot, {*indices}));
}

// k is an attribute up to opset 9.
Status top_k(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  OperatorAttributes attrs;
  if (node.opset() < 10) {
    TENON_TRY_ASSIGN(k, node.integer("k"));
    attrs.set("k", *k);
  } else {
    TENON_TRY_ASSIGN(k, Integers::input(node, 1, "k"));
    TENON_TRY(attrs.set_scalar(node, "k", *k));
  }
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(largest, node.integer("largest", 1));
  TENON_TRY_ASSIGN(sorted, node.integer("sorted", 1));
  (void)sorted;  // the operator always sorts
  attrs.set("axis", *axis);
  attrs.set("largest", *largest);
  return node.results(attrs.apply(node, ops::kTopK, {*x}));
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
  TENON_TRY_ASSIGN(x, node.input(0));
  OperatorAttributes attrs({{"upper", *upper}});
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(diagonal, Integers::input(node, 1, "the diagonal"));
    TENON_TRY(attrs.set_scalar(node, "diagonal", *diagonal));
  }
  return node.result(attrs.apply(node, ops::kTriangle, {*x}));
}

Status reverse_sequence(NodeImport& node) {
  TENON_TRY_ASSIGN(batch, node.integer("batch_axis", 1));
  TENON_TRY_ASSIGN(time, node.integer("time_axis", 0));
  return node.result(node.apply(ops::kReverseSequence, {0, 1}, {{"batch_axis", *batch}, {"time_axis", *time}}));
}

// start + step * (0, 1, ...), whose number is ceil((limit - start) / step): the dims of integers where these are known,
// else computed when the model runs.
Status computed_range(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const std::string dtype(runtime::name(type->dtype));
  NodeFormula f(node);
  const Term start = f.input(0).reshape({}), limit = f.input(1).reshape({}), step = f.input(2).reshape({});
  if (!f.ok()) return f.status();
  Context& context = node.context();
  OperatorAttributes attrs({{"dtype", dtype}});
  const auto first = node.import().sizes(start.atom()), end = node.import().sizes(limit.atom()),
             by = node.import().sizes(step.atom());
  const int64_t stride = by ? (*by)[0].constant().value_or(0) : 0;
  if (first && end && stride > 0) {
    const Dim count = context.ceil_divide(context.subtract((*end)[0], (*first)[0]), stride);
    const bool positive = DimProver(context).less_equal(context.dim(0), count) == Answer::kYes;
    TENON_TRY(attrs.set_scalar(
        node, "count", Integers(1, Dims{positive ? count : context.maximum({count, context.dim(0)})}, std::nullopt)));
  } else {
    const Term distance = (limit.cast(DType::kF64) - start.cast(DType::kF64)) / step.cast(DType::kF64);
    const Term count = f.apply(ops::kMaximum, {f.apply(ops::kCeil, {distance}), f.scalar(0, DType::kF64)});
    attrs.set_operand("count", count.cast(DType::kI64).atom());
    if (!f.ok()) return f.status();
  }
  const Term indices = f.term(attrs.apply(node, ops::kArange, {}));
  const auto is = [&](const std::optional<Dims>& known, int64_t value) {
    return known && (*known)[0].constant() == value;
  };
  const Term steps = is(by, 1) ? indices : indices * step;
  return f.result(is(first, 0) ? steps : steps + start);
}

Status range(NodeImport& node) {
  for (size_t i = 0; i < 3; ++i) {
    TENON_TRY_ASSIGN(given, node.input(i));
    if (!node.constant_tensor(*given)) return computed_range(node);
  }
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
    const auto known = dtype_of_id(*number);
    if (!known) return node.fail(fmt::format("ONNX's data type {} is not supported", *number));
    dtype = *known;
  }
  if (type->rank() != 2) return node.fail("requires a matrix");
  OperatorAttributes attrs({{"diagonal", *diagonal}, {"dtype", std::string(runtime::name(dtype))}});
  TENON_TRY(attrs.set_scalar(node, "rows", Integers(1, Dims{type->dims[0]}, std::nullopt)));
  TENON_TRY(attrs.set_scalar(node, "columns", Integers(1, Dims{type->dims[1]}, std::nullopt)));
  return node.result(attrs.apply(node, ops::kEye, {}));
}

}  // namespace

std::span<const Converter> index_converters() {
  static constexpr Converter kTable[] = {
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

}  // namespace tenon::compiler::onnx
