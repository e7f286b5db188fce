#include "hw/spec/data_path.h"

namespace tenon::spec {

namespace fs = std::filesystem;

std::vector<fs::path> data_path(std::string_view relative) {
  std::vector<fs::path> path;
  std::error_code fault;
  const fs::path program = fs::read_symlink("/proc/self/exe", fault);
  if (!fault) path.push_back(program.parent_path().parent_path() / TENON_DATA_BESIDE_BIN / relative);
  path.push_back(fs::path(TENON_SOURCE_DIR) / relative);
  path.push_back(fs::path(TENON_INSTALLED_DATA) / relative);
  return path;
}

}  // namespace tenon::spec
