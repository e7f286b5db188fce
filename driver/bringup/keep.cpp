#include "driver/bringup/keep.h"

#include <fmt/format.h>

#include "driver/bringup/replay.h"
#include "hw/spec/registers.h"

namespace tenon::driver {

namespace fs = std::filesystem;

std::string keep_mismatch(Reproducer reproducer, Accelerator& device, const std::string& directory) {
  const fs::path where = directory.empty() ? free_name(".").lexically_normal() : fs::path(directory);
  reproducer.version = fmt::format("tenon {} (instruction set {}, register map {})", TENON_VERSION, spec::kIsaVersion,
                                   spec::kRegisterMapVersion);
  std::error_code ignored;
  fs::create_directories(where, ignored);
  auto fresh = open_for(reproducer, reproducer.device, where);
  const auto found = replay(fresh ? **fresh : device, reproducer);
  if (found) reproducer.found = *found;
  const Status saved = save_reproducer(reproducer, where);
  if (!saved) return fmt::format("the reproducer cannot be saved: {}", saved.error().str());
  if (!found) return fmt::format("reproducer: {}; replaying it failed: {}", where.string(), found.error().str());
  if (found->empty()) {
    return fmt::format("reproducer: {}; replaying it showed no difference, so the fault is intermittent",
                       where.string());
  }
  return fmt::format("reproducer: {}; to reproduce it: tenon replay {}, to step through it: tenon debug {}",
                     where.string(), where.string(), where.string());
}

}  // namespace tenon::driver
