// Builds of Verilated models: messages of failed builds, concurrent and interrupted builds.
#include "sim/verilator/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tenon::sim {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct BuilderTest : testing::Test {
  BuilderTest()
      : directory(fs::temp_directory_path() / ("tenon-builder-test-" + std::to_string(getpid()))),
        path(std::getenv("PATH")) {
    fs::create_directories(directory / "bin");
    setenv("TENON_CACHE", (directory / "cache").c_str(), 1);
  }
  ~BuilderTest() override {
    setenv("PATH", path.c_str(), 1);
    unsetenv("TENON_CACHE");
    fs::remove_all(directory);
  }
  void tool(const std::string& name, const std::string& script) {
    std::ofstream(directory / "bin" / name) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(directory / "bin" / name, fs::perms::owner_all);
  }
  fs::path directory;
  std::string path;
  spec::Config config = spec::load_config("tiny").value();
};

TEST_F(BuilderTest, MissingToolsAreNamedWithTheCommandThatInstallsThem) {
  setenv("PATH", (directory / "bin").c_str(), 1);
  const auto model = build_verilated_model(config);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().str(),
              HasSubstr("the Verilated model of tiny cannot be built: verilator, make, c++ not found in PATH"));
  EXPECT_THAT(model.error().str(), HasSubstr("apt-get install verilator make g++"));
  tool("verilator", "exit 0");
  tool("c++", "exit 0");
  EXPECT_THAT(missing_verilator_tools(), testing::StartsWith("make not found in PATH"));
}

TEST_F(BuilderTest, AFailedBuildNamesTheToolAndItsLog) {
  setenv("PATH", (directory / "bin:").string().append(path).c_str(), 1);
  tool("verilator", "echo the verilator of this test fails; exit 3");
  const auto model = build_verilated_model(config);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().what, HasSubstr("building the Verilated model of tiny: verilator ends with status 3"));
  const std::string help = model.error().help;
  const fs::path log = help.substr(help.find('/'));
  std::ifstream stream(log);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, HasSubstr("the verilator of this test fails"));
}

TEST_F(BuilderTest, ACompilerThatCannotMakeAProfileOrAModelIsLeftOut) {
  setenv("PATH", (directory / "bin:").string().append(path).c_str(), 1);
  tool("verilator", "exit 0");
  tool("clang++-19", "exit 0");
  tool("llvm-profdata", "exit 0");
  const fs::path runtimes = directory / "lib/clang/19/lib/linux";
  fs::create_directories(runtimes);
  std::ofstream(runtimes / "libclang_rt.profile-x86_64.a") << "library";
  const auto log_of = [](const Expected<fs::path>& model) {
    std::ifstream stream(model->parent_path() / "build.log");
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  };
  // The first call of make builds the instrumented model.
  tool("make", "case \"$*\" in *instrumented*) exit 2;; esac; grep '^CXX :=' Makefile; echo object > model.so");
  const auto without_runtime = build_verilated_model(config);
  ASSERT_TRUE(without_runtime) << without_runtime.error().str();
  EXPECT_THAT(log_of(without_runtime), HasSubstr("no profile: the compiler cannot make an instrumented model"));
  EXPECT_THAT(log_of(without_runtime), HasSubstr("clang++-19"));

  tool("make", "grep '^CXX :=' Makefile; echo object > model.so; echo object > instrumented.so");
  config.queue_depth *= 2;
  const auto not_instrumented = build_verilated_model(config);
  ASSERT_TRUE(not_instrumented) << not_instrumented.error().str();
  EXPECT_THAT(log_of(not_instrumented),
              testing::ContainsRegex("no profile: .*the Verilated model of tiny cannot be opened"));

  tool("make", "if grep -q clang Makefile; then exit 2; fi; grep '^CXX :=' Makefile; echo object > model.so");
  config.queue_depth *= 2;
  const auto without_headers = build_verilated_model(config);
  ASSERT_TRUE(without_headers) << without_headers.error().str();
  EXPECT_THAT(log_of(without_headers), testing::ContainsRegex("CXX := (ccache )?c\\+\\+"));

  // Clang fails with a profile: c++ gets neither the profile nor Clang's objects.
  tool("make",
       "case \"$*\" in *instrumented*) echo object > model.profile; echo object > x.o; echo object > instrumented.so; "
       "exit 0;; esac\n"
       "if grep -q clang Makefile; then exit 2; fi; if [ -e x.o ] || grep -q profile-instr-use Makefile; then exit 3; "
       "fi\n"
       "grep '^CXX :=' Makefile; echo object > model.so");
  config.queue_depth *= 2;
  const auto without_optimizer = build_verilated_model(config);
  ASSERT_TRUE(without_optimizer) << without_optimizer.error().str();
  EXPECT_THAT(log_of(without_optimizer), testing::ContainsRegex("CXX := (ccache )?c\\+\\+"));

  // A runtime that is installed later makes another model, and without one there is no profile.
  tool("make", "case \"$*\" in *instrumented*) exit 2;; esac; echo object > model.so");
  config.max_burst_beats /= 2;
  const auto with_runtime = build_verilated_model(config);
  ASSERT_TRUE(with_runtime) << with_runtime.error().str();
  EXPECT_THAT(log_of(with_runtime), HasSubstr("no profile"));
  fs::remove_all(runtimes);
  const auto lost_runtime = build_verilated_model(config);
  ASSERT_TRUE(lost_runtime) << lost_runtime.error().str();
  EXPECT_NE(*lost_runtime, *with_runtime);
  EXPECT_THAT(log_of(lost_runtime), testing::Not(HasSubstr("profile")));

  fs::remove(directory / "bin/llvm-profdata");
  tool("make", "case \"$*\" in *instrumented*) exit 2;; esac; echo object > model.so");
  config.max_burst_beats /= 2;
  const auto without_tool = build_verilated_model(config);
  ASSERT_TRUE(without_tool) << without_tool.error().str();
  EXPECT_THAT(log_of(without_tool), testing::Not(HasSubstr("profile")));
}

