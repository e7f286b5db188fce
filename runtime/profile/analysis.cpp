#include "runtime/profile/analysis.h"

#include <algorithm>
#include <map>

namespace tenon::runtime {

const InstructionNote* find_note(const AcceleratorProgram& program, uint32_t slot) {
  auto next = std::ranges::upper_bound(program.notes, slot, {}, &InstructionNote::slot);
  return next == program.notes.begin() ? nullptr : &*std::prev(next);
}

std::vector<LayerCost> layer_costs(const AcceleratorProgram& program, uint32_t index, const LaunchRecord& launch) {
  std::vector<uint64_t> complete(program.layers.size(), 0);
  for (const sim::Interval& interval : launch.timeline) {
    if (interval.kind != sim::Interval::Kind::kBusy) continue;
    if (const InstructionNote* note = find_note(program, interval.instruction)) {
      complete[note->layer] = std::max(complete[note->layer], interval.end);
    }
  }
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < complete.size(); ++i) {
    if (complete[i] != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return complete[i]; });
  std::vector<LayerCost> costs;
  uint64_t previous = 0;
  for (uint32_t i : order) {
    const LayerNote& note = program.layers[i];
    LayerCost cost{
        note.name,       note.op,          index, i, previous, complete[i] - previous, note.macs, note.padded_macs,
        note.read_bytes, note.write_bytes, 0};
    if (cost.cycles != 0) {
      cost.utilization = static_cast<double>(note.macs) /
                         (static_cast<double>(cost.cycles) * static_cast<double>(program.config.macs_per_cycle()));
    }
    previous = complete[i];
    costs.push_back(std::move(cost));
  }
  return costs;
}

namespace {

// Sums of launches, from which their figures are made.
struct LaunchSums {
  LaunchFigures figures;
  double possible = 0;  // MACs in their cycles

  void add(const AcceleratorProgram& program, const LaunchRecord& launch) {
    const auto cycles = static_cast<double>(launch.counters.cycles);
    const auto beat = static_cast<double>(program.config.axi_bytes());
    figures.cycles += cycles;
    figures.read_bytes += static_cast<double>(launch.counters.read_beats) * beat;
    figures.write_bytes += static_cast<double>(launch.counters.write_beats) * beat;
    for (const LayerNote& layer : program.layers) figures.macs += static_cast<double>(layer.macs);
    figures.launches += 1;
    possible += cycles * static_cast<double>(program.config.macs_per_cycle());
  }
  LaunchFigures mean(double runs) const {
    LaunchFigures mean = figures;
    mean.utilization = possible > 0 ? figures.macs / possible : 0;
    for (double* sum : {&mean.cycles, &mean.macs, &mean.read_bytes, &mean.write_bytes, &mean.launches}) *sum /= runs;
    return mean;
  }
};

}  // namespace

std::vector<size_t> accelerators_of(const Executable& executable) {
  std::map<uint64_t, size_t> known;
  std::vector<size_t> indices;
  for (const AcceleratorProgram& program : executable.programs)
    indices.push_back(known.try_emplace(spec::hash(program.config), known.size()).first->second);
  return indices;
}

Analysis analyze(const Executable& executable, const Profile& profile) {
  Analysis result;
  const auto runs = static_cast<double>(std::max<uint64_t>(profile.runs, 1));
  const std::vector<size_t> indices = accelerators_of(executable);
  LaunchSums all;
  std::map<size_t, LaunchSums> sums;  // by accelerator
  for (const LaunchRecord& launch : profile.launches) {
    const AcceleratorProgram& program = executable.programs[launch.program];
    all.add(program, launch);
    sums[indices[launch.program]].add(program, launch);
    if (launch.timeline.empty()) continue;
    auto layers = layer_costs(program, launch.program, launch);
    result.layers.insert(result.layers.end(), layers.begin(), layers.end());
  }
  static_cast<LaunchFigures&>(result) = all.mean(runs);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < result.accelerators.size()) continue;
    const AcceleratorProgram& first = executable.programs[i];
    result.accelerators.push_back({sums[indices[i]].mean(runs), first.device, &first.config});
  }

  std::map<std::pair<std::string_view, std::string_view>, size_t> rows;
  for (const CallRecord& call : profile.calls) {
    if (call.launch != -1) continue;
    auto [row, is_new] = rows.try_emplace({call.layer, call.name}, result.cpu.size());
    if (is_new) result.cpu.push_back({std::string(call.layer), std::string(call.name), 0});
    result.cpu[row->second].microseconds += static_cast<double>(call.end_ns - call.begin_ns) / 1e3 / runs;
  }
  return result;
}

}  // namespace tenon::runtime
