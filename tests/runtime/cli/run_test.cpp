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

// main(list) = the list: what a reader of requests makes of a value.
Executable list_identity() {
  Executable e;
  e.name = "lists";
  e.types = {{"List", {{"Cons", 2}, {"Nil", 0}}}};
  e.functions.push_back({.name = "main",
                         .params = {{.name = "list", .type = "List[A]"}},
                         .results = {{.name = "same", .type = "List[A]"}},
                         .registers = 1,
                         .code = {{Return{{0}}, ""}}});
  return e;
}

TEST_F(CommandTest, AnswersRequestsByTheirIds) {
  ASSERT_TRUE(save(list_identity(), directory / "list.tnx"));
  const std::string list =
      R"({"constructor":"Cons","fields":[{"dtype":"f32","shape":[2],"data":[1.5,"inf"]},{"constructor":"Nil","fields":[]}]})";
  std::string deep = R"({"constructor":"Nil","fields":[]})";
  for (int i = 0; i < 10'000; ++i) deep = R"({"constructor":"Cons","fields":[[],)" + deep + "]}";
  const std::vector<std::pair<std::string, std::string>> lines{
      {R"({"id": "a", "inputs": {"list": )" + list + "}}", R"({"id":"a","outputs":{"same":)" + list + "}}"},
      {R"({"inputs": [)" + list + "]}", R"({"id":2,"outputs":{"same":)" + list + "}}"},
      {R"({"id": 3, "inputs": [)" + deep + "]}", R"({"id":3,"outputs":)"},
      {"no JSON", R"({"id":4,"error":{"what":"expected a JSON request: )"},
      {"[]", R"({"id":5,"error":{"what":"expected a request, found '['","where":"requests:5:1")"},
      {R"({"id": 6})", R"(expected \"inputs\" of the request","where":"requests:6:10")"},
      {R"({"id": 7.5, "inputs": []})", R"(expected a string or an integer as id, found '7.5'","where":"requests:7:8")"},
      {R"({"ids": 8})", R"(expected \"id\" or \"inputs\")"},
      {R"({"id": 9, "inputs": []})",
       R"("what":"input 'list' is missing","where":"requests:9:24","help":"the model takes list: List[A]")"},
      {R"({"id": 10, "inputs": [[], []]})", R"(more than 1 inputs were given","where":"requests:10:27")"},
      {R"({"id": 11, "inputs": {"lists": []}})", R"(no input is named 'lists')"},
      {R"({"id": 12, "inputs": {"list": [], "list": []}})", R"(input 'list' is given twice)"},
      {R"({"id": 13, "inputs": [3]})", R"(expected a list, or an object with)"},
      {R"({"id": 14, "inputs": [{"constructor": "Con", "fields": []}]})", R"(the model has no constructor 'Con')"},
      {R"({"id": 15, "inputs": [{"constructor": "Cons", "fields": []}]})",
       R"(expected 2 fields of Cons, which has 0 here)"},
      {R"({"id": 16, "inputs": [{"dtype": "f31", "shape": [], "data": []}]})", R"(expected a dtype, found 'f31')"},
      {R"({"id": 17, "inputs": [[{"dtype": "i8", "shape": [1], "data": [300]}]]})", R"(expected a tensor in List[A])"},
      {R"({"id": 18, "inputs": [{"dtype": "i8", "shape": [[1]], "data": [3]}]})", R"(expected numbers of a tensor)"},
      {R"({"id": 19, "inputs": [{"name": "Cons"}]})", R"(\"name\" of a value is not supported)"},
      {R"({"id": 20, "inputs": 3})", R"(expected one object or list of inputs)"},
  };
  std::string text;
  for (const auto& [request, answer] : lines) text += request + "\n";
  ASSERT_TRUE(write_file(directory / "requests", text + "\n"));
  EXPECT_EQ(run("list.tnx --requests requests"), 1);
  for (const auto& [request, answer] : lines) EXPECT_NE(log.find(answer), std::string::npos) << answer << "\n" << log;
  EXPECT_NE(log.find("17 of 20 requests failed"), std::string::npos) << log;
  ASSERT_TRUE(write_file(directory / "right", lines[0].first + "\n" + lines[1].first + "\n"));
  EXPECT_EQ(run("list.tnx --requests - --max-queue 1 --max-batch 2 < right"), 0) << log;
  EXPECT_EQ(log, lines[0].second + "\n" + R"({"id":2,"outputs":{"same":)" + list + "}}\n");
  EXPECT_EQ(run("list.tnx --requests missing"), 1);
  EXPECT_NE(log.find("missing: error: cannot be read: No such file"), std::string::npos) << log;
  EXPECT_EQ(run("list.tnx --requests - --runs 3 < right"), 2);
  EXPECT_NE(log.find("are not supported with --requests"), std::string::npos) << log;
}

// An answer is there before the next request comes, so a server that is killed loses no answer that it gave.
TEST_F(CommandTest, AnswersAreFlushed) {
  ASSERT_TRUE(save(list_identity(), directory / "list.tnx"));
  const std::string command =
      "cd " + directory.string() +
      " && (echo '{\"id\": 1, \"inputs\": [[]]}'; while ! grep -q '\"id\":1' answers; do sleep 0.01; "
      "done; echo killed > state; sleep 2) | (echo $BASHPID > pid; exec " TENON_BINARY_DIR
      "/bin/tenon-run list.tnx --requests - > answers) & cd " +
      directory.string() + " && while ! grep -q killed state 2>/dev/null; do sleep 0.01; done; kill -9 $(cat pid)";
  ASSERT_EQ(std::system(("timeout 20 bash -c '" +
                         [&] {
                           std::string quoted;
                           for (const char c : command) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
                           return quoted;
                         }() +
                         "'")
                            .c_str()),
            0);
  EXPECT_EQ(text("answers"), "{\"id\":1,\"outputs\":{\"same\":[]}}\n");
}

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
