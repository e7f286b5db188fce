#include "compiler/kernels/byte_convolution.h"

#include <algorithm>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/plain_convolution.h"
#include "compiler/kernels/sliding_window.h"
#include "compiler/loop/scalar.h"

namespace tenon::compiler::kernels {
namespace {

// x [N, C, ...] with its channels packed into words: [N, groups * ceil(C / groups / word), ...]. The last word of a
// group is padded with zeros. The result is stored, unless `is_copied`: then the caller copies it anyway.
LazyTensor pack_channels(Emitter& emit, const LazyTensor& x, int64_t groups, int64_t word, bool is_copied) {
  Context& context = emit.context();
  const int64_t channels = *x.dims[1].constant() / groups, packs = (channels + word - 1) / word;
  Dims dims = x.dims;
  dims[1] = context.dim(groups * packs);
  const LazyTensor result = emit.expression(dims, DType::kI32, [=, &context](const Dims& at) {
    const Dim count = context.dim(packs);
    const Dim group = groups == 1 ? context.dim(0) : context.floor_divide(at[1], count);
    const Dim pack = groups == 1 ? at[1] : context.modulo(at[1], count);
    std::vector<Expr> elements;
    for (int64_t b = 0; b < word; ++b) {
      const Dim channel = context.add(context.multiply(pack, context.dim(word)), context.dim(b));
      Dims from = at;
      from[1] = context.add(context.multiply(group, context.dim(channels)), channel);
      const Expr element = x.at(from);
      elements.push_back(channels % word == 0
                             ? element
                             : select(less(loop::index_value(channel), loop::index_value(context.dim(channels))),
                                      element, like(element, 0)));
    }
    return pack_word(elements);
  });
  return is_copied ? result : emit.stored("packed_channels", result);
}

// For each output channel the sum of its weights.
LazyTensor weight_sums(Emitter& emit, const LazyTensor& w) {
  if (w.constant) {
    const int64_t outputs = w.constant->shape()[0];
    return sums_along(emit, emit.constant(w.constant->reshaped({outputs, w.constant->size() / outputs})), 1);
  }
  return emit.reduce("byte_sums", {.dims = {w.dims[0]},
                                   .over = Dims(w.dims.begin() + 1, w.dims.end()),
                                   .term = [w](const Dims& at) { return loop::convert(DType::kI32, w.at(at)); }});
}

// Four kernel taps of a row are one dot product: the bytes of x are read in place, for a register of pixels by one load
// and two shuffles.
std::optional<LazyTensor> word_depthwise(const OperatorCall& op, const Windows& windows) {
  constexpr int64_t kWord = 4;
  Emitter& emit = op.emit;
  const Machine& machine = emit.machine();
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  if (op.dtype() != DType::kI32 || !machine.dot || !machine.wide() || machine.threads > 0) return std::nullopt;
  if (windows.dilation.back() != 1 || windows.strides.back() > kWord) return std::nullopt;
  const auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right || !right->bytes.constant) return std::nullopt;
  const Bytes weights = as_signed(emit, *right);
  // Bytes of i8 are read as u8 by an exclusive or with 128, which their zero point follows.
  const bool is_signed = left->bytes.dtype == DType::kI8;
  const int64_t pad = op.integer("pad_value") + left->zero, least = is_signed ? -128 : 0,
                zero = left->zero + (is_signed ? 128 : 0);
  if (weights.zero != 0 || pad < least || pad > least + UINT8_MAX) return std::nullopt;

  // The last word of a row of weights is padded with zeros.
  Windows in_words = windows;
  in_words.kernel.back() = op.dim((*windows.kernel.back().constant() + kWord - 1) / kWord * kWord);
  const LazyTensor words = pack_words(emit, weights.bytes, w.rank() - 1);

