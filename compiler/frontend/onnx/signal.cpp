// Converters of ONNX's operators on signals: Fourier transforms, windows, mel filters, random numbers.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

constexpr double kTau = 2 * std::numbers::pi;
constexpr int64_t kMaxElements = 1 << 25;  // of a matrix of factors, or of a window

// One integer from a constant input, or the fallback where it is omitted.
Expected<int64_t> integer_or(NodeImport& node, size_t input, std::string_view what, int64_t fallback) {
  if (!node.has_input(input)) return fallback;
  TENON_TRY_ASSIGN(values, node.integers(input, what));
  if (values->size() != 1) return node.fail(fmt::format("{} must be one element", what));
  return (*values)[0];
}

// A discrete Fourier transform as a matrix [inputs * parts, results * result parts] whose rows and columns alternate
// between real and imaginary parts.
struct Transform {
  int64_t length;  // N: results are sums over n of x[n] * exp(-i tau k n / N)
  int64_t inputs;  // elements of x that are given
  int64_t results;
  bool complex_input, complex_result, inverse;
  bool half = false;  // the inputs are the first half of a spectrum whose second half is its mirror image

  int64_t parts() const { return complex_input ? 2 : 1; }
  int64_t result_parts() const { return complex_result ? 2 : 1; }
  int64_t elements() const { return inputs * parts() * results * result_parts(); }
  Reals matrix() const {
    Reals values(static_cast<size_t>(elements()));
    const int64_t width = results * result_parts();
    for (int64_t n = 0; n < inputs; ++n) {
      const bool mirrored = half && n > 0 && 2 * n != length;
      const double weight = (mirrored ? 2.0 : 1.0) / (inverse ? static_cast<double>(length) : 1.0);
      for (int64_t k = 0; k < results; ++k) {
        const double angle =
            (inverse ? 1 : -1) * kTau * static_cast<double>(k * n % length) / static_cast<double>(length);
        const double cosine = weight * std::cos(angle), sine = weight * std::sin(angle);
        double* real = &values[static_cast<size_t>(n * parts() * width + k * result_parts())];
        real[0] = cosine;
        if (complex_result) real[1] = sine;
        if (!complex_input) continue;
        real[width] = -sine;
        if (complex_result) real[width + 1] = cosine;
      }
    }
    return values;
  }
};

void expect_small(NodeFormula& f, const Transform& transform) {
  f.expect(transform.length >= 1 && transform.length <= 1 << 20 && transform.elements() <= kMaxElements,
           fmt::format("a transform of length {} is not supported: its matrix must have at most 2^25 elements",
                       transform.length));
}

// x cut or padded with zeros to `length` elements of an axis.
Term resized(const Term& x, int64_t axis, int64_t length, int64_t given) {
  return given > length ? x.slice(axis, 0, length) : x.pad(axis, 0, length - given);
}

// The axis is an attribute up to opset 19, an input from 20 on.
Status dft(NodeImport& node) {
  TENON_TRY_ASSIGN(inverse, node.integer("inverse", 0));
  TENON_TRY_ASSIGN(onesided, node.integer("onesided", 0));
  TENON_TRY_ASSIGN(axis, node.opset() < 20 ? node.integer("axis", 1) : integer_or(node, 2, "the axis", -2));
  NodeFormula f(node);
  Term x = f.input(0);
  const DType dtype = x.dtype();
  const int64_t rank = x.rank(), along = *axis < 0 ? *axis + rank : *axis, parts = f.known_size(x, -1, "the last axis");
  f.expect(rank >= 2 && along >= 0 && along < rank - 1, fmt::format("there is no signal along axis {}", *axis));
  f.expect(parts == 1 || parts == 2, "the last axis must have one or two elements, real and imaginary part");
  const bool half = *onesided && *inverse;
  f.expect(!half || parts == 2, "an inverse transform of half a spectrum requires complex numbers");
  f.expect(!*onesided || half || parts == 1, "half of a spectrum is enough for real numbers only");
  if (!f.ok()) return f.status();
  const int64_t given = f.known_size(x, along, "the length of the signal");
  TENON_TRY_ASSIGN(length, integer_or(node, 1, "the length", half ? 2 * (given - 1) : given));
  const int64_t bins = *length / 2 + 1;
  const Transform transform{
      *length, half ? bins : *length, *onesided && !half ? bins : *length, parts == 2, !half, *inverse != 0, half};
  expect_small(f, transform);
  if (!f.ok()) return f.status();
  x = resized(dtype == DType::kF64 ? x : x.cast(DType::kF32), along, transform.inputs, given);
  // The signal is moved before the parts, and both are multiplied with the matrix.
  Ints order, back;
  for (int64_t i = 0; i < rank - 1; ++i) {
    if (i != along) order.push_back(i);
  }
  order.push_back(along), order.push_back(rank - 1);
  for (int64_t i = 0; i < rank; ++i) back.push_back(std::ranges::find(order, i) - order.begin());
  Ints rows(static_cast<size_t>(rank) - 1, 0), results(static_cast<size_t>(rank), 0);
  rows.back() = transform.inputs * parts;
  results[static_cast<size_t>(rank) - 2] = transform.results, results.back() = transform.result_parts();
  x = x.transpose(order).reshape(rows);
  const bool vector = rank == 2;
  if (vector) x = x.expand_dims({0});
  const Term matrix = f.real_constant({transform.inputs * parts, transform.results * transform.result_parts()},
                                      transform.matrix(), x.dtype());
  Term y = matmul(x, matrix);
  if (vector) y = y.squeeze({0});
  return f.result(y.reshape(results).transpose(back).cast(dtype));
}

