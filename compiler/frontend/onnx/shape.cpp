// Converters of the ONNX operators that move elements and compute shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/base/dim_prover.h"
#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMaxConstant = 1 << 16;  // elements of ConstantOfShape that a constant of the module has

Status constant(NodeImport& node) {
  const auto& attrs = node.node().attrs;
  if (attrs.size() != 1) return node.fail("requires exactly one attribute with the value");
  const auto& [name, value] = *attrs.begin();
  (void)node.has(name);  // marks the attribute as read
  runtime::Tensor tensor;
  auto reals = [](const std::vector<double>& list) { return std::vector<float>(list.begin(), list.end()); };
  if (auto* given = std::get_if<runtime::Tensor>(&value)) tensor = *given;
  else if (auto* integer = std::get_if<int64_t>(&value))
    tensor = runtime::Tensor::of<int64_t>({}, std::span(integer, 1));
  else if (auto* real = std::get_if<double>(&value)) tensor = runtime::Tensor::of<float>({}, reals({*real}));
  else if (auto* ints = std::get_if<Ints>(&value)) {
    tensor = runtime::Tensor::of<int64_t>({static_cast<int64_t>(ints->size())}, *ints);
  } else if (auto* floats = std::get_if<std::vector<double>>(&value)) {
    tensor = runtime::Tensor::of<float>({static_cast<int64_t>(floats->size())}, reals(*floats));
  } else {
    return node.fail(fmt::format("a constant given by '{}' is not supported", name));
  }
  return node.result(node.constant(std::move(tensor)));
}

// The first element.
double element_of(const runtime::Tensor& tensor) {
  double value = 0;
  runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(),
                                          [&]<class T>(T) { value = static_cast<double>(tensor.data<T>()[0]); });
  return value;
}

Status constant_of_shape(NodeImport& node) {
  runtime::Tensor value = runtime::Tensor::of<float>({1}, std::array{0.0f});
  if (node.has("value")) {
    auto* given = std::get_if<runtime::Tensor>(&node.node().attrs.at("value"));
    if (!given || given->size() != 1) return node.fail("the attribute 'value' must be one element");
    value = *given;
  }
  TENON_TRY_ASSIGN(sizes, Integers::input(node, 0, "the shape"));
  const auto shape = sizes->constants();
  if (!shape) {
    OperatorAttributes attrs({{"value", element_of(value)}, {"dtype", std::string(runtime::name(value.dtype()))}});
    attrs.set("shape", *sizes);
    return node.result(attrs.apply(node, ops::kFull, {}));
  }
  if (std::ranges::any_of(*shape, [](int64_t size) { return size < 0; }) ||
      !runtime::checked_bytes(value.dtype(), *shape)) {
    return node.fail(
        fmt::format("the shape [{}] is impossible: its sizes must be 0 or more, and its bytes less than 2^63",
                    fmt::join(*shape, ", ")));
  }
  if (!has_at_most(*shape, kMaxConstant)) {  // computed when the model runs, in memory that exists then
    TENON_TRY_ASSIGN(element, node.constant(value.reshaped({})));
    return node.result(node.apply(ops::kBroadcastTo, {*element}, {{"shape", *shape}}));
  }
  runtime::Tensor out(value.dtype(), *shape);
  const size_t width = value.bytes().size();
  for (size_t at = 0; at < out.bytes().size(); at += width) {
    std::ranges::copy(value.bytes(), out.bytes().begin() + static_cast<std::ptrdiff_t>(at));
  }
  return node.result(node.constant(std::move(out)));
}

Status flatten(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", 1));
  return node.result(node.apply(ops::kFlatten, {*x}, {{"axis", *axis}}));
}