  const std::vector<LazyTensor> args{left->bytes, words};
  const LazyTensor sums =
      sliding_window({op.op, emit, op.attrs, args, op.results}, "conv",
                     {.windows = in_words,
                      .x = left->bytes,
                      .pad = loop::integer_literal(left->bytes.dtype, pad),
                      .init = loop::integer_literal(DType::kI32, 0),
                      .word = kWord,
                      .step = [words, is_signed, &context = op.context()](const Expr& sum, Expr x, const Dims& at,
                                                                          const Dims& kernel_index) {
                        constexpr auto kSigns = static_cast<int32_t>(0x80808080);
                        if (is_signed)
                          x = loop::binary(BinaryOp::kBitXor, x, loop::integer_literal(DType::kI32, kSigns));
                        Dims weight{at[1], context.dim(0)};
                        weight.insert(weight.end(), kernel_index.begin(), kernel_index.end());
                        return sum + loop::binary(BinaryOp::kByteDot, x, words.at(weight));
                      }});
  if (zero == 0) return sums;
  const LazyTensor corrections = weight_sums(emit, weights.bytes);
  return emit.expression(op.dims(), DType::kI32, [=](const Dims& at) {
    return sums.at(at) - corrections.at({at[1]}) * loop::integer_literal(DType::kI32, zero);
  });
}

}  // namespace

// Products of bytes minus their zero points, and sums of a few hundred such products, are integers that f32 represents
// exactly. A fused multiply-add of floats is one instruction; 32-bit integers need several.
std::optional<LazyTensor> byte_depthwise(const OperatorCall& op, const Windows& windows) {
  if (auto sums = word_depthwise(op, windows)) return sums;
  Emitter& emit = op.emit;
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  if (op.dtype() != DType::kI32) return std::nullopt;
  const auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  const auto lowest = [](const Bytes& value) { return (value.bytes.dtype == DType::kI8 ? -128 : 0) - value.zero; };
  const auto largest = [&](const Bytes& value) {
    return std::max(std::abs(lowest(value)), std::abs(lowest(value) + 255));
  };
  const int64_t pad = op.integer("pad_value") + left->zero,
                kernel_size = op.context().product(windows.kernel).constant().value();
  const int64_t pad_least = left->bytes.dtype == DType::kI8 ? -128 : 0;
  constexpr int64_t kExact = 1 << 24;
  if (pad < pad_least || pad > pad_least + 255 || largest(*left) * largest(*right) > kExact / kernel_size)
    return std::nullopt;
  const auto to_real = [](const Expr& byte, int64_t zero) {
    return loop::convert(DType::kF32, byte) - static_cast<double>(zero);
  };
  LazyTensor weights = emit.expression(
      w.dims, DType::kF32,
      [=, bytes = right->bytes, zero = right->zero](const Dims& at) { return to_real(bytes.at(at), zero); });
  if (right->bytes.constant) {
    Tensor values(DType::kF32, right->bytes.constant->shape());
    for (int64_t i = 0; i < values.size(); ++i)
      values.data<float>()[static_cast<size_t>(i)] =
          static_cast<float>(loop::read(*right->bytes.constant, i).integer - right->zero);
    weights = emit.constant(values);
  }
  const LazyTensor elements = emit.expression(
      x.dims, DType::kF32,
      [=, bytes = left->bytes, zero = left->zero](const Dims& at) { return to_real(bytes.at(at), zero); });
  const std::vector<LazyTensor> args{elements, weights};
  const Type type = op.context().tensor(op.dims(), DType::kF32);
  const LazyTensor sums =
      sliding_window({op.op, emit, op.attrs, args, {type.tensor()}}, "conv",
                     {.windows = windows,
                      .x = elements,
                      .pad = loop::literal(DType::kF32, static_cast<double>(op.integer("pad_value"))),
                      .init = loop::literal(DType::kF32, 0),
                      .step = [weights, &context = op.context()](const Expr& sum, const Expr& x, const Dims& at,
                                                                 const Dims& kernel_index) {
                        Dims weight{at[1], context.dim(0)};
                        weight.insert(weight.end(), kernel_index.begin(), kernel_index.end());
                        return sum + weights.at(weight) * x;
                      }});
  return emit.expression(op.dims(), DType::kI32,
                         [sums](const Dims& at) { return loop::convert(DType::kI32, sums.at(at)); });
}

