// Recordings in WAV files as tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/tensor.h"

namespace tenon::runtime {

struct Recording {
  uint32_t rate = 0;  // samples a second
  Tensor samples;     // f32 (samples,): the mean of the channels, -1 .. 1
};

// Reads PCM of 8, 16, 24 and 32 bits and floats of 32 and 64. Errors: bytes that are no WAV file, another encoding, and
// data that is cut off.
Expected<Recording> decode_wav(std::span<const std::byte> bytes, std::string_view where);

}  // namespace tenon::runtime
