#include "compiler/partition/assignment.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "compiler/base/max_flow.h"
#include "compiler/ir/groups.h"

namespace tenon::compiler {
namespace {

Ticks cost_of_value(const AssignmentProblem::Value& value, const Labels& labels, size_t label_count) {
  const uint32_t home = value.producer ? labels[*value.producer] : 0;
  Ticks cost = 0;
  const bool elsewhere = (value.read_by_host && home != 0) ||
                         std::ranges::any_of(value.readers, [&](uint32_t reader) { return labels[reader] != home; });
  if (home != 0 && elsewhere) cost += value.down[home];
  for (uint32_t label = 1; label < label_count; ++label) {
    if (label == home) continue;
    const bool reads = std::ranges::any_of(value.readers, [&](uint32_t reader) { return labels[reader] == label; });
    if (reads) cost += value.up[label];
  }
  return cost;
}

Ticks cost_of_gain(const AssignmentProblem::Gain& gain, const Labels& labels) {
  const bool whole = std::ranges::all_of(gain.units, [&](uint32_t unit) { return labels[unit] == gain.label; });
  return whole ? -gain.amount : 0;
}

// The units that read a value of each unit, by reader.
std::vector<std::vector<uint32_t>> operands_of(const AssignmentProblem& problem) {
  std::vector<std::vector<uint32_t>> operands(problem.units.size());
  for (const AssignmentProblem::Value& value : problem.values) {
    if (!value.producer) continue;
    for (const uint32_t reader : value.readers) operands[reader].push_back(*value.producer);
  }
  for (auto& each : operands) {
    std::ranges::sort(each);
    each.erase(std::ranges::unique(each).begin(), each.end());
  }
  return operands;
}

std::vector<uint32_t> merged_regions(const AssignmentProblem& problem,
                                     const std::vector<std::vector<uint32_t>>& operands, const Labels& labels,
                                     uint64_t* work = nullptr) {
  ConvexGroups groups(problem.follows);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t unit = 0; unit < labels.size(); ++unit) {
      if (labels[unit] == 0) continue;
      for (const uint32_t operand : operands[unit]) {
        if (labels[operand] != labels[unit] || groups.find(operand) == groups.find(unit)) continue;
        changed |= groups.merge(operand, unit);
      }
    }
  }
  if (work) *work += 200 + labels.size() + groups.steps();
  std::vector<uint32_t> regions(labels.size());
  for (uint32_t unit = 0; unit < labels.size(); ++unit) regions[unit] = groups.find(unit);
  return regions;
}

Ticks cost_of_regions(const AssignmentProblem& problem, const std::vector<uint32_t>& regions, const Labels& labels) {
  Ticks cost = 0;
  for (uint32_t unit = 0; unit < labels.size(); ++unit) {
    if (labels[unit] != 0 && regions[unit] == unit) cost += problem.launches[labels[unit]];
  }
  return cost;
}

// A function of one bit for each unit, as a minimum cut: the bit of a unit is 1 on the source's side. Every term is at
// least 0; what is subtracted from one is added to `constant`.
class Cut {
 public:
  explicit Cut(size_t units)
      : network_(static_cast<uint32_t>(units) + 2), source_(static_cast<uint32_t>(units)), sink_(source_ + 1) {}

  uint32_t source() const { return source_; }  // a unit whose bit is 1
  uint32_t sink() const { return sink_; }      // a unit whose bit is 0
  Ticks constant = 0;

