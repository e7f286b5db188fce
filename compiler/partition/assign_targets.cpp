#include "compiler/partition/assign_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/ir/groups.h"
#include "compiler/ir/operator.h"
#include "compiler/partition/assignment.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr double kTicksPerSecond = 1e12;

class BlockAssigner {
 public:
  BlockAssigner(Context& context, Module& module, const Function& function, const Block& block,
                const Dependencies& graph, std::span<const Target> targets, const PartitionOptions& options,
                TargetAnswers& answers, FunctionRef<bool(Composites&, Composite&)> is_valid, PlacementCosts& summary)
      : context_(context),
        module_(module),
        function_(function),
        block_(block),
        graph_(graph),
        targets_(targets),
        options_(options),
        costs_(*options.costs),
        answers_(answers),
        is_valid_(is_valid),
        summary_(summary) {}

  Expected<AssignedBlock> run() {
    for (const Target& target : targets_) {
      TENON_TRY_ASSIGN(
          made, find_composites(context_, module_, function_, block_, std::span(&target, 1), answers_, options_.pins));
      std::erase_if(made->found, [&](Composite& composite) { return !is_valid_(*made, composite); });
      matches_.push_back(*std::move(made));
    }
    make_units();
    problem_.launches.assign(targets_.size() + 1, 0);
    for (size_t t = 0; t < targets_.size(); ++t) {
      if (matches_[t].found.empty()) continue;
      const Costs::Device* device = costs_.device(targets_[t].name);
      if (!device) {
        return error(fmt::format("the entry devices.{}.launch_ns is missing", targets_[t].name), costs_.source,
                     "add it, or leave the target out of --targets");
      }
      TENON_TRY_ASSIGN(launch, ticks(device->launch_ns * 1e-9, targets_[t].name, "a launch"));
      problem_.launches[t + 1] = *launch;
    }
    TENON_TRY(price_units());
    TENON_TRY(price_values());
    price_fusion();
    TENON_TRY_ASSIGN(best, assign_with_regions());
    return assigned(*best);
  }

 private:
  // Merges the bindings of each match into a unit, and those of matches that overlap. A match that would close a cycle
  // with another one is left out.
  void make_units() {
    const auto count = static_cast<uint32_t>(block_.bindings.size());
    ConvexGroups groups(graph_.follows);
    for (Composites& made : matches_) {
      std::erase_if(made.found, [&](const Composite& composite) {
        // Operands first: each binding of a match is read by a later one.
        for (size_t i = composite.bindings.size(); i-- > 1;) {
          const auto root = static_cast<uint32_t>(composite.bindings.back());
          if (groups.merge(static_cast<uint32_t>(composite.bindings[i - 1]), root)) continue;
          for (const size_t binding : composite.bindings)
            made.reasons[binding] =
                fmt::format("{}: it overlaps the matches of other targets", composite.row->composite);
          return true;
        }
        return false;
      });
    }
    // In a topological order of the groups, which is that of their last bindings wherever this is one.
    const std::vector<uint32_t> order = groups.topological();
    std::vector<uint32_t> unit_of_group(count);
    for (uint32_t i = 0; i < order.size(); ++i) unit_of_group[order[i]] = i;
    unit_of_.resize(count);
    members_.resize(order.size());
    for (uint32_t i = 0; i < count; ++i) {
      unit_of_[i] = unit_of_group[groups.find(i)];
      members_[unit_of_[i]].push_back(i);
    }
    problem_.follows.resize(order.size());
    for (uint32_t i = 0; i < count; ++i) {
      for (const uint32_t before : graph_.follows[i]) {
        if (unit_of_[before] != unit_of_[i]) problem_.follows[unit_of_[i]].push_back(unit_of_[before]);
      }
    }
    for (auto& follows : problem_.follows) {
      std::ranges::sort(follows);
      follows.erase(std::ranges::unique(follows).begin(), follows.end());
    }
  }