// The shape in the form that passes support best: constants, with 0 for a size of x and -1 for one that follows from
// the others; nothing where more is symbolic.
std::optional<Ints> constant_shape(Context& context, const Dims& x, const Dims& shape) {
  Ints sizes;
  std::optional<size_t> open;
  Dim left = context.dim(1), right = left;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto value = shape[i].constant();
    if (value == 0) return std::nullopt;
    const bool copied = !value && i < x.size() && x[i] == shape[i];
    if (!value && !copied && open) return std::nullopt;
    if (!value && !copied) open = i;
    else right = context.multiply(right, shape[i]);
    sizes.push_back(value ? *value : copied ? 0 : -1);
  }
  for (const Dim dim : x) left = context.multiply(left, dim);
  if (open && context.divide(left, right) != shape[*open]) return std::nullopt;
  return sizes;
}

// A list that is an input from opset `since` on, an attribute before.
Expected<Integers> ints_of(NodeImport& node, int64_t since, size_t input, const std::string& name,
                           std::string_view what, std::optional<Integers> fallback) {
  if (node.opset() >= since && node.has_input(input)) return Integers::input(node, input, what);
  if (node.opset() < since && (node.has(name) || !fallback)) {
    TENON_TRY_ASSIGN(list, node.list(name));
    return Integers::of(node.context(), *list);
  }
  if (fallback) return *fallback;
  return node.fail(fmt::format("the input or attribute {} is missing", name));
}

Status reshape(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(shape, ints_of(node, 5, 1, "shape", "the shape", {}));
  TENON_TRY_ASSIGN(allow_zero, node.integer("allowzero", 0));
  const auto constants = shape->constants();
  const bool has_zero = constants && std::ranges::find(*constants, 0) != constants->end();
  OperatorAttributes attrs;
  if (*allow_zero && (has_zero || !shape->dims())) attrs.set("zero", int64_t{1});
  attrs.set("shape", *shape);
  if (constants) {
    const auto result = attrs.apply(node, ops::kReshape, {*x});
    if (result || type->shape()) return node.result(result);
    // A size that is not known to divide the number of elements does so when the model runs.
    TENON_TRY_ASSIGN(operand, shape->vector(node));
    Attrs exact;
    if (*allow_zero && has_zero) exact.emplace("zero", int64_t{1});
    return node.result(node.apply(ops::kReshape, {*x}, std::move(exact), {{"shape", *operand}}));
  }
  if (!shape->dims()) return node.result(attrs.apply(node, ops::kReshape, {*x}));
  // 0 and -1 as the sizes that they stand for.
  Context& context = node.context();
  Dims sizes = *shape->dims();
  Dim elements = context.product(type->dims), others = context.dim(1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].constant() == 0 && !*allow_zero && i < type->dims.size()) sizes[i] = type->dims[i];
    if (sizes[i].constant() != -1) others = context.multiply(others, sizes[i]);
  }
  for (Dim& size : sizes) {
    const auto quotient = size.constant() == -1 ? context.divide(elements, others) : std::nullopt;
    if (quotient) size = *quotient;
  }
  if (const auto plain = constant_shape(context, type->dims, sizes))
    return node.result(node.apply(ops::kReshape, {*x}, {{"shape", *plain}}));
  OperatorAttributes exact({{"zero", int64_t{1}}});
  exact.set("shape", Integers(sizes.size(), sizes, std::nullopt));
  TENON_TRY_ASSIGN(result, exact.apply(node, ops::kReshape, {*x}));
  const TensorType* found = node.builder().tensor_type(*result);
  const bool sized = std::ranges::none_of(sizes, [](Dim size) { return size.constant() == -1; });
  if (!sized || found->dims == sizes) return node.result(*result);
  return node.result(node.builder().bind(Cast{*result, context.tensor(sizes, type->dtype), {}},
                                         context.symbol(node.node().outputs[0])));
}

Status transpose(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  Ints reversed;
  for (int64_t axis = type->rank(); axis-- > 0;) reversed.push_back(axis);
  TENON_TRY_ASSIGN(axes, node.list("perm", reversed));
  return node.result(node.apply(ops::kTranspose, {*x}, {{"axes", *axes}}));
}

