// Converters of ONNX's reductions and of operators along an axis.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// The reduction of x, which has the shape of input 0. Axes are an input from opset 13 (ReduceSum) or 18 on.
template <OperatorId op>
Expected<Atom> reduced(NodeImport& node, Atom x) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(keep, node.integer("keepdims", 1));
  TENON_TRY_ASSIGN(noop, node.integer("noop_with_empty_axes", 0));
  Integers given = Integers::of(node.context(), {});
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(input, Integers::input(node, 1, "the axes"));
    given = *input;
  } else {
    TENON_TRY_ASSIGN(list, node.list("axes", Ints{}));
    given = Integers::of(node.context(), *list);
  }
  if (given.size() == 0) given = Integers::of(node.context(), {});
  const auto axes = given.constants();
  if (!axes) {
    OperatorAttributes attrs({{"keep", *keep}});
    attrs.set("axes", given);
    return attrs.apply(node, op, {x});
  }
  if (axes->empty() && *noop) {  // each element is reduced alone
    if (op == ops::kSumSquare) return node.apply(ops::kMultiply, {x, x});
    if (op == ops::kNormL1 || op == ops::kNormL2) return node.apply(ops::kAbs, {x});
    return node.apply(op == ops::kLogSum ? ops::kLog : ops::kIdentity, {x});
  }
  // A mean over whole maps becomes global_avg_pool, which later passes support.
  Ints sorted = *axes;
  for (int64_t& axis : sorted) axis += axis < 0 ? type->rank() : 0;
  std::ranges::sort(sorted);
  if (op == ops::kMean && type->rank() == 4 && sorted == Ints{2, 3}) {
    TENON_TRY_ASSIGN(mean, node.apply(ops::kGlobalAvgPool, {x}));
    return *keep ? mean : node.apply(ops::kReshape, {*mean}, {{"shape", Ints{0, 0}}});
  }
  return node.apply(op, {x}, {{"axes", *axes}, {"keep", *keep}});
}

// The largest of bools is that of the same numbers as bytes. Sums of the magnitudes of integers are integers, which
// wrap; means, roots and logarithms of integers are those of the same numbers as floats, truncated.
template <OperatorId op>
Status reduce(NodeImport& node) {
  NodeFormula f(node);
  const Term x = f.input(0);
  if (!f.ok()) return f.status();
  const DType dtype = x.dtype();
  const bool is_integer = runtime::kIntegers.contains(dtype);
  constexpr bool kExtreme = op == ops::kMax || op == ops::kMin;
  constexpr bool kOfReals = op == ops::kMean || op == ops::kNormL2 || op == ops::kLogSum || op == ops::kLogSumExp;
  if (dtype == DType::kBool && kExtreme) {
    return f.result(f.term(reduced<op>(node, x.cast(DType::kU8).atom())).cast(dtype));
  }
  if (is_integer && op == ops::kNormL1) {
    const Term magnitudes = runtime::kUnsignedIntegers.contains(dtype) ? x : abs(x);
    return node.result(reduced<ops::kSum>(node, magnitudes.atom()));
  }
  if (is_integer && kOfReals) return f.result(f.term(reduced<op>(node, x.cast(DType::kF64).atom())).cast(dtype));
  return node.result(reduced<op>(node, x.atom()));
}

template <OperatorId op>
Status arg_best(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", 0));
  TENON_TRY_ASSIGN(keep, node.integer("keepdims", 1));
  TENON_TRY_ASSIGN(last, node.integer("select_last_index", 0));
  return node.result(node.apply(op, {0}, {{"axis", *axis}, {"keep", *keep}, {"select_last", *last}}));
}

template <OperatorId op>
Status cumulate(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(axis, Integers::input(node, 1, "the axis"));
  TENON_TRY_ASSIGN(exclusive, node.integer("exclusive", 0));
  TENON_TRY_ASSIGN(reverse, node.integer("reverse", 0));
  OperatorAttributes attrs({{"exclusive", *exclusive}, {"reverse", *reverse}});
  TENON_TRY(attrs.set_scalar(node, "axis", *axis));
  return node.result(attrs.apply(node, op, {*x}));
}

// Up to opset 12 the axes from `axis` on are flattened.
template <OperatorId op>
Status softmax(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", node.opset() < 13 ? 1 : -1));
  const int64_t rank = type->rank(), first = *axis < 0 ? *axis + rank : *axis;
  if (node.opset() >= 13 || first == rank - 1) return node.result(node.apply(op, {*x}, {{"axis", *axis}}));
  TENON_TRY_ASSIGN(flat, node.apply(ops::kFlatten, {*x}, {{"axis", first}}));
  TENON_TRY_ASSIGN(result, node.apply(op, {*flat}, {{"axis", int64_t{1}}}));
  Ints shape;
  for (Dim dim : type->dims) shape.push_back(dim.constant().value_or(-1));
  const bool plain = std::ranges::count(shape, -1) <= 1 && std::ranges::find(shape, 0) == shape.end();
  if (plain) return node.result(node.apply(ops::kReshape, {*result}, {{"shape", shape}}));
  NodeFormula f(node);
  return f.result(f.term(*result).reshape_to(type->dims));
}

}  // namespace

std::span<const Converter> reduce_converters() {
  static constexpr Converter kTable[] = {
      {"ArgMax", 1, 1, arg_best<ops::kArgMax>},     {"ArgMin", 1, 1, arg_best<ops::kArgMin>},
      {"CumProd", 2, 2, cumulate<ops::kCumprod>},   {"CumSum", 2, 2, cumulate<ops::kCumsum>},
      {"Hardmax", 1, 1, softmax<ops::kHardmax>},    {"LogSoftmax", 1, 1, softmax<ops::kLogSoftmax>},
      {"ReduceL1", 1, 2, reduce<ops::kNormL1>},     {"ReduceL2", 1, 2, reduce<ops::kNormL2>},
      {"ReduceLogSum", 1, 2, reduce<ops::kLogSum>}, {"ReduceLogSumExp", 1, 2, reduce<ops::kLogSumExp>},
      {"ReduceMax", 1, 2, reduce<ops::kMax>},       {"ReduceMean", 1, 2, reduce<ops::kMean>},
      {"ReduceMin", 1, 2, reduce<ops::kMin>},       {"ReduceProd", 1, 2, reduce<ops::kProd>},
      {"ReduceSum", 1, 2, reduce<ops::kSum>},       {"ReduceSumSquare", 1, 2, reduce<ops::kSumSquare>},
      {"Softmax", 1, 1, softmax<ops::kSoftmax>},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