  Expected<Ticks> ticks(double seconds, std::string_view target, std::string_view of) const {
    if (std::isfinite(seconds) && seconds >= 0 && seconds <= kMostSeconds) {
      return static_cast<Ticks>(std::llround(seconds * kTicksPerSecond));
    }
    return error(fmt::format("target {}: {} costs {} seconds, must be from 0 to {}", target, of, seconds, kMostSeconds),
                 costs_.source, "check the figures of the costs file, or the target's function `cost`");
  }

  Expected<Price> price(const Target& target, Composite& composite) {
    Function& function = composite.outlined.function;
    function.composite = composite.row->composite;
    const auto ask = [&]() -> Expected<Price> {
      if (target.cost) return target.cost(context_, module_, function, costs_);
      std::vector<size_t> all(function.body.bindings.size());
      std::iota(all.begin(), all.end(), size_t{0});
      return device_price(costs_, target.name, work_of(module_, function, function.body, all));
    };
    const auto key = function_key(context_, module_, function);
    if (!key) return ask();
    const std::string question = fmt::format("{}:{}", static_cast<const void*>(composite.row), *key);
    const auto known = answers_.prices.find(question);
    return known != answers_.prices.end() ? known->second : answers_.prices.emplace(question, ask()).first->second;
  }

  Status price_units() {
    problem_.units.assign(members_.size(), std::vector<Ticks>(targets_.size() + 1, kNever));
    prices_.resize(members_.size());
    for (size_t unit = 0; unit < members_.size(); ++unit) {
      const Price host = cpu_price(costs_, work_of(module_, function_, block_, members_[unit]));
      TENON_TRY_ASSIGN(cost, ticks(host.seconds, "cpu", "a kernel"));
      problem_.units[unit][0] = *cost;
      prices_[unit].push_back({"cpu", host});
    }
    for (size_t t = 0; t < targets_.size(); ++t) {
      std::vector<size_t> covered(members_.size());
      std::vector<Price> sums(members_.size());
      for (Composite& composite : matches_[t].found) {
        const uint32_t unit = unit_of_[composite.bindings.back()];
        TENON_TRY_ASSIGN(one, price(targets_[t], composite));
        TENON_TRY(ticks(one->seconds, targets_[t].name, composite.row->composite));
        covered[unit] += composite.bindings.size();
        sums[unit].seconds += one->seconds;
        sums[unit].source += (sums[unit].source.empty() ? "" : " + ") + one->source;
      }
      for (size_t unit = 0; unit < members_.size(); ++unit) {
        if (covered[unit] != members_[unit].size()) continue;
        TENON_TRY_ASSIGN(cost, ticks(sums[unit].seconds, targets_[t].name, "a unit"));
        problem_.units[unit][t + 1] = *cost;
        prices_[unit].push_back({targets_[t].name, std::move(sums[unit])});
      }
    }
    // A pinned unit is nowhere else; the host is possible for all, and is too dear for it.
    for (size_t i = 0; i < block_.bindings.size(); ++i) {
      const auto* pin = pin_of(module_, function_, block_.bindings[i], options_.pins);
      if (!pin) continue;
      auto& costs = problem_.units[unit_of_[i]];
      for (size_t t = 0; t < targets_.size(); ++t) {
        if (targets_[t].name != pin->second) costs[t + 1] = kNever;
        else if (costs[t + 1] != kNever) costs[0] = kMaxCost;
      }
    }
    return {};
  }

  // A copy of a value between the host and a device, with the change of its layout at the host.
  Expected<std::vector<Ticks>> copies(double bytes) const {
    std::vector<Ticks> result{0};
    for (const Target& target : targets_) {
      const Costs::Device* device = costs_.device(target.name);
      double seconds = 0;
      if (device && device->gbytes) {
        seconds = bytes / (*device->gbytes * 1e9);
        if (target.boundary) seconds += 2 * bytes / (costs_.gbytes * 1e9) + costs_.call_ns * 1e-9;
      }
      TENON_TRY_ASSIGN(cost, ticks(seconds, target.name, "a copy"));
      result.push_back(*cost);
    }
    return result;
  }

