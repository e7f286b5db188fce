#include "compiler/tune/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/tune/measure.h"
#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

using kernels::Choice;
using Clock = std::chrono::steady_clock;

constexpr size_t kBatch = 8;            // compiled and measured together
constexpr int kRounds = 5, kLast = 21;  // of a batch, of the final ones
constexpr size_t kFinal = 3;            // candidates beside the default
constexpr double kWorthIt = 0.98;

size_t shared(const Choice& a, const Choice& b) {
  return static_cast<size_t>(std::ranges::count_if(a, [&](const auto& option) {
    const auto found = b.find(option.first);
    return found != b.end() && found->second == option.second;
  }));
}

class Search {
 public:
  Search(Context& context, const Module& kernels, const Task& task, const TuneOptions& options,
         std::vector<Candidate> candidates, const std::vector<Trial>& earlier)
      : options_(options), candidates_(std::move(candidates)), bench_(context, kernels, task, options.level) {
    ratios_.resize(candidates_.size());
    for (const Trial& trial : earlier) {
      const auto found = std::ranges::find(candidates_, trial.choice, &Candidate::choice);
      if (found != candidates_.end()) ratios_[static_cast<size_t>(found - candidates_.begin())] = trial.ratio;
    }
    ratios_[0] = 1;
  }

  Status run(const std::function<bool()>& over) {
    TENON_TRY(compile({0}));
    while (known() < static_cast<size_t>(options_.trials) && !over()) {
      const size_t count = std::min(kBatch, static_cast<size_t>(options_.trials) - known());
      const std::vector<size_t> next = promising(count, false);
      if (next.empty()) break;
      TENON_TRY(compile(next));
      measured_ += next.size();
      TENON_TRY(measure(next, kRounds));
    }
    const std::vector<size_t> best = promising(kFinal, true);
    TENON_TRY(compile(best));
    return measure(best, kLast);
  }

  size_t measured() const { return measured_; }
  std::vector<Trial> trials() const {
    std::vector<Trial> all;
    for (size_t i = 0; i < ratios_.size(); ++i) {
      if (ratios_[i]) all.push_back({candidates_[i].choice, *ratios_[i]});
    }
    return all;
  }
  // Of those that were measured at last.
  Record best() const {
    size_t taken = 0;
    for (const size_t i : last_) {
      if (*ratios_[i] < std::min(*ratios_[taken], kWorthIt)) taken = i;
    }
    return {candidates_[taken].choice, default_seconds_ * *ratios_[taken], default_seconds_};
  }

 private:
  size_t known() const {
    return static_cast<size_t>(std::ranges::count_if(ratios_, [](auto& r) { return !!r; }));
  }

  Status compile(const std::vector<size_t>& numbers) {
    std::vector<Choice> choices;
    for (const size_t i : numbers) {
      if (!compiled_.try_emplace(i, compiled_.size()).second) continue;
      choices.push_back(candidates_[i].choice);
    }
    return choices.empty() ? Status() : bench_.add(choices);
  }

  // These and the default, in turns.
  Status measure(const std::vector<size_t>& numbers, int rounds) {
    std::vector<size_t> all{compiled_.at(0)};
    for (const size_t i : numbers) all.push_back(compiled_.at(i));
    TENON_TRY_ASSIGN(seconds, bench_.measure(all, rounds));
    default_seconds_ = seconds->front();
    for (size_t i = 0; i < numbers.size(); ++i) ratios_[numbers[i]] = (*seconds)[i + 1] / default_seconds_;
    last_ = numbers;
    return {};
  }

  // Of those that were measured the fastest; of the others those that promise most.
  std::vector<size_t> promising(size_t count, bool was_measured) const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (ratios_[i].has_value() == was_measured) order.emplace_back(ratios_[i] ? *ratios_[i] : expected(i), i);
    }
    std::ranges::sort(order);
    order.resize(std::min(order.size(), count));
    std::vector<size_t> numbers;
    for (const auto& [ratio, i] : order) numbers.push_back(i);
    return numbers;
  }

  // The cost by counting, times how wrong that was for others: the more options they share with it the more they count.
  double expected(size_t number) const {
    const Candidate& candidate = candidates_[number];
    double sum = 0, weights = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!ratios_[i]) continue;
      const double weight = std::exp2(2.0 * static_cast<double>(shared(candidate.choice, candidates_[i].choice)));
      sum += weight * std::log(std::max(*ratios_[i], 1e-6) * candidates_[0].cost / candidates_[i].cost);
      weights += weight;
    }
    return candidate.cost / candidates_[0].cost * std::exp(sum / weights);
  }

  const TuneOptions& options_;
  const std::vector<Candidate> candidates_;
  Bench bench_;
  std::vector<std::optional<double>> ratios_;  // by candidate
  std::map<size_t, size_t> compiled_;          // numbers in bench_
  std::vector<size_t> last_;
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
  TENON_TRY_ASSIGN(tasks, find_tasks(context, kernels, entry));
  std::vector<Tuned> all;
  for (const Task& task : *tasks) {
    if (options.progress) options.progress(all.size(), tasks->size(), task.key);
    Tuned& tuned = all.emplace_back(Tuned{.key = task.key, .uses = task.uses, .record = {}});
    TENON_TRY_ASSIGN(record, records.find(task.key, options.level));
    tuned.record = std::move(*record);
    if (over()) continue;
    TENON_TRY_ASSIGN(candidates, find_candidates(context, kernels, task));
    TENON_TRY_ASSIGN(earlier, records.trials(task.key, options.level));
    const size_t wanted = std::min(static_cast<size_t>(options.trials), candidates->size());
    if (tuned.record && earlier->size() >= wanted) continue;
    tuned.candidates = candidates->size();
    Search search(context, kernels, task, options, std::move(*candidates), *earlier);
    TENON_TRY(search.run(over));
    tuned.measured = search.measured();
    tuned.record = search.best();
    TENON_TRY(records.put(task.key, options.level, *tuned.record, search.trials()));
  }
  return all;
}

}  // namespace tenon::compiler::tune
