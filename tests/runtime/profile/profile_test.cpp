// Analysis, traces and reports of a profile.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "runtime/profile/analysis.h"
#include "runtime/profile/report.h"
#include "tests/runtime/sample.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::json;
using Kind = sim::Interval::Kind;

// The sample's program with two layers: slots 0 .. 7 belong to the first, the others to the second.
struct ProfileTest : testing::Test {
  ProfileTest() {
    AcceleratorProgram& p = executable.programs[0];
    p.layers.push_back({"add_2", "accel.add", 1024, 2048, 100, 50});
    for (auto& note : p.notes) note.layer = note.slot < 8 ? 0 : 1;
    LaunchRecord launch;
    launch.counters.cycles = 100;
    launch.counters.read_beats = 10;
    launch.counters.write_beats = 3;
    launch.timeline = {{0, Kind::kBusy, 0, 0, 10},  {3, Kind::kWaitTokens, 6, 0, 10},
                       {3, Kind::kBusy, 6, 10, 40}, {5, Kind::kWaitTokens, 8, 0, 40},
                       {5, Kind::kBusy, 8, 40, 50}, {6, Kind::kWaitMemory, 10, 50, 60},
                       {6, Kind::kBusy, 10, 60, 90}};
    profile.launches = {launch, launch};
    profile.launches[1].timeline.clear();
    profile.runs = 2;
    profile.calls = {{"region_0", "dense_1", "accel", 0, 1000, 0, 0},
                     {"test.add", "sum", "cpu", 1000, 3000},
                     {"region_0", "dense_1", "accel", 3000, 4000, 0, 1},
                     {"test.add", "sum", "cpu", 4000, 8000}};
    device.uri = "behavioral:default";
    device.config = sample::config();
    device.clock_hz = 100e6;
  }
  ReportInput input() { return {"A <title>", {{"Accuracy", "98.3 %"}}, &executable, &profile, {&device}}; }

  Executable executable = sample::executable();
  Profile profile;
  driver::Info device;
};

TEST_F(ProfileTest, LayersShareTheCyclesByTheirCompletions) {
  Analysis a = analyze(executable, profile);
  ASSERT_EQ(a.layers.size(), 2u);
  EXPECT_EQ(a.layers[0].name, "dense_1");
  EXPECT_EQ(a.layers[0].cycles, 40u);
  EXPECT_DOUBLE_EQ(a.layers[0].utilization, 1024 / (40.0 * 256));
  EXPECT_EQ(a.layers[1].name, "add_2");
  EXPECT_EQ(a.layers[1].begin, 40u);
  EXPECT_EQ(a.layers[1].cycles, 50u);
  EXPECT_DOUBLE_EQ(a.cycles, 100);
  EXPECT_DOUBLE_EQ(a.read_bytes, 80);
  EXPECT_DOUBLE_EQ(a.write_bytes, 24);
  EXPECT_DOUBLE_EQ(a.utilization, 2048 / (100.0 * 256));
  ASSERT_EQ(a.cpu.size(), 1u);
  EXPECT_DOUBLE_EQ(a.cpu[0].microseconds, 3);
}

TEST_F(ProfileTest, TheTraceIsWhatPerfettoReads) {
  Json trace = Json::parse(make_trace(input()));
  size_t spans = 0;
  bool tile = false, layer = false;
  std::map<std::string, std::set<int>> rows;  // of the host's calls, by device: they overlap
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    if (event["pid"] == 1) rows[event["cat"]].insert(event["tid"].get<int>());
    ++spans;
    ASSERT_EQ(event["ph"], "X");
    for (auto key : {"name", "pid", "tid", "ts", "dur"}) EXPECT_TRUE(event.contains(key)) << event;
    EXPECT_GE(event["dur"].get<double>(), 0);
    if (event["cat"] == "busy" && event["args"]["layer"] == "add_2") {
      tile = true;
      EXPECT_DOUBLE_EQ(event["ts"].get<double>(), event["args"]["instruction"] == 8 ? 0.4 : 0.6);
    }
    layer |= event["cat"] == "layer" && event["name"] == "dense_1";
  }
  EXPECT_EQ(rows, (std::map<std::string, std::set<int>>{{"cpu", {1}}, {"accel", {0}}}));
  EXPECT_EQ(spans, 4u + 7 + 2);
  EXPECT_TRUE(tile && layer);
}

TEST_F(ProfileTest, TheReportStandsAlone) {
  std::string page = make_report(input());
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
  EXPECT_EQ(page.find("@CSS@"), std::string::npos);
  EXPECT_EQ(page.find("@TITLE@"), std::string::npos);
  EXPECT_NE(page.find("A &lt;title&gt;"), std::string::npos);
  // Nothing is fetched: the only address is the SVG namespace, which is a name.
  std::string without_svg = std::regex_replace(page, std::regex("http://www.w3.org/2000/svg"), "");
  EXPECT_EQ(without_svg.find("http://"), std::string::npos);
  EXPECT_EQ(without_svg.find("https://"), std::string::npos);
  EXPECT_FALSE(std::regex_search(without_svg, std::regex("(src|href)=")));
}

