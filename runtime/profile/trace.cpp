// Writes the trace of a profile in the format that ui.perfetto.dev opens.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "runtime/profile/analysis.h"
#include "runtime/profile/report.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHost = 1, kFirstDevice = 2;  // processes
constexpr int kLayerRow = spec::kEngines;   // after the rows of the engines

Json label(std::string_view kind, int process, int thread, std::string_view name) {
  return {{"ph", "M"}, {"name", kind}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string_view describe(sim::Interval::Kind kind) {
  switch (kind) {
    case sim::Interval::Kind::kBusy: return "busy";
    case sim::Interval::Kind::kWaitTokens: return "waits for tokens";
    case sim::Interval::Kind::kWaitMemory: return "waits for memory";
  }
  return "";
}

// The rows of an accelerator.
struct DeviceRows {
  int process = 0;
  double clock = 0;
  uint64_t offset = 0;  // the cycle at which the next launch begins
};

DeviceRows device_rows(const ReportInput& input, const spec::Config& config, size_t index, Json& events) {
  const driver::Info* device = device_of(input, config);
  const DeviceRows rows{kFirstDevice + static_cast<int>(index),
                        device && device->clock_hz > 0 ? device->clock_hz : 100e6};
  events.push_back(
      label("process_name", rows.process, 0,
            fmt::format("accelerator: {} at {:.0f} MHz", device ? device->uri : "unknown device", rows.clock / 1e6)));
  for (int i = 0; i < spec::kEngines; ++i)
    events.push_back(label("thread_name", rows.process, i, spec::name(static_cast<spec::Engine>(i))));
  events.push_back(label("thread_name", rows.process, kLayerRow, "layers"));
  return rows;
}

}  // namespace

std::string make_trace(const ReportInput& input) {
  Json events = Json::array();
  events.push_back(label("process_name", kHost, 0, "host: " + input.executable->name));
  // A row for each device: a launch overlaps with calls of the CPU.
  std::vector<std::string_view> devices;
  for (const CallRecord& call : input.profile->calls) {
    if (std::ranges::find(devices, call.device) != devices.end()) continue;
    events.push_back(
        label("thread_name", kHost, static_cast<int>(devices.size()), fmt::format("calls: {}", call.device)));
    devices.push_back(call.device);
  }
  for (const CallRecord& call : input.profile->calls) {
    Json args{{"kernel", call.name}, {"device", call.device}};
    if (call.gpu_ns > 0) args["gpu_us"] = static_cast<double>(call.gpu_ns) / 1e3;
    events.push_back({{"ph", "X"},
                      {"name", call.layer.empty() ? call.name : call.layer},
                      {"cat", call.device},
                      {"pid", kHost},
                      {"tid", std::ranges::find(devices, call.device) - devices.begin()},
                      {"ts", static_cast<double>(call.begin_ns) / 1e3},
                      {"dur", static_cast<double>(call.end_ns - call.begin_ns) / 1e3},
                      {"args", std::move(args)}});
  }
  // Simulated cycles are not wall clock time: each device has a process and a clock of its own.
  const std::vector<size_t> accelerators = accelerators_of(*input.executable);
  std::vector<DeviceRows> rows;
  for (size_t i = 0; i < accelerators.size(); ++i) {
    if (accelerators[i] == rows.size())
      rows.push_back(device_rows(input, input.executable->programs[i].config, rows.size(), events));
  }
  for (const LaunchRecord& launch : input.profile->launches) {
    if (launch.timeline.empty()) continue;
    const AcceleratorProgram& program = input.executable->programs[launch.program];
    auto& [process, clock, offset] = rows[accelerators[launch.program]];
    auto add = [&](int row, std::string_view name, std::string_view category, uint64_t begin, uint64_t cycles,
                   Json args) {
      events.push_back({{"ph", "X"},
                        {"name", name},
                        {"cat", category},
                        {"pid", process},
                        {"tid", row},
                        {"ts", static_cast<double>(offset + begin) / clock * 1e6},
                        {"dur", static_cast<double>(cycles) / clock * 1e6},
                        {"args", std::move(args)}});
    };
    uint64_t end = launch.counters.cycles;
    for (const sim::Interval& interval : launch.timeline) {
      const InstructionNote* note = find_note(program, interval.instruction);
      std::string_view kind = describe(interval.kind);
      Json args = {{"instruction", interval.instruction}, {"cycles", interval.end - interval.begin}};
      if (note) {
        args["layer"] = program.layers[note->layer].name;
        args["tile"] = note->tile;
      }
      bool busy = interval.kind == sim::Interval::Kind::kBusy;
      add(interval.engine, busy && note ? std::string_view(note->tile) : kind, kind, interval.begin,
          interval.end - interval.begin, std::move(args));
      end = std::max(end, interval.end);
    }
    for (const LayerCost& layer : layer_costs(program, launch.program, launch)) {
      add(kLayerRow, layer.name, "layer", layer.begin, layer.cycles,
          {{"op", layer.op}, {"cycles", layer.cycles}, {"macs", layer.macs}, {"utilization", layer.utilization}});
    }
    offset += end;
  }
  // Names from a model may be any bytes: invalid UTF-8 is replaced, not refused.
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(-1, ' ', true,
                                                                                  Json::error_handler_t::replace);
}

}  // namespace tenon::runtime