// The transforms of the frames of a signal [B, T, parts]: a convolution whose weights are the matrix of the transform
// times the window.
Status stft(NodeImport& node) {
  TENON_TRY_ASSIGN(onesided, node.integer("onesided", 1));
  TENON_TRY_ASSIGN(step, Integers::input(node, 1, "the step of the frames"));
  NodeFormula f(node);
  Term x = f.input(0);
  const DType dtype = x.dtype();
  if (x.rank() == 2) x = x.expand_dims({2});
  f.expect(x.rank() == 3, "the signal must have three dims");
  const int64_t parts = f.known_size(x, 2, "the last axis of the signal");
  f.expect(parts == 1 || parts == 2, "the last axis must have one or two elements, real and imaginary part");
  f.expect(!*onesided || parts == 1, "half of a spectrum is enough for real numbers only");
  f.expect(node.has_input(2) || node.has_input(3), "requires a window or the length of the frames");
  if (!f.ok()) return f.status();
  const int64_t window_size = node.has_input(2) ? f.known_size(f.input(2), 0, "the size of the window") : 0;
  TENON_TRY_ASSIGN(length, integer_or(node, 3, "the length of the frames", window_size));
  f.expect(window_size == 0 || window_size == *length, "the window must be as long as a frame");
  const int64_t bins = *onesided ? *length / 2 + 1 : *length;
  const Transform transform{*length, *length, bins, parts == 2, true, false};
  expect_small(f, transform);
  if (!f.ok()) return f.status();
  const DType exact = dtype == DType::kF64 ? dtype : DType::kF32;
  const Reals matrix = transform.matrix();
  Reals weights(matrix.size());  // [results * 2, parts, length]
  for (int64_t row = 0; row < *length * parts; ++row) {
    for (int64_t column = 0; column < bins * 2; ++column) {
      weights[static_cast<size_t>((column * parts + row % parts) * *length + row / parts)] =
          matrix[static_cast<size_t>(row * bins * 2 + column)];
    }
  }
  Term kernel = f.real_constant({bins * 2, parts, *length}, weights, exact);
  if (node.has_input(2)) kernel = kernel * f.input(2).cast(exact);
  x = x.cast(exact).transpose({0, 2, 1});
  int64_t stride = *length;  // of frames that are copied one after the other, where the step is computed
  if (const auto known = step->constants()) {
    stride = known->size() == 1 ? (*known)[0] : 0;
  } else {
    const Term every = f.vector(*step),
               last = f.apply(ops::kShapeOf, {x}).slice(0, 2, 3) - static_cast<double>(*length);
    const Term begin = f.range(f.integers(f.apply(ops::kFloorDivide, {last, every}) + 1)) * every;
    const Term element = f.range(Integers::of(node.context(), {*length})).expand_dims({0});
    x = gather(x, (begin.expand_dims({1}) + element).reshape({-1}), 2);
  }
  const Term y = f.apply(ops::kConv1d, {x, kernel}, {{"strides", Ints{stride}}});
  return f.result(y.transpose({0, 2, 1}).reshape({0, 0, bins, 2}).cast(dtype));
}

