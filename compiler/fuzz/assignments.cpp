#include "compiler/fuzz/assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace tenon::compiler::fuzz {
namespace {

class Problems {
 public:
  explicit Problems(uint64_t seed) : random_(seed) {}

  Ticks below(Ticks n) { return static_cast<Ticks>(random_() % static_cast<uint64_t>(n)); }

  AssignmentProblem make(uint32_t units, uint32_t labels, bool launches) {
    AssignmentProblem problem;
    problem.launches.assign(labels, 0);
    problem.follows.resize(units);
    for (uint32_t label = 1; label < labels && launches; ++label) problem.launches[label] = below(400);
    for (uint32_t u = 0; u < units; ++u) {
      std::vector<Ticks> costs;
      for (uint32_t label = 0; label < labels; ++label) {
        costs.push_back(label > 0 && below(5) == 0 ? kNever : 1 + below(label == 0 ? 200 : 100));
      }
      problem.units.push_back(std::move(costs));
      AssignmentProblem::Value value = value_of(labels);
      value.producer = u;
      problem.values.push_back(std::move(value));
    }
    problem.values.push_back(value_of(labels));  // from outside
    for (uint32_t u = 0; u < units; ++u) {
      if (u == 0 || below(5) == 0) problem.values.back().readers.push_back(u);
      for (Ticks count = u == 0 ? 0 : 1 + below(2); count > 0; --count) {
        const auto operand = static_cast<uint32_t>(below(4) == 0 ? below(u) : std::max<Ticks>(0, u - 1 - below(3)));
        auto& readers = problem.values[operand].readers;
        if (std::ranges::find(readers, u) != readers.end()) continue;
        readers.push_back(u);
        problem.follows[u].push_back(operand);
        if (below(3) == 0) problem.gains.push_back({static_cast<uint32_t>(below(labels)), {operand, u}, below(50)});
      }
    }
    for (uint32_t u = 0; u < units; ++u)
      problem.values[u].read_by_host = problem.values[u].readers.empty() || below(8) == 0;
    return problem;
  }

 private:
  AssignmentProblem::Value value_of(uint32_t labels) {
    AssignmentProblem::Value value;
    value.down.assign(labels, 0);
    value.up.assign(labels, 0);
    for (uint32_t label = 1; label < labels; ++label) value.down[label] = below(60), value.up[label] = below(60);
    return value;
  }
  std::mt19937_64 random_;
};

}  // namespace

AssignmentProblem random_problem(uint64_t seed, const ProblemOptions& options) {
  return Problems(seed).make(options.units, options.labels, options.launches);
}

Ticks exhaustive_cost(const AssignmentProblem& problem) {
  Labels labels(problem.units.size(), 0);
  Ticks best = kNever;
  while (true) {
    bool possible = true;
    for (size_t u = 0; u < labels.size(); ++u) possible &= problem.units[u][labels[u]] != kNever;
    if (possible) best = std::min(best, cost_of(problem, labels));
    size_t u = 0;
    while (u < labels.size() && ++labels[u] == problem.labels()) labels[u++] = 0;
    if (u == labels.size()) return best;
  }
}

Expected<AssignmentTally> check_assignments(uint64_t seed, int64_t count, uint32_t labels, bool launches) {
  AssignmentTally tally;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t at = seed + static_cast<uint64_t>(i);
    const uint32_t units = (labels == 2 ? 9 : 6) + static_cast<uint32_t>(at % 4);
    const AssignmentProblem problem = random_problem(at, {units, labels, launches});
    const auto fails = [&](std::string_view what) {
      return error(
          fmt::format("{}, of {} units and {} labels with{} launches", what, units, labels, launches ? "" : "out"),
          fmt::format("seed {}", at), fmt::format("again: tenon fuzz partition --optimal --count 1 --seed {}", at),
          Fault::kInternal);
    };
    const Ticks best = exhaustive_cost(problem);
    const Labels first = all_at(problem, static_cast<uint32_t>(at) % labels);
    const Assignment found = assign(problem, {.exact = false, .candidates = {first}});
    if (found.cost != cost_of(problem, found.labels)) return fails("the cost is not that of the placement");
    if (found.cost < best || found.bound > best) return fails("the optimum is not between the bound and the cost");
    for (uint32_t label = 0; label < labels; ++label) {
      if (found.cost > cost_of(problem, all_at(problem, label))) return fails("one target alone costs less");
    }
    if (!launches && found.cost != best) return fails("cuts do not find the optimum");
    const Assignment exact = assign(problem);
    if (!exact.optimal || exact.cost != best || exact.bound != best)
      return fails("branch and bound misses the optimum");
    ++tally.problems;
    tally.optimal += found.cost == best;
    if (best > 0) tally.worst = std::max(tally.worst, static_cast<double>(found.cost) / static_cast<double>(best) - 1);
  }
  return tally;
}

}  // namespace tenon::compiler::fuzz
