// Converters of ONNX's layers: convolutions, pools, products, normalizations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

struct Windows {
  Ints kernel, strides, padding, dilation;
  std::string auto_pad;
  // The padding of auto_pad over unknown sizes that are no multiples of the strides, one element per dim of x;
  // `padding` is 0 then.
  std::optional<Dims> before = {}, after = {};
  // The first element of x that windows read, where those of auto_pad, which are smaller than their stride, have a
  // negative padding; one element per dim of x.
  std::optional<Ints> first = {};
};

// The attributes that convolutions and pools share, for `rank` spatial dims.
Expected<Windows> windows(NodeImport& node, Ints kernel) {
  TENON_TRY_ASSIGN(type, node.type(0));
  const size_t rank = kernel.size();
  if (rank < 1 || rank > 3 || type->dims.size() != rank + 2) {
    return node.fail(fmt::format("one to three spatial dims are supported, the input is {}, the kernel [{}]",
                                 node.builder().context().str(type->dims), fmt::join(kernel, ", ")));
  }
  Windows w;
  w.kernel = std::move(kernel);
  TENON_TRY_ASSIGN(strides, node.list("strides", Ints(rank, 1)));
  TENON_TRY_ASSIGN(dilation, node.list("dilations", Ints(rank, 1)));
  TENON_TRY_ASSIGN(pads, node.list("pads", Ints(2 * rank, 0)));
  TENON_TRY_ASSIGN(auto_pad, node.string("auto_pad", "NOTSET"));
  w.strides = *strides, w.dilation = *dilation, w.padding = *pads, w.auto_pad = *auto_pad;
  if (w.strides.size() != rank || w.dilation.size() != rank || w.padding.size() != 2 * rank) {
    return node.fail(fmt::format("strides and dilations require {} values and pads {}, found [{}], [{}], [{}]", rank,
                                 2 * rank, fmt::join(w.strides, ", "), fmt::join(w.dilation, ", "),
                                 fmt::join(w.padding, ", ")));
  }
  // The padding is computed from these values, so they are bounded.
  const bool computed = w.auto_pad.starts_with("SAME") || node.has("output_shape");
  for (size_t axis = 0; axis < rank && computed; ++axis) {
    if (w.strides[axis] < 1 || w.kernel[axis] < 1 || w.dilation[axis] < 1 || w.strides[axis] > kMaxWindow ||
        w.kernel[axis] > kMaxWindow || w.dilation[axis] > kMaxWindow) {
      return node.fail("kernel, strides and dilations must be in 1 .. 2^20");
    }
  }
  if (w.auto_pad == "NOTSET") return w;
  w.padding.assign(2 * rank, 0);
  if (w.auto_pad != "VALID" && w.auto_pad != "SAME_UPPER" && w.auto_pad != "SAME_LOWER") {
    return node.fail(fmt::format("auto_pad '{}' is not supported", w.auto_pad));
  }
  return w;
}

// Splits `total` elements of padding, with an odd element at the end or at the beginning. A negative total is split,
// too.
void pad(Windows& w, size_t axis, int64_t total, bool upper) {
  w.padding[axis] = upper ? total / 2 : (total + 1) / 2;
  w.padding[axis + w.kernel.size()] = total - w.padding[axis];
}

// The padding of auto_pad: SAME_UPPER and SAME_LOWER give ceil(size / stride) windows.
Expected<Windows> same_windows(NodeImport& node, Ints kernel) {
  TENON_TRY_ASSIGN(w, windows(node, std::move(kernel)));
  TENON_TRY_ASSIGN(type, node.type(0));
  if (!w->auto_pad.starts_with("SAME")) return *w;
  const bool upper = w->auto_pad == "SAME_UPPER";
  Context& context = node.context();
  Dims before(w->kernel.size() + 2, context.dim(0)), after = before;
  bool known = true, cropped = false;
  Ints crops(before.size(), 0);
  for (size_t axis = 0; axis < w->kernel.size(); ++axis) {
    const int64_t stride = w->strides[axis], extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const Dim size = type->dims[2 + axis];
    known &= stride == 1 || size.constant();
    const int64_t steps = (size.constant().value_or(1) + stride - 1) / stride;
    pad(*w, axis, (steps - 1) * stride + extent - size.constant().value_or(1), upper);
    if (!size.constant() && extent < stride)
      return node.fail("auto_pad over an unknown size, of windows that are smaller than their stride",
                       "bind it, as --shapes H=224,W=224");
    if (w->padding[axis] < 0) crops[2 + axis] = -w->padding[axis], cropped = true;
    for (const size_t side : {axis, axis + w->kernel.size()}) w->padding[side] = std::max<int64_t>(w->padding[side], 0);
    const Dim covered = context.add(
        context.multiply(context.subtract(context.ceil_divide(size, stride), context.dim(1)), context.dim(stride)),
        context.dim(extent));
    const Dim total = context.maximum({context.subtract(covered, size), context.dim(0)});
    const Dim small = context.floor_divide(total, context.dim(2)), large = context.subtract(total, small);
    before[2 + axis] = upper ? small : large;
    after[2 + axis] = upper ? large : small;
  }
  if (cropped) w->first = std::move(crops);
  if (known) return *w;
  std::ranges::fill(w->padding, 0);
  w->before = std::move(before), w->after = std::move(after);
  return *w;
}

