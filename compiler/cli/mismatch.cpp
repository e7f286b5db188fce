#include "compiler/cli/mismatch.h"

#include <fmt/format.h>

#include <cassert>

#include "driver/bringup/replay.h"
#include "hw/spec/registers.h"

namespace tenon::cli {

namespace fs = std::filesystem;

std::string keep_mismatch(driver::Bundle bundle, driver::Accelerator& device, const std::string& directory) {
  const fs::path where = directory.empty() ? driver::free_name(".").lexically_normal() : fs::path(directory);
  bundle.version = fmt::format("tenon {} (instruction set {}, register map {})", TENON_VERSION, spec::kIsaVersion,
                               spec::kRegisterMapVersion);
  std::error_code ignored;
  fs::create_directories(where, ignored);
  auto fresh = driver::open_for(bundle, bundle.device, where);
  driver::Accelerator& used = fresh ? **fresh : device;
  const auto found = driver::replay(used, bundle);
  if (found) bundle.found = *found;
  if (auto status = driver::save_bundle(bundle, where); !status) {
    return fmt::format("no bundle could be kept: {}", status.error().str());
  }
  if (!found) return fmt::format("bundle: {}; replaying it failed: {}", where.string(), found.error().str());
  if (found->empty()) {
    return fmt::format("bundle: {}; replaying it showed no difference, so the fault comes and goes", where.string());
  }
  return fmt::format("bundle: {}; to see it again: tenon replay {}, to step through it: tenon debug {}", where.string(),
                     where.string(), where.string());
}

driver::Bundle bundle_of(const sim::fuzz::Program& program) {
  driver::Bundle bundle;
  bundle.config = program.config;
  bundle.seed = program.seed;
  bundle.memory_bytes = program.memory.size();
  // Streams lie in memory's image, which does not hold them.
  std::vector<std::byte> image = program.memory;
  const spec::Isa isa(program.config);
  for (const auto& launch : program.launches) {
    std::vector<spec::Slot> slots;
    for (const auto& instruction : launch.instructions) {
      [[maybe_unused]] const auto status = isa.encode(instruction, slots);
      assert(status);
    }
    const auto bytes = std::as_bytes(std::span(slots));
    if (image.size() < launch.stream + bytes.size()) image.resize(launch.stream + bytes.size());
    std::ranges::copy(bytes, image.begin() + static_cast<std::ptrdiff_t>(launch.stream));
    bundle.launches.push_back(
        {.profile = launch.profile, .instructions = launch.stream, .count = launch.slots(), .bases = program.bases});
  }
  bundle.memory_bytes = image.size();
  driver::add_contents(bundle, 0, image);
  return bundle;
}

}  // namespace tenon::cli
