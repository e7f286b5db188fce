// Spectrograms of recordings: their power by time and frequency, in bands of the mel scale, as models of speech read
// it.
#pragma once

#include <cstdint>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

inline constexpr int64_t kLargestTransform = 1 << 16;  // also the most bands, and the longest window

struct SpectrogramOptions {
  int64_t bands = 80;        // of the mel scale
  int64_t window = 400;      // samples of a frame, weighted by a periodic Hann window
  int64_t fft = 0;           // size of the transform, at least the window, which lies in its middle; 0: the window's
  int64_t hop = 160;         // samples from a frame to the next
  double low = 0, high = 0;  // Hz of the first and the last band's end; 0: half of the rate
  // The scale of Slaney's Auditory Toolbox, linear below 1000 Hz, with bands of equal area; otherwise HTK's,
  // 2595 log10(1 + f / 700), with triangles of height 1.
  bool slaney = true;
  // Frames are centered at multiples of the hop, and the recording is mirrored at its ends; otherwise the first frame
  // begins with the first sample, and there is no frame that the recording does not fill.
  bool centered = true;
  enum class Scale : uint8_t {
    kPower,
    kNatural,   // logarithm of the power, which is at least `floor`
    kDecimal,   // the same to the base 10
    kDecibels,  // 10 times that
    kWhisper,   // to the base 10, at least the largest less 8; then (x + 4) / 4. The last frame is left out.
  };
  Scale scale = Scale::kNatural;
  double floor = 1e-10;
  bool frames_first = false;  // (1, frames, bands); otherwise (1, bands, frames)
};

// The f32 tensor of samples (samples,) at `rate` a second. Errors: options that do not fit, and a recording that is
// shorter than a frame.
Expected<Tensor> mel_spectrogram(const Tensor& samples, uint32_t rate, const SpectrogramOptions& options,
                                 std::string_view where);

}  // namespace tenon::runtime