Integers as_ints(const Dims& dims) { return {dims.size(), dims, std::nullopt}; }

// x with the windows' padding of unknown sizes, and without what is before the first window.
Expected<Atom> padded(NodeImport& node, Atom x, const Windows& w, double value) {
  if (w.first) {
    const size_t rank = w.first->size();
    TENON_TRY_ASSIGN(
        cropped,
        node.apply(ops::kSlice, {x}, {{"begin", *w.first}, {"end", Ints(rank, INT64_MAX)}, {"step", Ints(rank, 1)}}));
    x = *cropped;
  }
  if (!w.before) return x;
  OperatorAttributes attrs({{"value", value}});
  attrs.set("before", as_ints(*w.before));
  attrs.set("after", as_ints(*w.after));
  return attrs.apply(node, ops::kPad, {x});
}

// The value that never is a maximum of x.
double lowest_of(NodeImport& node, Atom x) {
  const DType dtype = node.builder().tensor_type(x)->dtype;
  double lowest = -std::numeric_limits<double>::infinity();
  if (!runtime::kIntegers.contains(dtype)) return lowest;
  runtime::with_dtype<runtime::kIntegers>(
      dtype, [&]<class T>(T) { lowest = static_cast<double>(std::numeric_limits<T>::lowest()); });
  return lowest;
}

// The result of windows over an input that was padded to unknown sizes: ceil(size / stride) elements along each axis.
Expected<Atom> with_same_sizes(NodeImport& node, Atom y, const Windows& w) {
  if (!w.before) return y;
  NodeFormula f(node);
  Dims dims = f.term(y).dims();
  for (size_t axis = 0; axis < w.kernel.size(); ++axis)
    dims[2 + axis] = node.context().ceil_divide(f.input(0).dims()[2 + axis], w.strides[axis]);
  const Term checked = f.checked(f.term(y), dims);
  TENON_TRY(f.status());
  return checked.atom();
}

// The elements of the windows as indices in a map of these sizes, [windows, elements of the kernel]. An element outside
// of the map is replaced by the first inside, which does not change the maximum or its first index.
runtime::Tensor window_indices(const Ints& sizes, const Ints& counts, const Windows& w) {
  const size_t rank = sizes.size();
  const auto count = [](const Ints& list) { return runtime::element_count(list); };
  runtime::Tensor indices(DType::kI64, {count(counts), count(w.kernel)});
  const auto data = indices.data<int64_t>();
  for (int64_t window = 0; window < count(counts); ++window) {
    std::optional<int64_t> first;
    std::vector<size_t> outside;
    for (int64_t element = 0; element < count(w.kernel); ++element) {
      int64_t index = 0, scale = 1, origin = window, offset = element;
      bool inside = true;
      for (size_t d = rank; d-- > 0;) {
        const int64_t at = origin % counts[d] * w.strides[d] - w.padding[d] + (w.first ? (*w.first)[d + 2] : 0) +
                           offset % w.kernel[d] * w.dilation[d];
        inside &= at >= 0 && at < sizes[d];
        index += at * scale, scale *= sizes[d];
        origin /= counts[d], offset /= w.kernel[d];
      }
      const auto position = static_cast<size_t>(window * count(w.kernel) + element);
      if (inside) data[position] = index;
      else outside.push_back(position);
      if (inside && !first) first = index;
    }
    for (const size_t position : outside) data[position] = first.value_or(0);
  }
  return indices;
}

// Whether a constant of these sizes, of i64, is larger than a module should hold.
bool has_many_elements(const Ints& sizes) {
  constexpr int64_t kMostBytes = 128 << 20;
  const auto bytes = runtime::checked_bytes(DType::kI64, sizes);
  return !bytes || *bytes > kMostBytes;
}

