// Converters of the ONNX operators that move elements and compute shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMaxConstant = 1 << 24;  // elements of ConstantOfShape

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

Status constant_of_shape(NodeImport& node) {
  TENON_TRY_ASSIGN(shape, node.integers(0, "the shape"));
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
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", 1));
  return node.result(node.apply(ops::kFlatten, {*x}, {{"axis", *axis}}));
}

Status reshape(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(shape, node.integers(1, "the shape"));
  TENON_TRY_ASSIGN(allow_zero, node.integer("allowzero", 0));
  if (*allow_zero && std::ranges::find(*shape, 0) != shape->end()) return node.fail("allowzero is not supported");
  return node.result(node.apply(ops::kReshape, {*x}, {{"shape", *shape}}));
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

// Pads are an attribute up to opset 10.
Status pad(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(mode, node.string("mode", "constant"));
  const bool plain = *mode == "constant";
  if (!plain && *mode != "reflect" && *mode != "edge" && *mode != "wrap") {
    return node.fail(fmt::format("padding of mode '{}' is not supported", *mode));
  }
  Expected<Ints> pads = node.opset() < 11 ? node.list("pads") : node.integers(1, "the pads");
  if (!pads) return std::unexpected(pads.error());
  double value = 0;
  if (node.opset() < 11) {
    TENON_TRY_ASSIGN(given, node.real("value", 0.0));
    value = *given;
  } else if (node.has_input(2)) {
    TENON_TRY_ASSIGN(given, node.constant(2, "the value"));
    if (given->size() != 1) return node.fail("the value must be one element");
    runtime::with_dtype<runtime::kAnyDType>(given->dtype(),
                                            [&]<class T>(T) { value = static_cast<double>(given->data<T>()[0]); });
  }
  const int64_t rank = type->rank();
  Ints axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (node.has_input(3)) {
    TENON_TRY_ASSIGN(given, node.integers(3, "the axes"));
    axes = *given;
  }
  if (pads->size() != 2 * axes.size()) return node.fail(fmt::format("{} pads for {} axes", pads->size(), axes.size()));
  Ints before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
    if (axis < 0 || axis >= rank) return node.fail(fmt::format("there is no axis {}", axes[i]));
    before[axis] = (*pads)[i], after[axis] = (*pads)[axes.size() + i];
  }
  Attrs attrs{{"before", before}, {"after", after}};
  if (plain) attrs.emplace("value", value);
  return node.result(node.apply(plain                ? ops::kPad
                                : *mode == "edge"    ? ops::kPadEdge
                                : *mode == "reflect" ? ops::kPadReflect
                                                     : ops::kPadWrap,
                                {*x}, std::move(attrs)));
}

