#include "hw/spec/data_path.h"

#include "support/file.h"

namespace tenon::spec {

namespace fs = std::filesystem;

std::vector<fs::path> data_path(std::string_view relative) {
  std::vector<fs::path> path;
  // bin/tenon, lib/libtenon_compiler.so, lib/tenon/tenon-driver-x.so, with or without a folder of the architecture.
  constexpr int kDeepest = 4;
  fs::path prefix = own_file().parent_path();
  for (int i = 0; i < kDeepest && prefix.has_relative_path(); ++i) {
    prefix = prefix.parent_path();
    path.push_back(prefix / TENON_DATA_BESIDE_BIN / relative);
  }
  path.push_back(fs::path(TENON_SOURCE_DIR) / relative);
  path.push_back(fs::path(TENON_INSTALLED_DATA) / relative);
  return path;
}

}  // namespace tenon::spec
