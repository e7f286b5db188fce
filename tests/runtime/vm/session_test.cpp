#include "runtime/vm/session.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>

#include "driver/simulated.h"
#include "runtime/executable/layout.h"
#include "sim/behavioral/behavioral.h"
#include "tests/runtime/sample.h"
#include "tests/seed.h"

namespace tenon::runtime {
namespace {

std::unique_ptr<driver::Accelerator> device(const spec::Config& config) {
  return driver::make_simulated("behavioral:" + config.name, sim::make_behavioral(config).value(), false);
}
std::unique_ptr<driver::Accelerator> device(std::string_view config) { return device(*spec::load_config(config)); }

CpuKernel kernels(std::string_view name) {
  if (name == "test.add") {
    return [](const Attrs&, std::span<const Tensor> in) -> Expected<std::vector<Tensor>> {
      Tensor sum = in[0].clone();
      for (size_t i = 0; i < sum.data<int8_t>().size(); ++i) sum.data<int8_t>()[i] += in[1].data<int8_t>()[i];
      return std::vector{sum};
    };
  }
  if (name == "test.fail") {
    return
        [](const Attrs&, std::span<const Tensor>) -> Expected<std::vector<Tensor>> { return error("no luck", "axis"); };
  }
  if (name == "test.greedy") {
    return [](const Attrs&, std::span<const Tensor>) -> Expected<std::vector<Tensor>> { throw std::bad_alloc(); };
  }
  if (name == "test.nothing") {
    return [](const Attrs&, std::span<const Tensor>) -> Expected<std::vector<Tensor>> { return std::vector<Tensor>(); };
  }
  return nullptr;
}

Tensor flag(bool value) {
  Tensor t(DType::kBool, {});
  t.bytes()[0] = static_cast<std::byte>(value);
  return t;
}

Tensor input(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Tensor t(DType::kI8, {sample::kRows, 16});
  for (auto& x : t.data<int8_t>()) x = static_cast<int8_t>(random());
  return t;
}

class SessionTest : public testing::Test {
 protected:
  Expected<Session> open(SessionOptions options = {}) {
    EXPECT_TRUE(verify(executable, "test")) << verify(executable, "test").error().str();
    if (accelerator) options.accelerators = {accelerator.get()};
    options.kernels = kernels;
    return Session::create(executable, std::move(options));
  }
  std::string run_error(SessionOptions options = {}, bool pick = false) {
    auto session = open(std::move(options));
    if (!session) return session.error().str();
    auto result = session->run(std::vector{input(1), flag(pick)});
    return result ? "ran" : result.error().str();
  }
  Operation& code(size_t i) { return executable.functions[0].code[i].operation; }

  Executable executable = sample::executable();
  std::unique_ptr<driver::Accelerator> accelerator = device("default");
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(SessionTest, BothSidesOfTheBranchComputeWhatTheyShould) {
  auto session = open();
  ASSERT_TRUE(session) << session.error().str();
  for (int i = 0; i < 3; ++i) {
    Tensor x = input(i);
    auto through_device = session->run(std::vector{x, flag(true)});
    ASSERT_TRUE(through_device) << through_device.error().str();
    EXPECT_EQ(through_device->at(0), Tensor::of<int8_t>({4, 16}, sample::expected(x.data<int8_t>())));
    auto through_kernel = session->run(std::vector{x, flag(false)});
    ASSERT_TRUE(through_kernel) << through_kernel.error().str();
    for (size_t k = 0; k < 64; ++k) {
      EXPECT_EQ(through_kernel->at(0).data<int8_t>()[k], static_cast<int8_t>(x.data<int8_t>()[k] + 1));
    }
  }
}

// Counts the bytes that are written to another device.
class CountingDevice final : public driver::Accelerator {
 public:
  explicit CountingDevice(std::unique_ptr<driver::Accelerator> inner) : inner_(std::move(inner)) {}
  const driver::Info& info() const override { return inner_->info(); }
  Expected<driver::Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    return inner_->allocate(bytes, alignment);
  }
  void free(const driver::Buffer& buffer) override { inner_->free(buffer); }
  Status write(const driver::Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    written += data.size();
    return inner_->write(buffer, offset, data);
  }
  Status read(const driver::Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    return inner_->read(buffer, offset, data);
  }
  Expected<uint32_t> read_register(uint32_t offset) override { return inner_->read_register(offset); }
  Status write_register(uint32_t offset, uint32_t value) override { return inner_->write_register(offset, value); }
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override { return inner_->wait_idle(limit); }

