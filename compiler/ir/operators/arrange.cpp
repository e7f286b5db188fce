// Rearrangements of elements: split, stack, tile, triangles, blocks, and padding with elements of the tensor.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

Expected<Type> split(const RuleInput& in) {
  const TensorType& x = in.arg(0);
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", x.rank()));
  TENON_TRY_ASSIGN(sizes, sizes_attr(in, "sizes", {}, 0));
  Dim sum = in.context.dim(0);
  std::vector<Type> parts;
  std::vector<std::string> texts;
  for (const Dim size : *sizes) {
    Dims dims = x.dims;
    dims[*axis] = size;
    parts.push_back(in.context.tensor(std::move(dims), x.dtype));
    texts.push_back(in.context.str(size));
    sum = in.context.add(sum, size);
  }
  if (sizes->empty()) return error("sizes must not be empty");
  if (!sum.erased()) {
    TENON_TRY(require_size(in, 0, *axis, sum,
                           fmt::format("the sizes [{}] sum to {}, axis {} is {}", fmt::join(texts, ", "),
                                       in.context.str(sum), *axis, in.context.str(x.dims[*axis]))));
  }
  return in.context.tuple(std::move(parts));
}

Expected<Type> stack(const RuleInput& in) {
  TENON_TRY_ASSIGN(axis, axis_of(in, "axis", in.arg(0).rank() + 1));
  for (size_t i = 1; i < in.args.size(); ++i) {
    TENON_TRY(require_type(in, i, fmt::format("argument {}", i), in.args[0]));
  }
  Dims dims = in.arg(0).dims;
  dims.insert(dims.begin() + *axis, in.context.dim(static_cast<int64_t>(in.args.size())));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> tile(const RuleInput& in) {
  Dims dims = in.arg(0).dims;
  TENON_TRY_ASSIGN(repeats, sizes_attr(in, "repeats", dims.size(), 0));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = in.context.multiply(dims[d], (*repeats)[d]);
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> broadcast_to(const RuleInput& in) {
  const Dims& x = in.arg(0).dims;
  TENON_TRY_ASSIGN(sizes, sizes_attr(in, "shape", {}, -1));
  const Dims& shape = *sizes;
  std::vector<std::string> texts;
  for (const Dim size : shape) texts.push_back(in.context.str(size));
  const std::string differs =
      fmt::format("{} does not broadcast to [{}]", in.context.str(in.args[0]), fmt::join(texts, ", "));
  if (shape.size() < x.size())
    return error(differs, "", "the shape must have at least as many dims as x; -1 keeps a size of x");
  Dims dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool has = i + x.size() >= shape.size();
    const size_t axis = i + x.size() - shape.size();
    const Dim size = has ? x[axis] : in.context.dim(1);
    dims.push_back(shape[i].constant() == -1 ? size : shape[i]);
    if (has && size.constant() != 1 && !shape[i].erased()) TENON_TRY(require_size(in, 0, axis, dims.back(), differs));
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

// A constant size of x other than 1 is a size of the result; the other sizes are computed at run time.
Expected<Type> broadcast_dynamic(const RuleInput& in) {
  TENON_TRY(check_rank(in, 1, "shape", 1));
  const auto count = in.arg(1).dims[0].constant();
  if (!count || *count > 32) {
    return error(fmt::format("the number of dims must be a constant, at most 32: {}", describe(in, {"x", "shape"})));
  }
  const Dims& x = in.arg(0).dims;
  Dims dims(std::max(x.size(), static_cast<size_t>(*count)), in.context.erased());
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].constant().value_or(1) != 1) dims[dims.size() - x.size() + i] = x[i];
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> squeeze(const RuleInput& in) {
  if (in.is_computed("axes")) {
    const int64_t rank = in.arg(0).rank() - static_cast<int64_t>(in.computed.find("axes")->second.size());
    if (rank < 0) return error(fmt::format("more axes than x has: {}", describe(in, {"x"})));
    return unknown_sizes(in, rank, in.arg(0).dtype);
  }
  TENON_TRY_ASSIGN(axes, axes_of(in, "axes", in.arg(0).rank()));
  Dims dims;
  for (int64_t d = 0; d < in.arg(0).rank(); ++d) {
    if (std::ranges::find(*axes, d) == axes->end()) dims.push_back(in.arg(0).dims[d]);
    else TENON_TRY(require_size(in, 0, d, in.context.dim(1), fmt::format("axis {} must be 1", d)));
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> expand_dims(const RuleInput& in) {
  if (in.is_computed("axes")) {
    const size_t count = in.computed.find("axes")->second.size();
    return unknown_sizes(in, in.arg(0).rank() + static_cast<int64_t>(count), in.arg(0).dtype);
  }
  Dims dims = in.arg(0).dims;
  TENON_TRY_ASSIGN(axes, axes_of(in, "axes", static_cast<int64_t>(dims.size() + ints_attr(in.attrs, "axes").size())));
  for (int64_t axis : *axes) dims.insert(dims.begin() + axis, in.context.dim(1));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> reverse(const RuleInput& in) {
  TENON_TRY(axes_of(in, "axes", in.arg(0).rank()));
  return in.args[0];
}

Expected<Type> reverse_sequence(const RuleInput& in) {
  TENON_TRY_ASSIGN(batch, axis_of(in, "batch_axis", in.arg(0).rank()));
  TENON_TRY_ASSIGN(time, axis_of(in, "time_axis", in.arg(0).rank()));
  if (*batch == *time) return error(fmt::format("batch_axis and time_axis are both {}", *batch));
  TENON_TRY(check_vector(in, 1, "lengths", in.arg(1).dtype, in.arg(0).dims[*batch]));
  return in.args[0];
}

Expected<Type> pad_with_elements(const RuleInput& in) {
  Dims dims = in.arg(0).dims;
  TENON_TRY_ASSIGN(before, sizes_attr(in, "before", dims.size(), 0));
  TENON_TRY_ASSIGN(after, sizes_attr(in, "after", dims.size(), 0));
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim more = in.context.add((*before)[d], (*after)[d]);
    if (more.constant().value_or(0) > 0 && dims[d].constant() == 0) {
      return error(fmt::format("axis {} is empty and cannot be padded: {}", d, describe(in, {"x"})));
    }
    dims[d] = in.context.add(dims[d], more);
  }
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> triangle(const RuleInput& in) {
  TENON_TRY(check_int(in, "upper", 0, 1));
  TENON_TRY(size_attr(in, "diagonal", -kMaxSize));
  if (in.arg(0).rank() >= 2) return in.args[0];
  return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
}

Expected<Type> depth_to_space(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_int(in, "block", 1, 1 << 15));
  TENON_TRY(check_string(in, "order", {"DCR", "CRD"}));
  Context& context = in.context;
  Dims dims = in.arg(0).dims;
  const int64_t size = int_attr(in.attrs, "block");
  const Dim block = context.dim(size);
  TENON_TRY_ASSIGN(channels, require_quotient(in, 0, 1, size * size,
                                              fmt::format("{} channels do not divide into blocks of {}",
                                                          context.str(dims[1]), size * size)));
  return context.tensor(Dims{dims[0], *channels, context.multiply(dims[2], block), context.multiply(dims[3], block)},
                        in.arg(0).dtype);
}

Expected<Type> space_to_depth(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 4));
  TENON_TRY(check_int(in, "block", 1, 1 << 15));
  Context& context = in.context;
  Dims dims = in.arg(0).dims;
  const int64_t size = int_attr(in.attrs, "block");
  const Dim block = context.dim(size);
  const std::string what = fmt::format("the map does not divide into blocks of {}", size);
  TENON_TRY_ASSIGN(height, require_quotient(in, 0, 2, size, what));
  TENON_TRY_ASSIGN(width, require_quotient(in, 0, 3, size, what));
  return context.tensor(Dims{dims[0], context.multiply(dims[1], context.multiply(block, block)), *height, *width},
                        in.arg(0).dtype);
}

Expected<Type> shape_of(const RuleInput& in) {
  return in.context.tensor(Dims{in.context.dim(in.arg(0).rank())}, DType::kI64);
}

Operator padding(Operator op) {
  op.inputs = {"x"};
  op.attributes = {{"before", AttrKind::kInts, std::nullopt, "elements before each dim", true},
                   {"after", AttrKind::kInts, std::nullopt, "elements after each dim", true}};
  op.rule = pad_with_elements;
  op.pattern = OpPattern::kInjective;
  op.may_fail = may_be_small;
  return op;
}

Operator move(Operator op) {
  op.inputs = {"x"};
  op.pattern = OpPattern::kInjective;
  return op;
}

}  // namespace

std::vector<Operator> arrange_operators() {
  const AttrSpec axes{"axes", AttrKind::kInts, std::nullopt, "the axes"};
  const AttrSpec block{"block", AttrKind::kInt, std::nullopt, "height and width of a block"};
  return {
      move({.name = "split",
            .documentation = "A tuple of the parts of x along axis, with these sizes.",
            .attributes = {{"sizes", AttrKind::kInts, std::nullopt,
                            "sizes of the parts, which sum to the size of the axis", true},
                           {"axis", AttrKind::kInt, int64_t{0}, "axis that is split"}},
            .rule = split,
            .continuous = true}),
      {.name = "stack",
       .documentation = "The arguments, of one type, along a new axis.",
       .inputs = {"...x"},
       .attributes = {{"axis", AttrKind::kInt, int64_t{0}, "index of the new axis"}},
       .rule = stack,
       .pattern = OpPattern::kInjective,
       .continuous = true,
       .elements = Elements::kMoved},
      move({.name = "tile",
            .documentation = "x, repeated along each dim.",
            .attributes = {{"repeats", AttrKind::kInts, std::nullopt, "number of repetitions, one per dim", true}},
            .rule = tile,
            .continuous = true,
            .elements = Elements::kMoved}),
      {.name = "broadcast_to",
       .documentation = "x with its dims of size 1 repeated to a shape; new dims are leading dims.",
       .inputs = {"x"},
       .attributes = {in_result_type({"shape", AttrKind::kInts, std::nullopt, "the result's sizes; -1 keeps x's"})},
       .rule = broadcast_to,
       .pattern = OpPattern::kBroadcast,
       .continuous = true,
       .elements = Elements::kMoved},
      {.name = "broadcast_dynamic",
       .documentation =
           "x broadcast with a shape that is computed at run time, the elements of `shape`: sizes are equal, or one of "
           "them is "
           "1.",
       .inputs = {"x", {"shape", {DType::kI64}}},
       .rule = broadcast_dynamic,
       .may_fail = depends_on_elements,
       .interpreted = "the sizes of its result depend on elements"},
      move({.name = "squeeze",
            .documentation = "x without these axes of size 1.",
            .attributes = {computable(axes)},
            .rule = squeeze,
            .continuous = true,
            .elements = Elements::kSame}),
      move({.name = "expand_dims",
            .documentation = "x with new axes of size 1, counted in the result.",
            .attributes = {computable(axes)},
            .rule = expand_dims,
            .continuous = true,
            .elements = Elements::kSame}),
      move({.name = "reverse",
            .documentation = "x with its elements along the axes in the opposite order.",
            .attributes = {axes},
            .rule = reverse,
            .continuous = true,
            .elements = Elements::kMoved}),
      {.name = "reverse_sequence",
       .documentation =
           "x with the first lengths[b] elements along time_axis in the opposite order, b being the index of "
           "batch_axis.",
       .inputs = {"x", {"lengths", runtime::kIndices}},
       .attributes = {{"batch_axis", AttrKind::kInt, int64_t{1}, "axis of the lengths"},
                      {"time_axis", AttrKind::kInt, int64_t{0}, "axis that is reversed"}},
       .rule = reverse_sequence,
       .pattern = OpPattern::kInjective,
       .may_fail = depends_on_elements,
       .continuous = true,
       .samples = SampleArguments::lengths()},
      padding({.name = "pad_edge",
               .documentation = "x padded with its nearest edge elements.",
               .continuous = true,
               .elements = Elements::kMoved}),
      padding({.name = "pad_reflect",
               .documentation = "x padded with its mirror image; the edge elements are not repeated.",
               .continuous = true,
               .elements = Elements::kMoved}),
      padding({.name = "pad_wrap",
               .documentation = "x padded with the elements of its opposite end (circular padding).",
               .continuous = true,
               .elements = Elements::kMoved}),
      move({.name = "triangle",
            .documentation = "The triangle of each matrix in the last two dims, zeros elsewhere.",
            .attributes = {{"upper", AttrKind::kInt, int64_t{1}, "1: the upper right, 0: the lower left"},
                           {"diagonal", AttrKind::kInt, int64_t{0},
                            "index of the bounding diagonal: 1 is right of the main diagonal", true}},
            .rule = triangle,
            .continuous = true}),
      move({.name = "depth_to_space",
            .documentation =
                "x [N, C * block^2, H, W] with its channels rearranged into blocks: [N, C, H * block, W * block].",
            .attributes = {block,
                           {"order", AttrKind::kString, std::string("DCR"),
                            "order of the channels: DCR, blocks first, or CRD, blocks last"}},
            .rule = depth_to_space,
            .continuous = true,
            .elements = Elements::kMoved}),
      move({.name = "space_to_depth",
            .documentation = "x [N, C, H, W] with its blocks as channels: [N, block^2 * C, H / block, W / block].",
            .attributes = {block},
            .rule = space_to_depth,
            .continuous = true,
            .elements = Elements::kMoved}),
      {.name = "shape_of",
       .documentation = "The sizes of x, a vector of i64.",
       .inputs = {"x"},
       .rule = shape_of,
       .continuous = true},
  };
}

}  // namespace tenon::compiler
