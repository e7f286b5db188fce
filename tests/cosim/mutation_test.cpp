// Planted faults: each one, a small edit of a copy of the RTL, must be found by the checks of this program, which are
// those of the fuzz campaigns, by the assertion or the comparison that its record names.
//
// All faults are in one copy, under a condition each, so that one model serves them all; TENON_MUTANT chooses the one
// of a run. The checks run in a process of their own, a copy of this program beside the edited RTL.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "driver/accelerator.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/fuzz/campaign.h"
#include "sim/fuzz/disturb.h"
#include "support/try.h"
#include "tests/cosim/mutants.h"
#include "tests/cosim/software_checks.h"

namespace tenon::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSelect = "TENON_MUTANT";
constexpr const char* kConfig = "TENON_MUTANT_CONFIG";  // a name or a file; the checks of software need tiny
constexpr int kPrograms = 120;

std::string text_of_file(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// ------------------------------------------------------------------------------------------------------- the checks

std::string chosen_config() {
  const char* chosen = std::getenv(kConfig);
  return chosen == nullptr ? "tiny" : chosen;
}

Status check_programs(const fuzz::GeneratorOptions& generator, int count, bool quiet_memory) {
  const auto runner = [&](const fuzz::Program& program) -> Status {
    TENON_TRY_ASSIGN(device, driver::open(fmt::format("lockstep:{}?fast_dot=off&{}", chosen_config(),
                                                      quiet_memory ? fmt::format("memory={}", program.memory.size())
                                                                   : fuzz::memory_options(program))));
    return fuzz::run_disturbed(*(*device)->simulator(), program, 1'000'000);
  };
  TENON_TRY_ASSIGN(config, spec::load_config(chosen_config()));
  const auto result = fuzz::campaign(*config, {.count = count, .generator = generator, .shrink_budget = 0}, runner);
  if (!result.failure) return {};
  return error(fmt::format("after {} programs: {}", result.programs, result.failure->found.str()));
}

// A stream that must end with the code at the instruction, on the RTL and the behavioral simulator; returns its cycles.
Expected<uint64_t> check_stream(const std::string& text, spec::StopCode code, uint32_t slot) {
  TENON_TRY_ASSIGN(config, spec::load_config("tiny"));
  TENON_TRY_ASSIGN(instructions, spec::Isa(*config).assemble_all(text, "stream"));
  fuzz::Program program{.config = *config, .memory = std::vector<std::byte>(1 << 20), .launches = {}};
  program.launches.push_back({.profile = spec::profile_of(instructions->front()), .instructions = *instructions});
  TENON_TRY_ASSIGN(device, driver::open("lockstep:tiny?fast_dot=off&memory=1M"));
  Simulator& simulator = *(*device)->simulator();
  const Status end = fuzz::run(simulator, program, 200'000);
  const auto found = static_cast<spec::StopCode>(simulator.read_register(spec::reg::kStatus) & 0xff);
  if (found != code || (code != spec::StopCode::kNone && simulator.read_register(spec::reg::kErrorIndex) != slot)) {
    return error(fmt::format("must end with \"{}\" at {}: {}", spec::describe(code), slot,
                             end ? std::string("finishes") : end.error().str()),
                 text.substr(0, text.find('\n')));
  }
  return simulator.read_register(spec::reg::kCycles);
}

Status check_streams() {
  using spec::StopCode;
  if (chosen_config() != "tiny") return {};
  const int64_t last = spec::load_config("tiny")->depth(spec::Memory::kAcc) - 1;
  // Engines that meet an index outside acc, and have another command waiting.
  const std::string mac = fmt::format("mac first=1 r0=1 r1=1 r2=1 y=1 x=4 dst_base={} dst_x=1", last);
  TENON_TRY(check_stream(mac + "\n" + mac, StopCode::kScratchpadRange, 0));
  for (const auto& [rows, distance] :
       {std::pair{2, 3}, {3, 1}}) {  // a window of own lanes whose last row is outside inp
    const int64_t base = spec::load_config("tiny")->depth(spec::Memory::kInp) - (rows - 1) * distance;
    const std::string own =
        fmt::format("mac own=1 first=1 r0=1 r1={} r2=1 y=1 x=1 src_base={} src_r1={}", rows, base, distance);
    TENON_TRY(check_stream(own, StopCode::kScratchpadRange, 0));
  }
  const std::string result = fmt::format(
      "move function=0 rows=1 vectors=1 signal=gemm\nmove function=1 rows=1 vectors=4 signal=gemm\n"
      "move function=2 rows=1 vectors=8 signal=rq\n"
      "mac first=1 r0=1 r1=1 r2=1 y=1 x=2 dst_x=1 wait=ldi,ldw signal=rq\n"
      "rq to_inp=1 rows=1 cols=2 acc_step=1 out_base={} wait=ldm,gemm",
      spec::load_config("tiny")->depth(spec::Memory::kInp) - 1);
  TENON_TRY(check_stream(result, StopCode::kScratchpadRange, 8));
  // A window goes on at the beginning of acc.
  const std::string windowed = fmt::format(
      "move function=0 rows=1 vectors=1 signal=gemm\nmove function=1 rows=1 vectors=4 signal=gemm\n"
      "move function=2 rows=1 vectors=8 signal=rq\n"
      "mac first=1 r0=1 r1=1 r2=1 y=1 x=2 dst_x={0} wait=ldi,ldw signal=rq\n"
      "rq rows=1 cols=1 acc_base={0} win_cols=2 wait=ldm,gemm",
      last);
  TENON_TRY(check_stream(windowed, StopCode::kNone, 0));
  const std::string rq = fmt::format("rq rows=1 cols=4 acc_base={} acc_step=1", last);
  TENON_TRY(check_stream(rq + "\n" + rq, StopCode::kScratchpadRange, 0));
  std::string pushes, pops;
  for (int i = 0; i < 256; ++i) pushes += "sync engine=0 signal=gemm\n", pops += "sync engine=3 wait=ldi\n";
  TENON_TRY(check_stream(pushes, StopCode::kDeadlock, 2 * 255));
  TENON_TRY(check_stream(pushes + pops, StopCode::kNone, 0));
  TENON_TRY_ASSIGN(ended, check_stream("sync engine=0", StopCode::kNone, 0));
  TENON_TRY_ASSIGN(stopped, check_stream("sync engine=0 wait=gemm", StopCode::kDeadlock, 0));
  const uint64_t window = *stopped - *ended + 2;  // cosim_timing_test says why
  if (window == 16) return {};
  return error(fmt::format("the window of a deadlock has {} cycles, must have 16", window));
}

Status check_software() {
  if (chosen_config() != "tiny") return {};
  constexpr std::string_view kOptions = "&fast_dot=off";
  TENON_TRY(check_interrupts(kOptions));
  TENON_TRY(check_progress(kOptions));
  return check_fetch_errors(kOptions);
}

// All checks, in the process that the next test starts.
TEST(Checks, DISABLED_of_the_rtl_beside_this_program) {
  for (const auto& check : {std::function(check_streams), std::function(check_software),
                            std::function([] { return check_programs({}, kPrograms, false); }),
                            // Long steps, which fill queues and starve readers.
                            std::function([] {
                              return check_programs({.profile = spec::Profile::kBase, .max_steps = 3000}, kPrograms / 4,
                                                    true);
                            })}) {
    const Status status = check();
    ASSERT_TRUE(status) << status.error().str();
  }
}

// ------------------------------------------------------------------------------------------------------ the mutants

// The program, and the files that it reads, in the layout of an installation.
class MutatedTree {
 public:
  MutatedTree() : root_(fs::temp_directory_path() / fmt::format("tenon-mutants-{}", getpid())) {
    fs::create_directories(root_ / "bin");
    fs::create_directories(root_ / "lib");
    fs::copy_file("/proc/self/exe", program());
    // A driver reads the RTL beside itself.
    for (const char* name : {"tenon-driver-lockstep.so", "tenon-driver-verilator.so"}) {
      fs::copy_file(fs::path(TENON_BINARY_DIR) / "lib" / name, root_ / "lib" / name);
    }
    for (const char* folder : {"hw/rtl", "hw/configs", "sim/verilator"}) {
      const fs::path to = root_ / "share/tenon" / folder;
      fs::create_directories(to.parent_path());
      fs::copy(fs::path(TENON_SOURCE_DIR) / folder, to);
    }
  }
  ~MutatedTree() { fs::remove_all(root_); }
  MutatedTree(const MutatedTree&) = delete;
  MutatedTree& operator=(const MutatedTree&) = delete;

  fs::path program() const { return root_ / "bin/checks"; }
  fs::path file(std::string_view name) const { return root_ / "share/tenon/hw/rtl" / name; }

  // Makes the edit depend on its condition. False where `from` is not in the file exactly once.
  bool plant(size_t number, const Mutant& mutant) {
    std::string text = text_of_file(file(mutant.file));
    const size_t at = text.find(mutant.from);
    if (at == std::string::npos || text.find(mutant.from, at + 1) != std::string::npos) return false;
    std::string to(mutant.to);
    const std::string condition = fmt::format("(mutants_pkg::selected == 32'd{})", number);
    for (size_t m = to.find("$M"); m != std::string::npos; m = to.find("$M")) to.replace(m, 2, condition);
    text.replace(at, mutant.from.size(), to);
    std::ofstream(file(mutant.file)) << text;
    return true;
  }

  // The variable that chooses a fault when a model is made.
  void add_selector() {
    std::ofstream(file("mutants_pkg.sv")) << "package mutants_pkg;\n  int selected;\nendpackage\n";
    const std::string list = text_of_file(file("files.f"));
    std::ofstream(file("files.f")) << "mutants_pkg.sv\n" << list;
    std::string top = text_of_file(file("tenon.sv"));
    top.replace(
        top.rfind("endmodule"), 0,
        fmt::format("initial mutants_pkg::selected = $c(\"(getenv(\\\"{0}\\\") ? atoi(getenv(\\\"{0}\\\")) : 0)\");\n",
                    kSelect));
    std::ofstream(file("tenon.sv")) << top;
  }

  // The checks' output with a fault chosen; 0: none.
  std::string run(size_t number, std::string_view config) const {
    const fs::path log = root_ / fmt::format("log-{}", number);
    const std::string command = fmt::format(
        "{}={} {}={} TENON_DRIVER_PATH={} timeout 600 {} --gtest_also_run_disabled_tests --gtest_filter=Checks.* "
        ">{} "
        "2>&1",
        kSelect, number, kConfig, config_path(config), (root_ / "lib").string(), program().string(), log.string());
    const int status = std::system(command.c_str());
    std::string text = text_of_file(log);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::string()
                                                         : "status " + std::to_string(status) + "\n" + text;
  }

  static std::string config_path(std::string_view config) {
    return config.ends_with(".json") ? fmt::format("{}/tests/hw/rtl/{}", TENON_SOURCE_DIR, config)
                                     : std::string(config);
  }

  // "assertion failed at alu.sv:180" followed by the name that stands on this line.
  std::string with_names(const std::string& report) const {
    static const std::regex location("assertion failed at (\\w+\\.sv):(\\d+)");
    std::smatch match;
    if (!std::regex_search(report, match, location)) return report;
    std::istringstream lines(text_of_file(file(match[1].str())));
    std::string line;
    for (int i = std::stoi(match[2]); i > 0; --i) std::getline(lines, line);
    return report + "\nassertion: " + line;
  }

 private:
  fs::path root_;
};

// The first line that says what is wrong.
std::string summary(const std::string& report) {
  for (const char* sign : {"assertion: ", "error: ", "differ: "}) {
    const size_t at = report.rfind(sign);
    if (at != std::string::npos) return report.substr(at, std::min<size_t>(report.find('\n', at) - at, 180));
  }
  return report.substr(0, 180);
}

TEST(Mutation, EachPlantedFaultIsFound) {
  MutatedTree tree;
  for (size_t i = 0; i < std::size(kMutants); ++i) {
    ASSERT_TRUE(tree.plant(i + 1, kMutants[i])) << kMutants[i].file << ": " << kMutants[i].from;
  }
  tree.add_selector();
  std::set<std::string_view> configs;
  for (const Mutant& mutant : kMutants) configs.insert(mutant.config);
  for (const std::string_view config : configs) ASSERT_EQ(tree.run(0, config), "") << config << " without a fault";
  const char* only = std::getenv("TENON_MUTANTS");  // a regular expression of names, to try a few
  for (size_t i = 0; i < std::size(kMutants); ++i) {
    const Mutant& mutant = kMutants[i];
    if (only != nullptr && !std::regex_search(std::string(mutant.name), std::regex(only))) continue;
    const std::string report = tree.with_names(tree.run(i + 1, mutant.config));
    const bool found = std::regex_search(report, std::regex(std::string(mutant.found)));
    fmt::print("{:<58} {}\n", mutant.name, report.empty() ? "SURVIVES" : summary(report));
    std::fflush(stdout);
    EXPECT_TRUE(found) << mutant.name << "\nexpected: " << mutant.found << "\n" << report.substr(0, 1500);
  }
}

}  // namespace
}  // namespace tenon::sim