Status concat(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TRY_ASSIGN(axis, node.integer("axis"));
  return node.result(node.apply(ops::kConcat, std::move(args), {{"axis", *axis}}));
}

// 0 .. rank - 1
Integers all_axes(NodeImport& node, size_t rank) {
  Ints axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return Integers::of(node.context(), axes);
}

// x without the elements that negative pads remove, which are 0 afterwards. Elements are removed first: a boundary that
// is reflected, repeated or wrapped is that of what is left, as in ONNX Runtime.
Expected<Atom> cropped_by_negative_pads(NodeImport& node, Atom x, Integers& before, Integers& after) {
  Context& context = node.context();
  const DimProver prover(context);
  const auto is_padding = [&](const Integers& pads) {
    return pads.dims() && std::ranges::all_of(*pads.dims(), [&](Dim pad) {
             return prover.less_equal(context.dim(0), pad) == Answer::kYes;
           });
  };
  if (is_padding(before) && is_padding(after)) return x;
  const size_t rank = before.size();
  OperatorAttributes crop({{"step", Ints(rank, 1)}});
  const auto begins = before.constants(), ends = after.constants();
  if (begins && ends) {
    Ints begin(rank, 0), end(rank, INT64_MAX), first = *begins, last = *ends;
    for (size_t i = 0; i < rank; ++i) {
      begin[i] = std::max<int64_t>(-std::max(first[i], -INT64_MAX), 0), first[i] = std::max<int64_t>(first[i], 0);
      if (last[i] < 0) end[i] = last[i];
      last[i] = std::max<int64_t>(last[i], 0);
    }
    before = Integers::of(context, first), after = Integers::of(context, last);
    crop.set("begin", begin);
    crop.set("end", end);
    return crop.apply(node, ops::kSlice, {x});
  }
  NodeFormula f(node);
  const Term zero = f.scalar(0, DType::kI64), first = f.vector(before), last = f.vector(after);
  const auto part = [&](OperatorId op, const Term& pads) { return f.apply(op, {pads, zero}); };
  crop.set("begin", f.integers(-part(ops::kMinimum, first)));
  crop.set("end", f.integers(f.apply(ops::kShapeOf, {f.term(x)}) + part(ops::kMinimum, last)));
  before = f.integers(part(ops::kMaximum, first)), after = f.integers(part(ops::kMaximum, last));
  TENON_TRY(f.status());
  return crop.apply(node, ops::kSlice, {x});
}

// Pads are an attribute up to opset 10.
Status pad(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(mode, node.string("mode", "constant"));
  const bool plain = *mode == "constant";
  if (!plain && *mode != "reflect" && *mode != "edge" && *mode != "wrap") {
    return node.fail(fmt::format("padding of mode '{}' is not supported", *mode));
  }
  TENON_TRY_ASSIGN(pads, ints_of(node, 11, 1, "pads", "the pads", {}));
  double value = 0;
  std::optional<Atom> computed_value;
  if (node.opset() < 11) {
    TENON_TRY_ASSIGN(given, node.real("value", 0.0));
    value = *given;
  } else if (node.has_input(2)) {
    if (const auto given = node.constant(2, "the value")) {
      if (given->size() != 1) return node.fail("the value must be one element");
      value = element_of(*given);
    } else {
      TENON_TRY_ASSIGN(scalar, node.apply(ops::kReshape, {2}, {{"shape", Ints{}}}));
      TENON_TRY_ASSIGN(real, node.apply(ops::kCast, {*scalar}, {{"dtype", std::string("f64")}}));
      computed_value = *real;
    }
  }
  const int64_t rank = type->rank();
  Integers axes = all_axes(node, static_cast<size_t>(rank));
  if (node.has_input(3)) {
    TENON_TRY_ASSIGN(given, Integers::input(node, 3, "the axes"));
    axes = *given;
  }
  if (pads->size() != 2 * axes.size()) return node.fail(fmt::format("{} pads for {} axes", pads->size(), axes.size()));
  TENON_TRY_ASSIGN(before, pads->part(node, 0, axes.size()));
  TENON_TRY_ASSIGN(after, pads->part(node, axes.size(), pads->size()));
  TENON_TRY_ASSIGN(all_before, before->at_axes(node, axes, rank, 0));
  TENON_TRY_ASSIGN(all_after, after->at_axes(node, axes, rank, 0));
  TENON_TRY_ASSIGN(cropped, cropped_by_negative_pads(node, *x, *all_before, *all_after));
  OperatorAttributes attrs;
  attrs.set("before", *all_before);
  attrs.set("after", *all_after);
  if (plain && computed_value) attrs.set_operand("value", *computed_value);
  else if (plain) attrs.set("value", value);
  const OperatorId op = plain                ? ops::kPad
                        : *mode == "edge"    ? ops::kPadEdge
                        : *mode == "reflect" ? ops::kPadReflect
                                             : ops::kPadWrap;
  return node.result(attrs.apply(node, op, {*cropped}));
}

