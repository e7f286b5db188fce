// tenon fuzz accel: random programs on the RTL and the behavioral simulator, compared at every architectural write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <filesystem>
#include <memory>

#include "compiler/cli/command.h"
#include "driver/bringup/keep.h"
#include "sim/fuzz/campaign.h"
#include "sim/fuzz/coverage.h"
#include "sim/fuzz/disturb.h"
#include "sim/verilator/coverage.h"
#include "support/file.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// The launches and memory of a random program.
driver::Reproducer reproducer_of(const sim::fuzz::Program& program) {
  driver::Reproducer reproducer;
  reproducer.config = program.config;
  reproducer.seed = program.seed;
  reproducer.memory_bytes = program.memory.size();
  // A stream is placed beside the memory image, which does not hold it.
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
    reproducer.launches.push_back(
        {.profile = launch.profile, .instructions = launch.stream, .count = launch.slots(), .bases = program.bases});
  }
  reproducer.memory_bytes = image.size();
  driver::add_contents(reproducer, 0, image);
  return reproducer;
}

std::string device(std::string_view scheme, const std::string& config, const sim::fuzz::Program& program) {
  const std::string options =
      scheme == "behavioral" ? fmt::format("memory={}", program.memory.size()) : sim::fuzz::memory_options(program);
  return fmt::format("{}:{}?{}", scheme, config, options);
}

// Whether the URIs of a device have the option that counts the lines of the RTL.
bool counts_lines(std::string_view scheme) {
  const auto transports = driver::transports();
  const auto found = std::ranges::find(transports, scheme, &driver::Transport::scheme);
  return found != transports.end() && found->doc.find("coverage=") != std::string::npos;
}

// What the programs of one configuration cover: fields of instructions, and lines of the RTL, where the device has any.
class CampaignCoverage {
 public:
  static Expected<std::unique_ptr<CampaignCoverage>> make(const spec::Config& config, const std::string& parent,
                                                          bool has_rtl) {
    std::error_code fault;
    const fs::path directory = fs::absolute(parent, fault) / config.name;
    if (fault)
      return error(fmt::format("no directory for the coverage: {}", fault.message()), parent, {}, Fault::kUsage);
    if (directory.string().find('&') != std::string::npos) {
      return error("the directory of the coverage has '&' in its name, which separates the options of a device",
                   directory.string(), "name another directory with --coverage", Fault::kUsage);
    }
    if (fs::exists(directory, fault)) {
      return error("the directory of the coverage exists", directory.string(),
                   "remove it, or name another directory with --coverage", Fault::kUsage);
    }
    fs::create_directories(directory, fault);
    if (fault) {
      return error(fmt::format("cannot create the directory: {}", fault.message()), directory.string(),
                   "name a writable directory with --coverage", Fault::kUsage);
    }
    return std::unique_ptr<CampaignCoverage>(new CampaignCoverage(config, directory, has_rtl));
  }

  // The option of a device's URI, after `separator`, by which the device counts the lines of the RTL for this object;
  // empty where the device has no RTL.
  std::string device_option(char separator) {
    return has_rtl_ ? fmt::format("{}coverage={}", separator, lines_.next().string()) : "";
  }

  // Runs the program as run_disturbed does. Its undisturbed launches, which are the last ones, are counted.
  Status run(sim::Simulator& simulator, const sim::fuzz::Program& program, uint64_t cycles) {
    sim::fuzz::Recorded recorded(simulator);
    TENON_TRY(sim::fuzz::run_disturbed(recorded, program, cycles));
    const auto& timelines = recorded.timelines();
    const size_t first = timelines.size() - program.launches.size();
    for (size_t i = 0; i < program.launches.size(); ++i) fields_.add(program.launches[i], timelines[first + i]);
    return {};
  }

