// tenon prepare: pictures, recordings and sentences as the samples of a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/cli/prepare_sentences.h"
#include "compiler/cli/spectrogram_options.h"
#include "runtime/media/picture.h"
#include "runtime/media/wav.h"
#include "runtime/npy.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

std::unexpected<Diagnostic> wrong(std::string what, std::string help = {}) {
  return error(std::move(what), "tenon prepare", std::move(help), Fault::kUsage);
}

struct Prepare {
  std::vector<std::string> files;
  std::string size, subtract = "0", divide = "1", output;
  double crop = 1;
  bool gray = false, channels_last = false;
  int64_t rate = 0, length = 0;
  SpectrogramFlags spectrogram;
  SentenceFlags sentences;

  Status run() const {
    TENON_TRY_ASSIGN(pictures, picture_options());
    TENON_TRY_ASSIGN(mel, spectrogram.read());
    std::vector<std::string> inputs = files;
    inputs.push_back(sentences.vocabulary);
    TENON_TRY(runtime::check_output(output, "--output", inputs));
    if (!sentences.vocabulary.empty()) return write_sentences(files, sentences, length, output);
    std::vector<Tensor> samples;
    for (const std::string& file : files) {
      TENON_TRY_ASSIGN(bytes, read_file(file));
      const bool is_recording = bytes->size() >= 4 && std::memcmp(bytes->data(), "RIFF", 4) == 0;
      auto sample = is_recording ? recording(*bytes, file, *mel) : runtime::decode_picture(*bytes, *pictures, file);
      if (!sample) return std::unexpected(std::move(sample.error()));
      if (!samples.empty() && samples.front().shape() != sample->shape()) {
        return error(fmt::format("it becomes {}, {} became {}", runtime::to_string(sample->shape()), files.front(),
                                 runtime::to_string(samples.front().shape())),
                     file, is_recording ? "--length cuts and fills recordings" : "--size resizes pictures");
      }
      samples.push_back(std::move(*sample));
    }
    runtime::Shape shape = samples.front().shape();
    shape[0] = static_cast<int64_t>(samples.size());
    Tensor all = Tensor::for_overwrite(runtime::DType::kF32, shape);
    auto next = all.bytes().begin();
    for (const Tensor& sample : samples) next = std::ranges::copy(sample.bytes(), next).out;
    TENON_TRY(runtime::save_npy(output, all));
    print_stdout("{}: f32 {}\n", output, runtime::to_string(shape));
    return {};
  }

  Expected<runtime::PictureOptions> picture_options() const {
    runtime::PictureOptions options{.crop = crop, .gray = gray, .channels_last = channels_last};
    if (!size.empty()) {
      constexpr Bounds<int64_t> kSizes{1, 1 << 14};
      const size_t times = std::min(size.find('x'), size.size());
      const auto height = parse_number<int64_t>(size.substr(0, times));
      const auto width = times == size.size() ? height : parse_number<int64_t>(size.substr(times + 1));
      if (!height || !width || !kSizes.contain(*height) || !kSizes.contain(*width))
        return wrong(
            fmt::format("--size is '{}', must be 224, or HEIGHTxWIDTH as 48x320, each {}", size, kSizes.str()));
      options.height = *height, options.width = *width;
    }
    TENON_TRY_ASSIGN(subtracted, comma_separated(subtract, "--subtract"));
    TENON_TRY_ASSIGN(divided, comma_separated(divide, "--divide"));
    options.subtract = std::move(*subtracted);
    options.divide = std::move(*divided);
    return options;
  }

  // (1, samples), or a spectrogram
  Expected<Tensor> recording(std::span<const std::byte> bytes, const std::string& file,
                             const std::optional<runtime::SpectrogramOptions>& mel) const {
    TENON_TRY_ASSIGN(decoded, runtime::decode_wav(bytes, file));
    if (rate != 0 && decoded->rate != rate)
      return error(fmt::format("it has {} samples a second, --rate requires {}", decoded->rate, rate), file,
                   "sox, or ffmpeg -ar, converts it");
    const auto from = decoded->samples.data<float>();
    const auto count = length > 0 ? static_cast<size_t>(length) : from.size();
    Tensor sample(runtime::DType::kF32, {1, static_cast<int64_t>(count)});
    std::ranges::copy(from.first(std::min(count, from.size())), sample.data<float>().begin());
    return mel ? runtime::mel_spectrogram(sample, decoded->rate, *mel, file) : sample;
  }
};

}  // namespace

Action prepare(Options& options) {
  auto command = std::make_shared<Prepare>();
  options.arguments(command->files, "FILE",
                    "pictures (PNG, JPEG, BMP, PNM and others), recordings (WAV), or with --vocabulary texts");
  options.required(command->output, "-o,--output", "FILE.npy",
                   "all of them as one tensor, the samples of an input; FILE.npz for sentences");
  options.option(command->size, "--size", "HxW", "pictures: resize, and cut the center out; one number: a square");
  options.option(command->crop, "--crop", "SHARE",
                 "pictures: the share of the resized picture's shorter side that is kept, as 0.875",
                 {.least = 0, .most = 1, .above = true});
  options.flag(command->gray, "--gray", "pictures: one channel; else red, green and blue");
  options.flag(command->channels_last, "--channels-last", "pictures: (N, H, W, C); else (N, C, H, W)");
  options.option(command->subtract, "--subtract", "X,...",
                 "pictures: from all values, which are 0 to 255, or for each channel");
  options.option(command->divide, "--divide", "X,...", "pictures: all differences, or for each channel");
  options.option(command->rate, "--rate", "HZ", "recordings: the samples a second that they must have",
                 {1, UINT32_MAX});
  options.option(command->length, "--length", "N",
                 "recordings: cut, or filled with silence, to N samples; sentences: to N tokens", {1, 1 << 28});
  command->spectrogram.declare(options);
  options.option(command->sentences.vocabulary, "--vocabulary", "FILE",
                 "each line of the texts is a sentence, whose tokens are WordPiece's: vocab.txt, or tokenizer.json");
  options.flag(command->sentences.keep_case, "--keep-case", "vocab.txt: of a model that reads capitals and accents");
  options.option(command->sentences.names, "--names", "IDS,MASK,TYPES", "sentences: names of the tensors");
  options.footer(
      "tenon prepare photos/*.jpg --size 224 --crop 0.875 --subtract 127 --divide 128 -o photos.npy\n"
      "tenon run model.onnx --shapes N=1 --calibrate photos.npy --data photos.npy\n"
      "tenon prepare speech/*.wav --rate 16000 --length 480000 --mel 80 --power whisper -o speech.npy\n"
      "tenon prepare sentences.txt --vocabulary vocab.txt --length 64 -o sentences.npz");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
