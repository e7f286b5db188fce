// The output of `tenon run` over samples, as text or as JSON, and the rows of its report.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/pipeline/compare.h"
#include "driver/accelerator.h"
#include "runtime/profile/analysis.h"
#include "runtime/profile/report.h"
#include "runtime/run/samples.h"
#include "support/json.h"

namespace tenon::cli {

class SamplesOutput {
 public:
  explicit SamplesOutput(bool json) : json_(json) {
    if (json_) result_.begin_object();
  }

  void operators(const std::string& name, const std::string& placements) const;
  // Multiply-accumulates of a run by target; "" is the CPU.
  void work(const std::map<std::string, int64_t>& macs);
  void heading(size_t samples) const;
  // `key` is the JSON field.
  void accuracy(const std::string& label, const std::string& key, const runtime::Accuracy& accuracy);
  void samples(size_t count);
  void result(size_t sample, const std::string& name, const std::string& text) const;
  // Seconds of each run, from its inputs to its results, and the accelerators that took part.
  void time(std::vector<double> seconds, std::span<const driver::Info* const> accelerators);
  void comparison(size_t samples, const compiler::Comparison& comparison);
  // `analysis` is that of the report's profile.
  void figures(const runtime::Analysis& analysis, const runtime::ReportInput& report);
  void file(const std::string& label, const std::string& path) const;
  // `comparison`: nullptr where the samples were not compared layer by layer.
  void verified(const std::string& second, const std::string& first, size_t samples, double cycles, double utilization,
                const compiler::Comparison* comparison);
  void finish();

  const std::vector<std::pair<std::string, std::string>>& rows() const { return rows_; }

 private:
  bool json_;
  Json result_;
  std::vector<std::pair<std::string, std::string>> rows_;  // for the report
};

}  // namespace tenon::cli
