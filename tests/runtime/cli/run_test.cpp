// The command tenon-run: outputs, reports, messages and exit codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/npy.h"
#include "support/file.h"
#include "tests/runtime/sample.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::json;

struct CommandTest : testing::Test {
  void SetUp() override {
    directory = std::filesystem::temp_directory_path() / ("tenon-run-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    // The command has reference kernels only: the sample without the call of a test kernel.
    executable.functions[0].code[5].operation = Move{4, 3};
    ASSERT_TRUE(save(executable, directory / "m.tnx"));
    std::mt19937 random(3);
    for (auto& v : x.data<int8_t>()) v = static_cast<int8_t>(random());
    Tensor pick(DType::kBool, {});
    pick.bytes()[0] = std::byte{1};
    ASSERT_TRUE(save_npy(directory / "x.npy", x));
    ASSERT_TRUE(save_npy(directory / "pick.npy", pick));
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::string text(std::string_view file) {
    auto bytes = read_file(directory / file).value();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  int run(std::string args) {
    std::string command = "cd " + directory.string() + " && " TENON_BINARY_DIR "/bin/tenon-run " + args + " > log 2>&1";
    int code = std::system(command.c_str());
    log = text("log");
    return WEXITSTATUS(code);
  }

  std::filesystem::path directory;
  Executable executable = sample::executable();
  Tensor x{DType::kI8, {sample::kRows, 16}};
  std::string log;
};

TEST_F(CommandTest, RunsAndWritesOutputsReportAndTrace) {
  ASSERT_EQ(run("m.tnx --input x=x.npy --input pick=pick.npy --output out --report r.html --trace t.json --runs 2"), 0)
      << log;
  EXPECT_EQ(load_npy(directory / "out/y.npy").value(), Tensor::of<int8_t>({4, 16}, sample::expected(x.data<int8_t>())));
  EXPECT_NE(log.find("behavioral:default"), std::string::npos) << log;
  auto page = read_file(directory / "r.html").value();
  EXPECT_NE(std::string_view(reinterpret_cast<char*>(page.data()), page.size()).find("dense_1"),
            std::string_view::npos);
  EXPECT_TRUE(Json::accept(text("t.json")));
  ASSERT_EQ(run("m.tnx --input x=x.npy --input pick=pick.npy --json"), 0) << log;
  EXPECT_GT(Json::parse(log)["cycles"].get<double>(), 0);
  ASSERT_EQ(run("m.tnx --info --json"), 0) << log;
  EXPECT_EQ(Json::parse(log)["inputs"][0]["name"], "x");
}

TEST_F(CommandTest, ExitCodesSayWhoseFaultItIs) {
  struct Case {
    std::string args;
    int code;
    std::string_view message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"--help", 0, "--device"},
           {"--version", 0, "tenon-run 0"},
           {"", 2, "MODEL is required"},
           {"m.tnx --nonsense", 2, "--nonsense"},
           {"none.tnx", 1, "No such file"},
           {"x.npy", 1, "not an executable"},
           {"m.tnx --input x.npy", 1, "input 'pick' is missing"},
           {"m.tnx --input x.npy --input pick.npy", 0, "y: i8 (4, 16)"},
           {"m.tnx --input x.npy --input pick.npy --input x.npy", 1, "there are more arguments than inputs"},
           {"m.tnx --input x=x.npy", 1, "input 'pick' is missing"},
           {"m.tnx --input x=pick.npy --input pick=pick.npy", 1, "input 'x' is bool (), the model takes i8 (4, 16)"},
           {"m.tnx --input x=x.npy --input x=x.npy", 1, "input 'x' is given twice"},
           {"m.tnx --input z=x.npy", 1, "no input is named 'z'"},
           {"m.tnx --device nowhere:1 --input x=x.npy", 2, "nowhere"},
           {"m.tnx --device behavioral:tiny --input x=x.npy", 1, "block_in"}}) {
    EXPECT_EQ(run(c.args), c.code) << c.args << "\n" << log;
    EXPECT_NE(log.find(c.message), std::string::npos) << c.args << "\n" << log;
  }
}

}  // namespace
}  // namespace tenon::runtime
