// Runs the ONNX backend node tests of one release, and compares what passes with the checked-in list; or models that
// generate.py wrote, of which none may be wrong and few refused.
//
// Semantics: tests run in a child process, in order; a test that crashes it or takes longer than a minute is reported
// as such, and a new child goes on with the next. A test of the list that fails is an error; a test that passes and is
// not in the list is counted only, so that a new operator does not require a new list at once.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/file.h"
#include "tests/onnx/node_test.h"

namespace {

namespace fs = std::filesystem;
using tenon::compiler::Expectation;
using tenon::compiler::NodeTestResult;
using tenon::compiler::Outcome;

constexpr int kMillisecondsPerTest = 60'000;
constexpr const char* kUsage = R"(Usage: onnx_node_tests FOLDER LIST [--compiled N] [--only TEXT] [--update TABLE]
       onnx_node_tests FOLDER generated [--compiled N] [--only TEXT] [--update TABLE] [--refused N]

FOLDER         the tests' folders, as onnx/backend/test/data/node
LIST           the tests that must pass, one a line; "NAME interpreted" is not compared on the compiled path
--compiled N   compile every Nth test too; without: none
--only TEXT    only the tests whose name contains TEXT, with the outcome of each
--update TABLE write LIST and the table of results by operator and reason; requires --compiled 1. Of generated models
               the table alone
--refused N    of generated models, N in a thousand may be refused; without: 20
)";

struct Options {
  fs::path folder, list, table;
  std::string only;
  size_t compiled = 0;
  size_t refused = 20;  // of a thousand generated models

  bool generated() const { return list == "generated"; }
};

struct Test {
  std::string name;
  bool compile = false;
  NodeTestResult result;
};

// --- the child -------------------------------------------------------------------------------------------------------

[[noreturn]] void run_tests(const Options& options, std::span<const Test> tests, int pipe) {
  for (const Test& test : tests) {
    const NodeTestResult result =
        tenon::compiler::run_node_test(options.folder / test.name, test.compile,
                                       options.generated() ? Expectation::kAnyDataSet : Expectation::kEachDataSet);
    const auto part = [](const Outcome& outcome) {
      return fmt::format("{}{}", static_cast<int>(outcome.state), outcome.reason);
    };
    const std::string line = fmt::format("{}\t{}\n", part(result.interpreted), part(result.compiled));
    for (size_t at = 0; at < line.size();) {
      const ssize_t wrote = write(pipe, line.data() + at, line.size() - at);
      if (wrote <= 0) _exit(1);
      at += static_cast<size_t>(wrote);
    }
  }
  _exit(0);
}

// --- the parent ------------------------------------------------------------------------------------------------------

Outcome parse_outcome(std::string_view text) {
  const int state = text.empty() ? 0 : std::clamp(text[0] - '0', 0, 3);
  return {static_cast<Outcome::State>(state), std::string(text.substr(std::min<size_t>(1, text.size())))};
}

// Runs the tests of one child; returns how many of them it ended, the one that it died of included.
size_t run_child(const Options& options, std::span<Test> tests) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_tests(options, tests, ends[1]);
  }
  close(ends[1]);
  std::string buffer;
  size_t done = 0;
  bool late = false;
  while (done < tests.size()) {
    const size_t end = buffer.find('\n');
    if (end != std::string::npos) {
      const size_t tab = buffer.find('\t');
      const std::string_view line = std::string_view(buffer).substr(0, end);
      tests[done].result = {parse_outcome(line.substr(0, tab)), parse_outcome(line.substr(tab + 1))};
      buffer.erase(0, end + 1);
      ++done;
      continue;
    }
    pollfd wait{ends[0], POLLIN, 0};
    late = poll(&wait, 1, kMillisecondsPerTest) == 0;
    char bytes[4096];
    const ssize_t count = late ? 0 : read(ends[0], bytes, sizeof bytes);
    if (count <= 0) break;
    buffer.append(bytes, static_cast<size_t>(count));
  }
  close(ends[0]);
  if (late) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (done == tests.size()) return done;
  tests[done].result.interpreted = {Outcome::State::kWrong, late ? "takes longer than a minute" : "crashes"};
  return done + 1;
}

std::map<std::string, std::string> read_list(const fs::path& file) {
  std::map<std::string, std::string> list;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    list.emplace(line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1));
  }
  return list;
}