  Status price_values() {
    std::map<VarId, size_t> values;  // their indices
    std::vector<size_t> producers(function_.vars.size(), SIZE_MAX);
    for (size_t i = 0; i < block_.bindings.size(); ++i) producers[index(block_.bindings[i].var)] = i;
    const auto value_of = [&](VarId var) -> Expected<AssignmentProblem::Value*> {
      const auto [known, is_new] = values.try_emplace(var, problem_.values.size());
      if (is_new) {
        TENON_TRY_ASSIGN(cost, copies(bytes_of(function_.type(var))));
        AssignmentProblem::Value value{.producer = {}, .readers = {}, .down = *cost, .up = *cost};
        if (const size_t producer = producers[index(var)]; producer != SIZE_MAX) value.producer = unit_of_[producer];
        problem_.values.push_back(std::move(value));
      }
      return &problem_.values[known->second];
    };
    const auto read = [&](const Atom& atom, std::optional<uint32_t> by) -> Status {
      const auto* var = std::get_if<VarId>(&atom);
      if (!var) return {};
      const size_t producer = producers[index(*var)];
      if (by && producer != SIZE_MAX && unit_of_[producer] == *by) return {};
      TENON_TRY_ASSIGN(value, value_of(*var));
      if (!by) (*value)->read_by_host = true;
      else if (std::ranges::find((*value)->readers, *by) == (*value)->readers.end()) (*value)->readers.push_back(*by);
      return {};
    };
    for (uint32_t i = 0; i < block_.bindings.size(); ++i) {
      Status status;
      const auto visit = [&](const Atom& atom) {
        if (status) status = read(atom, unit_of_[i]);
      };
      for_each_operand(block_.bindings[i].value, visit);
      for_each_block(block_.bindings[i].value, [&](const Block& inner) { for_each_use(inner, visit); });
      TENON_TRY(status);
    }
    return read(block_.result, std::nullopt);
  }

  // An elementwise unit at the host that alone reads what another one there computes is fused into its kernel.
  void price_fusion() {
    for (const AssignmentProblem::Value& value : problem_.values) {
      if (!value.producer || value.readers.size() != 1 || value.read_by_host) continue;
      const uint32_t reader = value.readers[0];
      const auto is_fusable = [&](uint32_t unit, OpPattern most) {
        return std::ranges::all_of(members_[unit], [&](size_t i) {
          const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
          return apply && apply->op->pattern <= most;
        });
      };
      if (!is_fusable(reader, OpPattern::kInjective) || !is_fusable(*value.producer, OpPattern::kAnchor)) continue;
      const double bytes = bytes_of(function_.type(block_.bindings[members_[*value.producer].back()].var));
      const double saved = (costs_.call_ns + bytes / costs_.gbytes) * 1e-9;
      const Ticks amount = std::min(static_cast<Ticks>(saved * kTicksPerSecond), problem_.units[reader][0]);
      if (problem_.units[reader][0] == kMaxCost || amount <= 0) continue;
      // A reader of several such values pays for one kernel: it gains once.
      if (std::ranges::any_of(problem_.gains, [&](const auto& gain) { return gain.units.back() == reader; })) continue;
      problem_.gains.push_back({.label = 0, .units = {*value.producer, reader}, .amount = amount});
    }
  }

  // What is chosen without costs.
  Labels first_match() const {
    Labels labels(members_.size(), 0);
    for (size_t unit = 0; unit < labels.size(); ++unit) {
      for (uint32_t label = 1; label < problem_.labels() && labels[unit] == 0; ++label) {
        if (problem_.units[unit][label] != kNever) labels[unit] = label;
      }
    }
    return labels;
  }