  // Writes the tables into the directory and the figures into the object `out`, and returns a summary.
  Expected<std::string> finish(Json& out) {
    const fs::path table = directory_ / "fields.txt";
    TENON_TRY(write_file(table, fields_.table()));
    out.field("cells", fields_.cells()).field("covered_cells", fields_.covered());
    const auto share = [](size_t part, size_t all) {
      return 100 * static_cast<double>(part) / static_cast<double>(std::max<size_t>(all, 1));
    };
    std::string text =
        fmt::format("{} of {} cells of instruction, field, value and start ({:.1f} %): {}\n", fields_.covered(),
                    fields_.cells(), share(fields_.covered(), fields_.cells()), table.string());
    if (!has_rtl_) return text;
    TENON_TRY_ASSIGN(files, lines_.annotate());
    size_t points = 0, reached = 0;
    std::string missing;
    for (const sim::FileCoverage& file : *files) {
      points += static_cast<size_t>(file.points), reached += static_cast<size_t>(file.reached);
      if (!file.missing.empty()) missing += fmt::format("  {}: {}\n", file.file, fmt::join(file.missing, ", "));
    }
    out.field("points", points).field("covered_points", reached);
    text += fmt::format("{} of {} blocks and branches of the RTL ({:.1f} %): {}\n", reached, points,
                        share(reached, points), (directory_ / "annotated").string());
    if (!missing.empty()) text += "lines with one that no program covers:\n" + missing;
    return text;
  }

 private:
  CampaignCoverage(const spec::Config& config, const fs::path& directory, bool has_rtl)
      : directory_(directory), has_rtl_(has_rtl), fields_(config), lines_(directory) {}

  fs::path directory_;
  bool has_rtl_;
  sim::fuzz::Coverage fields_;
  sim::LineCoverage lines_;
};

