// Searches for the evictions of a known step.
#include "runtime/remat/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "support/random.h"

namespace tenon::runtime::remat {
namespace {

constexpr uint64_t kSeed = 1;

// When each storage is used, in the times of the undisturbed step.
class Future {
 public:
  explicit Future(const StepLog& log) : uses_(log.bytes.size()) {
    std::vector<uint32_t> roots;  // of each tensor
    int64_t time = 0;
    for (size_t i = 0; i < log.events.size(); ++i) {
      times_.push_back(time);
      const StepLog::Event& event = log.events[i];
      if (event.kind == StepLog::Kind::kConstant) roots.push_back(event.index);
      if (event.kind != StepLog::Kind::kCall) continue;
      const StepLog::Call& call = log.calls[event.index];
      for (const uint32_t arg : call.args) uses_[roots[arg]].push_back(static_cast<uint32_t>(i));
      for (const NewResult& result : call.results) {
        roots.push_back(result.view_of ? roots[call.args[*result.view_of]] : static_cast<uint32_t>(roots.size()));
      }
      time += call.cost;
    }
    times_.push_back(time);
    const auto end = static_cast<uint32_t>(log.events.size());
    for (const uint32_t tensor : log.results) uses_[roots[tensor]].push_back(end);
  }

  // The time from the event to the next one that uses the storage of this root, at least 1. Twice the step's time where
  // there is none.
  double distance(uint32_t root, size_t event) const {
    const auto next = std::ranges::upper_bound(uses_[root], event);
    if (next == uses_[root].end()) return 2 * static_cast<double>(times_.back()) + 1;
    return static_cast<double>(times_[*next] - times_[event]) + 1;
  }

  // The roots that the event uses; those of the results where it is the end.
  std::vector<uint32_t> read_by(size_t event) const {
    std::vector<uint32_t> found;
    for (uint32_t root = 0; root < uses_.size(); ++root) {
      if (std::ranges::binary_search(uses_[root], event)) found.push_back(root);
    }
    return found;
  }

 private:
  std::vector<std::vector<uint32_t>> uses_;  // events, by root
  std::vector<int64_t> times_;               // of each event, and of the end
};

enum class Neighbourhood : unsigned char { kNone, kClasses, kAncestors, kBoth };

// Square roots and products are rounded alike on every machine, which std::pow is not.
enum class Exponent : unsigned char { kZero, kHalf, kOne, kTwo };

double power(double x, Exponent exponent) {
  switch (exponent) {
    case Exponent::kZero: return 1;
    case Exponent::kHalf: return std::sqrt(x);
    case Exponent::kOne: return x;
    case Exponent::kTwo: return x * x;
  }
  return x;
}

struct Formula {
  Neighbourhood neighbourhood = Neighbourhood::kNone;
  Exponent bytes = Exponent::kOne, distance = Exponent::kOne;
  Release release = Release::kPrompt;
};

class FutureScorer final : public Scorer {
 public:
  FutureScorer(const Future& future, const Formula& formula, const Position& position,
               const std::vector<double>& factors)
      : future_(future), formula_(formula), position_(position), factors_(factors) {}

  double score(const Core& core, StorageId storage) const override {
    const uint32_t root = position_.roots[storage];
    int64_t cost = core.cost(storage);
    switch (formula_.neighbourhood) {
      case Neighbourhood::kNone: break;
      case Neighbourhood::kClasses: cost += core.class_cost(storage); break;
      case Neighbourhood::kAncestors: cost += core.ancestors_cost(storage); break;
      case Neighbourhood::kBoth: cost += core.ancestors_cost(storage) + core.descendants_cost(storage); break;
    }
    const int64_t bytes = core.bytes(storage);
    if (bytes == 0) return std::numeric_limits<double>::infinity();
    // Never 0, which would end the search for the smallest score.
    return std::max(static_cast<double>(cost), 0.5) * factors_[root] /
           (power(static_cast<double>(bytes), formula_.bytes) *
            power(future_.distance(root, position_.event), formula_.distance));
  }
  bool uses_classes() const override { return formula_.neighbourhood == Neighbourhood::kClasses; }
  bool uses_exact() const override {
    return formula_.neighbourhood == Neighbourhood::kAncestors || formula_.neighbourhood == Neighbourhood::kBoth;
  }

