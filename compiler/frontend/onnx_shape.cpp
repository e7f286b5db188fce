// Converters of the ONNX operators that move elements and compute shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMaxConstant = 1 << 24;  // elements of ConstantOfShape

Status constant(NodeImport& node) {
  const auto& attrs = node.node().attrs;
  if (attrs.size() != 1) return node.fail("needs exactly one attribute with the value");
  const auto& [name, value] = *attrs.begin();
  (void)node.has(name);  // any name will do
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

Status constant_of_shape(NodeImport& node) {
  TENON_TAKE(shape, node.integers(0, "the shape"));
  int64_t count = 1;
  for (int64_t size : *shape) {
    if (size < 0 || size > kMaxConstant || (count *= std::max<int64_t>(size, 1)) > kMaxConstant) {
      return node.fail(fmt::format("the shape [{}] is impossible", fmt::join(*shape, ", ")));
    }
  }
  runtime::Tensor value = runtime::Tensor::of<float>({1}, std::array{0.0f});
  if (node.has("value")) {
    auto* given = std::get_if<runtime::Tensor>(&node.node().attrs.at("value"));
    if (!given || given->size() != 1) return node.fail("the attribute 'value' must be one element");
    value = *given;
  }
  runtime::Tensor out(value.dtype(), *shape);
  const size_t width = value.bytes().size();
  for (size_t at = 0; at < out.bytes().size(); at += width) {
    std::ranges::copy(value.bytes(), out.bytes().begin() + static_cast<std::ptrdiff_t>(at));
  }
  return node.result(node.constant(std::move(out)));
}

Status flatten(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(axis, node.integer("axis", 1));
  return node.result(node.apply("flatten", {*x}, {{"axis", *axis}}));
}

Status reshape(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(shape, node.integers(1, "the shape"));
  TENON_TAKE(allow_zero, node.integer("allowzero", 0));
  if (*allow_zero && std::ranges::find(*shape, 0) != shape->end()) return node.fail("allowzero is not supported");
  return node.result(node.apply("reshape", {*x}, {{"shape", *shape}}));
}

Status transpose(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(type, node.type(0));
  Ints reversed;
  for (int64_t axis = type->rank(); axis-- > 0;) reversed.push_back(axis);
  TENON_TAKE(axes, node.list("perm", reversed));
  return node.result(node.apply("transpose", {*x}, {{"axes", *axes}}));
}

Status concat(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < node.inputs(); ++i) {
    TENON_TAKE(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TAKE(axis, node.integer("axis"));
  return node.result(node.apply("concat", std::move(args), {{"axis", *axis}}));
}

Status cast(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(to, node.integer("to"));
  static constexpr std::pair<int64_t, DType> kTypes[] = {{1, DType::kF32}, {2, DType::kU8},   {3, DType::kI8},
                                                         {4, DType::kU16}, {5, DType::kI16},  {6, DType::kI32},
                                                         {7, DType::kI64}, {9, DType::kBool}, {11, DType::kF64}};
  for (const auto& [number, dtype] : kTypes) {
    if (number == *to) return node.result(node.apply("cast", {*x}, {{"dtype", std::string(runtime::name(dtype))}}));
  }
  return node.fail(fmt::format("a cast to ONNX's data type {} is not supported", *to));
}

// Constant padding; pads are an attribute up to opset 10.
Status pad(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(type, node.type(0));
  TENON_TAKE(mode, node.string("mode", "constant"));
  if (*mode != "constant") return node.fail(fmt::format("padding of mode '{}' is not supported", *mode));
  Expected<Ints> pads = node.opset() < 11 ? node.list("pads") : node.integers(1, "the pads");
  if (!pads) return std::unexpected(pads.error());
  double value = 0;
  if (node.opset() < 11) {
    TENON_TAKE(given, node.real("value", 0.0));
    value = *given;
  } else if (node.has_input(2)) {
    TENON_TAKE(given, node.constant(2, "the value"));
    if (given->dtype() != DType::kF32 || given->size() != 1) return node.fail("the value must be one f32");
    value = given->data<float>()[0];
  }
  if (node.has_input(3)) return node.fail("padding of chosen axes is not supported");
  const auto rank = static_cast<size_t>(type->rank());
  if (pads->size() != 2 * rank) {
    return node.fail(fmt::format("{} pads for {} dims", pads->size(), rank));
  }
  const auto middle = pads->begin() + static_cast<std::ptrdiff_t>(rank);
  return node.result(node.apply(
      "pad", {*x}, {{"before", Ints(pads->begin(), middle)}, {"after", Ints(middle, pads->end())}, {"value", value}}));
}

// Starts, ends, axes and steps are inputs from opset 10 on.
Status slice(NodeImport& node) {
  TENON_TAKE(x, node.input(0));
  TENON_TAKE(type, node.type(0));
  auto given = [&](size_t input, const std::string& name, std::optional<Ints> fallback) -> Expected<Ints> {
    if (node.opset() < 10) return node.list(name, fallback);
    if (node.has_input(input)) return node.integers(input, "the " + name);
    if (fallback) return *fallback;
    return node.fail("the " + name + " are missing");
  };
  TENON_TAKE(starts, given(1, "starts", {}));
  TENON_TAKE(ends, given(2, "ends", {}));
  Ints all;
  for (size_t i = 0; i < starts->size(); ++i) all.push_back(static_cast<int64_t>(i));
  TENON_TAKE(axes, given(3, "axes", all));
  TENON_TAKE(steps, given(4, "steps", Ints(starts->size(), 1)));
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size()) {
    return node.fail("starts, ends, axes and steps have different lengths");
  }
  const int64_t rank = type->rank();
  Ints begin(rank, 0), end(rank, INT64_MAX), step(rank, 1);
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t axis = (*axes)[i];
    if (axis < -rank || axis >= rank) return node.fail(fmt::format("there is no axis {}", axis));
    if (axis < 0) axis += rank;
    begin[axis] = (*starts)[i], end[axis] = (*ends)[i], step[axis] = (*steps)[i];
  }
  return node.result(node.apply("slice", {*x}, {{"begin", begin}, {"end", end}, {"step", step}}));
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

// A reshape to `dims`, of which one may be unknown.
Status reshape_to(NodeImport& node, const Dims& dims) {
  TENON_TAKE(x, node.input(0));
  Ints shape;
  for (Dim dim : dims) shape.push_back(dim.constant().value_or(-1));
  if (std::ranges::count(shape, -1) > 1) return node.fail("more than one size is unknown", "bind them with --shapes");
  return node.result(node.apply("reshape", {*x}, {{"shape", shape}}));
}

Status squeeze(NodeImport& node) {
  TENON_TAKE(type, node.type(0));
  Ints ones;
  for (int64_t i = 0; i < type->rank(); ++i) {
    if (type->dims[i].constant() == 1) ones.push_back(i);
  }
  TENON_TAKE(axes, axes_of(node, type->rank(), ones));
  Dims dims;
  for (int64_t i = 0; i < type->rank(); ++i) {
    const bool removed = std::ranges::find(*axes, i) != axes->end();
    if (removed && type->dims[i].constant() != 1) {
      return node.fail(fmt::format("axis {} of {} is not 1", i, node.builder().context().str(type->dims)));
    }
    if (!removed) dims.push_back(type->dims[i]);
  }
  return reshape_to(node, dims);
}

Status unsqueeze(NodeImport& node) {
  TENON_TAKE(type, node.type(0));
  const auto count = node.opset() < 13 ? node.list("axes") : node.integers(1, "the axes");
  if (!count) return std::unexpected(count.error());
  const int64_t rank = type->rank() + static_cast<int64_t>(count->size());
  TENON_TAKE(axes, axes_of(node, rank, {}));
  Ints sorted = *axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return node.fail("an axis comes twice");
  Dims dims = type->dims;
  for (int64_t axis : sorted) dims.insert(dims.begin() + axis, node.builder().context().dim(1));
  return reshape_to(node, dims);
}

Status shape(NodeImport& node) {
  TENON_TAKE(type, node.type(0));
  if (node.has("start") || node.has("end")) return node.fail("a part of a shape is not supported");
  const auto known = type->shape();
  if (!known) {
    return node.fail(fmt::format("the shape {} is not known when compiling", node.builder().context().str(type->dims)),
                     "bind its sizes, as --shapes N=1");
  }
  return node.result(node.constant(runtime::Tensor::of<int64_t>({type->rank()}, *known)));
}

}  // namespace

std::span<const OnnxConverter> onnx_shape_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"Cast", 1, 1, cast},
      {"Concat", 1, 4096, concat},
      {"Constant", 0, 0, constant},
      {"Flatten", 1, 1, flatten},
      {"Pad", 1, 4, pad},
      {"ConstantOfShape", 1, 1, constant_of_shape},
      {"Reshape", 2, 2, reshape},
      {"Shape", 1, 1, shape},
      {"Slice", 1, 5, slice},
      {"Squeeze", 1, 2, squeeze},
      {"Transpose", 1, 1, transpose},
      {"Unsqueeze", 1, 2, unsqueeze},
  };
  return kTable;
}

}  // namespace tenon::compiler
