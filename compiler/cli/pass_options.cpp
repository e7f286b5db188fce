#include "compiler/cli/pass_options.h"

#include <fmt/format.h>

#include <sstream>

#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

std::vector<std::string> split_all(const std::string& list) {
  std::vector<std::string> parts = split(list);
  if (list.empty() || list.ends_with(',')) parts.emplace_back();
  return parts;
}

void PassFlags::declare(Options& options) {
  options.option(print_before, "--print-before", "PASS,...", "print the module before these passes; all: each");
  options.option(print_after, "--print-after", "PASS,...", "print the module after these passes");
  options.option(diff, "--diff-passes", "PASS,...", "print the changes of these passes, line by line");
  options.flag(time, "--time-passes", "print each pass's time, bindings and node visits to standard error");
  options.flag(verify, "--verify-passes", "check the module after each pass (debug and sanitizer builds always do)");
}

Expected<compiler::PassOptions> PassFlags::options(std::span<const compiler::Pass> steps) const {
  compiler::PassOptions options;
  options.verify |= verify;
  options.print_before = split(print_before);
  options.print_after = split(print_after);
  options.diff = split(diff);
  TENON_TRY(check(options, steps));
  options.print = [](std::string_view title, const std::string& text) {
    print_stdout("// {}\n{}{}", title, text.empty() ? "// nothing\n" : text, text.ends_with("\n") ? "\n" : "");
  };
  if (time) {
    options.report = [](const compiler::PassReport& report) {
      print_stderr("{:<18}{:>10.3f} ms{:>10} -> {} bindings, {} visits\n", report.name, report.seconds * 1e3,
                   report.bindings_before, report.bindings_after, report.visits);
    };
  }
  return options;
}

}  // namespace tenon::cli