TEST_F(ProfileTest, HostileNamesDoNotBecomeMarkup) {
  executable.graph.nodes[0].name = "</script><script>alert(1)</script>\xff";
  executable.programs[0].layers[0].name = "<img src=x>";
  std::string page = make_report(input());
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  auto at = page.find("type=\"application/json\">") + 24;
  Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_EQ(data["layers"][0]["name"], "<img src=x>");
  EXPECT_EQ(data["run"]["runs"], 2);
  EXPECT_EQ(data["launches"].size(), 1u);
  EXPECT_EQ(data["launches"][0]["intervals"].size(), 35u);
  EXPECT_TRUE(Json::accept(make_trace(input())));
}

TEST_F(ProfileTest, NodesHaveThePricesOfEachTarget) {
  ReportInput in = input();
  in.prices["dense_1"] = {{"cpu", 2e-3, "1e+06 MACs at 0.5 GMAC/s", 1.5e-3},
                          {"accel", 5e-4, "50000 cycles at 100 MHz", 0.0},
                          {"cuda", 1e-3, "told", std::nullopt}};
  const std::string page = make_report(in);
  const auto at = page.find("type=\"application/json\">") + 24;
  const Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  for (const Json& node : data["graph"]["nodes"]) EXPECT_EQ(node.contains("prices"), node["name"] == "dense_1") << node;
  const Json& prices = data["graph"]["nodes"][1]["prices"];
  ASSERT_EQ(prices.size(), 3u);
  EXPECT_EQ(prices[0]["target"], "cpu");
  EXPECT_EQ(prices[0]["seconds"], 2e-3);
  EXPECT_EQ(prices[0]["change"], 1.5e-3);
  EXPECT_EQ(prices[1]["source"], "50000 cycles at 100 MHz");
  EXPECT_EQ(prices[1]["change"], 0);
  EXPECT_TRUE(prices[2]["change"].is_null()) << "by a pin";
}

// The second launch is of a program for another accelerator, which is a process of its own in the trace.
TEST_F(ProfileTest, EachAcceleratorHasFiguresAndRows) {
  executable.programs[0].device = "accel:default";
  executable.programs.push_back(sample::program(sample::deep_config()));
  executable.programs[1].device = "accel:deep";
  profile.launches[1] = profile.launches[0];
  profile.launches[1].program = 1;
  profile.launches[1].counters.cycles = 300;
  const Analysis a = analyze(executable, profile);
  ASSERT_EQ(a.accelerators.size(), 2u);
  EXPECT_EQ(a.accelerators[0].device, "accel:default");
  EXPECT_DOUBLE_EQ(a.accelerators[0].cycles, 50);
  EXPECT_DOUBLE_EQ(a.accelerators[0].utilization, 2048 / (100.0 * 256));
  EXPECT_EQ(a.accelerators[1].device, "accel:deep");
  EXPECT_DOUBLE_EQ(a.accelerators[1].cycles, 150);
  EXPECT_DOUBLE_EQ(a.accelerators[1].launches, 0.5);
  EXPECT_DOUBLE_EQ(a.cycles, 200);

  driver::Info other;
  other.uri = "behavioral:deep";
  other.config = sample::deep_config();
  other.clock_hz = 50e6;
  ReportInput in = input();
  in.devices.push_back(&other);
  const std::string page = make_report(in);
  const auto at = page.find("type=\"application/json\">") + 24;
  const Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  ASSERT_EQ(data["accelerators"].size(), 2u);
  EXPECT_EQ(data["accelerators"][0]["device"]["uri"], "behavioral:default");
  EXPECT_EQ(data["accelerators"][1]["name"], "accel:deep");
  EXPECT_EQ(data["accelerators"][1]["config"]["name"], "deep");
  EXPECT_EQ(data["accelerators"][1]["device"]["clock_hz"], 50e6);
  EXPECT_EQ(data["accelerators"][1]["cycles"], 150);
  EXPECT_EQ(data["layers"].back()["accelerator"], 1);

  std::map<int, std::string> processes;
  std::map<int, double> last;  // end of the last event of a process
  const Json trace = Json::parse(make_trace(in));
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"].get<int>();
    if (event["ph"] == "X")
      last[process] = std::max(last[process], event["ts"].get<double>() + event["dur"].get<double>());
    else if (event["name"] == "process_name") processes[process] = event["args"]["name"];
  }
  EXPECT_EQ(processes[2], "accelerator: behavioral:default at 100 MHz");
  EXPECT_EQ(processes[3], "accelerator: behavioral:deep at 50 MHz");
  EXPECT_DOUBLE_EQ(last[2], 0.9);
  EXPECT_DOUBLE_EQ(last[3], 1.8) << "in time of its own clock, from 0 on";
}

TEST_F(ProfileTest, AModelWithoutAcceleratorHasAReportToo) {
  executable.programs.clear();
  profile.launches.clear();
  ReportInput in = input();
  in.devices = {};
  EXPECT_NE(make_report(in).find("98.3 %"), std::string::npos);
  EXPECT_TRUE(Json::accept(make_trace(in)));
}

}  // namespace
}  // namespace tenon::runtime
