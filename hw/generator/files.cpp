#include "hw/generator/files.h"

#include <fstream>

namespace tenon::generator {

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) return error("cannot write", path.string(), "check the directory's permissions and the free space");
  return {};
}

}  // namespace tenon::generator
