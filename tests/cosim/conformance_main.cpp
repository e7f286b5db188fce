// Runs the conformance suite and compares its results with their table, driver/CONFORMANCE.md.
//
//   --column NAME --table FILE   the cases of one device, each in its own process (SystemC requires that, and a crash
//   is
//                                the failure of one case); they must equal the table's column
//   --update FILE                all devices of this build; writes the table
//   --hold URI running|idle      the other process of some cases
// Without these it is an ordinary GoogleTest program.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/cosim/conformance_transports.h"

namespace tenon::driver {
namespace {

using Cells = std::map<std::string, std::string>;  // case -> "yes", "failed", or why it does not apply

// Records the result of the one case of this process, and prints failures only.
class Notes : public testing::EmptyTestEventListener {
 public:
  std::string text = "yes";
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (part.skipped()) text = part.message();
    if (part.failed()) {
      fmt::print(stderr, "{}:{}: {}\n", part.file_name() ? part.file_name() : "?", part.line_number(), part.message());
    }
  }
};

// "ASoftResetEndsARun" as a sentence.
std::string sentence(std::string_view name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool begins = std::isupper(c) || (std::isdigit(c) && i > 0 && !std::isdigit(name[i - 1]));
    if (begins && i > 0) text += ' ';
    text += static_cast<char>(i > 0 ? std::tolower(c) : c);
  }
  return text;
}

std::string run_case(const std::string& filter) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "failed";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(300);
    GTEST_FLAG_SET(filter, filter);
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    auto* notes = new Notes;
    listeners.Append(notes);
    const int code = RUN_ALL_TESTS();
    const std::string text = code == 0 ? notes->text : "failed";
    if (write(ends[1], text.data(), text.size()) < 0) code == 0 ? std::exit(1) : std::exit(code);
    std::exit(code);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 512> chunk{};
  for (ssize_t got = 0; (got = read(ends[0], chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!good) fmt::print("failed: --gtest_filter={} (status {})\n", filter, status);
  return good ? text : "failed";
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  const auto& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const auto& suite = *unit.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = fmt::format("{}.{}", suite.name(), suite.GetTestInfo(j)->name());
      const size_t slash = name.rfind('/');
      if (slash == name.find('/')) continue;  // without a parameter: not a case of the suite
      const std::string base = name.substr(0, slash);
      if (std::ranges::find(names, base) == names.end()) names.push_back(base);
    }
  }
  return names;
}

std::string title(const std::string& name) { return sentence(name.substr(name.rfind('.') + 1)); }

Cells measure(const Column& column) {
  Cells cells;
  for (const std::string& name : cases()) cells[title(name)] = run_case(name + "/" + column.name);
  return cells;
}

bool has_failed(const Cells& cells) {
  return std::ranges::any_of(cells, [](const auto& cell) { return cell.second == "failed"; });
}

std::vector<std::string> split(const std::string& row) {
  std::vector<std::string> parts;
  std::istringstream stream(row.substr(1));
  for (std::string part; std::getline(stream, part, '|');) {
    const size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

// The columns of the file, by the doc text of their devices.
std::map<std::string, Cells> read_table(const std::string& file) {
  std::ifstream stream(file);
  std::vector<std::vector<std::string>> rows;
  std::map<std::string, std::string> notes;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("| ")) rows.push_back(split(line));
    if (line.starts_with("- ") && line.find(": ") != std::string::npos) {
      notes[line.substr(2, line.find(": ") - 2)] = line.substr(line.find(": ") + 2);
    }
  }
  std::map<std::string, Cells> table;
  for (size_t i = 2; i < rows.size(); ++i) {  // after the header and its rule
    for (size_t j = 1; j < rows[i].size() && j < rows[0].size(); ++j) {
      const auto note = notes.find(rows[i][j]);
      table[rows[0][j]][rows[i][0]] = note == notes.end() ? rows[i][j] : note->second;
    }
  }
  return table;
}

std::string write_table(const std::map<std::string, Cells>& table) {
  std::string text =
      "# Transports and their measured behavior\n\n"
      "Written by the suite itself (`cosim_conformance_test --update driver/CONFORMANCE.md`), which CI runs on every\n"
      "transport; a test compares its cells. A letter: the case does not apply, for the reason below.\n\n| case |";
  std::string line = "| --- |", rows;
  std::map<std::string, char> letters;
  for (const Column& column : all_columns()) {
    text += fmt::format(" {} |", column.doc);
    line += " --- |";
  }
  for (const std::string& name : cases()) {
    rows += fmt::format("| {} |", title(name));
    for (const Column& column : all_columns()) {
      const auto cells = table.find(column.doc);
      std::string cell = "not measured";
      if (cells != table.end() && cells->second.contains(title(name))) cell = cells->second.at(title(name));
      if (cell != "yes" && cell != "failed" && cell != "not measured") {
        cell = letters.try_emplace(cell, static_cast<char>('a' + letters.size())).first->second;
      }
      rows += fmt::format(" {} |", cell);
    }
    rows += '\n';
  }
  std::map<char, std::string> reasons;
  for (const auto& [reason, letter] : letters) reasons[letter] = reason;
  text += "\n" + line + "\n" + rows + "\n";
  for (const auto& [letter, reason] : reasons) text += fmt::format("- {}: {}\n", letter, reason);
  return text;
}

int update(const std::string& file) {
  auto table = read_table(file);
  bool failed = false;
  for (const Column& column : columns()) {
    fmt::print("{}\n", column.name);
    table[column.doc] = measure(column);
    failed |= has_failed(table[column.doc]);
  }
  if (failed) return 1;
  std::ofstream(file) << write_table(table);
  return 0;
}

int check(const std::string& name, const std::string& file) {
  const auto built = columns();
  const auto column = std::ranges::find(built, name, &Column::name);
  if (column == built.end()) {
    fmt::print("this build has no device {}\n", name);
    return 1;
  }
  const Cells measured = measure(*column);
  if (has_failed(measured)) return 1;
  if (read_table(file)[column->doc] == measured) {
    fmt::print("{}: {} cases, equal to the table\n", name, measured.size());
    return 0;
  }
  fmt::print("{}: every case passes, but the table differs; update it: cosim_conformance_test --update {}\n", name,
             file);
  return 1;
}

}  // namespace
}  // namespace tenon::driver

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto is = [&](size_t i, std::string_view text) { return i < arguments.size() && arguments[i] == text; };
  if (is(1, "--hold") && argc == 4) return tenon::driver::hold(arguments[2], is(3, "running"));
  testing::InitGoogleTest(&argc, argv);
  if (is(1, "--update") && arguments.size() == 3) return tenon::driver::update(arguments[2]);
  if (is(1, "--column") && is(3, "--table") && arguments.size() == 5) {
    return tenon::driver::check(arguments[2], arguments[4]);
  }
  return RUN_ALL_TESTS();
}