  // Assigns by the prices of units, prices the regions that this leads to as wholes, scales the prices of their units
  // so that these add up, and assigns again, until the regions stay; the best of all that were priced so.
  Expected<Labels> assign_with_regions() {
    constexpr int kRounds = 4;
    const Labels first = first_match();
    TENON_TRY_ASSIGN(first_cost, whole_cost(first));
    Labels best = first;
    Ticks best_cost = *first_cost;
    summary_.first_match += seconds(best_cost);
    for (uint32_t label = 0; label < problem_.labels(); ++label) {
      const Labels all = all_at(problem_, label);
      TENON_TRY_ASSIGN(cost, whole_cost(all));
      (label == 0 ? summary_.all_cpu : summary_.all_at[targets_[label - 1].name]) += seconds(*cost);
      if (*cost < best_cost) best = all, best_cost = *cost;
    }
    const std::vector<std::vector<Ticks>> alone = problem_.units;
    Ticks bound = 0;
    bool optimal = false;
    Labels last;
    for (int round = 0; round < kRounds; ++round) {
      const Assignment found = tenon::compiler::assign(problem_, {.candidates = {best}});
      bound = found.bound;
      optimal = found.optimal;
      if (found.labels == last) break;
      last = found.labels;
      problem_.units = alone;
      TENON_TRY_ASSIGN(cost, whole_cost(last));
      if (*cost < best_cost) best = last, best_cost = *cost;
      if (priced_regions(last).empty()) break;
      TENON_TRY(scale(last));
    }
    problem_.units = alone;
    summary_.total += seconds(best_cost);
    summary_.bound += seconds(std::min(bound, best_cost));
    summary_.optimal &= optimal && bound >= best_cost;
    return best;
  }

  static double seconds(Ticks cost) { return static_cast<double>(cost) / kTicksPerSecond; }

  // The composites of each region of a target that prices regions, in their order.
  std::vector<std::pair<size_t, std::vector<const Composite*>>> priced_regions(const Labels& labels) const {
    const std::vector<uint32_t> regions = regions_of(problem_, labels);
    std::map<uint32_t, std::pair<size_t, std::vector<const Composite*>>> by_region;
    for (size_t t = 0; t < targets_.size(); ++t) {
      if (!targets_[t].region_cost) continue;
      for (const Composite& composite : matches_[t].found) {
        const uint32_t unit = unit_of_[composite.bindings.back()];
        if (labels[unit] != t + 1) continue;
        auto& region = by_region[regions[unit]];
        region.first = t;
        region.second.push_back(&composite);
      }
    }
    std::vector<std::pair<size_t, std::vector<const Composite*>>> result;
    for (auto& [id, region] : by_region) {
      if (region.second.size() > 1) result.push_back(std::move(region));
    }
    return result;
  }

  // The price of a region as a whole; asked once.
  Expected<Ticks> price_whole(size_t t, const std::vector<const Composite*>& composites) {
    std::vector<size_t> roots;
    std::map<VarId, int> layers;  // by result
    std::vector<RegionLayer> described;
    for (const Composite* composite : composites) {
      RegionLayer layer{.composite = &composite->outlined.function, .args = {}};
      for (const VarId arg : composite->outlined.args) {
        const auto from = layers.find(arg);
        layer.args.push_back(from == layers.end() ? -1 : from->second);
      }
      roots.push_back(composite->bindings.back());
      layers.emplace(block_.bindings[roots.back()].var, static_cast<int>(described.size()));
      described.push_back(std::move(layer));
    }
    const auto known = whole_.find({t, roots});
    if (known != whole_.end()) return known->second;
    TENON_TRY_ASSIGN(price, targets_[t].region_cost(context_, module_, described, costs_));
    TENON_TRY_ASSIGN(cost, ticks(price->seconds, targets_[t].name, "a region"));
    return whole_.emplace(std::pair(t, std::move(roots)), *cost).first->second;
  }

  // The units of a region, and the sum of their prices.
  std::pair<std::set<uint32_t>, Ticks> units_of(size_t t, const std::vector<const Composite*>& composites) const {
    std::pair<std::set<uint32_t>, Ticks> units;
    for (const Composite* composite : composites) {
      const uint32_t unit = unit_of_[composite->bindings.back()];
      if (units.first.insert(unit).second) units.second += problem_.units[unit][t + 1];
    }
    return units;
  }

  // The cost with regions priced as wholes.
  Expected<Ticks> whole_cost(const Labels& labels) {
    Ticks total = cost_of(problem_, labels);
    for (const auto& [t, composites] : priced_regions(labels)) {
      TENON_TRY_ASSIGN(whole, price_whole(t, composites));
      total += *whole - units_of(t, composites).second;
    }
    return total;
  }

