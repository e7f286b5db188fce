#include "tests/cosim/vta_programs.h"
#include "support/try.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace tenon::driver {

std::vector<VtaEntry> vta_index() {
  std::ifstream stream(TENON_SOURCE_DIR "/tests/vta/index.json");
  const auto index = nlohmann::json::parse(stream);
  std::vector<VtaEntry> entries;
  for (const auto& item : index) {
    VtaEntry entry{item.at("name").get<std::string>(), 0, item.value("macs", uint64_t{0})};
    if (item.contains("rtl") && item["rtl"].is_object() && item["rtl"].contains("de10")) {
      entry.vta_cycles = item["rtl"]["de10"].value("cycles", uint64_t{0});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Expected<Counters> run_vta(Accelerator& accelerator, const sim::vta::Program& program, std::chrono::nanoseconds limit) {
  TENON_TRY_ASSIGN(image, accelerator.allocate(program.memory_bytes, 4096));
  const std::vector<std::byte> zeros(program.memory_bytes);
  TENON_TRY(accelerator.write(*image, 0, zeros));
  for (const auto& record : program.before) {
    TENON_TRY(accelerator.write(*image, record.address, record.data));
  }
  Launch launch{
      .profile = spec::Profile::kBase, .instructions = image->address + program.stream, .count = program.instructions};
  launch.bases.fill(image->address);
  TENON_TRY(start(accelerator, launch));
  TENON_TRY(finish(accelerator, limit));
  for (const auto& record : program.after) {
    std::vector<std::byte> found(record.data.size());
    TENON_TRY(accelerator.read(*image, record.address, found));
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == record.data[i]) continue;
      return error(fmt::format("byte {:#x} of memory is {:#04x}, must be {:#04x}", record.address + i,
                               static_cast<unsigned>(found[i]), static_cast<unsigned>(record.data[i])),
                   program.name);
    }
  }
  auto counters = read_counters(accelerator);
  accelerator.free(*image);
  return counters;
}

}  // namespace tenon::driver
