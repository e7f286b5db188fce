// The options of tenon prepare that make spectrograms of recordings.
#pragma once

#include <optional>
#include <string>

#include "compiler/cli/command.h"
#include "runtime/media/spectrogram.h"

namespace tenon::cli {

struct SpectrogramFlags {
  int64_t bands = 0, window = 400, fft = 0, hop = 160;  // no bands: the samples themselves
  std::string range = "0", scale = "slaney", power = "ln", floor = "1e-10";
  bool uncentered = false, frames_first = false;

  void declare(Options& options);
  // Nothing where no bands are requested.
  Expected<std::optional<runtime::SpectrogramOptions>> read() const;
};

// Numbers separated by commas; `option` names them in messages.
Expected<std::vector<double>> comma_separated(const std::string& text, std::string_view option);

}  // namespace tenon::cli
