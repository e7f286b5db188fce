#include "runtime/media/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/media/unicode.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

// The elements as numbers to compare.
Expected<std::vector<double>> score_values(const Tensor& scores, std::string_view where) {
  if (!kNumericTypes.contains(scores.dtype()))
    return error(fmt::format("scores are {}, must be numbers", name(scores.dtype())), std::string(where));
  std::vector<double> values;
  with_dtype<kNumericTypes>(scores.dtype(), [&]<class T>(T) {
    for (const T value : scores.data<T>()) values.push_back(static_cast<double>(value));
  });
  return values;
}

}  // namespace

std::vector<std::string> parse_labels(std::string_view text) {
  std::vector<std::string> labels;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    labels.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return labels;
}

Expected<std::vector<std::vector<ScoredClass>>> top_classes(const Tensor& scores, size_t count,
                                                            std::string_view where) {
  const int64_t classes = scores.shape().empty() ? 0 : scores.shape().back();
  if (classes < 1)
    return error(
        fmt::format("scores have the shape {}, must have classes along the last axis", to_string(scores.shape())),
        std::string(where));
  TENON_TRY_ASSIGN(values, score_values(scores, where));
  const auto width = static_cast<size_t>(classes);
  std::vector<std::vector<ScoredClass>> rows;
  for (size_t at = 0; at < values->size(); at += width) {
    std::vector<ScoredClass>& row = rows.emplace_back();
    for (size_t i = 0; i < width; ++i) row.push_back({static_cast<int64_t>(i), (*values)[at + i]});
    std::ranges::stable_sort(row, std::ranges::greater(), &ScoredClass::score);
    row.resize(std::min(count, width));
  }
  return rows;
}

Expected<std::vector<CtcLine>> ctc_lines(const Tensor& scores, std::span<const std::string> letters,
                                         const CtcOptions& options, std::string_view where) {
  const Shape& shape = scores.shape();
  if (shape.size() != 3)
    return error(fmt::format("scores have the shape {}, must be (lines, steps, classes)", to_string(shape)),
                 std::string(where));
  const auto classes = static_cast<size_t>(shape[2]);
  if (classes != letters.size() + 1) {
    return error(fmt::format("scores have {} classes, must have one for each of {} letters and the blank", classes,
                             letters.size()),
                 std::string(where),
                 classes == letters.size() + 2 ? "where the last class is a space that the alphabet lacks: --space"
                                               : "the alphabet is that of another model");
  }
  const int64_t blank = options.blank < 0 ? options.blank + shape[2] : options.blank;
  if (blank < 0 || blank >= shape[2])
    return error(fmt::format("the blank is the class {}, there are {}", options.blank, classes), std::string(where), {},
                 Fault::kUsage);
  TENON_TRY_ASSIGN(rows, top_classes(scores, 1, where));
  const int64_t lines = options.time_first ? shape[1] : shape[0], steps = options.time_first ? shape[0] : shape[1];
  std::vector<CtcLine> result(static_cast<size_t>(lines));
  for (int64_t line = 0; line < lines; ++line) {
    CtcLine& out = result[static_cast<size_t>(line)];
    int64_t last = blank, count = 0;
    for (int64_t step = 0; step < steps; ++step) {
      const auto [index, score] =
          (*rows)[static_cast<size_t>(options.time_first ? step * lines + line : line * steps + step)][0];
      if (index != last && index != blank) {
        out.text += letters[static_cast<size_t>(index < blank ? index : index - 1)];
        out.score += score, ++count;
      }
      last = index;
    }
    if (count) out.score /= static_cast<double>(count);
  }
  return result;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  const std::u32string from = decode_utf8(a), to = decode_utf8(b);
  std::vector<size_t> row(to.size() + 1);  // distances from a prefix of `from` to those of `to`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] != to[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace tenon::runtime