  void one(uint32_t unit, Ticks cost) { edge(unit, sink_, cost); }
  void zero(uint32_t unit, Ticks cost) { edge(source_, unit, cost); }
  // The cost where `a` is 1 and one of the units is 0.
  void one_and_not_all(uint32_t a, std::span<const uint32_t> units, Ticks cost) {
    if (units.empty() || cost == 0) return;
    const uint32_t node = network_.add_node();
    edge(a, node, cost);
    for (const uint32_t unit : units) edge(node, unit, FlowNetwork::kUnlimited);
  }
  // The cost where `a` is 0 and one of the units is 1.
  void zero_and_any(uint32_t a, std::span<const uint32_t> units, Ticks cost) {
    if (units.empty() || cost == 0) return;
    const uint32_t node = network_.add_node();
    edge(node, a, cost);
    for (const uint32_t unit : units) edge(unit, node, FlowNetwork::kUnlimited);
  }
  void fix(uint32_t unit, bool bit) {
    if (bit) edge(source_, unit, FlowNetwork::kUnlimited);
    else edge(unit, sink_, FlowNetwork::kUnlimited);
  }

  Ticks solve() { return network_.solve(source_, sink_) + constant; }
  bool bit(uint32_t unit) const { return network_.on_source_side(unit); }

 private:
  // Nothing leads into the source or out of the sink.
  void edge(uint32_t from, uint32_t to, Ticks cost) {
    if (to != source_ && from != sink_) network_.add_edge(from, to, cost);
  }

  FlowNetwork network_;
  uint32_t source_, sink_;
};

// The best relabelling to one label of the cost without launches, or with `share` of a launch, in quarters, spread over
// the edges into each unit.
constexpr int kShares = 4;

class Expansion {
 public:
  Expansion(const AssignmentProblem& problem, const std::vector<std::vector<uint32_t>>& operands, int share)
      : problem_(problem), operands_(operands), share_(share) {}

  // The cost that the cuts minimize.
  Ticks energy(const Labels& labels) const {
    Ticks cost = 0;
    for (uint32_t u = 0; u < labels.size(); ++u) {
      cost += problem_.units[u][labels[u]] + alone(u, labels[u]);
      for (const uint32_t operand : operands_[u]) {
        if (labels[operand] != labels[u]) cost += into(u, labels[u]);
      }
    }
    for (const auto& value : problem_.values) cost += cost_of_value(value, labels, problem_.labels());
    for (const auto& gain : problem_.gains) cost += cost_of_gain(gain, labels);
    return cost;
  }

