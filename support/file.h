// Whole files in and out, with the system's reason in the message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon {

Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path);

// Writes beside the file and renames, so that a reader never sees half of it.
Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tenon
