#include "compiler/schedules/user_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "compiler/machine/machine.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

std::string location(const std::string& file, int line) { return fmt::format("{}:{}", file, line); }

// "kernel NAME" or "kernel NAME on LEVEL".
Expected<UserSchedule> heading(const std::string& text, const std::string& file, int line) {
  std::istringstream words(text);
  std::string keyword, on, surplus;
  UserSchedule schedule{.kernel = {}, .level = {}, .steps = {}, .file = file, .line = line};
  words >> keyword >> schedule.kernel >> on >> schedule.level;
  if (schedule.kernel.empty() || (!on.empty() && (on != "on" || schedule.level.empty())) || words >> surplus)
    return error(fmt::format("'{}' is no heading", text), location(file, line),
                 "write: kernel NAME, or: kernel NAME on LEVEL", Fault::kUsage);
  if (schedule.level.empty() || find_machine(schedule.level)) return schedule;
  std::vector<std::string_view> levels;
  for (const std::string_view architecture : kCpuArchitectures)
    for (const Machine& machine : machines_of(architecture)) levels.push_back(machine.name);
  return error(fmt::format("there is no level '{}'", schedule.level), location(file, line),
               fmt::format("the levels are {}", fmt::join(levels, ", ")), Fault::kUsage);
}

}  // namespace

Expected<std::vector<UserSchedule>> parse_schedules(std::string_view text, const std::string& file,
                                                    std::string_view kernel) {
  std::vector<UserSchedule> schedules;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line.compare(begin, 2, "//") == 0) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    if (line == "kernel" || line.starts_with("kernel ")) {
      TENON_TRY_ASSIGN(next, heading(line, file, number));
      const auto same = std::ranges::find_if(schedules, [&](const UserSchedule& other) {
        return other.kernel == next->kernel && other.level == next->level;
      });
      if (same != schedules.end())
        return error(fmt::format("'{}' is a second schedule of its kernel", line), location(file, number),
                     fmt::format("the first is in line {}", same->line), Fault::kUsage);
      schedules.push_back(std::move(*next));
      continue;
    }
    if (schedules.empty() && kernel.empty())
      return error(fmt::format("the step '{}' is for no kernel", line), location(file, number),
                   "write a heading before it: kernel NAME", Fault::kUsage);
    if (schedules.empty())
      schedules.push_back({.kernel = std::string(kernel), .level = {}, .steps = {}, .file = file, .line = number});
    schedules.back().steps.push_back({line, number});
  }
  return schedules;
}

const UserSchedule* find_schedule(const std::vector<UserSchedule>& schedules, const std::vector<std::string>& names,
                                  std::string_view level) {
  const UserSchedule* for_all = nullptr;
  for (const UserSchedule& schedule : schedules) {
    if (std::ranges::find(names, schedule.kernel) == names.end()) continue;
    if (schedule.level == level) return &schedule;
    if (schedule.level.empty() && !for_all) for_all = &schedule;
  }
  return for_all;
}

Status apply(loop::Schedule& schedule, const UserSchedule& steps) {
  for (const UserStep& step : steps.steps) {
    const Status applied = schedule.apply(step.text);
    if (!applied)
      return error(fmt::format("{}: {}", step.text, applied.error().what), location(steps.file, step.line),
                   applied.error().help, Fault::kUsage);
  }
  return {};
}

std::string text_of(std::string_view kernel, std::string_view level, const std::vector<std::string>& steps) {
  std::string text =
      level.empty() ? fmt::format("kernel {}\n", kernel) : fmt::format("kernel {} on {}\n", kernel, level);
  for (const std::string& step : steps) text += step + "\n";
  return text;
}

}  // namespace tenon::compiler::schedules
