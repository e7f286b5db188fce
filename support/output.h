// Text on standard output and standard error: the one way in which the commands print.
//
// Semantics: what is formatted may have names from files in it, so that characters which control a terminal are printed
// as escapes (support/printable.h); line ends and tabs remain. A failure to write does not end the command where it
// happens, which may have files to remove; the stream remembers it, and flush_output(), the last call of a command,
// returns it. Nothing is done about standard error.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "support/diagnostic.h"

namespace tenon {

// The text as it is.
void write_stdout(std::string_view text);
void write_stderr(std::string_view text);

void write_stdout_escaped(std::string_view text);
void write_stderr_escaped(std::string_view text);

template <class... T>
void print_stdout(fmt::format_string<T...> format, T&&... values) {
  write_stdout_escaped(fmt::vformat(format, fmt::make_format_args(values...)));
}

template <class... T>
void print_stderr(fmt::format_string<T...> format, T&&... values) {
  write_stderr_escaped(fmt::vformat(format, fmt::make_format_args(values...)));
}

// Writes what is buffered for standard output: a full disk must not look like success.
Status flush_output();

// Prints the errors of the command and of its output, and returns its exit code: 0, or Fault's value.
int exit_code_of(const Status& status);

}  // namespace tenon
