// "did you mean ...?": the candidate name with the smallest edit distance to a name that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// Returns "did you mean SIGILname?", or an empty string where no candidate is near enough. A near candidate differs
// from the wrong name in at most a third of its letters, or in one letter; two swapped letters count as one difference.
std::string suggest(std::string_view wrong, const std::vector<std::string_view>& candidates,
                    std::string_view sigil = "");

}  // namespace tenon
