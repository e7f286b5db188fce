// Texts from outside (names in files, URIs, arguments), as they may be shown on a terminal, in a log or in a page.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

inline constexpr size_t kLongestName = 120;  // bytes of a name that are shown

// The text on one line, in valid UTF-8: characters that control a terminal, end a line, reverse the direction of
// writing, or are not UTF-8 become escapes as \n, \x1b and \u202e. Of a text that is longer than `longest` bytes, the
// beginning and the end are shown, with the count of bytes between them.
std::string printable(std::string_view text, size_t longest = kLongestName);

// The same for a page of HTML: as the content of an element, or as the value of an attribute in double quotes.
std::string html_text(std::string_view text, size_t longest = 1000);

// The whole text, whose line ends and tabs remain.
std::string printable_text(std::string_view text);

// The same for a message of several lines, whose lines are cut one by one. Lines after the first are indented, so that
// none of them looks like a message of its own.
std::string printable_lines(std::string_view text);

}  // namespace tenon
