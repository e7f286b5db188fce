// The options of a knob: programs that compute the same results in different times.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::compiler::schedules {

struct Option {
  std::string name;  // letters, digits and '_'
  double cost = 0;   // by the cost model, comparable within the knob
};
// Returns the index of the selected option of a knob; there is at least one.
using ChooseOption = std::function<size_t(std::string_view knob, std::vector<Option> options)>;

}  // namespace tenon::compiler::schedules