  // Repeats moves until none improves.
  Labels run(Labels labels) const {
    Ticks best = energy(labels);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t label = 0; label < problem_.labels(); ++label) {
        Labels moved = move(labels, label);
        const Ticks cost = energy(moved);
        if (cost >= best) continue;
        best = cost;
        labels = std::move(moved);
        changed = true;
      }
    }
    return labels;
  }

 private:
  // The share of a launch that an edge into the unit costs where it enters from another label.
  Ticks into(uint32_t unit, uint32_t label) const {
    return operands_[unit].empty()
               ? 0
               : problem_.launches[label] * share_ / (kShares * static_cast<Ticks>(operands_[unit].size()));
  }
  Ticks alone(uint32_t unit, uint32_t label) const {
    return operands_[unit].empty() ? problem_.launches[label] * share_ / kShares : 0;
  }

  // Bit 1 of a unit: it is at label `a` afterwards.
  Labels move(const Labels& labels, uint32_t a) const {
    Cut cut(labels.size());
    const auto bit = [&](uint32_t unit) { return labels[unit] == a ? cut.source() : unit; };
    for (uint32_t u = 0; u < labels.size(); ++u) {
      const uint32_t l = labels[u];
      if (l == a) continue;
      if (problem_.units[u][a] == kNever) {
        cut.fix(u, false);
      } else {
        cut.one(u, problem_.units[u][a] + alone(u, a));
        cut.zero(u, problem_.units[u][l] + alone(u, l));
      }
    }
    if (share_ > 0) edges(labels, a, cut);
    for (const auto& value : problem_.values) add(value, labels, a, cut);
    for (const auto& gain : problem_.gains) {
      std::vector<uint32_t> units;
      if (gain.label == a) {
        for (const uint32_t unit : gain.units) units.push_back(bit(unit));
        cut.one_and_not_all(cut.source(), units, gain.amount);
      } else if (std::ranges::all_of(gain.units, [&](uint32_t unit) { return labels[unit] == gain.label; })) {
        cut.zero_and_any(cut.sink(), gain.units, gain.amount);
      }
    }
    cut.solve();
    Labels moved = labels;
    for (uint32_t u = 0; u < labels.size(); ++u) {
      if (labels[u] != a && cut.bit(u)) moved[u] = a;
    }
    return moved;
  }

  void edges(const Labels& labels, uint32_t a, Cut& cut) const {
    for (uint32_t u = 0; u < labels.size(); ++u) {
      const uint32_t l = labels[u];
      const uint32_t self = l == a ? cut.source() : u;
      for (const uint32_t operand : operands_[u]) {
        const uint32_t from = labels[operand] == a ? cut.source() : operand;
        const uint32_t me[] = {self};
        cut.zero_and_any(from, me, into(u, a));  // it enters `a` from elsewhere
        if (l == a) continue;
        if (labels[operand] == l) cut.one_and_not_all(from, me, into(u, l));
        else cut.zero(u, into(u, l));
      }
    }
  }

  void add(const AssignmentProblem::Value& value, const Labels& labels, uint32_t a, Cut& cut) const {
    const uint32_t home = value.producer ? labels[*value.producer] : 0;
    const uint32_t p = !value.producer ? (a == 0 ? cut.source() : cut.sink())
                       : home == a     ? cut.source()
                                       : *value.producer;
    std::vector<uint32_t> readers;  // as bits
    bool all_at_home = !value.read_by_host || home == 0;
    for (const uint32_t reader : value.readers) {
      readers.push_back(labels[reader] == a ? cut.source() : reader);
      all_at_home &= labels[reader] == home;
    }
    if (value.read_by_host) readers.push_back(a == 0 ? cut.source() : cut.sink());
    // down(): of `a`, if one of the readers is not there; of the label before, if the producer stays and a reader is
    // elsewhere.
    if (a != 0) cut.one_and_not_all(p, readers, value.down[a]);
    if (home != 0 && home != a) {
      if (all_at_home) cut.zero_and_any(p, readers, value.down[home]);
      else cut.zero(p, value.down[home]);
    }
    for (uint32_t t = 1; t < problem_.labels(); ++t) {
      if (t == a) {
        cut.zero_and_any(p, std::span(readers).first(value.readers.size()), value.up[t]);
        continue;
      }
      std::vector<uint32_t> there;
      for (const uint32_t reader : value.readers) {
        if (labels[reader] == t) there.push_back(reader);
      }
      cut.one_and_not_all(home == t ? p : cut.source(), there, value.up[t]);
    }
  }

  const AssignmentProblem& problem_;
  const std::vector<std::vector<uint32_t>>& operands_;
  int share_;
};

constexpr uint32_t kFree = UINT32_MAX;

// A lower bound of the costs of all placements with these labels, kFree for any: a cut between the host and all targets
// as one device, with the cheapest costs of each, and one launch where a unit is there.
Ticks lower_bound(const AssignmentProblem& problem, const Labels& fixed) {
  const auto cheapest = [&](const std::vector<Ticks>& by_label) {
    return *std::min_element(by_label.begin() + 1, by_label.end());
  };
  Cut cut(problem.units.size());  // bit 1: on a device
  const bool has_devices = problem.labels() > 1;
  Ticks host = 0;  // the cost with all units at the host
  bool all_host_allowed = true, must_launch = false;
  for (uint32_t u = 0; u < problem.units.size(); ++u) {
    const auto& costs = problem.units[u];
    host += costs[0];
    if (fixed[u] == 0) {
      cut.constant += costs[0];
      cut.fix(u, false);
    } else if (fixed[u] != kFree) {
      cut.constant += costs[fixed[u]];
      cut.fix(u, true);
      all_host_allowed = false;
      must_launch = true;
    } else if (const Ticks device = has_devices ? cheapest(costs) : kNever; device == kNever) {
      cut.constant += costs[0];
      cut.fix(u, false);
    } else {
      cut.one(u, device);
      cut.zero(u, costs[0]);
    }
  }
  for (const auto& gain : problem.gains) {
    cut.constant -= gain.amount;
    if (gain.label == 0) {
      cut.zero_and_any(cut.sink(), gain.units, gain.amount);
      host -= gain.amount;
    } else {
      cut.one_and_not_all(cut.source(), gain.units, gain.amount);
    }
  }
  for (const auto& value : problem.values) {
    if (!has_devices) break;
    const uint32_t p = value.producer.value_or(cut.sink());
    std::vector<uint32_t> readers = value.readers;
    cut.zero_and_any(p, readers, cheapest(value.up));
    if (value.read_by_host) readers.push_back(cut.sink());
    cut.one_and_not_all(p, readers, cheapest(value.down));
  }
  const Ticks bound = cut.solve();
  if (!has_devices) return bound;
  const Ticks launch = cheapest(problem.launches);
  if (must_launch) return bound + launch;
  return all_host_allowed ? std::min(host, bound + launch) : bound;
}

