#include "driver/bringup/keep.h"

#include <fmt/format.h>

#include "driver/bringup/replay.h"
#include "hw/spec/registers.h"

namespace tenon::driver {

namespace fs = std::filesystem;

std::string keep_mismatch(Bundle bundle, Accelerator& device, const std::string& directory) {
  const fs::path where = directory.empty() ? free_name(".").lexically_normal() : fs::path(directory);
  bundle.version = fmt::format("tenon {} (instruction set {}, register map {})", TENON_VERSION, spec::kIsaVersion,
                               spec::kRegisterMapVersion);
  std::error_code ignored;
  fs::create_directories(where, ignored);
  auto fresh = open_for(bundle, bundle.device, where);
  const auto found = replay(fresh ? **fresh : device, bundle);
  if (found) bundle.found = *found;
  const Status saved = save_bundle(bundle, where);
  if (!saved) return fmt::format("the bundle cannot be saved: {}", saved.error().str());
  if (!found) return fmt::format("bundle: {}; replaying it failed: {}", where.string(), found.error().str());
  if (found->empty()) {
    return fmt::format("bundle: {}; replaying it showed no difference, so the fault is intermittent", where.string());
  }
  return fmt::format("bundle: {}; to reproduce it: tenon replay {}, to step through it: tenon debug {}", where.string(),
                     where.string(), where.string());
}

}  // namespace tenon::driver
