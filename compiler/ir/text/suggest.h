// "did you mean ...?": the name nearest to one that is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::compiler {

// "did you mean SIGILname?", or nothing where no candidate is near: at most a third of the letters differ (one at
// least; two letters swapped count as one).
std::string suggest(std::string_view wrong, const std::vector<std::string_view>& candidates,
                    std::string_view sigil = "");

// As that, among the names of dtypes.
std::string suggest_dtype(std::string_view wrong);

// As that, among the names of dtypes.
std::string suggest_dtype(std::string_view wrong);

}  // namespace tenon::compiler
