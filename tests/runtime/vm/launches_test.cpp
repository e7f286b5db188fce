// Work on several devices: runs at the same time have all of it in some order, and functions that may have some are
// known.
#include "runtime/vm/launches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "driver/simulated.h"
#include "sim/behavioral/behavioral.h"
#include "tests/runtime/sample.h"

namespace tenon::runtime {
namespace {

std::unique_ptr<driver::Accelerator> open_device(const spec::Config& config) {
  return driver::make_simulated("behavioral:" + config.name, sim::make_behavioral(config).value(), false);
}

// main(x) = program(x) on the first accelerator, beside program(program(x)) on the second, as overlap_devices() orders
// them, with two kernels in between.
Executable beside_each_other() {
  Executable e = sample::on_two_accelerators();
  Function& main = e.functions[0];
  main.results.push_back(main.results[0]);
  main.results[1].name = "z";
  main.registers = 6;
  main.code.clear();
  for (const Operation& operation :
       {Operation(StartProgram{0, {0}}), Operation(CallKernel{"test.first_holds", {}, {0}, {1}}),
        Operation(CallProgram{1, {0}, {2}}), Operation(StartProgram{1, {2}}),
        Operation(CallKernel{"test.second_holds", {}, {0}, {3}}), Operation(CallProgram{0, {0}, {4}}),
        Operation(CallProgram{1, {2}, {5}}), Operation(Return{{4, 5}})})
    main.code.push_back({operation, "layer"});
  return e;
}

// The first run has the first accelerator and needs the second one, which the second run has, which needs the first.
TEST(Launches, RunsDoNotWaitForEachOthersDevices) {
  const Executable executable = beside_each_other();
  ASSERT_TRUE(verify(executable, "test")) << verify(executable, "test").error().str();
  std::atomic<bool> first_holds = false, second_holds = false;
  const KernelLookup kernels = [&](std::string_view name) -> CpuKernel {
    return [&, is_first = name == "test.first_holds"](const Attrs&, std::span<const Tensor> in) {
      if (is_first && !first_holds.exchange(true)) {
        first_holds.notify_all();
        second_holds.wait(false);
      } else if (!is_first) {
        second_holds = true;
        second_holds.notify_all();
      }
      return Expected<std::vector<Tensor>>(std::vector{in[0].clone()});
    };
  };
  const auto one = open_device(sample::config()), other = open_device(sample::deep_config());
  auto session =
      Session::create(executable, {.accelerators = {one.get(), other.get()}, .timeline = true, .kernels = kernels});
  ASSERT_TRUE(session) << session.error().str();
  const auto run = [&](int8_t element) {
    Tensor x(DType::kI8, {sample::kRows, 16});
    std::ranges::fill(x.data<int8_t>(), element);
    const auto found = session->run(std::vector{x});
    ASSERT_TRUE(found) << found.error().str();
    const auto wanted = sample::expected(x.data<int8_t>());
    EXPECT_EQ(found->at(0), Tensor::of<int8_t>({4, 16}, wanted));
    EXPECT_EQ(found->at(1), Tensor::of<int8_t>({4, 16}, sample::expected(wanted)));
  };
  {
    const std::jthread first([&] { run(3); });
    first_holds.wait(false);
    const std::jthread second([&] { run(-5); });
  }
  const std::vector<LaunchRecord>& launches = session->profile().launches;
  EXPECT_EQ(launches.size(), 6u) << "work that was given up is none";
  for (const uint32_t program : {0u, 1u}) {
    EXPECT_EQ(std::ranges::count_if(
                  launches,
                  [&](const LaunchRecord& launch) { return launch.program == program && !launch.timeline.empty(); }),
              1)
        << "the first launch that was not given up is recorded";
  }
}

TEST(Launches, FunctionsThatReachAProgramAreKnown) {
  Executable e;
  const auto add = [&](Operation operation) {
    e.functions.push_back({.name = "f", .code = {{std::move(operation), ""}, {Return{{0}}, ""}}});
  };
  add(CallProgram{0, {0}, {1}});
  add(TailCall{0, {0}});
  add(MakeClosure{0, 1, {}});
  add(CallFunction{2, {0}, {1}});
  add(CallFunction{4, {0}, {1}});
  add(TailCall{4, {0}});
  add(CallKernel{"test.add", {}, {0}, {1}});
  EXPECT_EQ(launching_functions(e), (std::vector{true, true, true, true, false, false, false}));
}

}  // namespace
}  // namespace tenon::runtime