// Output 1 of MaxPool: the index of each maximum in x as a flat tensor, by rows or (storage_order 1) by columns.
Status max_pool_indices(NodeImport& node, const Windows& w, const Term& y) {
  TENON_TRY_ASSIGN(by_columns, node.integer("storage_order", 0));
  NodeFormula& f = formula_of(y);
  const Term x = f.input(0);
  Ints sizes, counts;
  for (int64_t d = 2; d < x.rank(); ++d) {
    sizes.push_back(f.known_size(x, d, "a size of x"));
    counts.push_back(f.known_size(y, d, "a size of the result"));
  }
  if (!f.ok()) return f.status();
  const int64_t elements = runtime::element_count(sizes);
  Ints elements_of_all = counts;
  elements_of_all.insert(elements_of_all.end(), w.kernel.begin(), w.kernel.end());
  if (has_many_elements(elements_of_all)) return node.fail("the indices of so many windows are not supported");
  const runtime::Tensor elements_of_windows = window_indices(sizes, counts, w);
  const Term values = gather(x.reshape({0, 0, elements}), f.constant(elements_of_windows), 2);
  const Term best = f.apply(ops::kArgMax, {values}, {{"axis", int64_t{3}}});  // [N, C, windows]
  // The maxima's elements as indices in the map, by the row of `elements_of_windows` of their window.
  const int64_t count = runtime::element_count(w.kernel);
  Term flat = gather(f.constant(elements_of_windows).reshape({-1}),
                     best + f.positions(best, 2) * static_cast<double>(count), 0);
  if (*by_columns && sizes.size() > 1) {  // the first axis of a map is the fastest
    Term left = flat, index = f.scalar(0, DType::kI64);
    int64_t stride = elements;
    for (size_t d = sizes.size(); d-- > 0;) {
      stride /= std::max<int64_t>(sizes[d], 1);
      const Term size = f.scalar(static_cast<double>(sizes[d]), DType::kI64);
      index = index + f.apply(ops::kRemainder, {left, size}) * static_cast<double>(stride);
      left = f.apply(ops::kFloorDivide, {left, size});
    }
    flat = index;
  }
  const auto channels = x.size(1);
  const Term count_of_channels = channels ? f.scalar(static_cast<double>(*channels), DType::kI64)
                                          : f.apply(ops::kShapeOf, {x}).slice(0, 1, 2).squeeze({0});
  const Term maps = f.positions(flat, 0) * count_of_channels + f.positions(flat, 1);
  return f.results({std::nullopt, (flat + maps * static_cast<double>(elements)).reshape_to(y.dims())});
}

// The kernel's sizes, from the shape of the weight w; `kernel_shape` may repeat them, or state unknown ones.
Expected<Ints> kernel_of(NodeImport& node, Atom& w) {
  const Dims dims = node.builder().tensor_type(w)->dims;
  Ints kernel;
  for (size_t i = 2; i < dims.size(); ++i) kernel.push_back(dims[i].constant().value_or(-1));
  TENON_TRY_ASSIGN(stated, node.list("kernel_shape", kernel));
  if (*stated == kernel) return kernel;
  if (stated->size() == kernel.size()) {  // sizes that only the attribute states
    bool fits = true;
    Dims known = dims;
    for (size_t i = 0; i < kernel.size(); ++i) {
      fits &= kernel[i] < 0 || kernel[i] == (*stated)[i];
      known[i + 2] = node.context().dim((*stated)[i]);
    }
    NodeFormula f(node);
    if (fits) {
      w = f.checked(f.term(w), known).atom();
      TENON_TRY(f.status());
      return *stated;
    }
  }
  return node.fail(fmt::format("kernel_shape [{}] is not the weight's {}", fmt::join(*stated, ", "),
                               node.builder().context().str(dims)));
}

Status with_bias(NodeImport& node, Expected<Atom> product) {
  if (!product || !node.has_input(2)) return node.result(std::move(product));
  TENON_TRY_ASSIGN(bias, node.input(2));
  return node.result(node.apply(ops::kBiasAdd, {*product, *bias}));
}

Status conv(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(w, node.input(1));
  TENON_TRY_ASSIGN(product, convolution(node, *x, *w));
  return with_bias(node, *product);
}

// auto_pad and output_shape define how much of the full result is cropped.
Status conv_transpose(NodeImport& node) {
  TENON_TRY_ASSIGN(w, node.input(1));
  TENON_TRY_ASSIGN(kernel, kernel_of(node, *w));
  TENON_TRY_ASSIGN(windows, onnx::windows(node, *kernel));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(groups, node.integer("group", 1));
  const size_t rank = kernel->size();
  TENON_TRY_ASSIGN(more, node.list("output_padding", Ints(rank, 0)));
  TENON_TRY_ASSIGN(shape, node.list("output_shape", Ints{}));
  if (more->size() != rank || (!shape->empty() && shape->size() != rank)) {
    return node.fail(fmt::format("output_padding and output_shape require {} values", rank));
  }
  const bool same = windows->auto_pad.starts_with("SAME");
  for (size_t axis = 0; axis < rank && (same || !shape->empty()); ++axis) {
    // The padding of auto_pad is the same for all sizes.
    const auto size = shape->empty() ? type->dims[2 + axis].constant().value_or(1) : type->dims[2 + axis].constant();
    if (!size) return node.fail("output_shape over an unknown size", "bind it, as --shapes H=224,W=224");
    const int64_t wanted = shape->empty() ? *size * windows->strides[axis] : (*shape)[axis];
    const int64_t extent = (windows->kernel[axis] - 1) * windows->dilation[axis] + 1;
    const int64_t total = (*size - 1) * windows->strides[axis] + extent + (*more)[axis] - wanted;
    if (total < 0) (*more)[axis] -= total;
    pad(*windows, axis, std::max<int64_t>(total, 0), windows->auto_pad == "SAME_UPPER");
  }
  constexpr std::array kTransposed{ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose};
  TENON_TRY_ASSIGN(x, node.input(0));
  return with_bias(node, node.apply(kTransposed[rank - 1], {*x, *w},
                                    {{"strides", windows->strides},
                                     {"padding", windows->padding},
                                     {"dilation", windows->dilation},
                                     {"output_padding", *more},
                                     {"groups", *groups}}));
}