std::vector<Test> find_tests(const Options& options) {
  std::vector<Test> tests;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    const std::string name = entry.path().filename().string();
    if (fs::exists(entry.path() / "model.onnx") && name.find(options.only) != std::string::npos)
      tests.emplace_back().name = name;
  }
  std::ranges::sort(tests, {}, &Test::name);
  for (size_t i = 0; i < tests.size(); ++i) tests[i].compile = options.compiled > 0 && i % options.compiled == 0;
  return tests;
}

// A reason without the names of tensors and most of the numbers, so that equal reasons are counted together.
std::string general(const std::string& reason) {
  std::string text = reason.substr(0, reason.find(", as element"));
  std::replace(text.begin(), text.end(), '|', '/');
  if (text.size() > 110) text = text.substr(0, 110) + " ...";
  return text;
}

struct Row {
  size_t tests = 0, interpreted = 0, compiled = 0;
  std::map<std::string, size_t> reasons;
};

std::string reasons_text(const std::map<std::string, size_t>& reasons) {
  std::vector<std::pair<std::string, size_t>> sorted(reasons.begin(), reasons.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
  });
  std::string text;
  for (const auto& [reason, count] : sorted) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", count, reason);
  return text;
}

std::string table(const Options& options, const std::vector<Test>& tests) {
  std::map<std::string, Row> rows;
  Row all;
  for (const Test& test : tests) {
    Row& row = rows[tenon::compiler::tested_operator(options.folder / test.name)];
    const auto& [interpreted, compiled] = test.result;
    for (Row* one : {&row, &all}) {
      ++one->tests;
      one->interpreted += interpreted.passed() ? 1 : 0;
      one->compiled += compiled.passed() ? 1 : 0;
    }
    if (!interpreted.passed()) ++row.reasons[general(interpreted.reason)];
    else if (!compiled.passed()) ++row.reasons["compiled: " + general(compiled.reason)];
  }
  std::string text = fmt::format("{} tests: {} pass in the interpreter, {} compiled for the CPU too.\n\n", all.tests,
                                 all.interpreted, all.compiled);
  text += "| operator | tests | interpreted | compiled | reasons of the others |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [op, row] : rows) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", op, row.tests, row.interpreted, row.compiled,
                        reasons_text(row.reasons));
  }
  return text;
}

// How a generated model ended: on the compiled path where the interpreted one passed.
const Outcome& ending(const Test& test) {
  const auto& [interpreted, compiled] = test.result;
  return interpreted.passed() && compiled.ran() ? compiled : interpreted;
}

std::string reason_of(const Test& test) {
  return (test.result.interpreted.passed() ? "compiled: " : "") + general(ending(test).reason);
}

// Whose results a generated model has, where the judges differ.
std::string judges(const Options& options, const Test& test) {
  std::string names;
  for (int i = 0; i < 2; ++i) {
    std::ifstream in(options.folder / test.name / fmt::format("test_data_set_{}", i) / "judge");
    std::string name;
    if (std::getline(in, name)) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

struct GeneratedRow {
  size_t models = 0, equal = 0, one_judge = 0, wrong = 0, refused = 0;
  std::map<std::string, size_t> reasons;
};

std::string generated_table(const Options& options, const std::vector<Test>& tests) {
  std::map<std::string, GeneratedRow> rows;
  GeneratedRow all;
  for (const Test& test : tests) {
    GeneratedRow& row = rows[tenon::compiler::tested_operator(options.folder / test.name)];
    const Outcome& end = ending(test);
    const bool differ = end.passed() && judges(options, test).contains(',');
    for (GeneratedRow* one : {&row, &all}) {
      ++one->models;
      one->equal += end.passed() ? 1 : 0;
      one->one_judge += differ ? 1 : 0;
      one->wrong += end.state == Outcome::State::kWrong ? 1 : 0;
      one->refused += end.state == Outcome::State::kRefused ? 1 : 0;
    }
    if (!end.passed()) ++row.reasons[reason_of(test)];
  }
  std::string text = fmt::format(
      "{} models: {} are equal to a judge ({} of them to one of two judges that differ), {} are wrong, {} are "
      "refused.\n\n",
      all.models, all.equal, all.one_judge, all.wrong, all.refused);
  text +=
      "| operator | models | equal | of them to one of two | wrong | refused | reasons |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [op, row] : rows) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", op, row.models, row.equal, row.one_judge, row.wrong,
                        row.refused, reasons_text(row.reasons));
  }
  return text;
}

