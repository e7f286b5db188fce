// tenon decode: results of models as text, by the best classes, or as lines of recognizers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/frontend/onnx/model.h"
#include "runtime/media/labels.h"
#include "runtime/run/inputs.h"
#include "runtime/run/results.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kDefaultKey = "character";  // of PaddleOCR's recognizers

struct Decode {
  std::string scores, labels, expect, output;
  int64_t top = 1, blank = 0;
  bool ctc = false, space = false, time_first = false;

  Status run() const {
    if (!ctc && (space || time_first || blank != 0 || !expect.empty()))
      return error("--space, --blank, --time-first and --expect are for --ctc", "tenon decode", {}, Fault::kUsage);
    TENON_TRY(runtime::check_output(output, "--output", std::vector<std::string>{scores, labels, expect}));
    TENON_TRY_ASSIGN(tensor, runtime::load_tensor(scores));
    TENON_TRY_ASSIGN(names, read_labels());
    return ctc ? lines(*tensor, std::move(*names)) : classes(*tensor, *names);
  }

 private:
  // Of a text file, or of a model's metadata: MODEL.onnx or MODEL.onnx:KEY.
  Expected<std::vector<std::string>> read_labels() const {
    if (labels.empty() && ctc)
      return error("--ctc requires --labels", "tenon decode", "the letters, one a line, without the blank",
                   Fault::kUsage);
    if (labels.empty()) return std::vector<std::string>();
    const size_t colon = labels.rfind(".onnx:");
    const bool keyed = colon != std::string::npos;
    if (!keyed && !labels.ends_with(".onnx")) {
      TENON_TRY_ASSIGN(text, read_text(labels));
      return runtime::parse_labels(*text);
    }
    const std::string model = keyed ? labels.substr(0, colon + 5) : labels;
    const std::string key = keyed ? labels.substr(colon + 6) : std::string(kDefaultKey);
    TENON_TRY_ASSIGN(metadata, compiler::onnx::read_metadata(model));
    const auto found = metadata->find(key);
    if (found != metadata->end()) return runtime::parse_labels(found->second);
    std::vector<std::string> keys;
    for (const auto& [name, value] : *metadata) keys.push_back(name);
    return error(fmt::format("the model's metadata has no '{}'", key), model,
                 keys.empty() ? "it has no metadata: give the labels in a text file"
                              : fmt::format("it has {} (as {}:{})", fmt::join(keys, ", "), model, keys.front()));
  }

  Status classes(const runtime::Tensor& tensor, const std::vector<std::string>& names) const {
    TENON_TRY_ASSIGN(rows, runtime::top_classes(tensor, static_cast<size_t>(top), scores));
    const auto count = static_cast<size_t>(tensor.shape().back());
    if (!names.empty() && names.size() != count)
      return error(fmt::format("there are {} labels for {} classes", names.size(), count), labels);
    std::string text;
    for (const auto& row : *rows) {
      std::vector<std::string> parts;
      for (const auto& [index, score] : row) {
        parts.push_back(names.empty() ? fmt::format("{} {:.4g}", index, score)
                                      : fmt::format("{} {:.4g}", names[static_cast<size_t>(index)], score));
      }
      text += fmt::format("{}\n", fmt::join(parts, ", "));
    }
    return print(text);
  }

  Status lines(const runtime::Tensor& tensor, std::vector<std::string> letters) const {
    if (space) letters.emplace_back(" ");
    TENON_TRY_ASSIGN(found, runtime::ctc_lines(tensor, letters, {.blank = blank, .time_first = time_first}, scores));
    std::string text;
    for (const runtime::CtcLine& line : *found) text += line.text + "\n";
    TENON_TRY(print(text));
    if (expect.empty()) return {};
    TENON_TRY_ASSIGN(file, read_text(expect));
    const std::vector<std::string> expected = runtime::parse_labels(*file);
    if (expected.size() != found->size())
      return error(fmt::format("there are {} expected lines, {} were found", expected.size(), found->size()), expect);
    size_t errors = 0, all = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      errors += runtime::edit_distance((*found)[i].text, expected[i]);
      all += runtime::edit_distance({}, expected[i]);
    }
    print_stdout("character error rate: {:.2f} % ({} of {})\n",
                 all ? 100.0 * static_cast<double>(errors) / static_cast<double>(all) : 0.0, errors, all);
    return {};
  }

  Status print(const std::string& text) const {
    if (!output.empty()) return write_file(output, text);
    print_stdout("{}", text);
    return {};
  }
};

}  // namespace

Action decode(Options& options) {
  auto command = std::make_shared<Decode>();
  options.argument(command->scores, "SCORES",
                   "a result of tenon run: FILE.npz:NAME or FILE.npy, classes along the last axis");
  options.option(command->labels, "--labels", "SOURCE",
                 "names of the classes, one a line: a text file, or MODEL.onnx:KEY, which is in the model's metadata");
  options.option(command->top, "--top", "N", "the best N classes of each row", {.least = 1});
  options.flag(command->ctc, "--ctc",
               "the text of each row of (N, T, classes): the best letter of each step, without repetitions and blanks");
  options.option(command->blank, "--blank", "I", "--ctc: the class between letters; -1: the last", {-1, INT32_MAX});
  options.flag(command->space, "--space", "--ctc: the letter after those of --labels is a space");
  options.flag(command->time_first, "--time-first", "--ctc: scores are (T, N, classes)");
  options.option(command->expect, "--expect", "FILE", "--ctc: the true lines; prints the character error rate");
  options.option(command->output, "-o,--output", "FILE.txt", "write the lines into a file");
  options.footer(
      "tenon decode results.npz:logits --labels imagenet.txt --top 5\n"
      "tenon decode results.npz:scores --ctc --labels recognizer.onnx:character --space");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
