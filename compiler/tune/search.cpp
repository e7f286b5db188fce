#include "compiler/tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/tune/measure.h"
#include "support/function_ref.h"
#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

using kernels::KnobSettings;
using Clock = std::chrono::steady_clock;

constexpr size_t kBatch = 8;                   // compiled and measured together
constexpr int kRounds = 5, kFinalRounds = 21;  // rounds of a batch, and of the final candidates
constexpr size_t kFinal = 3;                   // final candidates beside the default
constexpr double kMaxRecordRatio = 0.98;       // ratio to the default that a record needs

size_t num_shared_options(const KnobSettings& a, const KnobSettings& b) {
  return static_cast<size_t>(std::ranges::count_if(a, [&](const auto& option) {
    const auto found = b.find(option.first);
    return found != b.end() && found->second == option.second;
  }));
}

class Search {
 public:
  Search(Context& context, const Module& kernels, const Task& task, const Machine& machine, const TuneOptions& options,
         std::vector<Candidate> candidates, const std::vector<Trial>& earlier)
      : options_(options), candidates_(std::move(candidates)), bench_(context, kernels, task, machine) {
    ratios_.resize(candidates_.size());
    for (const Trial& trial : earlier) {
      const auto found = std::ranges::find(candidates_, trial.settings, &Candidate::settings);
      if (found != candidates_.end()) ratios_[static_cast<size_t>(found - candidates_.begin())] = trial.ratio;
    }
    ratios_[0] = 1;
  }

  Status run(FunctionRef<bool()> over) {
    TENON_TRY(compile({0}));
    while (num_measured() < static_cast<size_t>(options_.trials) && !over()) {
      const size_t count = std::min(kBatch, static_cast<size_t>(options_.trials) - num_measured());
      const std::vector<size_t> next = promising(count, false);
      if (next.empty()) break;
      TENON_TRY(compile(next));
      measured_ += next.size();
      TENON_TRY(measure(next, kRounds));
    }
    const std::vector<size_t> best = promising(kFinal, true);
    TENON_TRY(compile(best));
    return measure(best, kFinalRounds);
  }

  size_t measured() const { return measured_; }
  std::vector<Trial> trials() const {
    std::vector<Trial> result;
    for (size_t i = 0; i < ratios_.size(); ++i) {
      if (ratios_[i]) result.push_back({candidates_[i].settings, *ratios_[i]});
    }
    return result;
  }
  // The fastest of the final candidates.
  Record best() const {
    size_t fastest = 0;
    for (const size_t i : final_) {
      if (*ratios_[i] < std::min(*ratios_[fastest], kMaxRecordRatio)) fastest = i;
    }
    return {candidates_[fastest].settings, default_seconds_ * *ratios_[fastest], default_seconds_};
  }

 private:
  size_t num_measured() const {
    return static_cast<size_t>(std::ranges::count_if(ratios_, [](auto& r) { return !!r; }));
  }

  Status compile(const std::vector<size_t>& indices) {
    std::vector<KnobSettings> settings_list;
    for (const size_t i : indices) {
      if (!compiled_.try_emplace(i, compiled_.size()).second) continue;
      settings_list.push_back(candidates_[i].settings);
    }
    return settings_list.empty() ? Status() : bench_.add(settings_list);
  }

  // Measures these candidates and the default interleaved.
  Status measure(const std::vector<size_t>& indices, int rounds) {
    std::vector<size_t> bench_indices{compiled_.at(0)};
    for (const size_t i : indices) bench_indices.push_back(compiled_.at(i));
    TENON_TRY_ASSIGN(seconds, bench_.measure(bench_indices, rounds));
    default_seconds_ = seconds->front();
    for (size_t i = 0; i < indices.size(); ++i) ratios_[indices[i]] = (*seconds)[i + 1] / default_seconds_;
    final_ = indices;
    return {};
  }

  // The fastest of the measured candidates, or the most promising of the others.
  std::vector<size_t> promising(size_t count, bool was_measured) const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (ratios_[i].has_value() == was_measured) order.emplace_back(ratios_[i] ? *ratios_[i] : expected(i), i);
    }
    std::ranges::sort(order);
    order.resize(std::min(order.size(), count));
    std::vector<size_t> indices;
    for (const auto& [ratio, i] : order) indices.push_back(i);
    return indices;
  }

  // The cost by the cost model, corrected by its errors for the measured candidates, weighted by the options that they
  // share with this one.
  double expected(size_t index) const {
    const Candidate& candidate = candidates_[index];
    double sum = 0, weights = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!ratios_[i]) continue;
      const double weight =
          std::exp2(2.0 * static_cast<double>(num_shared_options(candidate.settings, candidates_[i].settings)));
      sum += weight * std::log(std::max(*ratios_[i], 1e-6) * candidates_[0].cost / candidates_[i].cost);
      weights += weight;
    }
    return candidate.cost / candidates_[0].cost * std::exp(sum / weights);
  }

  const TuneOptions& options_;
  const std::vector<Candidate> candidates_;
  Bench bench_;
  std::vector<std::optional<double>> ratios_;  // by candidate
  std::map<size_t, size_t> compiled_;          // indices in bench_
  std::vector<size_t> final_;                  // candidates of the last measure()
  double default_seconds_ = 0;
  size_t measured_ = 0;
};

}  // namespace

Expected<std::vector<Tuned>> tune(Context& context, const Module& kernels, Symbol entry, Records& records,
                                  const TuneOptions& options) {
  const Clock::time_point begin = Clock::now();
  const auto over = [&] {
    return options.seconds > 0 && std::chrono::duration<double>(Clock::now() - begin).count() > options.seconds;
  };
  const Machine* machine = find_machine(options.level);
  if (!machine) return error(fmt::format("there is no level '{}'", options.level), {}, {}, Fault::kUsage);
  TENON_TRY_ASSIGN(tasks, find_tasks(context, kernels, entry, *machine));
  std::vector<Tuned> result;
  for (const Task& task : *tasks) {
    if (options.progress) options.progress(result.size(), tasks->size(), task.key);
    Tuned& tuned = result.emplace_back(Tuned{.key = task.key, .uses = task.uses, .record = {}});
    TENON_TRY_ASSIGN(record, records.find(task.key, options.level));
    tuned.record = std::move(*record);
    if (over()) continue;
    TENON_TRY_ASSIGN(candidates, find_candidates(context, kernels, task, *machine));
    TENON_TRY_ASSIGN(earlier, records.trials(task.key, options.level));
    const size_t target = std::min(static_cast<size_t>(options.trials), candidates->size());
    if (tuned.record && earlier->size() >= target) continue;
    tuned.candidates = candidates->size();
    Search search(context, kernels, task, *machine, options, std::move(*candidates), *earlier);
    TENON_TRY(search.run(over));
    tuned.measured = search.measured();
    tuned.record = search.best();
    TENON_TRY(records.put(task.key, options.level, *tuned.record, search.trials()));
  }
  return result;
}

}  // namespace tenon::compiler::tune