template <OperatorId op_1d, OperatorId op_2d, OperatorId op_3d>
Expected<Atom> pooled(NodeImport& node, Atom x) {
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  TENON_TRY_ASSIGN(ceil, node.integer("ceil_mode", 0));
  Attrs attrs{{"kernel", windows->kernel},
              {"strides", windows->strides},
              {"padding", windows->padding},
              {"dilation", windows->dilation},
              {"ceil", *ceil}};
  if (op_1d == ops::kAvgPool1d) {
    TENON_TRY_ASSIGN(count, node.integer("count_include_pad", 0));
    attrs.emplace("count_include_pad", *count);
  } else if (op_1d == ops::kLpPool1d) {
    TENON_TRY_ASSIGN(power, node.integer("p", 2));
    attrs.emplace("p", *power);
  }
  constexpr std::array kPools{op_1d, op_2d, op_3d};
  const OperatorId op = kPools[kernel->size() - 1];
  if (!windows->before && !windows->first) return node.apply(op, Atoms{x}, std::move(attrs));
  constexpr bool kAverage = op_1d == ops::kAvgPool1d;
  TENON_TRY_ASSIGN(wide, padded(node, x, *windows, op_1d == ops::kMaxPool1d ? lowest_of(node, x) : 0.0));
  if (!windows->before || !kAverage || int_attr(attrs, "count_include_pad") == 1) {
    TENON_TRY_ASSIGN(result, node.apply(op, Atoms{*wide}, std::move(attrs)));
    return with_same_sizes(node, *result, *windows);
  }
  // The share of each window that is inside, by which its average with zeros is divided.
  attrs.insert_or_assign("count_include_pad", int64_t{1});
  NodeFormula f(node);
  TENON_TRY_ASSIGN(inside, padded(node, f.full(f.term(x).dims(), 1, f.term(x).dtype()).atom(), *windows, 0));
  const Term result = f.apply(op, {f.term(*wide)}, attrs) / f.apply(op, {f.term(*inside)}, attrs);
  TENON_TRY(f.status());
  return with_same_sizes(node, result.atom(), *windows);
}

template <OperatorId op_1d, OperatorId op_2d, OperatorId op_3d>
Status pool(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(y, pooled<op_1d, op_2d, op_3d>(node, *x));
  TENON_TRY(node.result(*y));
  if (op_1d != ops::kMaxPool1d || node.node().outputs.size() < 2) return {};
  TENON_TRY_ASSIGN(kernel, node.list("kernel_shape"));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  NodeFormula f(node);
  return max_pool_indices(node, *windows, {f, *y});
}

Status global_lp_pool(NodeImport& node) {
  TENON_TRY_ASSIGN(power, node.integer("p", 2));
  return node.result(node.apply(ops::kGlobalLpPool, {0}, {{"p", *power}}));
}

// The dtype in which products of integers are computed: i64 for those that have no products, which wrap alike.
DType product_dtype(DType dtype) {
  constexpr runtime::DTypes kProducts = runtime::kReals | runtime::DTypes{DType::kI8, DType::kI32, DType::kI64};
  return kProducts.contains(dtype) ? dtype : DType::kI64;
}

// An input of a product, in the dtype of products.
Expected<Atom> factor_of_product(NodeImport& node, size_t input) {
  NodeFormula f(node);
  const Term x = f.input(input);
  const Term factor = x.cast(product_dtype(x.dtype()));
  TENON_TRY(f.status());
  return factor.atom();
}

// The result of a product, in the dtype of the node's inputs.
Status product_result(NodeImport& node, Expected<Atom> product) {
  NodeFormula f(node);
  const Term result = f.term(std::move(product));
  const DType dtype = f.input(0).dtype();
  return f.result(product_dtype(dtype) == dtype ? result : result.cast(dtype));
}