// Prints the generated models that are wrong, and whether more are refused than may be; returns the exit code.
int assess(const Options& options, const std::vector<Test>& tests) {
  size_t wrong = 0, refused = 0;
  for (const Test& test : tests) {
    const Outcome::State state = ending(test).state;
    refused += state == Outcome::State::kRefused ? 1 : 0;
    if (state != Outcome::State::kWrong) continue;
    ++wrong;
    fmt::print("{} is wrong ({}): {}\n", test.name, judges(options, test), reason_of(test));
  }
  fmt::print("{} of {} generated models are wrong, {} are refused\n", wrong, tests.size(), refused);
  if (!options.table.empty() && !tenon::write_file(options.table, generated_table(options, tests))) return 3;
  const bool few = refused * 1000 <= tests.size() * options.refused;
  if (!few) fmt::print("more than {} in a thousand are refused\n", options.refused);
  return wrong == 0 && few ? 0 : 1;
}

std::string list_text(const std::vector<Test>& tests) {
  std::string text = "# The node tests that pass; written by onnx_node_tests --update.\n";
  for (const Test& test : tests) {
    if (!test.result.interpreted.passed()) continue;
    text += fmt::format("{}{}\n", test.name, test.result.compiled.passed() ? "" : " interpreted");
  }
  return text;
}

std::string describe(const Outcome& outcome) {
  return !outcome.ran() ? "not run" : outcome.reason.empty() ? "passed" : outcome.reason;
}

// Prints the tests of the list that fail, and returns how many.
size_t regressions(const Options& options, const std::vector<Test>& tests) {
  const auto list = read_list(options.list);
  std::set<std::string> seen;
  size_t wrong = 0;
  for (const Test& test : tests) {
    seen.insert(test.name);
    const auto found = list.find(test.name);
    if (found == list.end()) continue;
    const bool compiled_too = test.compile && found->second.empty();
    if (test.result.interpreted.passed() && (!compiled_too || test.result.compiled.passed())) continue;
    ++wrong;
    const bool interpreted = test.result.interpreted.passed();
    fmt::print("{} no longer passes{}: {}\n", test.name, interpreted ? " compiled" : "",
               describe(interpreted ? test.result.compiled : test.result.interpreted));
  }
  for (const auto& [name, paths] : list) {
    if (seen.contains(name) || name.find(options.only) == std::string::npos) continue;
    ++wrong;
    fmt::print("{} is in {} and not in {}\n", name, options.list.string(), options.folder.string());
  }
  return wrong;
}

int run(const Options& options) {
  std::vector<Test> tests = find_tests(options);
  if (tests.empty()) {
    fmt::print(stderr, "error: there is no test in {}\n", options.folder.string());
    return 1;
  }
  for (std::span<Test> open = tests; !open.empty();) {
    const size_t done = run_child(options, open);
    if (done == 0) return 3;
    open = open.subspan(done);
  }
  if (!options.only.empty()) {
    for (const Test& test : tests) {
      fmt::print("{}\n  interpreted: {}\n  compiled: {}\n", test.name, describe(test.result.interpreted),
                 describe(test.result.compiled));
    }
  }
  const auto interpreted = std::ranges::count_if(tests, [](const Test& t) { return t.result.interpreted.passed(); });
  const auto attempted = std::ranges::count_if(tests, [](const Test& t) { return t.result.compiled.ran(); });
  const auto compiled = std::ranges::count_if(tests, [](const Test& t) { return t.result.compiled.passed(); });
  fmt::print("{} of {} tests pass in the interpreter; of {} that were compiled too, {} pass\n", interpreted,
             tests.size(), attempted, compiled);
  if (options.generated()) return assess(options, tests);
  if (!options.table.empty()) {
    const auto list = tenon::write_file(options.list, list_text(tests));
    const auto written = tenon::write_file(options.table, table(options, tests));
    if (!list || !written) return 3;
  }
  return regressions(options, tests) == 0 ? 0 : 1;
}

bool parse(const std::vector<std::string>& arguments, Options& options) {
  std::vector<std::string> positional;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--")) {
      positional.push_back(argument);
      continue;
    }
    if (++i == arguments.size()) return false;
    const std::string& value = arguments[i];
    const auto number = [&](size_t& to) {
      const char* end = value.data() + value.size();
      return std::from_chars(value.data(), end, to).ptr == end;
    };
    if (argument == "--only") options.only = value;
    else if (argument == "--update") options.table = value;
    else if (argument == "--compiled" ? !number(options.compiled) : argument != "--refused" || !number(options.refused))
      return false;
  }
  if (positional.size() != 2) return false;
  options.folder = positional[0], options.list = positional[1];
  return options.table.empty() || options.generated() || (options.compiled == 1 && options.only.empty());
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (!parse({arguments + 1, arguments + count}, options)) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  return run(options);
}