  Status scale(const Labels& labels) {
    for (const auto& [t, composites] : priced_regions(labels)) {
      TENON_TRY_ASSIGN(whole, price_whole(t, composites));
      const auto [units, sum] = units_of(t, composites);
      if (sum == 0) continue;
      const double ratio = static_cast<double>(*whole) / static_cast<double>(sum);
      for (const uint32_t unit : units) {
        Ticks& cost = problem_.units[unit][t + 1];
        cost = std::llround(static_cast<double>(cost) * ratio);
      }
    }
    return {};
  }

  // What each unit would cost elsewhere, into its prices. Not of large blocks, where it would take longer than
  // assigning them: the whole cost is summed for each unit.
  void price_changes(const Labels& labels) {
    constexpr size_t kMostUnits = 4000;
    if (labels.size() > kMostUnits) return;
    const Ticks chosen = cost_of(problem_, labels);
    for (uint32_t unit = 0; unit < labels.size(); ++unit) {
      for (TargetPrice& price : prices_[unit]) {
        const auto target = std::ranges::find(targets_, price.target, &Target::name);
        const auto label = target == targets_.end() ? 0 : static_cast<uint32_t>(target - targets_.begin()) + 1;
        if (problem_.units[unit][label] >= kMaxCost) continue;  // by a pin
        if (label == labels[unit]) {
          price.change = 0;
          continue;
        }
        Labels other = labels;
        other[unit] = label;
        price.change = seconds(cost_of(problem_, other) - chosen);
      }
    }
  }

  AssignedBlock assigned(const Labels& labels) {
    price_changes(labels);
    AssignedBlock result;
    result.composites.reasons.resize(block_.bindings.size());
    result.prices.resize(block_.bindings.size());
    for (size_t t = 0; t < targets_.size(); ++t) {
      for (Composite& composite : matches_[t].found) {
        const uint32_t unit = unit_of_[composite.bindings.back()];
        if (labels[unit] == t + 1) result.composites.found.push_back(std::move(composite));
      }
    }
    std::ranges::sort(result.composites.found, {},
                      [](const Composite& composite) { return composite.bindings.back(); });
    for (size_t i = 0; i < block_.bindings.size(); ++i) {
      const uint32_t unit = unit_of_[i];
      std::string& reason = result.composites.reasons[i];
      if (prices_[unit].size() > 1 && members_[unit].front() == i) result.prices[i] = prices_[unit];
      if (labels[unit] != 0) continue;
      for (size_t t = 0; t < targets_.size(); ++t) {
        if (!reason.empty()) reason += "; ";
        if (problem_.units[unit][t + 1] != kNever) reason += fmt::format("{} costs more", targets_[t].name);
        else reason += matches_[t].reasons[i];
      }
    }
    return result;
  }

  Context& context_;
  Module& module_;
  const Function& function_;
  const Block& block_;
  const Dependencies& graph_;
  std::span<const Target> targets_;
  const PartitionOptions& options_;
  const Costs& costs_;
  TargetAnswers& answers_;
  FunctionRef<bool(Composites&, Composite&)> is_valid_;
  PlacementCosts& summary_;
  std::vector<Composites> matches_;           // by target
  std::vector<uint32_t> unit_of_;             // by binding
  std::vector<std::vector<size_t>> members_;  // by unit
  std::vector<std::vector<TargetPrice>> prices_;
  AssignmentProblem problem_;
  std::map<std::pair<size_t, std::vector<size_t>>, Ticks> whole_;  // by target and the roots of a region
};

}  // namespace

Expected<AssignedBlock> assign_targets(Context& context, Module& module, const Function& function, const Block& block,
                                       const Dependencies& graph, std::span<const Target> targets,
                                       const PartitionOptions& options, TargetAnswers& answers,
                                       FunctionRef<bool(Composites&, Composite&)> is_valid, PlacementCosts& summary) {
  return BlockAssigner(context, module, function, block, graph, targets, options, answers, is_valid, summary).run();
}

}  // namespace tenon::compiler
