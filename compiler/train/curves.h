// The curves of a training as a page: loss, accuracy and learning rate by epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler {

// One line of the file of metrics.
struct EpochMetrics {
  int64_t epoch = 0;               // counts from 1
  double loss = 0;                 // the mean of the epoch's steps
  std::optional<double> accuracy;  // on held-out samples, in percent
  double rate = 0;                 // of the last step
  double seconds = 0;
};

// The epochs that a file of metrics has, in the file's order; none where there is no file. Errors name the line.
Expected<std::vector<EpochMetrics>> read_metrics(const std::string& path);

// A self-contained HTML page with a curve for each figure and a table; the page loads nothing else and has no script.
// `facts` are rows of the caller: the model, the options.
std::string curves_page(const std::string& title, const std::vector<std::pair<std::string, std::string>>& facts,
                        const std::vector<EpochMetrics>& epochs);

}  // namespace tenon::compiler