// The dtype of the attribute `output_datatype`; one of numbers, of which integers are truncated.
Expected<DType> numeric_dtype(NodeImport& node) {
  TENON_TRY_ASSIGN(number, node.integer("output_datatype", 1));
  const auto dtype = dtype_of_id(*number);
  if (!dtype || !runtime::kNumericTypes.contains(*dtype)) {
    return node.fail(fmt::format("output_datatype {} is not supported, only those of numbers", *number));
  }
  return *dtype;
}

// a - b cos(angle) + c cos(2 angle)
struct WindowFactors {
  double a, b, c;
};
constexpr WindowFactors kHann{0.5, 0.5, 0}, kHamming{25.0 / 46, 21.0 / 46, 0}, kBlackman{0.42, 0.5, 0.08};

template <WindowFactors factors>
Status window(NodeImport& node) {
  TENON_TRY_ASSIGN(periodic, node.integer("periodic", 1));
  TENON_TRY_ASSIGN(dtype, numeric_dtype(node));
  TENON_TRY_ASSIGN(given, Integers::input(node, 0, "the size of the window"));
  const auto known = given->constants();
  if (known && (known->size() != 1 || (*known)[0] < 0 || (*known)[0] > kMaxElements))
    return node.fail(fmt::format("a window of {} elements is impossible", known->empty() ? 0 : (*known)[0]));
  OperatorAttributes attrs(Attrs{{"dtype", "i64"}});
  TENON_TRY(attrs.set_scalar(node, "count", *given));
  TENON_TRY_ASSIGN(scalar, given->scalar(node));
  NodeFormula f(node);
  const bool is_short = runtime::kReals.contains(*dtype) && *dtype != DType::kF64;
  const DType exact = is_short ? DType::kF32 : DType::kF64;
  const Term n = f.term(attrs.apply(node, ops::kArange, {})).cast(exact), size = f.term(*scalar).cast(exact);
  const Term angle = n * kTau / (*periodic ? size : size - 1);  // NaN for a single element, by ONNX's definition
  const Term first = f.apply(ops::kCos, {angle}) * -factors.b;
  if (factors.c == 0) return f.result((first + factors.a).cast(*dtype));
  // In this order the middle of a window is exactly 1, also as an integer.
  return f.result((f.apply(ops::kCos, {angle * 2}) * factors.c + factors.a + first).cast(*dtype));
}

Expected<double> real_input(NodeImport& node, size_t input, std::string_view what) {
  TENON_TRY_ASSIGN(tensor, node.constant(input, what));
  if (tensor->size() != 1) return node.fail(fmt::format("{} must be one element", what));
  double value = 0;
  runtime::with_dtype<runtime::kAnyDType>(tensor->dtype(),
                                          [&]<class T>(T) { value = static_cast<double>(tensor->data<T>()[0]); });
  return value;
}

// Triangles [bins of the spectrum, filters] whose corners are equidistant on the mel scale.
Status mel_weights(NodeImport& node) {
  TENON_TRY_ASSIGN(dtype, numeric_dtype(node));
  TENON_TRY_ASSIGN(filters, integer_or(node, 0, "the number of filters", 0));
  TENON_TRY_ASSIGN(length, integer_or(node, 1, "the length of the transform", 0));
  TENON_TRY_ASSIGN(rate, integer_or(node, 2, "the sample rate", 0));
  TENON_TRY_ASSIGN(lower, real_input(node, 3, "the lowest frequency"));
  TENON_TRY_ASSIGN(upper, real_input(node, 4, "the highest frequency"));
  if (*filters < 1 || *length < 1 || *filters > 1 << 16 || *length > 1 << 24 ||
      (*length / 2 + 1) * *filters > kMaxElements || *rate < 1 || !(*lower >= 0) || !(*upper >= *lower) ||
      !(*upper <= static_cast<double>(*rate) / 2)) {
    return node.fail("requires filters, a length, and 0 <= lowest <= highest frequency <= half of the sample rate");
  }
  const int64_t bins = *length / 2 + 1;
  const double low = 2595 * std::log10(1 + *lower / 700), high = 2595 * std::log10(1 + *upper / 700);
  const auto corner = [&](int64_t i) {
    const double mel = static_cast<double>(i) * (high - low) / static_cast<double>(*filters + 2) + low;
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    return std::clamp<int64_t>(
        static_cast<int64_t>(std::floor(static_cast<double>(*length + 1) * hertz / static_cast<double>(*rate))), 0,
        bins - 1);
  };
  Reals values(static_cast<size_t>(bins * *filters), 0.0);
  for (int64_t i = 0; i < *filters; ++i) {
    const int64_t left = corner(i), centre = corner(i + 1), right = corner(i + 2);
    const auto at = [&](int64_t bin) -> double& { return values[static_cast<size_t>(bin * *filters + i)]; };
    for (int64_t bin = left; bin < centre; ++bin)
      at(bin) = static_cast<double>(bin - left) / static_cast<double>(centre - left);
    at(centre) = 1;
    for (int64_t bin = centre + 1; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - centre);
  }
  NodeFormula f(node);
  return f.result(f.real_constant({bins, *filters}, values, real_of(*dtype)).cast(*dtype));
}