  size_t written = 0;

 private:
  std::unique_ptr<driver::Accelerator> inner_;
};

TEST_F(SessionTest, ResultsOfProgramsAreReadWhereTheyAre) {
  auto counting = std::make_unique<CountingDevice>(std::move(accelerator));
  CountingDevice& counter = *counting;
  accelerator = std::move(counting);
  executable.programs.push_back(executable.programs[0]);
  executable.functions[1].registers = 5;
  // Program 0 reads its own result in between, which its launch overwrites.
  const Operation chain[] = {CallProgram{0, {0}, {1}}, CallProgram{1, {1}, {2}}, CallProgram{0, {2}, {3}},
                             CallProgram{0, {3}, {4}}, Return{{4}}};
  executable.functions[1].code.clear();
  for (const Operation& operation : chain) executable.functions[1].code.push_back({operation, "dense_1"});
  auto session = open();
  ASSERT_TRUE(session) << session.error().str();
  const size_t uploaded = counter.written;
  for (int i = 1; i < 4; ++i) {
    Tensor x = input(i);
    std::vector<int8_t> wanted(x.data<int8_t>().begin(), x.data<int8_t>().end());
    for (int layer = 0; layer < 4; ++layer) wanted = sample::expected(wanted);
    const auto y = session->run(std::vector{x, flag(true)});
    ASSERT_TRUE(y) << y.error().str();
    EXPECT_EQ(y->at(0), Tensor::of<int8_t>({4, 16}, wanted));
    EXPECT_EQ(counter.written - uploaded, static_cast<size_t>(i) * 2 * x.bytes().size()) << "x, and one result again";
  }
  // A caller may write a result, and pass it on.
  Tensor y = session->run(std::vector{input(1), flag(true)})->at(0);
  y.data<int8_t>()[0] ^= 1;
  std::vector<int8_t> wanted(y.data<int8_t>().begin(), y.data<int8_t>().end());
  for (int layer = 0; layer < 4; ++layer) wanted = sample::expected(wanted);
  EXPECT_EQ(session->run(std::vector{y, flag(true)})->at(0), Tensor::of<int8_t>({4, 16}, wanted));
}

// A program that is started before a kernel of the CPU and called after it.
class StartedPrograms : public SessionTest {
 protected:
  void SetUp() override {
    executable.functions[1].registers = 4;
    set_region({StartProgram{0, {0}}, LoadConstant{2, 0}, CallKernel{"test.add", {}, {0, 2}, {3}},
                CallProgram{0, {0}, {1}}, Return{{1}}});
  }
  void set_region(std::vector<Operation> operations) {
    executable.functions[1].code.clear();
    for (Operation& operation : operations) executable.functions[1].code.push_back({std::move(operation), "dense_1"});
  }
  void expect_right_results(Session& session) {
    for (int i = 0; i < 3; ++i) {
      const Tensor x = input(i);
      const auto found = session.run(std::vector{x, flag(true)});
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ(found->at(0), Tensor::of<int8_t>({4, 16}, sample::expected(x.data<int8_t>())));
    }
  }
};

TEST_F(StartedPrograms, RunBesideTheCpu) {
  executable = deserialize(serialize(executable).value(), "memory").value();
  for (const bool timeline : {false, true}) {
    auto session = open({.timeline = timeline});
    ASSERT_TRUE(session) << session.error().str();
    expect_right_results(*session);
    const Profile& profile = session->profile();
    ASSERT_EQ(profile.launches.size(), 3u);
    EXPECT_EQ(profile.launches[0].timeline.empty(), !timeline);
    ASSERT_EQ(profile.calls.size(), 6u);
    for (size_t i = 0; i < 6; i += 2) {
      EXPECT_EQ(profile.calls[i].device, "cpu");
      EXPECT_EQ(profile.calls[i + 1].device, "accel") << "its results come after the kernel's";
      EXPECT_LE(profile.calls[i + 1].begin_ns, profile.calls[i].begin_ns) << "and it began before the kernel";
      EXPECT_EQ(profile.calls[i + 1].launch, static_cast<int32_t>(i / 2));
    }
  }
}

TEST_F(StartedPrograms, AHookSeesThemAtTheirCalls) {
  size_t calls = 0;
  const auto hook = [&](const Step& step) -> Status {
    if (!std::holds_alternative<CallProgram>(step.instruction->operation)) return {};
    ++calls;
    EXPECT_EQ(step.probes.size(), 1u);
    return {};
  };
  auto session = open({.hook = hook});
  ASSERT_TRUE(session) << session.error().str();
  expect_right_results(*session);
  EXPECT_EQ(calls, 3u);
}

TEST_F(StartedPrograms, OthersThanTheOneThatIsCalledAreNoMatter) {
  set_region({LoadConstant{2, 0}, StartProgram{0, {2}}, StartProgram{0, {0}}, CallProgram{0, {0}, {1}},
              StartProgram{0, {1}}, Return{{1}}});
  auto session = open();
  ASSERT_TRUE(session) << session.error().str();
  expect_right_results(*session);
  EXPECT_EQ(session->profile().launches.size(), 3u) << "those whose results were wanted";
}

TEST_F(StartedPrograms, EndWithARunThatFails) {
  std::get<CallKernel>(executable.functions[1].code[2].operation).kernel = "test.fail";
  auto session = open();
  ASSERT_TRUE(session) << session.error().str();
  for (int i = 0; i < 2; ++i) {
    const auto failed = session->run(std::vector{input(1), flag(true)});
    ASSERT_FALSE(failed);
    EXPECT_HAS(failed.error().str(), "no luck");
  }
  EXPECT_TRUE(session->run(std::vector{input(1), flag(false)}));
}

TEST_F(StartedPrograms, OfManyThreadsShareTheDevice) {
  auto session = open();
  ASSERT_TRUE(session) << session.error().str();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_right_results(*session); });
}