TEST_F(BuilderTest, ConcurrentRequestsForAModelBuildItOnce) {
  setenv("PATH", (directory / "bin:").string().append(path).c_str(), 1);
  tool("verilator", "echo run >> '" + (directory / "runs").string() + "'; sleep 0.2");
  tool("make", "echo object > model.so");
  std::vector<std::string> models(3);
  {
    std::vector<std::jthread> threads;
    for (std::string& model : models) {
      threads.emplace_back([&] { model = build_verilated_model(config).value_or("none").string(); });
    }
  }
  for (const std::string& model : models) EXPECT_EQ(model, models[0]);
  EXPECT_TRUE(fs::is_regular_file(models[0]));
  std::ifstream stream(directory / "runs");
  std::string line;
  int runs = 0;
  while (std::getline(stream, line)) ++runs;
  EXPECT_EQ(runs, 2);  // one for the model, and one for the directory of Verilator's headers

  // Another configuration and another variant are other models.
  EXPECT_NE(build_verilated_model(config, {.vcd = true}).value_or("none").string(), models[0]);
  config.queue_depth *= 2;
  EXPECT_NE(build_verilated_model(config).value_or("none").string(), models[0]);
}

// The names in the cache without the locks, which stay.
std::vector<std::string> contents(const fs::path& cache) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cache)) {
    if (entry.path().extension() != ".lock") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST_F(BuilderTest, AFailedBuildLeavesOnlyItsLog) {
  setenv("PATH", (directory / "bin:").string().append(path).c_str(), 1);
  tool("verilator", "exit 3");
  ASSERT_FALSE(build_verilated_model(config));
  EXPECT_THAT(contents(directory / "cache"), testing::ElementsAre(testing::EndsWith(".log")));
}

TEST_F(BuilderTest, TheNextBuildRemovesAnInterruptedBuildAndNotARunningOne) {
  setenv("PATH", (directory / "bin:").string().append(path).c_str(), 1);
  const fs::path cache = directory / "cache", started = directory / "started", go = directory / "go";
  const std::string slow = "echo output; echo $$ > started.tmp; mv started.tmp '" + started.string() + "'; ";
  const auto wait_for = [](const auto& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) usleep(10000);
    ASSERT_TRUE(condition());
  };
  // Builds in a child process, since the test kills the process.
  const auto build_in_child = [&] {
    fs::remove(started);
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      _exit(build_verilated_model(config) ? 0 : 1);
    }
    setpgid(child, child);
    wait_for([&] { return fs::exists(started); });
    return child;
  };

  for (const bool alone : {true, false}) {  // kill -9 of one process; Ctrl-C, which signals all processes
    SCOPED_TRACE(alone);
    tool("verilator", slow + "exec sleep 1000");
    const pid_t child = build_in_child();
    pid_t verilator = 0;
    std::ifstream(started) >> verilator;
    ASSERT_GT(verilator, 0);
    kill(alone ? child : -child, alone ? SIGKILL : SIGINT);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    wait_for([&] {  // the tools end with the build
      std::ifstream stat("/proc/" + std::to_string(verilator) + "/stat");
      std::string id, name, state = "Z";
      stat >> id >> name >> state;
      return state == "Z";
    });
    EXPECT_THAT(contents(cache), testing::Contains(testing::EndsWith(".build")));

    tool("verilator", "");
    tool("make", "echo object > model.so");
    spec::Config other = config;
    other.queue_depth *= alone ? 2 : 4;
    const auto model = build_verilated_model(other);
    ASSERT_TRUE(model) << model.error().str();
    for (const std::string& name : contents(cache)) EXPECT_TRUE(fs::exists(cache / name / "model.so")) << name;
  }

  // A build runs while another build removes interrupted ones.
  tool("verilator", slow + "while ! [ -e '" + go.string() + "' ]; do sleep 0.01; done");
  const pid_t child = build_in_child();
  EXPECT_THAT(contents(cache), testing::Contains(testing::EndsWith(".build")));
  spec::Config other = config;
  tool("verilator", "");
  other.max_burst_beats /= 2;
  ASSERT_TRUE(build_verilated_model(other));
  EXPECT_THAT(contents(cache), testing::Contains(testing::EndsWith(".build")));
  std::ofstream(go) << "";
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(contents(cache), testing::Each(testing::Not(testing::HasSubstr("."))));
}

TEST_F(BuilderTest, ACacheThatCannotBeCreatedIsNamed) {
  std::ofstream(directory / "file") << "x";
  setenv("TENON_CACHE", (directory / "file" / "cache").c_str(), 1);
  const auto model = build_verilated_model(config);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().str(), HasSubstr("cannot create the cache directory"));
  EXPECT_THAT(model.error().help, HasSubstr("set TENON_CACHE"));
}

TEST_F(BuilderTest, AnInvalidConfigurationIsAnErrorBeforeAnyToolRuns) {
  config.block_in = 3;
  const auto model = build_verilated_model(config);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().what, HasSubstr("block_in is 3"));
}

}  // namespace
}  // namespace tenon::sim
