#include "hw/spec/data_path.h"

#include "support/file.h"

namespace tenon::spec {

namespace fs = std::filesystem;

std::vector<fs::path> data_path(std::string_view relative) {
  std::vector<fs::path> path;
  if (const fs::path file = own_file(); !file.empty())
    path.push_back(file.parent_path().parent_path() / TENON_DATA_BESIDE_BIN / relative);
  path.push_back(fs::path(TENON_SOURCE_DIR) / relative);
  path.push_back(fs::path(TENON_INSTALLED_DATA) / relative);
  return path;
}

}  // namespace tenon::spec