TEST_F(SessionTest, ALoadedExecutableRunsLikeTheOneInMemory) {
  executable = deserialize(serialize(executable).value(), "memory").value();
  auto session = open();
  auto result = session->run(NamedTensors{{"pick", flag(true)}, {"x", input(5)}});
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(result->at("y"), Tensor::of<int8_t>({4, 16}, sample::expected(input(5).data<int8_t>())));
}

TEST_F(SessionTest, TheProfileHasCallsLaunchesCountersAndTimeline) {
  auto session = open({.timeline = true});
  for (bool pick : {true, true, false}) ASSERT_TRUE(session->run(std::vector{input(1), flag(pick)}));
  const Profile& profile = session->profile();
  EXPECT_EQ(profile.runs, 3u);
  ASSERT_EQ(profile.calls.size(), 3u);
  EXPECT_EQ(profile.calls[0].layer, "dense_1");
  EXPECT_EQ(profile.calls[0].device, "accel");
  EXPECT_EQ(profile.calls[0].launch, 0);
  EXPECT_EQ(profile.calls[2].name, "test.add");
  EXPECT_EQ(profile.calls[2].device, "cpu");
  ASSERT_EQ(profile.launches.size(), 2u);
  EXPECT_EQ(profile.launches[0].counters.macs, 4u * 256);
  EXPECT_GT(profile.launches[0].counters.cycles, 0u);
  EXPECT_FALSE(profile.launches[0].timeline.empty());
  EXPECT_TRUE(profile.launches[1].timeline.empty()) << "only the first launch is recorded";
  session->clear_profile();
  EXPECT_EQ(session->profile().calls.size(), 0u);
  ASSERT_TRUE(session->run(std::vector{input(1), flag(true)}));
  EXPECT_FALSE(session->profile().launches.at(0).timeline.empty());
}

