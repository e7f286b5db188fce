// Files that the generators write.
#pragma once

#include <filesystem>
#include <string>

#include "hw/spec/diagnostic.h"

namespace tenon::generator {

// The whole file; an error where it cannot be written.
Status write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace tenon::generator
