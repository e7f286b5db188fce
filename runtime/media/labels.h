// Results of models as text: the names of the best classes, and lines of recognizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// Names of classes, one a line.
std::vector<std::string> parse_labels(std::string_view text);

struct ScoredClass {
  int64_t index = 0;
  double score = 0;
};
// The `count` largest scores of each row, which is along the last axis, in descending order; of equal ones the first
// class first. Errors: a tensor without numbers or without axes.
Expected<std::vector<std::vector<ScoredClass>>> top_classes(const Tensor& scores, size_t count, std::string_view where);

struct CtcOptions {
  int64_t blank = 0;        // the class between letters; from the end where negative
  bool time_first = false;  // (T, N, classes); otherwise (N, T, classes)
};
struct CtcLine {
  std::string text;
  double score = 0;  // mean of the letters' scores; 0 where there are none
};
// The text of each row by connectionist temporal classification (Graves et al. 2006), greedily: the best class of each
// step, without repetitions, without blanks. The other classes are the letters, in order. Errors: scores that have not
// one class for each letter and the blank.
Expected<std::vector<CtcLine>> ctc_lines(const Tensor& scores, std::span<const std::string> letters,
                                         const CtcOptions& options, std::string_view where);

// The least number of code points that are inserted, removed or replaced to turn one text of UTF-8 into the other.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tenon::runtime
