// Schedules of a user: steps for the kernels of named operators, which replace those of the templates. A file has
//
//   // A comment.
//   kernel dense on x86-64-v3
//   split(dense, i, 4)
//   mark(dense, j, vectorized)
//
// with any number of kernels, each by the name of an operator or of the value that it computes; without a level, the
// steps are for every level that has none of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/loop/schedule/schedule.h"
#include "support/diagnostic.h"

namespace tenon::compiler::schedules {

struct UserStep {
  std::string text;
  int line = 0;
};
struct UserSchedule {
  std::string kernel, level;  // level: empty for all
  std::vector<UserStep> steps;
  std::string file;
  int line = 0;  // of the heading
};

// `kernel`: of steps before the first heading; empty: there may be none. Errors name the file and the line.
Expected<std::vector<UserSchedule>> parse_schedules(std::string_view text, const std::string& file,
                                                    std::string_view kernel = {});

// The schedule of the first name that has one for the level, or else for all; nullptr: none of them has.
const UserSchedule* find_schedule(const std::vector<UserSchedule>& schedules, const std::vector<std::string>& names,
                                  std::string_view level);

// The error of a step that is refused names its line.
Status apply(loop::Schedule& schedule, const UserSchedule& steps);

// The steps under a heading, as parse_schedules() reads them.
std::string text_of(std::string_view kernel, std::string_view level, const std::vector<std::string>& steps);

}  // namespace tenon::compiler::schedules
