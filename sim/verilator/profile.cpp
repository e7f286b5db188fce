#include "sim/verilator/profile.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "sim/bench/bench.h"
#include "sim/fuzz/generator.h"
#include "sim/verilator/model.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

constexpr int kRandomPrograms = 4;
constexpr uint64_t kCycles = 1 << 16;  // of a launch

std::vector<fuzz::Program> training_programs(const spec::Config& config) {
  std::vector<fuzz::Program> programs;
  if (config.native) programs.push_back(bench::convolution(config, 1));
  if (!fuzz::check_memory(config)) return programs;
  for (uint64_t seed = 1; seed <= kRandomPrograms; ++seed) programs.push_back(fuzz::generate(config, seed));
  return programs;
}

}  // namespace

Status write_profile(const spec::Config& config, const std::filesystem::path& model,
                     const std::filesystem::path& profile) {
  TENON_TRY_ASSIGN(library, open_model(config, model));
  const auto counters = reinterpret_cast<uint64_t (*)(char*)>(dlsym(library->handle, "tenon_rtl_profile"));
  const auto fail = [&](std::string_view what) { return error(std::string(what), model.string()); };
  if (counters == nullptr) return fail("the model is not instrumented");
  for (const fuzz::Program& program : training_programs(config)) {
    TENON_TRY_ASSIGN(simulator, make_simulator(config, *library->api, {.memory_bytes = program.memory.size()}));
    (void)fuzz::run(**simulator, program, kCycles);
  }
  std::string bytes(counters(nullptr), '\0');
  if (bytes.empty() || counters(bytes.data()) == 0) return fail("the model gives no profile");
  if (!std::ofstream(profile, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return error("the profile cannot be written", profile.string());
  }
  return {};
}

}  // namespace tenon::sim
