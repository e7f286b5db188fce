#include "compiler/cli/spectrogram_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/try.h"

namespace tenon::cli {

void SpectrogramFlags::declare(Options& options) {
  options.option(bands, "--mel", "N", "recordings: a spectrogram (1, N, frames) of N bands of the mel scale",
                 {1, runtime::kLargestTransform});
  options.option(window, "--window", "N", "--mel: samples of a frame", {2, runtime::kLargestTransform});
  options.option(hop, "--hop", "N", "--mel: samples from a frame to the next", {1, INT32_MAX});
  options.option(fft, "--fft", "N", "--mel: size of the transform; 0: the frame's", {0, runtime::kLargestTransform});
  options.option(range, "--range", "LOW,HIGH", "--mel: Hz; without HIGH: half of the rate");
  options.choice(scale, "--mel-scale", {"slaney", "htk"},
                 "--mel: linear below 1 kHz with bands of equal area, or 2595 log10(1 + f / 700)");
  options.choice(power, "--power", {"ln", "log10", "db", "whisper", "linear"}, "--mel: the power's logarithm");
  options.option(floor, "--floor", "X", "--mel: the least power before the logarithm");
  options.flag(uncentered, "--uncentered", "--mel: the first frame begins with the first sample, nothing is mirrored");
  options.flag(frames_first, "--frames-first", "--mel: (1, frames, N)");
}

Expected<std::optional<runtime::SpectrogramOptions>> SpectrogramFlags::read() const {
  if (bands == 0) return std::nullopt;
  TENON_TRY_ASSIGN(hertz, comma_separated(range, "--range"));
  TENON_TRY_ASSIGN(least, comma_separated(floor, "--floor"));
  if (hertz->size() > 2 || least->size() != 1) {
    return error(fmt::format("--range {} and --floor {} must be two numbers and one", range, floor), "tenon prepare",
                 {}, Fault::kUsage);
  }
  using Scale = runtime::SpectrogramOptions::Scale;
  const Scale kind = power == "ln"        ? Scale::kNatural
                     : power == "log10"   ? Scale::kDecimal
                     : power == "db"      ? Scale::kDecibels
                     : power == "whisper" ? Scale::kWhisper
                                          : Scale::kPower;
  return runtime::SpectrogramOptions{.bands = bands,
                                     .window = window,
                                     .fft = fft,
                                     .hop = hop,
                                     .low = hertz->front(),
                                     .high = hertz->size() == 2 ? hertz->back() : 0,
                                     .slaney = scale == "slaney",
                                     .centered = !uncentered,
                                     .scale = kind,
                                     .floor = least->front(),
                                     .frames_first = frames_first};
}

Expected<std::vector<double>> comma_separated(const std::string& text, std::string_view option) {
  std::vector<double> values;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto value = parse_number<double>(std::string_view(text).substr(at, comma - at));
    if (!value) {
      return error(fmt::format("{} is '{}', must be a number, or several with commas between them", option, text),
                   "tenon prepare", {}, Fault::kUsage);
    }
    values.push_back(*value);
    at = comma + 1;
  }
  if (values.empty()) return error(fmt::format("{} is empty", option), "tenon prepare", {}, Fault::kUsage);
  return values;
}

}  // namespace tenon::cli
