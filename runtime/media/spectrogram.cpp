#include "runtime/media/spectrogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/try.h"

namespace tenon::runtime {
namespace {

using Complex = std::complex<double>;
constexpr int64_t kMostValues = int64_t{1} << 28;
constexpr int64_t kLargestOdd = 1 << 10;  // factor of a transform's size, whose cost grows with its square

// The discrete Fourier transform of one size, by Cooley and Tukey's division into even and odd elements as often as the
// size has the factor 2.
class Transform {
 public:
  explicit Transform(size_t size) : size_(size), roots_(size) {
    for (size_t i = 0; i < size; ++i)
      roots_[i] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size));
  }

  std::vector<Complex> of(std::span<const double> values) const {
    std::vector<Complex> result(size_);
    transform(values.data(), 1, size_, result.data());
    return result;
  }

 private:
  // Of `count` values, with `stride` values from one to the next.
  void transform(const double* values, size_t stride, size_t count, Complex* out) const {
    const size_t half = count / 2;
    if (count % 2 == 0) {
      transform(values, 2 * stride, half, out);
      transform(values + stride, 2 * stride, half, out + half);
      for (size_t k = 0; k < half; ++k) {
        const Complex even = out[k], odd = roots_[k * stride] * out[half + k];
        out[k] = even + odd, out[half + k] = even - odd;
      }
      return;
    }
    for (size_t k = 0; k < count; ++k) {
      Complex sum = 0;
      for (size_t i = 0; i < count; ++i) sum += roots_[i * k % count * stride] * values[i * stride];
      out[k] = sum;
    }
  }

  size_t size_;
  std::vector<Complex> roots_;
};

// The scales of mel: HTK's, and Slaney's, which is linear below a thousand hertz.
constexpr double kLinearStep = 200.0 / 3, kLinearEnd = 1000, kLinearMels = kLinearEnd / kLinearStep;
const double kLogStep = std::log(6.4) / 27;
double mel_of(double hertz, bool slaney) {
  if (!slaney) return 2595 * std::log10(1 + hertz / 700);
  return hertz < kLinearEnd ? hertz / kLinearStep : kLinearMels + std::log(hertz / kLinearEnd) / kLogStep;
}
double hertz_of(double mel, bool slaney) {
  if (!slaney) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kLinearMels ? mel * kLinearStep : kLinearEnd * std::exp((mel - kLinearMels) * kLogStep);
}

// Triangles between three neighbours of bands + 2 frequencies that are equally spaced in mel: [bands][bins].
std::vector<std::vector<double>> mel_filters(const SpectrogramOptions& options, uint32_t rate) {
  const double top = options.high > 0 ? options.high : rate / 2.0;
  const double first = mel_of(options.low, options.slaney), last = mel_of(top, options.slaney);
  const auto edge = [&](int64_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(options.bands + 1);
    return hertz_of(first + share * (last - first), options.slaney);
  };
  std::vector<std::vector<double>> filters;
  for (int64_t band = 0; band < options.bands; ++band) {
    const double left = edge(band), center = edge(band + 1), right = edge(band + 2);
    std::vector<double>& filter = filters.emplace_back();
    for (int64_t bin = 0; bin <= options.fft / 2; ++bin) {
      const double hertz = static_cast<double>(bin) * rate / static_cast<double>(options.fft);
      const double height = std::min((hertz - left) / (center - left), (right - hertz) / (right - center));
      filter.push_back(std::max(height, 0.0) * (options.slaney ? 2 / (right - left) : 1));
    }
  }
  return filters;
}

Status check_spectrogram(const SpectrogramOptions& options, uint32_t rate) {
  const auto fail = [](std::string what) -> Status { return error(std::move(what), {}, {}, Fault::kUsage); };
  if (options.bands < 1 || options.bands > kLargestTransform)
    return fail(fmt::format("{} bands of the mel scale, must be 1 to {}", options.bands, kLargestTransform));
  if (options.window < 2 || options.window > kLargestTransform)
    return fail(fmt::format("a window of {} samples, must be 2 to {}", options.window, kLargestTransform));
  if (options.fft < options.window || options.fft > kLargestTransform)
    return fail(fmt::format("a transform of {} samples for a window of {}, must be {} to {}", options.fft,
                            options.window, options.window, kLargestTransform));
  int64_t odd = options.fft;
  while (odd % 2 == 0) odd /= 2;
  if (odd > kLargestOdd)
    return fail(fmt::format("a transform of {} samples, whose odd factor {} is above {}: a power of two is fast",
                            options.fft, odd, kLargestOdd));
  if (options.hop < 1) return fail(fmt::format("{} samples from a frame to the next, must be positive", options.hop));
  const double high = options.high > 0 ? options.high : rate / 2.0;
  if (!(options.low >= 0 && options.low < high && high <= rate / 2.0))
    return fail(fmt::format("bands from {:g} to {:g} Hz, must be between 0 and half of the rate, {:g}", options.low,
                            high, rate / 2.0));
  if (!(options.floor > 0)) return fail(fmt::format("the least power is {:g}, must be positive", options.floor));
  return {};
}