// Starts, ends, axes and steps are inputs from opset 10 on.
Status slice(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(starts, ints_of(node, 10, 1, "starts", "the starts", {}));
  TENON_TRY_ASSIGN(ends, ints_of(node, 10, 2, "ends", "the ends", {}));
  TENON_TRY_ASSIGN(axes, ints_of(node, 10, 3, "axes", "the axes", all_axes(node, starts->size())));
  const Integers ones = Integers::of(node.context(), Ints(starts->size(), 1));
  TENON_TRY_ASSIGN(steps, ints_of(node, 10, 4, "steps", "the steps", ones));
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size()) {
    return node.fail("starts, ends, axes and steps have different lengths");
  }
  const int64_t rank = type->rank();
  TENON_TRY_ASSIGN(begin, starts->at_axes(node, *axes, rank, 0));
  TENON_TRY_ASSIGN(end, ends->at_axes(node, *axes, rank, INT64_MAX));
  TENON_TRY_ASSIGN(step, steps->at_axes(node, *axes, rank, 1));
  OperatorAttributes attrs;
  attrs.set("begin", *begin);
  attrs.set("end", *end);
  attrs.set("step", *step);
  return node.result(attrs.apply(node, ops::kSlice, {*x}));
}

// The axes of Squeeze and Unsqueeze: an attribute up to opset 12.
Expected<Ints> axes_of(NodeImport& node, int64_t rank, std::optional<Ints> fallback) {
  Expected<Ints> axes = node.opset() < 13   ? node.list("axes", fallback)
                        : node.has_input(1) ? node.integers(1, "the axes")
                        : fallback          ? Expected<Ints>(*fallback)
                                            : node.fail("the axes are missing");
  if (!axes) return axes;
  for (int64_t& axis : *axes) {
    if (axis < -rank || axis >= rank) return node.fail(fmt::format("there is no axis {}", axis));
    if (axis < 0) axis += rank;
  }
  return axes;
}

// An operator that removes or adds axes of size 1: a reshape to `dims`, which passes support best, where at part one
// size is unknown.
Status change_axes(NodeImport& node, OperatorId op, const Ints& axes, const Dims& dims) {
  Ints shape;
  for (Dim dim : dims) shape.push_back(dim.constant().value_or(-1));
  const bool open = std::ranges::count(shape, -1) > 1 || std::ranges::find(shape, 0) != shape.end();
  return node.result(open ? node.apply(op, {0}, {{"axes", axes}}) : node.apply(ops::kReshape, {0}, {{"shape", shape}}));
}