// Starts, ends, axes and steps are inputs from opset 10 on.
Status slice(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  auto given = [&](size_t input, const std::string& name, std::optional<Ints> fallback) -> Expected<Ints> {
    if (node.opset() < 10) return node.list(name, fallback);
    if (node.has_input(input)) return node.integers(input, "the " + name);
    if (fallback) return *fallback;
    return node.fail("the " + name + " are missing");
  };
  TENON_TRY_ASSIGN(starts, given(1, "starts", {}));
  TENON_TRY_ASSIGN(ends, given(2, "ends", {}));
  Ints all;
  for (size_t i = 0; i < starts->size(); ++i) all.push_back(static_cast<int64_t>(i));
  TENON_TRY_ASSIGN(axes, given(3, "axes", all));
  TENON_TRY_ASSIGN(steps, given(4, "steps", Ints(starts->size(), 1)));
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
  return node.result(node.apply(ops::kSlice, {*x}, {{"begin", begin}, {"end", end}, {"step", step}}));
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

Status squeeze(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  Ints ones;
  for (int64_t i = 0; i < type->rank(); ++i) {
    if (type->dims[i].constant() == 1) ones.push_back(i);
  }
  TENON_TRY_ASSIGN(axes, axes_of(node, type->rank(), ones));
  Dims dims;
  for (int64_t i = 0; i < type->rank(); ++i) {
    const bool removed = std::ranges::find(*axes, i) != axes->end();
    if (removed && type->dims[i].constant() != 1) {
      return node.fail(fmt::format("axis {} of {} is not 1", i, node.builder().context().str(type->dims)));
    }
    if (!removed) dims.push_back(type->dims[i]);
  }
  return change_axes(node, ops::kSqueeze, *axes, dims);
}

Status unsqueeze(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
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

// The sizes of input 0, which must be constant.
Expected<runtime::Shape> known_shape(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const auto known = type->shape();
  if (known) return *known;
  return node.fail(fmt::format("the shape {} is not constant", node.builder().context().str(type->dims)),
                   "bind its sizes, as --shapes N=1");
}

Status shape(NodeImport& node) {
  TENON_TRY_ASSIGN(sizes, known_shape(node));
  const auto rank = static_cast<int64_t>(sizes->size());
  TENON_TRY_ASSIGN(start, node.integer("start", 0));
  TENON_TRY_ASSIGN(end, node.integer("end", rank));
  auto clamped = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  const int64_t first = clamped(*start), last = std::max(clamped(*end), first);
  return node.result(
      node.constant(runtime::Tensor::of<int64_t>({last - first}, std::span(*sizes).subspan(first, last - first))));
}

Status size(NodeImport& node) {
  TENON_TRY_ASSIGN(sizes, known_shape(node));
  return node.result(node.constant(runtime::Tensor::of<int64_t>({}, std::array{runtime::element_count(*sizes)})));
}

// Sizes are an attribute up to opset 12; without them the parts are equal, except for a smaller last one.
Status split(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axis, node.integer("axis", 0));
  const auto parts = static_cast<int64_t>(node.node().outputs.size());
  TENON_TRY_ASSIGN(count, node.integer("num_outputs", parts));
  TENON_TRY_ASSIGN(sizes, node.has_input(1) ? node.integers(1, "the sizes") : node.list("split", Ints{}));
  if (sizes->empty()) {
    const int64_t index = *axis < 0 ? *axis + type->rank() : *axis;
    if (index < 0 || index >= type->rank()) return node.fail(fmt::format("there is no axis {}", *axis));
    const auto size = type->dims[index].constant();
    if (!size || *count != parts) return node.fail("equal parts of an unknown size are not supported");
    const int64_t part = (*size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes->push_back(std::clamp<int64_t>(*size - i * part, 0, part));
  }
  if (static_cast<int64_t>(sizes->size()) != parts) {
    return node.fail(fmt::format("{} sizes for {} outputs", sizes->size(), parts));
  }
  return node.results(node.apply(ops::kSplit, {0}, {{"sizes", *sizes}, {"axis", *axis}}));
}

Status tile(NodeImport& node) {
  TENON_TRY_ASSIGN(repeats, node.integers(1, "the repeats"));
  return node.result(node.apply(ops::kTile, {0}, {{"repeats", *repeats}}));
}

// The shape broadcasts with x's shape: a size of 1 keeps x's size.
Status expand(NodeImport& node) {
  TENON_TRY_ASSIGN(type, node.type(0));
  auto shape = node.integers(1, "the shape");
  if (!shape) {  // a computed shape
    TENON_TRY_ASSIGN(sizes, node.type(1));
    if (sizes->dtype != DType::kI64 || sizes->rank() != 1) return std::unexpected(shape.error());
    return node.result(node.apply(ops::kBroadcastDynamic, {0, 1}));
  }
  while (static_cast<int64_t>(shape->size()) < type->rank()) shape->insert(shape->begin(), 1);
  for (int64_t i = 0; i < static_cast<int64_t>(shape->size()); ++i) {
    int64_t& size = (*shape)[i];
    if (size < 0) return node.fail(fmt::format("the size {} is negative", size));
    if (size == 1 && i >= static_cast<int64_t>(shape->size()) - type->rank()) size = -1;
  }
  return node.result(node.apply(ops::kBroadcastTo, {0}, {{"shape", *shape}}));
}

}  // namespace

std::span<const OnnxConverter> onnx_shape_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"Concat", 1, 4096, concat},
      {"Constant", 0, 0, constant},
      {"Expand", 2, 2, expand},
      {"Flatten", 1, 1, flatten},
      {"Pad", 1, 4, pad},
      {"ConstantOfShape", 1, 1, constant_of_shape},
      {"Reshape", 2, 2, reshape},
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

}  // namespace tenon::compiler