// alpha * A' * B' + beta * C
Status gemm(NodeImport& node) {
  TENON_TRY_ASSIGN(a, factor_of_product(node, 0));
  TENON_TRY_ASSIGN(b, factor_of_product(node, 1));
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 1.0));
  TENON_TRY_ASSIGN(beta, node.real("beta", 1.0));
  TENON_TRY_ASSIGN(trans_a, node.integer("transA", 0));
  TENON_TRY_ASSIGN(trans_b, node.integer("transB", 0));
  if (*trans_a) {
    a = node.apply(ops::kTranspose, {*a}, {{"axes", Ints{1, 0}}});
    if (!a) return std::unexpected(a.error());
  }
  if (!*trans_b) {
    b = node.apply(ops::kTranspose, {*b}, {{"axes", Ints{1, 0}}});
    if (!b) return std::unexpected(b.error());
  }
  TENON_TRY_ASSIGN(product, node.apply(ops::kDense, {*a, *b}));
  auto scaled = [&](Atom atom, double factor) -> Expected<Atom> {
    if (factor == 1.0) return atom;
    return node.apply(ops::kMultiply, {atom, node.scalar(factor, node.builder().tensor_type(atom)->dtype)});
  };
  TENON_TRY_ASSIGN(left, scaled(*product, *alpha));
  if (!node.has_input(2)) return product_result(node, left);
  TENON_TRY_ASSIGN(c, factor_of_product(node, 2));
  TENON_TRY_ASSIGN(bias_type, node.type(2));
  TENON_TRY_ASSIGN(right, scaled(*c, *beta));
  const TensorType* type = node.builder().tensor_type(*left);
  const bool vector = bias_type->dims.size() == 1 && bias_type->dims[0] == type->dims[1];
  return product_result(node, node.apply(vector ? ops::kBiasAdd : ops::kAdd, {*left, *right}));
}

// A vector is treated as a matrix of one row or column, which is removed from the result.
Status matmul(NodeImport& node) {
  TENON_TRY_ASSIGN(a, factor_of_product(node, 0));
  TENON_TRY_ASSIGN(b, factor_of_product(node, 1));
  TENON_TRY_ASSIGN(a_type, node.type(0));
  TENON_TRY_ASSIGN(b_type, node.type(1));
  Ints gone;
  if (a_type->rank() == 1) {
    a = node.apply(ops::kExpandDims, {*a}, {{"axes", Ints{0}}});
    if (!a) return std::unexpected(a.error());
    gone.push_back(-2);
  }
  if (b_type->rank() == 1) {
    b = node.apply(ops::kExpandDims, {*b}, {{"axes", Ints{1}}});
    if (!b) return std::unexpected(b.error());
    gone.push_back(-1);
  }
  TENON_TRY_ASSIGN(product, node.apply(ops::kMatmul, {*a, *b}));
  return product_result(node, gone.empty() ? product : node.apply(ops::kSqueeze, {*product}, {{"axes", gone}}));
}

// An axis of size 1 is broadcast against the same label's larger axis of another operand: it is removed, and its label
// from the operand's term. The axes of an ellipsis are labels that the equation does not have, from the last axis on.
class EinsumEquation {
 public:
  explicit EinsumEquation(std::string_view text) {
    std::string plain;
    std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != ' '; });
    const size_t arrow = plain.find("->");
    explicit_ = arrow != std::string::npos;
    if (explicit_) result_ = plain.substr(arrow + 2);
    const std::string inputs = plain.substr(0, arrow);
    for (size_t at = 0; at <= inputs.size();) {
      const size_t comma = std::min(inputs.find(',', at), inputs.size());
      terms_.push_back(inputs.substr(at, comma - at));
      at = comma + 1;
    }
  }

  size_t terms() const { return terms_.size(); }

  // Replaces each ellipsis by labels; false where a term does not fit the rank of its operand.
  bool name_ellipses(const std::vector<int64_t>& ranks) {
    size_t longest = 0;
    std::vector<size_t> hidden(terms_.size(), 0);
    for (size_t i = 0; i < terms_.size(); ++i) {
      const size_t labels = terms_[i].size() - (terms_[i].contains("...") ? 3 : 0),
                   rank = static_cast<size_t>(ranks[i]);
      if (labels > rank || (labels < rank && !terms_[i].contains("..."))) return false;
      hidden[i] = rank - labels;
      longest = std::max(longest, hidden[i]);
    }
    std::string names;
    for (char c = 'A'; c <= 'z' && names.size() < longest; c = c == 'Z' ? 'a' : static_cast<char>(c + 1)) {
      const auto has = [&](const std::string& term) { return term.contains(c); };
      if (!std::ranges::any_of(terms_, has) && !has(result_)) names += c;
    }
    if (names.size() < longest) return false;
    if (!explicit_) {  // the ellipsis, then the labels that stand once, in alphabetical order
      std::map<char, int> count;
      for (const std::string& term : terms_) {
        for (const char c : term) count[c] += c == '.' ? 0 : 1;
      }
      result_ = "...";
      for (const auto& [c, times] : count) result_ += times == 1 ? std::string(1, c) : "";
      explicit_ = true;
    }
    const auto replace = [&](std::string& term, size_t axes) {
      const size_t dots = term.find("...");
      if (dots != std::string::npos) term.replace(dots, 3, names.substr(longest - axes));
    };
    for (size_t i = 0; i < terms_.size(); ++i) replace(terms_[i], hidden[i]);
    replace(result_, longest);
    return true;
  }

  // The axes of size 1 of each operand whose label has another size in another one; their labels are removed.
  std::vector<Ints> remove_broadcast(const std::vector<Dims>& dims) {
    std::map<char, bool> is_longer;
    for (size_t i = 0; i < terms_.size(); ++i) {
      for (size_t k = 0; k < terms_[i].size(); ++k) is_longer[terms_[i][k]] |= dims[i][k].constant() != 1;
    }
    std::vector<Ints> removed(terms_.size());
    for (size_t i = 0; i < terms_.size(); ++i) {
      std::string left;
      for (size_t k = 0; k < terms_[i].size(); ++k) {
        const bool repeated = dims[i][k].constant() == 1 && is_longer[terms_[i][k]];
        if (repeated) removed[i].push_back(static_cast<int64_t>(k));
        else left += terms_[i][k];
      }
      terms_[i] = left;
    }
    return removed;
  }

  std::string str() const { return fmt::format("{}->{}", fmt::join(terms_, ","), result_); }

 private:
  std::vector<std::string> terms_;
  std::string result_;
  bool explicit_ = false;
};