TEST_F(SessionTest, TheHookSeesEveryInstructionWithItsValuesAndProbes) {
  std::vector<std::string> seen;
  size_t probes = 0;
  SessionOptions options;
  options.hook = [&](const Step& step) -> Status {
    seen.push_back(fmt::format("{}:{}", step.function->name, step.index));
    probes += step.probes.size();
    if (step.instruction->layer == "dense_1" && !step.results.empty()) {
      EXPECT_EQ(step.results[0].shape(), (Shape{4, 16}));
      EXPECT_EQ(step.probes[0].probe->name, "hidden");
      EXPECT_EQ(step.probes[0].value.shape(), (Shape{4, 16}));
    }
    return {};
  };
  EXPECT_EQ(run_error(options, true), "ran");
  EXPECT_EQ(seen, (std::vector<std::string>{"main:0", "main:1", "region:0", "region:1", "region:2", "main:2"}));
  EXPECT_EQ(probes, 1u);
  options.hook = [](const Step&) -> Status { return error("layer differs"); };
  EXPECT_HAS(run_error(options, true), "function 'main', instruction 0: error: layer differs");
}

TEST_F(SessionTest, WrongInputsAreNamedWithBothShapes) {
  auto session = open();
  auto message = [&](auto inputs) { return session->run(inputs).error().str(); };
  EXPECT_HAS(message(std::vector{input(1)}), "1 inputs were given, the model takes 2: x: i8 (4, 16), pick: bool ()");
  EXPECT_HAS(message(std::vector{Tensor(DType::kI8, {4, 17}), flag(true)}),
             "input 'x' is i8 (4, 17), the model takes i8 (4, 16)");
  EXPECT_HAS(message(std::vector{Tensor(DType::kF32, {4, 16}), flag(true)}), "input 'x' is f32 (4, 16)");
  EXPECT_HAS(message(NamedTensors{{"x", input(1)}, {"z", input(1)}}),
             "no input is named 'z'\n  help: the inputs are x: i8");
  EXPECT_HAS(message(NamedTensors{{"x", input(1)}}), "input 'pick' is missing, the model takes bool ()");
  EXPECT_TRUE(session->run(std::vector{input(1), flag(true)})) << "the session lives on";
}

TEST_F(SessionTest, AnotherConfigurationIsRefusedWithTheDifferences) {
  accelerator = device("tiny");
  std::string message = run_error();
  EXPECT_HAS(message, "program 'region_0' was compiled for configuration 'default'");
  EXPECT_HAS(message, "block_in");
  EXPECT_HAS(message, "tenon compile MODEL --config tiny");
  accelerator.reset();
  EXPECT_HAS(run_error(), "has 1 accelerator programs, and no device was given");
}