constexpr uint64_t kMaxWork = 8'000'000;  // some tenths of a second

class Search {
 public:
  Search(const AssignmentProblem& problem, const AssignmentOptions& options)
      : problem_(problem),
        options_(options),
        operands_(operands_of(problem)),
        values_(problem.units.size()),
        gains_(problem.units.size()),
        readers_(problem.units.size()) {
    const auto incident = [](std::vector<std::vector<uint32_t>>& lists, uint32_t unit, size_t i) {
      if (lists[unit].empty() || lists[unit].back() != i) lists[unit].push_back(static_cast<uint32_t>(i));
    };
    for (size_t i = 0; i < problem.values.size(); ++i) {
      if (problem.values[i].producer) incident(values_, *problem.values[i].producer, i);
      for (const uint32_t reader : problem.values[i].readers) incident(values_, reader, i);
    }
    for (size_t i = 0; i < problem.gains.size(); ++i) {
      for (const uint32_t unit : problem.gains[i].units) incident(gains_, unit, i);
    }
    for (uint32_t unit = 0; unit < operands_.size(); ++unit) {
      for (const uint32_t operand : operands_[unit]) readers_[operand].push_back(unit);
    }
  }

  Assignment run() {
    const Labels host(problem_.units.size(), 0);
    Assignment best{.labels = host, .cost = cost(host)};
    best.bound = lower_bound(problem_, Labels(problem_.units.size(), kFree));
    if (best.cost > best.bound) search(best);
    best.optimal = best.bound == best.cost;
    if (options_.exact && !best.optimal) branch_and_bound(best);
    best.evaluations = evaluations_;
    return best;
  }

 private:
  // Candidates, and the local search from each of them, the cheapest first, until the bound is reached.
  void search(Assignment& best) {
    std::vector<Labels> starts{best.labels};
    for (uint32_t label = 1; label < problem_.labels(); ++label) starts.push_back(all_at(problem_, label));
    std::vector<Labels> candidates = starts;
    candidates.insert(candidates.end(), options_.candidates.begin(), options_.candidates.end());
    for (int share = 0; share <= kShares; ++share) {
      const Expansion expansion(problem_, operands_, share);
      const size_t needed = problem_.labels() == 2 ? 1 : starts.size();  // with two labels a move is the optimum
      for (size_t i = 0; i < needed; ++i) candidates.push_back(expansion.run(starts[i]));
    }
    std::ranges::sort(candidates);
    candidates.erase(std::ranges::unique(candidates).begin(), candidates.end());
    std::vector<std::pair<Ticks, size_t>> order;
    for (size_t i = 0; i < candidates.size(); ++i) order.emplace_back(cost(candidates[i]), i);
    std::ranges::sort(order);
    if (order[0].first < best.cost) best.labels = candidates[order[0].second], best.cost = order[0].first;
    std::set<Labels> searched;
    for (const auto& [first, i] : order) {
      if (best.cost == best.bound || work_ >= kMaxWork) return;
      if (!searched.insert(candidates[i]).second) continue;
      Ticks now = first;
      Labels labels = improved(candidates[i], now);
      searched.insert(labels);
      if (now < best.cost) best.labels = std::move(labels), best.cost = now;
    }
    kick(best);
  }

