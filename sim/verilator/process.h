// Runs the tools of a build: found in PATH, started without a shell, output to a file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::sim {

std::optional<std::filesystem::path> find_program(std::string_view name);  // in PATH

// Runs a program in `directory`, standard output and error appended to `log`, and returns its exit status: 127 if it
// could not be started, 128 + n if signal n ended it. The program gets SIGTERM when the calling thread ends before it.
int run_program(const std::vector<std::string>& command, const std::filesystem::path& directory,
                const std::filesystem::path& log);

}  // namespace tenon::sim