// Squeeze and Unsqueeze with axes that are computed; nothing where they are constants.
Expected<std::optional<Atom>> with_computed_axes(NodeImport& node, OperatorId op) {
  if (node.opset() < 13 || !node.has_input(1)) return std::nullopt;
  TENON_TRY_ASSIGN(axes, Integers::input(node, 1, "the axes"));
  if (axes->constants()) return std::nullopt;
  TENON_TRY_ASSIGN(x, node.input(0));
  OperatorAttributes attrs;
  attrs.set("axes", *axes);
  TENON_TRY_ASSIGN(result, attrs.apply(node, op, {*x}));
  return std::optional(*result);
}

Status squeeze(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(computed, with_computed_axes(node, ops::kSqueeze));
  if (*computed) return node.result(**computed);
  Ints ones;
  for (int64_t i = 0; i < type->rank(); ++i) {
    if (type->dims[i].constant() == 1) ones.push_back(i);
  }
  TENON_TRY_ASSIGN(axes, axes_of(node, type->rank(), ones));
  Dims dims;
  bool known = true;  // all sizes of the axes that are removed
  for (int64_t i = 0; i < type->rank(); ++i) {
    const bool removed = std::ranges::find(*axes, i) != axes->end();
    const std::optional<int64_t> size = type->dims[i].constant();
    if (removed && size.value_or(1) != 1) {
      return node.fail(fmt::format("axis {} of {} is not 1", i, node.builder().context().str(type->dims)));
    }
    if (removed) known = known && size;
    else dims.push_back(type->dims[i]);
  }
  if (!known) return node.result(node.apply(ops::kSqueeze, {0}, {{"axes", *axes}}));  // checked at run time
  return change_axes(node, ops::kSqueeze, *axes, dims);
}

Status unsqueeze(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(computed, with_computed_axes(node, ops::kExpandDims));
  if (*computed) return node.result(**computed);
  const auto count = node.opset() < 13 ? node.list("axes") : node.integers(1, "the axes");
  if (!count) return std::unexpected(count.error());
  TENON_TRY_ASSIGN(axes, axes_of(node, type->rank() + static_cast<int64_t>(count->size()), {}));
  Ints sorted = *axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return node.fail("an axis is listed twice");
  Dims dims = type->dims;
  for (int64_t axis : sorted) dims.insert(dims.begin() + axis, node.builder().context().dim(1));
  return change_axes(node, ops::kExpandDims, sorted, dims);
}

Status shape(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const int64_t rank = type->rank();
  TENON_TRY_ASSIGN(start, node.integer("start", 0));
  TENON_TRY_ASSIGN(end, node.integer("end", rank));
  auto clamped = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  const int64_t first = clamped(*start), last = std::max(clamped(*end), first);
  const Dims part(type->dims.begin() + first, type->dims.begin() + last);
  if (const auto known = TensorType{part, DType::kI64}.shape())
    return node.result(node.constant(runtime::Tensor::of<int64_t>({last - first}, *known)));
  TENON_TRY_ASSIGN(all, node.apply(ops::kShapeOf, {0}));
  if (last - first == rank) return node.result(*all);
  return node.result(node.apply(ops::kSlice, {*all}, {{"begin", Ints{first}}, {"end", Ints{last}}, {"step", Ints{1}}}));
}

Status size(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  if (const auto known = type->shape()) {
    if (!runtime::checked_bytes(type->dtype, *known))
      return node.fail(fmt::format("x has the impossible shape {}", runtime::to_string(*known)));
    return node.result(node.constant(runtime::Tensor::of<int64_t>({}, std::array{runtime::element_count(*known)})));
  }
  TENON_TRY_ASSIGN(all, node.apply(ops::kShapeOf, {0}));
  return node.result(node.apply(ops::kProd, {*all}));
}

