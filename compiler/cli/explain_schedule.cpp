#include "compiler/cli/explain_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/profile/analysis.h"
#include "sim/timing/model.h"
#include "sim/timing/transfer_plan.h"

namespace tenon::cli {
namespace {

namespace timing = sim::timing;
using sim::Interval;

// A layer that takes at most this many times its roofline is bound by the resource of the roofline.
constexpr double kNearRoofline = 1.05;

sim::Bases launch_bases() {
  sim::Bases bases{};
  for (size_t base = 0; base < bases.size(); ++base) bases[base] = (uint64_t{1} + base) << 40;
  return bases;
}

std::vector<spec::Decoded> decoded(const runtime::AcceleratorProgram& program) {
  const spec::Isa isa(program.config);
  std::vector<spec::Decoded> stream;
  for (const runtime::InstructionNote& note : program.notes) {
    if (auto instruction = isa.decode(program.instructions, note.slot, program.profile)) {
      stream.push_back({std::move(*instruction), note.slot});
    }
  }
  stream.push_back({spec::native::Finish{}, static_cast<uint32_t>(program.instructions.size())});
  return stream;
}

timing::Result run(const runtime::AcceleratorProgram& program, const std::vector<spec::Decoded>& stream,
                   const spec::MemoryTiming& memory) {
  timing::Launch launch;
  launch.profile = program.profile;
  launch.bases = launch_bases();
  return timing::run(program.config, launch, stream, true, {.memory = memory});
}

bool loads(uint8_t engine) { return engine <= static_cast<uint8_t>(spec::Engine::kLdm); }

// Adds an instruction's work to the resources of its layer.
void add_work(const runtime::AcceleratorProgram& program, const spec::Instruction& instruction, LayerSchedule& layer) {
  const spec::Config& config = program.config;
  const uint64_t slots = program.profile == spec::Profile::kNative ? 2 : 1;
  const auto beat = static_cast<uint64_t>(config.axi_bytes());
  layer.reads += (slots * spec::kSlotBytes + beat - 1) / beat;  // the instruction itself
  switch (timing::unit_of(config, instruction)) {
    case spec::Unit::kGemm: layer.lanes += timing::steps(config, instruction); break;
    case spec::Unit::kRq:
    case spec::Unit::kAlu: layer.requantizer += timing::steps(config, instruction); break;
    case spec::Unit::kLdi:
    case spec::Unit::kLdw:
    case spec::Unit::kLdm:
    case spec::Unit::kSt: {
      const sim::Dma dma = *sim::dma_of(config, instruction, launch_bases());
      uint64_t& beats = dma.store ? layer.stores : layer.reads;
      for (const timing::Burst& burst : timing::plan(config, dma).bursts) beats += burst.beats;
      break;
    }
    case spec::Unit::kNone: break;
  }
}

std::string row(const LayerSchedule& layer, std::string_view bound) {
  const auto share = [&](uint64_t work) {
    return layer.cycles == 0 ? 0 : 100 * static_cast<double>(work) / static_cast<double>(layer.cycles);
  };
  return fmt::format("{:<32} {:>10} {:>10} {:>6.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f}  {}\n", layer.name,
                     layer.cycles, layer.roofline(), share(layer.roofline()), share(layer.lanes),
                     share(layer.requantizer), share(layer.reads), share(layer.stores), bound);
}

}  // namespace

void LayerSchedule::join(const LayerSchedule& next) {
  name += " + " + next.name;
  op = next.op;
  cycles += next.cycles;
  cycles_at_once += next.cycles_at_once;
  load_waits += next.load_waits;
  lanes += next.lanes;
  requantizer += next.requantizer;
  reads += next.reads;
  stores += next.stores;
}

uint64_t LayerSchedule::roofline() const { return std::max({lanes, requantizer, reads, stores}); }

// Where the roofline does not explain the cycles: latency, if at least half of the cycles beyond it vanish with a
// memory that answers at once; else room in the scratchpads, if load engines wait for tokens as long as half of them;
// else the time until the first product and after the last one.
std::string LayerSchedule::bound_by() const {
  const uint64_t limit = roofline();
  if (static_cast<double>(cycles) <= kNearRoofline * static_cast<double>(limit)) {
    return limit == lanes ? "lanes" : limit == stores ? "stores" : limit == reads ? "reads" : "requantizer";
  }
  const uint64_t beyond = cycles - limit, latency = cycles - std::min(cycles, cycles_at_once);
  if (2 * latency >= beyond) return "latency";
  return 2 * load_waits >= beyond ? "buffers" : "fill and drain";
}

std::vector<LayerSchedule> layer_schedules(const runtime::AcceleratorProgram& program) {
  const std::vector<spec::Decoded> stream = decoded(program);
  const timing::Result usual = run(program, stream, program.memory);
  const timing::Result at_once = run(program, stream, {1, 1, spec::kMaxOutstanding});

  std::vector<LayerSchedule> by_layer(program.layers.size());
  const auto costs = [&](const timing::Result& result) {
    return runtime::layer_costs(program, 0, {.counters = {}, .timeline = result.timeline});
  };
  for (const runtime::LayerCost& cost : costs(at_once)) by_layer[cost.layer].cycles_at_once = cost.cycles;
  const auto layer_at = [&](uint32_t slot) -> LayerSchedule* {
    const runtime::InstructionNote* note = runtime::find_note(program, slot);
    return note == nullptr || slot >= program.instructions.size() ? nullptr : &by_layer[note->layer];
  };
  std::vector<bool> on_chip(program.layers.size(), true);  // no store: the next layer reads the results in inp or acc
  for (const spec::Decoded& d : stream) {
    LayerSchedule* layer = layer_at(d.index);
    if (layer == nullptr) continue;
    add_work(program, d.instruction, *layer);
    if (timing::unit_of(program.config, d.instruction) == spec::Unit::kSt) {
      on_chip[static_cast<size_t>(layer - by_layer.data())] = false;
    }
  }
  for (const Interval& interval : usual.timeline) {
    LayerSchedule* layer = layer_at(interval.instruction);
    if (layer != nullptr && interval.kind == Interval::Kind::kWaitTokens && loads(interval.engine)) {
      layer->load_waits += interval.end - interval.begin;
    }
  }
  std::vector<LayerSchedule> in_order;
  bool joins = false;
  for (const runtime::LayerCost& cost : costs(usual)) {
    LayerSchedule& layer = by_layer[cost.layer];
    layer.name = cost.name;
    layer.op = cost.op;
    layer.cycles = cost.cycles;
    if (joins) in_order.back().join(layer);
    else in_order.push_back(layer);
    joins = on_chip[cost.layer];
  }
  return in_order;
}

std::string explain_schedule(const runtime::AcceleratorProgram& program) {
  std::string text = fmt::format(
      "{} on {}, memory {}: cycles by the cycle model; roofline and work of each resource in percent of them\n"
      "{:<32} {:>10} {:>10} {:>6} {:>7} {:>7} {:>7} {:>7}  {}\n",
      program.name, program.config.name, spec::to_string(program.memory), "layer", "cycles", "roofline", "%", "lanes",
      "rq", "reads", "stores", "bound by");
  LayerSchedule all;
  all.name = "all";
  uint64_t rooflines = 0;
  for (const LayerSchedule& layer : layer_schedules(program)) {
    text += row(layer, layer.bound_by());
    all.cycles += layer.cycles;
    all.lanes += layer.lanes;
    all.requantizer += layer.requantizer;
    all.reads += layer.reads;
    all.stores += layer.stores;
    rooflines += layer.roofline();
  }
  return text + row(all, fmt::format("the layers' rooflines add up to {}", rooflines));
}

}  // namespace tenon::cli