 private:
  const Future& future_;
  const Formula& formula_;
  const Position& position_;
  const std::vector<double>& factors_;
};

bool better(const Replay& a, const Replay& b) {
  if (a.failure.has_value() != b.failure.has_value()) return !a.failure;
  if (a.failure && a.events != b.events) return a.events > b.events;
  return a.clock < b.clock;
}

class Search {
 public:
  Search(const StepLog& log, const CoreOptions& options) : log_(log), options_(options), future_(log) {}

  Best run(int64_t effort) {
    for (const Release release : kReleases) {
      for (const Policy policy : kPolicies) {
        options_.policy = policy;
        options_.release = release;
        options_.scorer = nullptr;
        consider(replay(log_, options_), fmt::format("{}, {}", remat::name(policy), name(release)));
      }
    }
    if (best_->replay.recomputed == 0 && !best_->replay.failure) return finish();  // nothing to gain
    std::vector<double> factors(log_.bytes.size(), 1);
    std::optional<std::pair<Replay, Formula>> least;
    for (const Formula& formula : formulas()) {
      Replay result = with_factors(formula, factors);
      if (!least || better(result, least->first)) least.emplace(result, formula);
      consider(std::move(result), "next use");
    }
    improve(least->second, least->first, factors, effort);
    return finish();
  }

 private:
  static std::vector<Formula> formulas() {
    std::vector<Formula> list;
    for (const Release release : kReleases) {
      for (const auto neighbourhood :
           {Neighbourhood::kNone, Neighbourhood::kClasses, Neighbourhood::kAncestors, Neighbourhood::kBoth}) {
        for (const Exponent bytes : {Exponent::kOne, Exponent::kHalf}) {
          for (const Exponent distance : {Exponent::kZero, Exponent::kHalf, Exponent::kOne, Exponent::kTwo}) {
            list.push_back({neighbourhood, bytes, distance, release});
          }
        }
      }
    }
    return list;
  }

  Replay with_factors(const Formula& formula, const std::vector<double>& factors) {
    const FutureScorer scorer(future_, formula, position_, factors);
    options_.scorer = &scorer;
    options_.release = formula.release;
    return replay(log_, options_, &position_);
  }

  void improve(const Formula& formula, Replay current, std::vector<double> factors, int64_t effort) {
    Random random(kSeed);
    const auto last = static_cast<int64_t>(factors.size()) - 1;
    for (int64_t i = 0; i < effort; ++i) {
      std::vector<double> changed = factors;
      if (current.failure && random.chance(50)) {
        // The operands of the call that fails should have remained resident.
        const double factor = std::exp2(static_cast<double>(random.between(1, 6)));
        for (const uint32_t root : future_.read_by(current.events)) changed[root] *= factor;
      }
      // Neighbours in the log are often alike: a run of them changes together, or single ones anywhere.
      const int64_t count = int64_t{1} << random.between(0, 4);
      const double factor = std::exp2(static_cast<double>(random.of({-4, -2, -1, 1, 2, 4})));
      const bool run = random.chance(50);
      const int64_t first = random.between(0, last);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = run ? std::min(first + k, last) : random.between(0, last);
        changed[static_cast<size_t>(at)] *= factor;
      }
      Replay result = with_factors(formula, changed);
      if (!better(current, result)) {
        factors = std::move(changed);
        current = result;
      }
      consider(std::move(result), "local search");
    }
  }

  void consider(Replay result, std::string found_by) {
    ++simulations_;
    if (!best_ || better(result, best_->replay)) best_ = Best{std::move(result), std::move(found_by), 0};
  }
  Best finish() {
    best_->simulations = simulations_;
    return std::move(*best_);
  }

  const StepLog& log_;
  CoreOptions options_;
  Future future_;
  Position position_;
  std::optional<Best> best_;
  int64_t simulations_ = 0;
};

}  // namespace

Best best_replay(const StepLog& log, const CoreOptions& options, int64_t effort) {
  return Search(log, options).run(effort);
}

}  // namespace tenon::runtime::remat