// Sizes are an attribute up to opset 12; without them the parts are equal, except for a smaller last one.
Status split(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", 0));
  const auto parts = static_cast<int64_t>(node.node().outputs.size());
  TENON_TRY_ASSIGN(count, node.integer("num_outputs", parts));
  Integers sizes = Integers::of(node.context(), {});
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(given, Integers::input(node, 1, "the sizes"));
    sizes = *given;
  } else {
    TENON_TRY_ASSIGN(given, node.list("split", Ints{}));
    sizes = Integers::of(node.context(), *given);
  }
  if (sizes.size() == 0) {
    const int64_t index = *axis < 0 ? *axis + type->rank() : *axis;
    if (index < 0 || index >= type->rank()) return node.fail(fmt::format("there is no axis {}", *axis));
    if (*count != parts) return node.fail(fmt::format("{} parts for {} outputs", *count, parts));
    // ceil(size / parts), and less for the last parts
    Context& context = node.context();
    const Dim size = type->dims[index], part = context.ceil_divide(size, parts);
    Dims dims;
    for (int64_t i = 0; i < parts; ++i) {
      const Dim left =
          context.maximum({context.subtract(size, context.multiply(context.dim(i), part)), context.dim(0)});
      dims.push_back(context.divide(size, context.dim(parts)) ? part : context.minimum({left, part}));
    }
    sizes = Integers(dims.size(), dims, std::nullopt);
  }
  if (static_cast<int64_t>(sizes.size()) != parts) {
    return node.fail(fmt::format("{} sizes for {} outputs", sizes.size(), parts));
  }
  TENON_TRY_ASSIGN(x, node.input(0));
  OperatorAttributes attrs({{"axis", *axis}});
  attrs.set("sizes", sizes);
  return node.results(attrs.apply(node, ops::kSplit, {*x}));
}

Status tile(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(repeats, Integers::input(node, 1, "the repeats"));
  OperatorAttributes attrs;
  attrs.set("repeats", *repeats);
  return node.result(attrs.apply(node, ops::kTile, {*x}));
}

// The shape broadcasts with x's shape: a size of 1 keeps x's size. Where it is not known which of two sizes is 1, the
// result's size is known when the model runs.
Status expand(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(shape, Integers::input(node, 1, "the shape"));
  Context& context = node.context();
  const DimProver prover(context);
  bool known = shape->dims().has_value();
  Dims sizes = shape->dims().value_or(Dims());
  while (known && sizes.size() < type->dims.size()) sizes.insert(sizes.begin(), context.dim(1));
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim& size = sizes[i];
    const auto value = size.constant();
    if (value && *value < 0) return node.fail(fmt::format("the size {} is negative", *value));
    if (i + type->dims.size() < sizes.size()) continue;
    const Dim given = type->dims[i + type->dims.size() - sizes.size()];
    if (value == 1 || prover.equal(given, size) == Answer::kYes) size = context.dim(-1);
    else known &= given.constant() == 1 || value.has_value();
  }
  if (!known) {
    TENON_TRY_ASSIGN(operand, shape->vector(node));
    return node.result(node.apply(ops::kBroadcastDynamic, {*x, *operand}));
  }
  OperatorAttributes attrs;
  attrs.set("shape", Integers(sizes.size(), sizes, std::nullopt));
  return node.result(attrs.apply(node, ops::kBroadcastTo, {*x}));
}

}  // namespace

std::span<const Converter> shape_converters() {
  static constexpr Converter kTable[] = {
      {"Concat", 1, 4096, concat},
      {"Constant", 0, 0, constant},
      {"Expand", 2, 2, expand},
      {"Flatten", 1, 1, flatten},
      {"Pad", 1, 4, pad},
      {"ConstantOfShape", 1, 1, constant_of_shape},
      {"Reshape", 1, 2, reshape},
      {"Shape", 1, 1, shape},
      {"Slice", 1, 5, slice},
      {"Size", 1, 1, size},
      {"Split", 1, 2, split},
      {"Squeeze", 1, 2, squeeze},
      {"Tile", 2, 2, tile},
      {"Transpose", 1, 1, transpose},
      {"Unsqueeze", 1, 2, unsqueeze},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