// Integers that einsum does not have are summed as i64, which wraps alike.
Status einsum(NodeImport& node) {
  TENON_TRY_ASSIGN(text, node.string("equation", ""));
  NodeFormula f(node);
  std::vector<Term> args;
  std::vector<Dims> dims;
  std::vector<int64_t> ranks;
  constexpr runtime::DTypes kSums = runtime::kReals | runtime::DTypes{DType::kI32, DType::kI64};
  for (size_t i = 0; i < node.inputs(); ++i) {
    const Term x = f.input(i);
    args.push_back(kSums.contains(x.dtype()) ? x : x.cast(DType::kI64));
    dims.push_back(x.dims());
    ranks.push_back(x.rank());
  }
  TENON_TRY(f.status());
  EinsumEquation equation(*text);
  if (equation.terms() != args.size() || !equation.name_ellipses(ranks)) {
    return f.result(f.apply(ops::kEinsum, args, {{"equation", *text}}));  // which says what does not fit
  }
  const std::vector<Ints> removed = equation.remove_broadcast(dims);
  bool broadcasts = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (removed[i].empty()) continue;
    args[i] = args[i].squeeze(removed[i]);
    broadcasts = true;
  }
  const Term result = f.apply(ops::kEinsum, args, {{"equation", broadcasts ? equation.str() : *text}});
  return f.result(result.cast(f.input(0).dtype()));
}

// By the statistics of the batch; outputs 1 and 2 are those of the inputs 3 and 4, moved towards them.
Status train_batch_normalization(NodeImport& node, double epsilon, DType widest) {
  TENON_TRY_ASSIGN(momentum, node.real("momentum", 0.9));
  NodeFormula f(node);
  const Term x = f.input(0).cast(widest);
  Ints axes{0};
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Term mean = x.reduce(ops::kMean, axes), centered = x - x.reduce(ops::kMean, axes, true);
  const Term variance = (centered * centered).reduce(ops::kMean, axes);
  const auto moved = [&](const Term& from, const Term& to) {
    return from * *momentum + to.cast(from.dtype()) * (1 - *momentum);
  };
  const Term y = f.apply(ops::kBatchNorm, {x, f.input(1).cast(widest), f.input(2).cast(widest), mean, variance},
                         {{"epsilon", epsilon}});
  return f.results({y.cast(f.input(0).dtype()), moved(f.input(3), mean), moved(f.input(4), variance)});
}

