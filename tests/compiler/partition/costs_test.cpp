// Costs files and prices.
#include "compiler/partition/costs.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

constexpr const char* kCpu = R"("cpu": {"gmacs_f32": 50, "gmacs_i8": 100, "gbytes": 10, "call_ns": 400})";

std::string file(std::string_view devices, std::string_view cpu = kCpu) {
  return fmt::format(R"({{"version": 1, {}, "devices": {}}})", cpu, devices);
}
std::string message(const std::string& text) {
  const auto costs = parse_costs(text, "costs.json");
  return costs ? "read" : costs.error().str();
}

TEST(Costs, TheFileIsReadAndWritten) {
  const auto costs = parse_costs(file(R"({"accel": {"launch_ns": 0, "mhz": 100, "gbytes": 0.8}})"), "costs.json");
  ASSERT_TRUE(costs) << costs.error().str();
  EXPECT_EQ(costs->gmacs_i8, 100);
  EXPECT_EQ(costs->devices.at("accel").mhz, 100);
  EXPECT_EQ(costs->devices.at("accel").gmacs_f32, std::nullopt);
  EXPECT_EQ(costs->device("accel:tiny"), costs->device("accel"));
  EXPECT_EQ(costs->device("accelerator:tiny"), nullptr);
  const auto again = parse_costs(to_json(*costs), "again.json");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(to_json(*again), to_json(*costs));
}

TEST(Costs, AMistakeNamesTheEntry) {
  const auto has = [](const std::string& text, std::string_view part) {
    EXPECT_TRUE(message(text).starts_with("costs.json: error: ")) << message(text);
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  has("{", "the file is no JSON");
  has("[1]", "the entry costs must be a number");
  has("{}", "the entry version is missing");
  has(R"({"version": 2})", "the entry version is 2, this program reads 1");
  has(R"({"version": 1, "cpu": {"gmacs_f32": 1}})", "the entry cpu.gmacs_i8 is missing");
  has(file("{}", R"("cpu": {"gmacs_f32": -1})"),
      "the entry cpu.gmacs_f32 must be a number above 0, at most 1e+15, found -1");
  has(file("{}", R"("cpu": {"gbytes": 0})"), "the entry cpu.gbytes must be a number above 0, at most 1e+15, found 0");
  has(file("{}", R"("cpu": {"gbytes": 1e300})"), "the entry cpu.gbytes must be");
  has(file("{}", R"("cpu": {"gbytes": "many"})"),
      "the entry cpu.gbytes must be a number above 0, at most 1e+15, found many");
  has(file(R"({"accel": {"mhz": 100}})"), "the entry devices.accel.launch_ns is missing");
  has(file(R"({"accel": {"launch_ns": 1, "mhzz": 100}})"), "the entry devices.accel.mhzz is not known");
  has(file(R"({"accel": {"launch_ns": 1, "mhzz": 100}})"), "did you mean mhz?");
  has(file(R"({"accel": {"launch_ns": {"ns": 1}}})"), "must be a number");
}

TEST(Costs, PricesAreTheSlowerOfProductsAndBytes) {
  Context context;
  const auto module =
      parse(context,
            "#[version = \"1\"]\ndef @main(%x: Tensor[(1, 8, 16, 16), i8], %w: Tensor[(8, 8, 3, 3), i8]) {\n"
            "let %c = conv2d(%x, %w); let %r = reshape(%c, shape=[1, 1568]); add(%r, %r) }\n");
  ASSERT_TRUE(module) << module.error().str();
  const Function& main = *module->function(context.symbol("main"));
  const auto work = [&](std::vector<size_t> bindings) { return work_of(*module, main, main.body, bindings); };
  const auto costs =
      parse_costs(file(R"({"toy": {"launch_ns": 1, "gmacs_i8": 1}, "other": {"launch_ns": 1}})"), "costs.json");
  ASSERT_TRUE(costs) << costs.error().str();
  const Work conv = work({0});
  EXPECT_EQ(conv.macs, 8 * 14 * 14 * 72);
  EXPECT_EQ(conv.bytes, 2048 + 576 + 4 * 1568);
  EXPECT_TRUE(conv.bytes_wide);
  EXPECT_NEAR(cpu_price(*costs, conv).seconds, std::max(112896 / 100e9, 8896 / 10e9) + 400e-9, 1e-15);
  EXPECT_EQ(cpu_price(*costs, conv).source, "1.13e+05 MACs at 100 GMAC/s");
  EXPECT_EQ(cpu_price(*costs, work({1})).seconds, 0);  // a view
  const Work sum = work({2});
  EXPECT_EQ(sum.bytes, 2 * 4 * 1568);  // the operand is read once
  EXPECT_EQ(cpu_price(*costs, sum).source, "1.25e+04 bytes at 10 GB/s");
  const auto on_toy = device_price(*costs, "toy", conv);
  ASSERT_TRUE(on_toy) << on_toy.error().str();
  EXPECT_NEAR(on_toy->seconds, 112896 / 1e9, 1e-15);
  EXPECT_EQ(device_price(*costs, "other", conv).error().what, "the entry devices.other.gmacs_i8 is missing");
  EXPECT_EQ(device_price(*costs, "none", conv).error().what, "the entry devices.none.launch_ns is missing");
}

}  // namespace
}  // namespace tenon::compiler