Expected<std::pair<int, int>> parse_length(std::string_view text) {
  constexpr Bounds<int64_t> kLengths{1, 100'000};
  const size_t dots = std::min(text.find(".."), text.size());
  const auto low = parse_number<int64_t>(text.substr(0, dots));
  const auto high = parse_number<int64_t>(text.substr(std::min(dots + 2, text.size())));
  if (!low || !high || !kLengths.contain(*low) || !kLengths.contain(*high) || *low > *high) {
    return error(fmt::format("--length is '{}', must be LOW..HIGH with 1 <= LOW <= HIGH <= {}", text, kLengths.most),
                 {}, {}, Fault::kUsage);
  }
  return std::pair(static_cast<int>(*low), static_cast<int>(*high));
}

struct FuzzAccel {
  std::vector<std::string> configs = {"default"};
  std::string length = "50..200", profile = "any", against = "lockstep";
  uint64_t seed = 0;
  int64_t count = 200, shrink = 500;
  uint64_t cycles = uint64_t{1} << 32;
  std::string reproducer, coverage;
  bool json = false, quiet = false;

  Status run() const {
    TENON_TRY_ASSIGN(range, parse_length(length));
    sim::fuzz::CampaignOptions options;
    options.seed =
        seed != 0 ? seed : static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    options.count = static_cast<int>(count);
    options.shrink_budget = static_cast<int>(shrink);
    options.generator.min_length = range->first;
    options.generator.max_length = range->second;
    if (profile != "any") options.generator.profile = profile == "base" ? spec::Profile::kBase : spec::Profile::kNative;

    Json out;
    out.begin_object().field("seed", options.seed).key("configurations").begin_array();
    Status status;
    for (const std::string& name : configs) {
      if (status = run_configuration(name, options, out); !status) break;
    }
    if (json) print_stdout("{}", out.end().end().str());
    return status;
  }

  Status run_configuration(const std::string& name, sim::fuzz::CampaignOptions options, Json& out) const {
    options.config = name;
    TENON_TRY_ASSIGN(config, spec::load_config(name));
    TENON_TRY(sim::fuzz::check_memory(*config));
    std::unique_ptr<CampaignCoverage> reached;
    if (!coverage.empty()) {
      TENON_TRY_ASSIGN(made, CampaignCoverage::make(*config, coverage, counts_lines(against)));
      reached = std::move(*made);
    }
    // A device that cannot be opened at all is the machine's fault, not a finding.
    TENON_TRY(driver::open(fmt::format("{}:{}{}", against, name, reached ? reached->device_option('?') : "")));
    const auto runner = [&](const sim::fuzz::Program& program) -> Status {
      const std::string uri = device(against, name, program) + (reached ? reached->device_option('&') : "");
      TENON_TRY_ASSIGN(opened, driver::open(uri));
      sim::Simulator& simulator = *(*opened)->simulator();
      return reached ? reached->run(simulator, program, cycles) : sim::fuzz::run_disturbed(simulator, program, cycles);
    };
    const auto begin = std::chrono::steady_clock::now();
    int passed = 0;
    const auto progress = [&](const sim::fuzz::Program&) {
      ++passed;
      if (!quiet && passed % 20 == 0) print_stderr("{}: {} of {}\n", name, passed, options.count);
    };
    const auto result = sim::fuzz::campaign(*config, options, runner, progress);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    out.begin_object().field("config", name).field("programs", result.programs);
    out.field("instructions", result.instructions).field("seconds", seconds.count());
    out.field("failure", result.failure ? result.failure->report : "");
    const Expected<std::string> summary = reached ? reached->finish(out) : Expected<std::string>("");
    out.end();
    if (result.failure) {
      return error(fmt::format("the programs of configuration {} differ\n{}", name, result.failure->report), "fuzz",
                   kept(name, options, *result.failure), Fault::kInternal);
    }
    if (!json) {
      print_stdout("{}: {} programs, {} instructions, seeds {} to {}, all equal, {:.0f} s\n", name, result.programs,
                   result.instructions, options.seed, options.seed + static_cast<uint64_t>(options.count) - 1,
                   seconds.count());
    }
    TENON_TRY(summary);
    if (!json) print_stdout("{}", *summary);
    return {};
  }

  // Keeps the smallest program that fails as a reproducer.
  std::string kept(const std::string& name, const sim::fuzz::CampaignOptions& options,
                   const sim::fuzz::Failure& failure) const {
    driver::Reproducer found = reproducer_of(failure.smallest);
    found.device = device(against, name, failure.smallest);
    found.origin = sim::fuzz::command(name, failure.seed, options.generator);
    found.reported = failure.remaining.what;
    auto opened = driver::open(found.device);
    if (!opened) return opened.error().str();
    return driver::keep_mismatch(std::move(found), **opened, reproducer);
  }
};

}  // namespace

Action fuzz_accel(Options& options) {
  auto command = std::make_shared<FuzzAccel>();
  options.option(command->configs, "-c,--config", "NAME", "configurations, one after the other");
  options.option(command->count, "-n,--count", "N", "programs for each", {.least = 1});
  options.option(command->seed, "--seed", "N", "seed of the first program, the next ones count up; 0: from the clock",
                 {});
  options.option(command->length, "--length", "LOW..HIGH", "instructions of a program");
  options.choice(command->profile, "--profile", {"any", "base", "native"}, "the instruction set");
  options.option(command->against, "--device", "SCHEME",
                 "lockstep: RTL beside the behavioral simulator; or any other simulator alone");
  options.option(command->cycles, "--cycles", "N", "largest number of cycles of a launch; more are a failure",
                 {.least = 1});
  options.option(command->shrink, "--shrink", "RUNS", "largest number of runs that shrink a failing program",
                 {0, INT32_MAX});
  options.option(command->reproducer, "--reproducer", "DIR",
                 "directory for the reproducer that repeats a failure; default: mismatch-N in the working directory");
  options.option(
      command->coverage, "--coverage", "DIR",
      "writes what the programs cover into DIR/NAME: fields.txt, of the instructions; annotated/, the lines of "
      "the RTL");
  options.flag(command->quiet, "-q,--quiet", "no progress");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