Status batch_normalization(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < 5; ++i) {
    TENON_TRY_ASSIGN(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(training, node.integer("training_mode", 0));
  NodeFormula f(node);
  DType widest = f.input(0).dtype();
  for (size_t i = 1; i < 5; ++i) {
    widest = widest_of(widest, f.input(i).dtype());
  }
  TENON_TRY(f.status());
  TENON_TRY_ASSIGN(spatial, node.integer("spatial", 1));
  if (!*spatial) return node.fail("statistics of each element are not supported", "export the model for inference");
  if (*training) return train_batch_normalization(node, *epsilon, widest);
  std::vector<Term> terms;
  for (const Atom& arg : args) terms.push_back(f.term(arg).cast(widest));
  return f.result(f.apply(ops::kBatchNorm, terms, {{"epsilon", *epsilon}}).cast(f.input(0).dtype()));
}

// Outputs 1 and 2 of LayerNormalization, of the dtype that stash_type names: the mean over the axes from `axis` on, and
// 1 over the deviation.
Status row_statistics(NodeImport& node, int64_t axis, double epsilon, DType dtype) {
  NodeFormula f(node);
  const Term x = f.input(0).cast(dtype);
  Ints axes;
  for (int64_t i = axis < 0 ? axis + x.rank() : axis; i < x.rank(); ++i) axes.push_back(i);
  const Term mean = x.reduce(ops::kMean, axes, true), centered = x - mean;
  const Term variance = (centered * centered).reduce(ops::kMean, axes, true);
  return f.results({std::nullopt, mean, f.apply(ops::kRsqrt, {variance + epsilon})});
}

// A scale or bias of the axes of x from `axis` on, where it has fewer axes or sizes of 1 repeated to their sizes.
Expected<Atom> broadcast_factor(NodeImport& node, Atom factor, const TensorType& x, int64_t axis) {
  const TensorType* found = node.builder().tensor_type(factor);
  if (!found) return node.fail("the scale or the bias is no tensor");
  const TensorType& type = *found;
  const int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (first < 0 || first > x.rank()) return factor;  // an error of the operator
  const Dims wanted(x.dims.begin() + first, x.dims.end());
  bool repeated = type.dims.size() < wanted.size();
  for (size_t i = 0; i < type.dims.size() && type.dims.size() == wanted.size(); ++i)
    repeated |= type.dims[i].constant() == 1 && wanted[i].constant() != 1;
  if (!repeated) return factor;
  NodeFormula f(node);
  const Term result = f.term(factor).broadcast_to(wanted);
  TENON_TRY(f.status());
  return result.atom();
}

Status layer_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(scale, node.input(1));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  // The operator's own sums are of x's dtype, or of f32 where that is narrower.
  const auto stashed = dtype_of_id(*stash);
  if (!stashed || !runtime::kReals.contains(*stashed))
    return node.fail(fmt::format("stash_type {} is not supported, only the types of floats", *stash));
  TENON_TRY_ASSIGN(x_type, node.type(0));
  scale = broadcast_factor(node, *scale, *x_type, *axis);
  if (!scale) return std::unexpected(scale.error());
  const TensorType* type = node.builder().tensor_type(*scale);
  const auto shape = type->shape();
  if (!node.has_input(2) && !shape) return node.fail("the scale's sizes must be known where there is no bias");
  TENON_TRY_ASSIGN(given, node.has_input(2) ? node.input(2) : node.zeros(type->dtype, *shape));
  TENON_TRY_ASSIGN(bias, broadcast_factor(node, *given, *x_type, *axis));
  TENON_TRY(node.result(node.apply(ops::kLayerNorm, {*x, *scale, *bias}, {{"axis", *axis}, {"epsilon", *epsilon}})));
  return node.node().outputs.size() > 1 ? row_statistics(node, *axis, *epsilon, *stashed) : Status();
}

Status instance_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  return node.result(node.apply(ops::kInstanceNorm, {0, 1, 2}, {{"epsilon", *epsilon}}));
}

Status group_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(groups, node.integer("num_groups"));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;
  NodeFormula f(node);
  const Term x = f.input(0);
  Term scale = f.input(1), bias = f.input(2);
  const auto channels = x.size(1);
  if (node.opset() < 21 && channels != *groups) {  // a scale and a bias of each group, not of each channel
    const int64_t count = f.known_size(x, 1, "the number of channels");
    f.expect(x.rank() >= 2 && *groups > 0 && count % std::max<int64_t>(*groups, 1) == 0,
             fmt::format("{} channels are no multiple of {} groups", count, *groups));
    if (!f.ok()) return f.status();
    const auto of_channels = [&](const Term& of_groups) {
      return of_groups.reshape({*groups, 1}).broadcast({*groups, count / *groups}).reshape({count});
    };
    scale = of_channels(scale), bias = of_channels(bias);
  }
  return f.result(f.apply(ops::kGroupNorm, {x, scale, bias}, {{"groups", *groups}, {"epsilon", *epsilon}}));
}

Status rms_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-5));
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(stash, node.integer("stash_type", 1));
  (void)stash;
  NodeFormula f(node);
  const Term x = f.input(0);
  TENON_TRY_ASSIGN(type, node.type(0));
  const Term scale = f.term(broadcast_factor(node, f.input(1).atom(), *type, *axis));
  const DType widest = widest_of(x.dtype(), scale.dtype());
  return f.result(f.apply(ops::kRmsNorm, {x.cast(widest), scale.cast(widest)}, {{"axis", *axis}, {"epsilon", *epsilon}})
                      .cast(scale.dtype()));
}

Status lp_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis", -1));
  TENON_TRY_ASSIGN(power, node.integer("p", 2));
  return node.result(node.apply(ops::kLpNormalize, {0}, {{"axis", *axis}, {"p", *power}}));
}