  Ticks cost(const Labels& labels) {
    ++evaluations_;
    Ticks total = cost_of_regions(problem_, merged_regions(problem_, operands_, labels, &work_), labels);
    for (uint32_t u = 0; u < labels.size(); ++u) total += problem_.units[u][labels[u]];
    for (const auto& value : problem_.values) total += cost_of_value(value, labels, problem_.labels());
    for (const auto& gain : problem_.gains) total += cost_of_gain(gain, labels);
    return total;
  }

  // The cost without launches of what touches the units.
  Ticks around(std::span<const uint32_t> units, const Labels& labels) {
    Ticks total = 0;
    touched_.clear();
    for (const uint32_t u : units) {
      total += problem_.units[u][labels[u]];
      touched_.insert(touched_.end(), values_[u].begin(), values_[u].end());
    }
    const auto distinct = [&] {
      std::ranges::sort(touched_);
      touched_.erase(std::ranges::unique(touched_).begin(), touched_.end());
    };
    distinct();
    for (const uint32_t v : touched_) total += cost_of_value(problem_.values[v], labels, problem_.labels());
    touched_.clear();
    for (const uint32_t u : units) touched_.insert(touched_.end(), gains_[u].begin(), gains_[u].end());
    distinct();
    for (const uint32_t g : touched_) total += cost_of_gain(problem_.gains[g], labels);
    return total;
  }

  // Relabels the units where this costs less.
  bool relabelled(std::span<const uint32_t> units, uint32_t label, Labels& labels, Ticks& now) {
    if (work_ >= kMaxWork) return false;
    std::vector<uint32_t> moved;
    size_t neighbours = 1;
    for (const uint32_t u : units) {
      if (labels[u] == label) continue;
      if (problem_.units[u][label] == kNever) return false;
      moved.push_back(u);
      neighbours += operands_[u].size() + readers_[u].size();
    }
    if (moved.empty()) return false;
    Labels changed = labels;
    for (const uint32_t u : moved) changed[u] = label;
    // More than a launch for each neighbour is seldom saved.
    const Ticks most = *std::ranges::max_element(problem_.launches) * static_cast<Ticks>(neighbours);
    if (around(moved, changed) - around(moved, labels) >= most && most > 0) return false;
    const Ticks then = cost(changed);
    if (then >= now) return false;
    labels = std::move(changed);
    now = then;
    return true;
  }

  Labels improved(Labels labels, Ticks& now) {
    for (bool changed = true; changed && work_ < kMaxWork;) {
      changed = false;
      const auto to_each = [&](std::span<const uint32_t> units) {
        for (uint32_t label = 0; label < problem_.labels(); ++label) changed |= relabelled(units, label, labels, now);
      };
      const std::vector<uint32_t> regions = merged_regions(problem_, operands_, labels);
      std::vector<std::vector<uint32_t>> members(labels.size());
      for (uint32_t u = 0; u < labels.size(); ++u) members[regions[u]].push_back(u);
      for (uint32_t u = 0; u < labels.size(); ++u) {
        if (labels[u] != 0 && members[u].size() > 1) to_each(members[u]);
      }
      for (uint32_t u = 0; u < labels.size(); ++u) {
        if (free(u)) to_each(std::span(&u, 1));
      }
      for (uint32_t u = 0; u < labels.size(); ++u) {
        for (const uint32_t operand : operands_[u]) {
          const uint32_t both[] = {operand, u};
          to_each(both);
          for (const uint32_t before : operands_[operand]) {
            const uint32_t chain[] = {before, operand, u};
            to_each(chain);
          }
          // The readers of one value together, which share its copy.
          for (const uint32_t other : readers_[operand]) {
            const uint32_t siblings[] = {u, other};
            if (other > u) to_each(siblings);
          }
        }
      }
    }
    return labels;
  }