std::optional<LazyTensor> byte_convolution(const OperatorCall& op) {
  Emitter& emit = op.emit;
  if (emit.machine().threads > 0) return std::nullopt;  // its words are those of processors
  const LazyTensor &x = op.arg(0), &w = op.arg(1);
  const auto is_positive = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  if (op.dtype() != DType::kI32 || x.rank() > 4 || !std::all_of(x.dims.begin() + 1, x.dims.end(), is_positive) ||
      !std::ranges::all_of(w.dims, is_positive) || !std::all_of(op.dims().begin() + 1, op.dims().end(), is_positive))
    return std::nullopt;
  const auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  Dims pixels = op.dims();
  pixels.erase(pixels.begin() + 1);
  const DotOperands operands = dot_operands(emit, *left, *right, 1, pixels);
  const int64_t pad = op.integer("pad_value") + operands.left_zero, word = operands.word;
  if (word == 4 ? pad < 0 || pad > UINT8_MAX : pad < INT16_MIN || pad > INT16_MAX) return std::nullopt;
  const LazyTensor weights = pack_words(emit, operands.right, 1);
  std::optional<LazyTensor> output_corrections;
  if (operands.left_zero != 0) output_corrections = weight_sums(emit, operands.right);
  // Padding copies x, and so does a strided convolution with 1x1 kernels, which selects elements of x. The padded input
  // of another strided convolution reads the packed channels from memory.
  const auto any_above = [&](std::string_view name, int64_t above) {
    return std::ranges::any_of(op.integers(name), [&](int64_t size) { return size > above; });
  };
  const bool has_padding = any_above("padding", 0), is_strided = any_above("strides", 1);
  const bool is_pointwise =
      std::all_of(w.dims.begin() + 2, w.dims.end(), [](Dim size) { return size.constant() == 1; });
  const bool is_copied = is_strided ? is_pointwise && !has_padding : has_padding;
  const std::vector<LazyTensor> args{pack_channels(emit, operands.left, op.integer("groups"), word, is_copied),
                                     weights};
  const auto bits = static_cast<uint32_t>(pad);
  const auto pad_word = static_cast<int32_t>(word == 4 ? 0x01010101u * bits : 0x00010001u * (bits & 0xffffu));
  // The sums of windows, whose weights are ones, pass kByteDotSaturating too.
  const auto convolution = [&](const OperatorCall& call) {
    return plain_convolution(call, loop::integer_literal(DType::kI32, pad_word),
                             [dot = operands.dot](const Expr& w, const Expr& x) { return loop::binary(dot, x, w); });
  };
  // The zero point of the weights contributes a term for each window of a group.
  std::optional<LazyTensor> window_corrections;
  if (operands.right_zero != 0) {
    runtime::Shape shape{op.integer("groups")};
    for (size_t i = 1; i < w.rank(); ++i) shape.push_back(*w.dims[i].constant());
    Tensor ones(DType::kI8, shape);
    std::ranges::fill(ones.data<int8_t>(), int8_t{1});
    Dims dims = op.dims();
    dims[1] = op.dim(shape[0]);
    const Type type = op.context().tensor(dims, DType::kI32);
    const std::vector<LazyTensor> by_ones{args[0], pack_words(emit, emit.constant(ones), 1)};
    window_corrections = convolution({op.op, op.emit, op.attrs, by_ones, {type.tensor()}});
  }
  const LazyTensor sums = convolution({op.op, op.emit, op.attrs, args, op.results});
  if (!output_corrections && !window_corrections) return sums;
  const int64_t terms = *op.context().product({w.dims.begin() + 1, w.dims.end()}).constant();
  return emit.expression(op.dims(), DType::kI32,
                         [=, &context = op.context(), left = operands.left_zero, right = operands.right_zero,
                          group = op.context().floor_divide(w.dims[0], op.dim(op.integer("groups")))](const Dims& at) {
                           const auto constant = [](int64_t value) {
                             return loop::integer_literal(DType::kI32, static_cast<int32_t>(value));
                           };
                           Expr sum = sums.at(at);
                           if (output_corrections) sum = sum - output_corrections->at({at[1]}) * constant(left);
                           if (window_corrections) {
                             Dims window = at;
                             window[1] = context.floor_divide(at[1], group);
                             sum = sum - (window_corrections->at(window) - constant(left * terms)) * constant(right);
                           }
                           return sum;
                         });
}

}  // namespace tenon::compiler::kernels