Status local_response_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(attrs, node.reals_given({"alpha", "beta", "bias"}));
  TENON_TRY_ASSIGN(size, node.integer("size"));
  attrs->emplace("size", *size);
  return node.result(node.apply(ops::kLocalResponseNorm, {0}, std::move(*attrs)));
}

// (x - mean) / (deviation + 1e-9)
Status mean_variance_normalization(NodeImport& node) {
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  TENON_TRY_ASSIGN(axes, node.list("axes", Ints{0, 2, 3}));
  const Attrs reduced{{"axes", *axes}, {"keep", int64_t{1}}};
  TENON_TRY_ASSIGN(mean, node.apply(ops::kMean, {*x}, reduced));
  TENON_TRY_ASSIGN(centered, node.apply(ops::kSubtract, {*x, *mean}));
  TENON_TRY_ASSIGN(square, node.apply(ops::kMultiply, {*centered, *centered}));
  TENON_TRY_ASSIGN(variance, node.apply(ops::kMean, {*square}, reduced));
  TENON_TRY_ASSIGN(deviation, node.apply(ops::kSqrt, {*variance}));
  TENON_TRY_ASSIGN(divisor, node.apply(ops::kAdd, {*deviation, node.scalar(1e-9, type->dtype)}));
  return node.result(node.apply(ops::kDivide, {*centered, *divisor}));
}

}  // namespace

Expected<Atom> convolution(NodeImport& node, Atom x, Atom w, const Padding& padded) {
  TENON_TRY_ASSIGN(kernel, kernel_of(node, w));
  TENON_TRY_ASSIGN(windows, same_windows(node, *kernel));
  TENON_TRY_ASSIGN(groups, node.integer("group", 1));
  if (Ints& padding = windows->padding; padded && std::ranges::any_of(padding, [](int64_t size) { return size > 0; })) {
    windows->before = windows->after = Dims(kernel->size() + 2, node.context().dim(0));
    for (size_t i = 0; i < kernel->size(); ++i) {
      (*windows->before)[i + 2] = node.context().dim(padding[i]);
      (*windows->after)[i + 2] = node.context().dim(padding[i + kernel->size()]);
    }
    std::ranges::fill(padding, 0);
  }
  if (padded && windows->before) {
    TENON_TRY_ASSIGN(wider, padded(x, as_ints(*windows->before), as_ints(*windows->after)));
    x = *wider;
  }
  // Unlike pools, convolutions clamp a negative padding to 0 (as ONNX Runtime does; ONNX leaves both open).
  windows->first.reset();
  if (padded) windows->before.reset();
  TENON_TRY_ASSIGN(wider, onnx::padded(node, x, *windows, 0));
  constexpr std::array kConvolutions{ops::kConv1d, ops::kConv2d, ops::kConv3d};
  TENON_TRY_ASSIGN(product, node.apply(kConvolutions[kernel->size() - 1], {*wider, w},
                                       {{"strides", windows->strides},
                                        {"padding", windows->padding},
                                        {"dilation", windows->dilation},
                                        {"groups", *groups}}));
  return with_same_sizes(node, *product, *windows);
}

Expected<Atom> average_pool(NodeImport& node, Atom x) {
  return pooled<ops::kAvgPool1d, ops::kAvgPool2d, ops::kAvgPool3d>(node, x);
}

std::span<const Converter> layer_converters() {
  static constexpr Converter kTable[] = {
      {"AveragePool", 1, 1, pool<ops::kAvgPool1d, ops::kAvgPool2d, ops::kAvgPool3d>},
      {"BatchNormalization", 5, 5, batch_normalization},
      {"Conv", 2, 3, conv},
      {"ConvTranspose", 2, 3, conv_transpose},
      {"Einsum", 1, 4096, einsum},
      {"Det", 1, 1, convert_plain<ops::kDet>},
      {"Gemm", 2, 3, gemm},
      {"GlobalAveragePool", 1, 1, convert_plain<ops::kGlobalAvgPool>},
      {"GlobalLpPool", 1, 1, global_lp_pool},
      {"GlobalMaxPool", 1, 1, convert_plain<ops::kGlobalMaxPool>},
      {"GroupNormalization", 3, 3, group_normalization},
      {"InstanceNormalization", 3, 3, instance_normalization},
      {"LRN", 1, 1, local_response_normalization},
      {"LayerNormalization", 2, 3, layer_normalization},
      {"LpNormalization", 1, 1, lp_normalization},
      {"LpPool", 1, 1, pool<ops::kLpPool1d, ops::kLpPool2d, ops::kLpPool3d>},
      {"MatMul", 2, 2, matmul},
      {"MaxPool", 1, 1, pool<ops::kMaxPool1d, ops::kMaxPool2d, ops::kMaxPool3d>},
      {"MeanVarianceNormalization", 1, 1, mean_variance_normalization},
      {"RMSNormalization", 2, 2, rms_normalization},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