// The sample at an index that may be outside: mirrored at the first and the last one.
double mirrored(std::span<const float> samples, int64_t i) {
  const int64_t last = static_cast<int64_t>(samples.size()) - 1;
  i = std::abs(i);
  return samples[static_cast<size_t>(i > last ? 2 * last - i : i)];
}

std::vector<double> hann_window(int64_t size) {
  std::vector<double> window;
  for (int64_t i = 0; i < size; ++i)
    window.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size)));
  return window;
}

void scale_power(std::span<double> values, const SpectrogramOptions& options) {
  using Scale = SpectrogramOptions::Scale;
  if (options.scale == Scale::kPower) return;
  for (double& value : values) {
    value = std::log(std::max(value, options.floor));
    if (options.scale != Scale::kNatural) value /= std::numbers::ln10;
    if (options.scale == Scale::kDecibels) value *= 10;
  }
  if (options.scale != Scale::kWhisper || values.empty()) return;
  const double least = *std::ranges::max_element(values) - 8;
  for (double& value : values) value = (std::max(value, least) + 4) / 4;
}

}  // namespace

Expected<Tensor> mel_spectrogram(const Tensor& samples, uint32_t rate, const SpectrogramOptions& given,
                                 std::string_view where) {
  SpectrogramOptions options = given;
  if (options.fft == 0) options.fft = options.window;
  TENON_TRY(check_spectrogram(options, rate));
  const auto all = samples.data<float>();
  const auto count = static_cast<int64_t>(all.size()), outside = options.centered ? options.fft / 2 : 0;
  const int64_t least = options.centered ? outside + 1 : options.fft;
  if (count < least)
    return error(fmt::format("it has {} samples, a spectrogram requires {}", count, least), std::string(where),
                 "--length fills it with silence, --window and --fft set the samples of a frame");
  const bool less = options.scale == SpectrogramOptions::Scale::kWhisper && options.centered;
  const int64_t frames = (count + 2 * outside - options.fft) / options.hop + (less ? 0 : 1);
  if (frames > kMostValues / options.bands)
    return error(fmt::format("{} frames of {} bands are too many", frames, options.bands), std::string(where));
  const Transform transform(static_cast<size_t>(options.fft));
  const auto filters = mel_filters(options, rate);
  const int64_t inside = (options.fft - options.window) / 2;
  const std::vector<double> window = hann_window(options.window);
  std::vector<double> frame(static_cast<size_t>(options.fft)), power, mels(static_cast<size_t>(frames * options.bands));
  for (int64_t t = 0; t < frames; ++t) {
    const int64_t begin = t * options.hop - outside + inside;
    for (int64_t i = 0; i < options.window; ++i)
      frame[static_cast<size_t>(inside + i)] = mirrored(all, begin + i) * window[static_cast<size_t>(i)];
    power.clear();
    for (const Complex& value : transform.of(frame)) power.push_back(std::norm(value));
    for (int64_t band = 0; band < options.bands; ++band) {
      const auto& filter = filters[static_cast<size_t>(band)];
      double sum = 0;
      for (size_t bin = 0; bin < filter.size(); ++bin) sum += filter[bin] * power[bin];
      mels[static_cast<size_t>(options.frames_first ? t * options.bands + band : band * frames + t)] = sum;
    }
  }
  scale_power(mels, options);
  Tensor result = options.frames_first ? Tensor(DType::kF32, {1, frames, options.bands})
                                       : Tensor(DType::kF32, {1, options.bands, frames});
  std::ranges::transform(mels, result.data<float>().begin(), [](double value) { return static_cast<float>(value); });
  return result;
}

}  // namespace tenon::runtime