  // Leaves a local optimum: relabels a unit at any cost, and improves what this leads to.
  void kick(Assignment& best) {
    for (bool changed = true; changed && best.cost > best.bound;) {
      changed = false;
      for (uint32_t u = 0; u < problem_.units.size(); ++u) {
        if (!free(u)) continue;
        for (uint32_t label = 0; label < problem_.labels() && work_ < kMaxWork; ++label) {
          if (best.labels[u] == label || problem_.units[u][label] == kNever) continue;
          Labels labels = best.labels;
          labels[u] = label;
          Ticks now = cost(labels);
          labels = improved(std::move(labels), now);
          if (now >= best.cost) continue;
          best.labels = std::move(labels);
          best.cost = now;
          changed = true;
        }
      }
    }
  }

  bool free(uint32_t unit) const {
    return std::ranges::any_of(problem_.units[unit].begin() + 1, problem_.units[unit].end(),
                               [](Ticks cost) { return cost != kNever; });
  }

  // Depth-first over the units in their order, the label of the best placement first.
  void branch_and_bound(Assignment& best) {
    std::vector<uint32_t> units;
    Labels fixed(problem_.units.size(), 0);
    for (uint32_t u = 0; u < fixed.size(); ++u) {
      if (!free(u)) continue;
      units.push_back(u);
      fixed[u] = kFree;
    }
    if (units.size() > kMaxExactUnits) return;
    int left = 20'000;  // bounds: some tenths of a second
    const bool complete = branch(units, 0, fixed, best, left);
    best.optimal = complete;
    if (complete) best.bound = best.cost;
  }

  bool branch(const std::vector<uint32_t>& units, size_t depth, Labels& fixed, Assignment& best, int& left) {
    if (--left < 0) return false;
    if (depth == units.size()) {
      const Ticks total = cost(fixed);
      if (total < best.cost) best.labels = fixed, best.cost = total;
      return true;
    }
    if (lower_bound(problem_, fixed) >= best.cost) return true;
    const uint32_t unit = units[depth], first = best.labels[unit];
    bool complete = true;
    for (uint32_t i = 0; i < problem_.labels() && complete; ++i) {
      const uint32_t label = i == 0 ? first : i <= first ? i - 1 : i;
      if (problem_.units[unit][label] == kNever) continue;
      fixed[unit] = label;
      complete = branch(units, depth + 1, fixed, best, left);
    }
    fixed[unit] = kFree;
    return complete;
  }

  const AssignmentProblem& problem_;
  const AssignmentOptions& options_;
  std::vector<std::vector<uint32_t>> operands_;
  std::vector<std::vector<uint32_t>> values_, gains_, readers_;  // by unit
  std::vector<uint32_t> touched_;
  uint64_t evaluations_ = 0;
  uint64_t work_ = 0;  // of costs: units, and edges that the merging of regions visited
};

}  // namespace

Ticks cost_of(const AssignmentProblem& problem, const Labels& labels) {
  Ticks total = cost_of_regions(problem, regions_of(problem, labels), labels);
  for (uint32_t u = 0; u < labels.size(); ++u) total += problem.units[u][labels[u]];
  for (const auto& value : problem.values) total += cost_of_value(value, labels, problem.labels());
  for (const auto& gain : problem.gains) total += cost_of_gain(gain, labels);
  return total;
}

std::vector<uint32_t> regions_of(const AssignmentProblem& problem, const Labels& labels) {
  return merged_regions(problem, operands_of(problem), labels);
}

Labels all_at(const AssignmentProblem& problem, uint32_t label) {
  Labels labels(problem.units.size(), 0);
  for (size_t u = 0; u < labels.size(); ++u) {
    if (problem.units[u][label] != kNever) labels[u] = label;
  }
  return labels;
}

Assignment assign(const AssignmentProblem& problem, const AssignmentOptions& options) {
  Assignment best = Search(problem, options).run();
  assert(best.cost == cost_of(problem, best.labels));
  return best;
}

}  // namespace tenon::compiler
