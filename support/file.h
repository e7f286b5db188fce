// Reading and writing of whole files, with the system's reason in the error message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon {

Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path);
Expected<std::string> read_text(const std::filesystem::path& path);

// Writes to a temporary file in the same folder and renames it, so that no reader sees a partial file.
Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);  // in turn
Status write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tenon