// Both devices have their buffers at the same addresses: a copy of a tensor on one is none on the other.
TEST_F(SessionTest, ProgramsOfTwoConfigurationsRunOnTheirDevices) {
  executable = sample::on_two_accelerators();
  const auto deep = device(sample::deep_config());
  for (const std::vector<driver::Accelerator*>& devices :
       {std::vector{accelerator.get(), deep.get()}, std::vector{deep.get(), accelerator.get()}}) {
    auto session = Session::create(executable, {.accelerators = devices, .timeline = true});
    ASSERT_TRUE(session) << session.error().str();
    for (int i = 0; i < 3; ++i) {
      const Tensor x = input(i);
      const auto found = session->run(std::vector{x});
      ASSERT_TRUE(found) << found.error().str();
      const auto wanted = sample::expected(sample::expected(x.data<int8_t>()));
      EXPECT_EQ(found->at(0), Tensor::of<int8_t>({4, 16}, wanted));
    }
    const Profile& profile = session->profile();
    ASSERT_EQ(profile.calls.size(), 6u);
    EXPECT_EQ(profile.calls[0].device, "accel:default");
    EXPECT_EQ(profile.calls[1].device, "accel:deep");
    EXPECT_EQ(profile.calls[1].launch, 1);
    for (const LaunchRecord& launch : profile.launches) EXPECT_GT(launch.counters.cycles, 0u);
    EXPECT_FALSE(profile.launches[0].timeline.empty());
    EXPECT_FALSE(profile.launches[1].timeline.empty()) << "the first launch of each program is recorded";
    EXPECT_TRUE(profile.launches[2].timeline.empty());
  }
}

TEST_F(SessionTest, RunsInThreadsShareTwoDevices) {
  executable = sample::on_two_accelerators();
  const auto deep = device(sample::deep_config());
  auto session = Session::create(executable, {.accelerators = {accelerator.get(), deep.get()}});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  constexpr int kThreads = 4, kRuns = 20;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const Tensor x = input(t * kRuns + i);
        const auto found = session->run(std::vector{x});
        const auto wanted = sample::expected(sample::expected(x.data<int8_t>()));
        equal += found && found->at(0) == Tensor::of<int8_t>({4, 16}, wanted) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, kThreads * kRuns);
}

TEST_F(SessionTest, EachProgramHasOneDeviceAndEachDevicePrograms) {
  executable = sample::on_two_accelerators();
  const auto deep = device(sample::deep_config()), tiny = device("tiny"), again = device("default");
  const auto message = [&](std::vector<driver::Accelerator*> devices) {
    const auto session = Session::create(executable, {.accelerators = std::move(devices)});
    return session ? "created" : session.error().str();
  };
  EXPECT_EQ(message({accelerator.get(), deep.get()}), "created");
  EXPECT_HAS(message({}), "has 2 accelerator programs, and no device was given");
  EXPECT_HAS(message({}), "name one: --device behavioral:default --device behavioral:deep");
  EXPECT_HAS(message({accelerator.get()}),
             "program 'region_1' is for configuration 'deep', and no device of it was given");
  EXPECT_HAS(message({accelerator.get(), tiny.get()}), "program 'region_1' was compiled for configuration 'deep'");
  EXPECT_HAS(message({accelerator.get(), again.get(), deep.get()}),
             "behavioral:default and behavioral:default have the same configuration 'default'");
  EXPECT_HAS(message({accelerator.get(), deep.get(), tiny.get()}),
             "behavioral:tiny: error: no program is for configuration 'tiny' of this device; there are programs for "
             "default, deep");
  executable.programs.clear();
  executable.functions[0].code = {{Return{{0}}, ""}};
  EXPECT_EQ(message({accelerator.get(), deep.get()}), "created") << "without programs, no device is used";
}

TEST_F(SessionTest, RunTimeFaultsSayWhere) {
  auto& call = std::get<CallKernel>(code(5));
  call.kernel = "test.unknown";
  EXPECT_HAS(run_error(), "add_2: error: no kernel is named 'test.unknown'");
  call.kernel = "test.fail";
  EXPECT_HAS(run_error(), "sample: function 'main', instruction 5 (add_2): axis: error: no luck");
  call.kernel = "test.greedy";
  EXPECT_HAS(run_error(), "not enough memory for the results of kernel 'test.greedy'");
  call.kernel = "test.nothing";
  EXPECT_HAS(run_error(), "kernel 'test.nothing' has 0 results, the executable expects 1");
  code(4) = Kill{{3}};
  EXPECT_HAS(run_error(), "register 3 is empty");
  code(4) = LoadConstant{3, 1};
  code(6) = Return{{3}};
  call.kernel = "test.add";
  call.args = {0, 0};
  EXPECT_HAS(run_error(), "result y: i8 (4, 16) became f64 (3,)");
  code(0) = Branch{0, 4};
  EXPECT_HAS(run_error(), "a branch on i8 (4, 16), must be bool with one element");
  executable.functions[1].code[0].operation = LoadConstant{1, 1};
  code(0) = Move{2, 0};
  code(1) = CallProgram{0, {2}, {2}};
  code(2) = LoadConstant{2, 1};
  code(3) = Jump{1};
  EXPECT_HAS(run_error(), "input 'x' of program 'region_0' is f64 (3,), must be i8 (4, 16)");
}

