#include "runtime/profile/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/profile/analysis.h"
#include "runtime/profile/report_assets.h"
#include "support/printable.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json rows(const std::vector<std::pair<std::string, std::string>>& facts) {
  Json result = Json::array();
  for (const auto& [key, value] : facts) result.push_back({key, value});
  return result;
}

Json prices_of(const std::vector<NodePrice>& prices) {
  Json list = Json::array();
  for (const NodePrice& price : prices) {
    Json change = price.change ? Json(*price.change) : Json();
    list.push_back({{"target", price.target},
                    {"seconds", price.seconds},
                    {"source", price.source},
                    {"change", std::move(change)}});
  }
  return list;
}

Json graph(const Graph& graph, const std::map<std::string, std::vector<NodePrice>>& prices) {
  Json nodes = Json::array(), edges = Json::array();
  for (const GraphNode& node : graph.nodes) {
    nodes.push_back({{"name", node.name}, {"op", node.op}, {"device", node.device}, {"detail", node.detail}});
    const auto found = prices.find(node.name);
    if (found != prices.end()) nodes.back()["prices"] = prices_of(found->second);
  }
  for (const GraphEdge& edge : graph.edges) edges.push_back({edge.from, edge.to});
  return {{"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}

Json configuration(const spec::Config& config) {
  Json buffers = Json::array();
  for (int i = 0; i < spec::kScratchpads; ++i) {
    buffers.push_back({spec::name(static_cast<spec::Memory>(i)), config.bytes[static_cast<size_t>(i)]});
  }
  return {{"name", config.name},
          {"block_in", config.block_in},
          {"block_out", config.block_out},
          {"axi_bytes", config.axi_bytes()},
          {"macs_per_cycle", config.macs_per_cycle()},
          {"buffers", std::move(buffers)}};
}

Json device(const driver::Info& info) {
  return {{"uri", info.uri},
          {"simulated", info.simulated},
          {"cycle_accurate", info.cycle_accurate},
          {"clock_hz", info.clock_hz}};
}

Json figures(const LaunchFigures& figures) {
  return {{"cycles", figures.cycles},           {"macs", figures.macs},
          {"read_bytes", figures.read_bytes},   {"write_bytes", figures.write_bytes},
          {"utilization", figures.utilization}, {"launches", figures.launches}};
}

// One launch for the timeline. Strings are shared through the instruction table, intervals are flat arrays: a page of a
// few hundred thousand intervals must still open.
Json launch(const AcceleratorProgram& program, const LaunchRecord& record) {
  Json instructions = Json::object(), intervals = Json::array(), layers = Json::array(), engines = Json::array();
  spec::Isa isa(program.config);
  for (const LayerNote& layer : program.layers) layers.push_back(layer.name);
  auto instruction = [&](uint32_t slot) {
    std::string key = std::to_string(slot);
    if (instructions.contains(key)) return;
    const InstructionNote* note = find_note(program, slot);
    auto decoded = isa.decode(program.instructions, slot, program.profile);
    instructions[key] = {note ? static_cast<int64_t>(note->layer) : -1, note ? note->tile : "",
                         decoded ? isa.disassemble(*decoded) : ""};
  };
  for (const sim::Interval& i : record.timeline) {
    instruction(i.instruction);
    for (uint64_t v : {uint64_t{i.engine}, static_cast<uint64_t>(i.kind), uint64_t{i.instruction}, i.begin, i.end}) {
      intervals.push_back(v);
    }
  }
  for (int i = 0; i < spec::kEngines; ++i) {
    auto at = static_cast<size_t>(i);
    engines.push_back({spec::name(static_cast<spec::Engine>(i)), record.counters.busy[at], record.counters.stall[at]});
  }
  return {
      {"program", program.name},       {"cycles", record.counters.cycles},        {"layers", std::move(layers)},
      {"engines", std::move(engines)}, {"instructions", std::move(instructions)}, {"intervals", std::move(intervals)}};
}

void replace(std::string& text, std::string_view placeholder, std::string_view value) {
  for (auto at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at + value.size())) {
    text.replace(at, placeholder.size(), value);
  }
}

}  // namespace

const driver::Info* device_of(const ReportInput& input, const spec::Config& config) {
  const uint64_t wanted = spec::hash(config);
  const auto found = std::ranges::find_if(
      input.devices, [&](const driver::Info* device) { return spec::hash(device->config) == wanted; });
  return found == input.devices.end() ? nullptr : *found;
}

std::string make_report(const ReportInput& input) {
  const Executable& executable = *input.executable;
  Analysis analysis = analyze(executable, *input.profile);
  Json data;
  data["title"] = input.title;
  data["facts"] = rows(input.facts);
  data["model"] = rows(executable.facts);
  data["graph"] = graph(executable.graph, input.prices);
  data["devices"] = Json::array();
  for (const driver::Info* each : input.devices) data["devices"].push_back(device(*each));
  data["accelerators"] = Json::array();
  for (const AcceleratorCost& cost : analysis.accelerators) {
    Json accelerator = figures(cost);
    accelerator["name"] = cost.device;
    accelerator["config"] = configuration(*cost.config);
    if (const driver::Info* on = device_of(input, *cost.config)) accelerator["device"] = device(*on);
    data["accelerators"].push_back(std::move(accelerator));
  }
  data["run"] = figures(analysis);
  data["run"]["runs"] = input.profile->runs;
  const std::vector<size_t> accelerators = accelerators_of(executable);
  data["layers"] = Json::array();
  for (const LayerCost& l : analysis.layers) {
    data["layers"].push_back({{"name", l.name},
                              {"op", l.op},
                              {"accelerator", accelerators[l.program]},
                              {"cycles", l.cycles},
                              {"macs", l.macs},
                              {"read", l.read_bytes},
                              {"write", l.write_bytes},
                              {"utilization", l.utilization}});
  }
  data["cpu"] = Json::array();
  for (const CpuCost& c : analysis.cpu)
    data["cpu"].push_back({{"layer", c.layer}, {"kernel", c.kernel}, {"us", c.microseconds}});
  data["launches"] = Json::array();
  for (const LaunchRecord& record : input.profile->launches) {
    if (!record.timeline.empty()) data["launches"].push_back(launch(executable.programs[record.program], record));
  }
  std::string json = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  // "</script>" in a model's name must not end the script element.
  for (size_t at = 0; (at = json.find('<', at)) != std::string::npos;) json.replace(at, 1, "\\u003c");

  std::string page(kReportHtml);
  replace(page, "@CSS@", kReportCss);
  replace(page, "@JS@", kReportJs);
  // A model named "@DATA@" must not be replaced by the data.
  std::string title = html_text(input.title);
  std::ranges::replace(title, '@', ' ');
  replace(page, "@TITLE@", title);
  replace(page, "@DATA@", json);
  return page;
}

}  // namespace tenon::runtime