// The key of a node's random numbers: of its seed, or of its index among the module's constants. The numbers of a node
// are the same in every run.
Term random_key(NodeFormula& f, double seed) {
  const auto bits = std::bit_cast<uint64_t>(
      f.node().has("seed") ? seed : -1.0 - static_cast<double>(f.node().builder().module().constants.size()));
  return f.constant(
      runtime::Tensor::of<int32_t>({2}, std::array{static_cast<int32_t>(bits), static_cast<int32_t>(bits >> 32)}));
}

enum class Source : uint8_t { kShape, kLike };
template <OperatorId op, Source source>
Status random_numbers(NodeImport& node) {
  constexpr bool kNormal = op == ops::kRandomNormal;
  TENON_TRY_ASSIGN(seed, node.real("seed", 0.0));
  TENON_TRY_ASSIGN(a, node.real(kNormal ? "mean" : "low", 0.0));
  TENON_TRY_ASSIGN(b, node.real(kNormal ? "scale" : "high", 1.0));
  NodeFormula f(node);
  Ints shape;
  DType like = DType::kF32;
  if constexpr (source == Source::kShape) {
    TENON_TRY_ASSIGN(given, node.list("shape"));
    shape = *given;
  } else {
    const Term x = f.input(0);
    for (int64_t i = 0; i < x.rank(); ++i) shape.push_back(f.known_size(x, i, "a size of the random numbers"));
    if (runtime::kReals.contains(x.dtype())) like = x.dtype();
  }
  TENON_TRY_ASSIGN(number, node.integer("dtype", 0));
  const auto stated = dtype_of_id(*number);
  const DType dtype = *number == 0 ? like : stated.value_or(DType::kBool);
  f.expect(runtime::kReals.contains(dtype),
           fmt::format("random numbers of the data type {} are not supported", *number));
  const DType drawn = dtype == DType::kF64 ? dtype : DType::kF32;
  return f.result(f.apply(op, {random_key(f, *seed)},
                          {{"shape", shape}, {"a", *a}, {"b", *b}, {"dtype", std::string(runtime::name(drawn))}})
                      .cast(dtype));
}

// 1 with the probability that x gives, else 0.
Status bernoulli(NodeImport& node) {
  TENON_TRY_ASSIGN(seed, node.real("seed", 0.0));
  NodeFormula f(node);
  const Term x = f.input(0).cast(DType::kF32);
  Ints shape;
  for (int64_t i = 0; i < x.rank(); ++i) shape.push_back(f.known_size(x, i, "a size of the random numbers"));
  TENON_TRY_ASSIGN(number, node.integer("dtype", 0));
  const auto stated = dtype_of_id(*number);
  f.expect(*number == 0 || stated, fmt::format("ONNX's data type {} is not supported", *number));
  const Term drawn = f.apply(ops::kRandomUniform, {random_key(f, *seed)}, {{"shape", shape}});
  return f.result(
      f.apply(ops::kLess, {drawn, x}).cast(*number == 0 ? f.input(0).dtype() : stated.value_or(DType::kF32)));
}

}  // namespace

std::span<const Converter> signal_converters() {
  static constexpr Converter kTable[] = {
      {"Bernoulli", 1, 1, bernoulli},
      {"BlackmanWindow", 1, 1, window<kBlackman>},
      {"DFT", 1, 3, dft},
      {"HammingWindow", 1, 1, window<kHamming>},
      {"HannWindow", 1, 1, window<kHann>},
      {"MelWeightMatrix", 5, 5, mel_weights},
      {"RandomNormal", 0, 0, random_numbers<ops::kRandomNormal, Source::kShape>},
      {"RandomNormalLike", 1, 1, random_numbers<ops::kRandomNormal, Source::kLike>},
      {"RandomUniform", 0, 0, random_numbers<ops::kRandomUniform, Source::kShape>},
      {"RandomUniformLike", 1, 1, random_numbers<ops::kRandomUniform, Source::kLike>},
      {"STFT", 2, 4, stft},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