TEST_F(SessionTest, EndlessRunsEndAtTheirLimits) {
  code(0) = Jump{0};
  EXPECT_HAS(run_error({.max_steps = 1000}), "the run takes more than 1000 instructions");
  code(0) = CallFunction{0, {0, 1}, {2}};
  EXPECT_HAS(run_error({.max_stack = 1 << 16}), "the calls nest too deep");
}

TEST_F(SessionTest, ALaunchThatTakesTooLongIsAnErrorAndTheNextRunWorks) {
  auto session = open({.launch_limit = std::chrono::nanoseconds(20)});
  auto result = session->run(std::vector{input(1), flag(true)});
  ASSERT_FALSE(result);
  EXPECT_HAS(result.error().str(), "instruction 0 (dense_1)");
  EXPECT_HAS(result.error().str(), "still busy");
  session = open();
  EXPECT_TRUE(session->run(std::vector{input(1), flag(true)}));
}

// Interleaved runs with changing inputs: a copy to the device that is not awaited would give a wrong result here.
TEST_F(SessionTest, TwoSessionsShareADevice) {
  auto a = open(), b = open();
  for (int i = 0; i < 4; ++i) {
    auto& session = i % 2 ? a : b;
    EXPECT_EQ(session->run(std::vector{input(i), flag(true)})->at(0),
              Tensor::of<int8_t>({4, 16}, sample::expected(input(i).data<int8_t>())));
  }
}

// An executable from a damaged file may compute nonsense or stop with an error, and nothing else: code, attributes and
// instructions are hostile, the kernels are the reference kernels, and the next run uses the same device.
TEST_F(SessionTest, MutatedExecutablesRunOrSayWhyNot) {
  auto& call = std::get<CallKernel>(code(5));
  call = {"add", {}, {0, 3}, {4}};
  auto good = serialize(executable).value();
  std::mt19937 random(test_seed(41));
  int ran = 0, stopped = 0;
  for (int i = 0; i < 4000 && ran + stopped < 600; ++i) {
    auto bad = good;
    Preface preface;
    std::memcpy(&preface, bad.data(), sizeof(preface));
    for (unsigned n = random() % 3 + 1; n-- > 0;) {
      bad[sizeof(preface) + random() % preface.header_bytes] ^= static_cast<std::byte>(1u << random() % 8);
    }
    preface.header_hash = sha256(std::span(bad).subspan(sizeof(preface), preface.header_bytes));
    std::memcpy(bad.data(), &preface, sizeof(preface));
    auto mutant = deserialize(bad, "mutant");
    if (!mutant) continue;
    auto session =
        Session::create(*mutant, {.accelerators = {accelerator.get()}, .max_stack = 1000, .max_steps = 1000});
    if (!session) continue;
    for (bool pick : {false, true}) {
      auto result = session->run(std::vector{input(1), flag(pick)});
      ++(result ? ran : stopped);
    }
  }
  EXPECT_GT(ran, 50);
  EXPECT_GT(stopped, 5);
  auto session = Session::create(executable, {.accelerators = {accelerator.get()}});
  auto result = session->run(std::vector{input(1), flag(true)});
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(result->at(0), Tensor::of<int8_t>({4, 16}, sample::expected(input(1).data<int8_t>())));
}

}  // namespace
}  // namespace tenon::runtime
