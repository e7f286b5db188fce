#include "compiler/kernels/byte_convolution.h"

#include <algorithm>

#include "compiler/kernels/bytes.h"
#include "compiler/kernels/direct.h"
#include "compiler/kernels/slide.h"
#include "compiler/loop/scalar.h"

namespace tenon::compiler::kernels {
namespace {

// x [N, C, ...] as [N, words of C, ...]: the words of a group lie together, its last one is filled up with zeros.
// Unless it is `copied` afterwards it is stored.
Value channel_words(Emitter& emit, const Value& x, int64_t groups, bool copied) {
  Context& context = emit.context();
  const int64_t channels = *x.dims[1].constant() / groups, words = (channels + 3) / 4;
  Dims dims = x.dims;
  dims[1] = context.dim(groups * words);
  const Value result = emit.expression(dims, DType::kI32, [=, &context](const Dims& at) {
    const Dim count = context.dim(words), four = context.dim(4);
    const Dim group = groups == 1 ? context.dim(0) : context.floor_divide(at[1], count);
    const Dim word = groups == 1 ? at[1] : context.modulo(at[1], count);
    std::array<Expr, 4> bytes;
    for (int64_t b = 0; b < 4; ++b) {
      const Dim channel = context.add(context.multiply(word, four), context.dim(b));
      Dims from = at;
      from[1] = context.add(context.multiply(group, context.dim(channels)), channel);
      const Expr byte = x.at(from);
      bytes[static_cast<size_t>(b)] =
          channels % 4 == 0
              ? byte
              : choose(less(loop::index_value(channel), loop::index_value(context.dim(channels))), byte, like(byte, 0));
    }
    return word_of(bytes);
  });
  return copied ? result : emit.stored("words", result);
}

// The sums of each output's weights.
Value sums_of_outputs(Emitter& emit, const Value& w) {
  if (w.constant) {
    const int64_t outputs = w.constant->shape()[0];
    return sums_along(emit, emit.constant(w.constant->reshaped({outputs, w.constant->size() / outputs})), 1);
  }
  return emit.reduce("byte_sums", {.dims = {w.dims[0]},
                                   .over = Dims(w.dims.begin() + 1, w.dims.end()),
                                   .term = [w](const Dims& at) { return loop::convert(DType::kI32, w.at(at)); }});
}

}  // namespace

// A product of bytes less their zeros and a sum of some hundred are whole numbers that a float holds: it multiplies and
// adds them in one instruction, which 32-bit integers take several for.
std::optional<Value> byte_depthwise(const Operation& op, const Windows& windows) {
  Emitter& emit = op.emit;
  const Value &x = op.arg(0), &w = op.arg(1);
  if (op.dtype() != DType::kI32) return std::nullopt;
  const auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  const auto least = [](const Bytes& value) { return (value.bytes.dtype == DType::kI8 ? -128 : 0) - value.zero; };
  const auto largest = [&](const Bytes& value) {
    return std::max(std::abs(least(value)), std::abs(least(value) + 255));
  };
  const int64_t pad = op.integer("pad_value") + left->zero,
                taps = op.context().product(windows.kernel).constant().value();
  const int64_t pad_least = left->bytes.dtype == DType::kI8 ? -128 : 0;
  constexpr int64_t kExact = 1 << 24;
  if (pad < pad_least || pad > pad_least + 255 || largest(*left) * largest(*right) > kExact / taps) return std::nullopt;
  const auto real = [](const Expr& byte, int64_t zero) {
    return loop::convert(DType::kF32, byte) - static_cast<double>(zero);
  };
  Value weights = emit.expression(w.dims, DType::kF32, [=, bytes = right->bytes, zero = right->zero](const Dims& at) {
    return real(bytes.at(at), zero);
  });
  if (right->bytes.constant) {
    Tensor all(DType::kF32, right->bytes.constant->shape());
    for (int64_t i = 0; i < all.size(); ++i)
      all.data<float>()[static_cast<size_t>(i)] =
          static_cast<float>(loop::read(*right->bytes.constant, i).integer - right->zero);
    weights = emit.constant(all);
  }
  const std::vector<Value> args{left->bytes, weights};
  const Type type = op.context().tensor(op.dims(), DType::kF32);
  const Value sums =
      slide({emit, op.attrs, args, {type.tensor()}}, "conv",
            {.windows = windows,
             .pad = loop::integer_literal(left->bytes.dtype, pad),
             .init = loop::literal(DType::kF32, 0),
             .element = [=, zero = left->zero](const Expr& x) { return real(x, zero); },
             .step =
                 [weights, &context = op.context()](const Expr& sum, const Expr& x, const Dims& at, const Dims& taps) {
                   Dims weight{at[1], context.dim(0)};
                   weight.insert(weight.end(), taps.begin(), taps.end());
                   return sum + weights.at(weight) * x;
                 }});
  return emit.expression(op.dims(), DType::kI32,
                         [sums](const Dims& at) { return loop::convert(DType::kI32, sums.at(at)); });
}

std::optional<Value> byte_convolution(const Operation& op) {
  Emitter& emit = op.emit;
  const Value &x = op.arg(0), &w = op.arg(1);
  const auto known = [](Dim dim) { return dim.constant().value_or(0) > 0; };
  if (op.dtype() != DType::kI32 || x.rank() > 4 || !std::all_of(x.dims.begin() + 1, x.dims.end(), known) ||
      !std::ranges::all_of(w.dims, known) || !std::all_of(op.dims().begin() + 1, op.dims().end(), known))
    return std::nullopt;
  auto left = as_bytes(emit, x), right = as_bytes(emit, w);
  if (!left || !right) return std::nullopt;
  left = as_unsigned(emit, *left), right = as_signed(emit, *right);
  const int64_t pad = op.integer("pad_value") + left->zero;
  if (pad < 0 || pad > 255) return std::nullopt;
  const Value weights = words(emit, right->bytes, 1);
  std::optional<Value> of_outputs;
  if (left->zero != 0) of_outputs = sums_of_outputs(emit, right->bytes);
  // Padding is a copy, and so is what a stride leaves over of x. A plane that a stride cuts apart takes words as they
  // lie.
  const auto some = [&](std::string_view name, int64_t above) {
    return std::ranges::any_of(op.integers(name), [&](int64_t size) { return size > above; });
  };
  const bool pads = some("padding", 0), strides = some("strides", 1);
  const bool points = std::all_of(w.dims.begin() + 2, w.dims.end(), [](Dim size) { return size.constant() == 1; });
  const bool copied = strides ? points && !pads : pads;
  const std::vector<Value> args{channel_words(emit, left->bytes, op.integer("groups"), copied), weights};
  const auto pad_word = static_cast<int32_t>(0x01010101u * static_cast<uint32_t>(pad));
  const auto convolution = [&](const Operation& own) {
    return direct_convolution(own, loop::integer_literal(DType::kI32, pad_word),
                              [](const Expr& w, const Expr& x) { return loop::binary(BinaryOp::kByteDot, x, w); });
  };
  // What a zero of the weights adds is a number for each window of a group.
  std::optional<Value> of_windows;
  if (right->zero != 0) {
    runtime::Shape shape{op.integer("groups")};
    for (size_t i = 1; i < w.rank(); ++i) shape.push_back(*w.dims[i].constant());
    Tensor ones(DType::kI8, shape);
    std::ranges::fill(ones.data<int8_t>(), int8_t{1});
    Dims dims = op.dims();
    dims[1] = op.dim(shape[0]);
    const Type type = op.context().tensor(dims, DType::kI32);
    const std::vector<Value> by_ones{args[0], words(emit, emit.constant(ones), 1)};
    of_windows = convolution({op.emit, op.attrs, by_ones, {type.tensor()}});
  }
  const auto sums = convolution({op.emit, op.attrs, args, op.results});
  if (!sums || (!of_outputs && !of_windows)) return sums;
  const int64_t terms = *op.context().product({w.dims.begin() + 1, w.dims.end()}).constant();
  return emit.expression(op.dims(), DType::kI32,
                         [=, &context = op.context(), left = left->zero, right = right->zero,
                          group = op.context().floor_divide(w.dims[0], op.dim(op.integer("groups")))](const Dims& at) {
                           const auto number = [](int64_t value) {
                             return loop::integer_literal(DType::kI32, static_cast<int32_t>(value));
                           };
                           Expr sum = sums->at(at);
                           if (of_outputs) sum = sum - of_outputs->at({at[1]}) * number(left);
                           if (of_windows) {
                             Dims window = at;
                             window[1] = context.floor_divide(at[1], group);
                             sum = sum - (of_windows->at(window) - number(left * terms)) * number(right);
                           }
                           return sum;
                         });
}

}  // namespace tenon::compiler::kernels
