#include "sim/verilator/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "hw/generator/generator.h"
#include "hw/spec/data_path.h"
#include "hw/spec/isa.h"
#include "sim/verilator/cache.h"
#include "sim/verilator/process.h"
#include "sim/verilator/profile.h"
#include "support/clock.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHarnessFiles[] = {"harness.cpp", "axi_memory.h", "abi.h"};
// --x-initial unique: registers and memories without a reset start with random contents that depend on the seed.
constexpr std::string_view kVerilatorFlags =
    "--cc --top-module tenon --prefix Vtenon -O3 --x-assign fast --x-initial unique --assert -Wno-fatal "
    "--timescale 1ns/1ps --output-split 20000 -DTENON_TRACE";
constexpr std::string_view kFastDotFlag = "-DTENON_FAST_DOT";
// With vectorization, GCC 12 generates code that is 5 % slower for Verilator's output.
constexpr std::string_view kCompilerFlags = "-std=c++20 -O2 -fno-tree-vectorize -fPIC -fvisibility=hidden -w";

constexpr std::string_view kInstallHelp = "sudo apt-get install verilator make g++";

// The contents of a file; empty if it cannot be read.
std::string text_of(const fs::path& file) { return read_text(file).value_or(std::string()); }

class Fnv {
 public:
  void add(std::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    hash_ = (hash_ ^ 0xff) * 0x100000001b3;  // separates texts, so that two lists with equal concatenations differ
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

Expected<fs::path> harness_directory() {
  const auto candidates = spec::data_path("sim/verilator");
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate / kHarnessFiles[0], ignored)) return candidate;
  }
  return error("the harness of the Verilated model is missing", candidates.back().string(),
               "install Tenon again, or keep its source tree");
}

std::vector<std::string> split_flags(std::string_view text) {
  std::vector<std::string> list;
  for (size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find(' '), text.size());
    list.emplace_back(text.substr(0, end));
  }
  return list;
}

// The C++ compiler of models. Clang is preferred where it is installed: it compiles Verilator's code faster, to faster
// code, and with a profile of a build without optimization.
struct Compiler {
  std::string name = "c++";
  fs::path profile_tool = {};  // llvm-profdata of the same version; empty: models are built without a profile
  std::vector<fs::path> profile_runtimes = {};  // the libraries that count; without any there is no profile
};

Compiler find_compiler() {
  for (const char* name : {"clang++-19", "clang++"}) {
    const auto file = find_program(name);
    if (!file) continue;
    std::error_code fault;
    const fs::path tool = fs::canonical(*file, fault).parent_path() / "llvm-profdata";
    Compiler compiler{.name = name, .profile_tool = fs::is_regular_file(tool, fault) ? tool : fs::path()};
    // lib/clang/VERSION/lib/TARGET/libclang_rt.profile*.a
    const fs::path libraries = tool.parent_path().parent_path() / "lib/clang";
    for (fs::recursive_directory_iterator file(libraries, fault), end; !fault && file != end; file.increment(fault)) {
      if (file->path().filename().string().starts_with("libclang_rt.profile")) {
        compiler.profile_runtimes.push_back(file->path());
      }
    }
    std::ranges::sort(compiler.profile_runtimes);
    if (compiler.profile_runtimes.empty()) compiler.profile_tool.clear();
    return compiler;
  }
  return {};
}

// The rules of model.so and of instrumented.so, whose run makes model.profile. Files that run once, at the start of a
// simulation, are compiled without a profile, for both.
std::string makefile(const fs::path& verilator_include, const spec::Config& config, const BuildOptions& options,
                     const Compiler& compiler, bool ccache) {
  std::vector<std::string> runtime = {(verilator_include / "verilated.cpp").string(),
                                      (verilator_include / "verilated_threads.cpp").string()};
  if (options.vcd) runtime.push_back((verilator_include / "verilated_vcd_c.cpp").string());
  if (options.coverage) runtime.push_back((verilator_include / "verilated_cov.cpp").string());
  return fmt::format(
      "CXX := {ccache}{compiler}\n"
      "CXXFLAGS := {flags} -I. -Imodel -I{include} -I{include}/vltstd -DTENON_AXI_BYTES={axi} "
      "-DTENON_ENGINES={engines} "
      "-DVL_USER_FINISH -DVL_USER_STOP -DVL_USER_FATAL -DVM_TRACE={vcd} -DVM_COVERAGE={coverage} -DVM_SC=0 {define}\n"
      "LINK := {compiler} -shared -pthread -Wl,-Bsymbolic -Wl,-z,defs\n"
      "MODEL := $(notdir $(wildcard model/*.cpp))\n"
      "COLD := $(filter %__Slow.cpp %__Syms.cpp,$(MODEL)) {runtime}\n"
      "HOT := harness.cpp $(filter-out $(COLD),$(MODEL))\n"
      "COLD_OBJECTS := $(patsubst %.cpp,%.o,$(notdir $(COLD)))\n"
      "VPATH := . model {include}\n"
      "model.so: $(HOT:.cpp=.o) $(COLD_OBJECTS)\n"
      "\t$(LINK) -o $@ $^\n"
      "instrumented.so: $(HOT:.cpp=.counted.o) $(COLD_OBJECTS)\n"
      "\t$(LINK) -fprofile-instr-generate -o $@ $^\n"
      "$(HOT:.cpp=.o): CXXFLAGS += {profile}\n"
      "%__Slow.o: CXXFLAGS += -O0\n"
      "%.o: %.cpp\n"
      "\t$(CXX) $(CXXFLAGS) -c -o $@ $<\n"
      "%.counted.o: %.cpp\n"
      "\t$(CXX) $(CXXFLAGS) -O0 -fprofile-instr-generate -DTENON_PROFILE -c -o $@ $<\n",
      fmt::arg("ccache", ccache ? "ccache " : ""), fmt::arg("compiler", compiler.name),
      fmt::arg("flags", kCompilerFlags), fmt::arg("include", verilator_include.string()),
      fmt::arg("axi", config.axi_bytes()), fmt::arg("engines", spec::kEngines), fmt::arg("vcd", options.vcd ? 1 : 0),
      fmt::arg("coverage", options.coverage ? 1 : 0), fmt::arg("define", options.vcd ? "-DTENON_VCD" : ""),
      fmt::arg("runtime", fmt::join(runtime, " ")),
      fmt::arg("profile", compiler.profile_tool.empty()
                              ? ""
                              : "$(if $(wildcard model.profile),-fprofile-instr-use=model.profile)"));
}

// The output of a short command; empty if it fails.
std::string output_of(const std::vector<std::string>& command, const fs::path& work) {
  const int status = run_program(command, work, work / "output.txt");
  std::string text = status == 0 ? text_of(work / "output.txt") : std::string();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Identifies the version of a program by its file, which an upgrade changes; running it with --version takes 0.1 s.
std::string identity_of(const fs::path& program) {
  std::error_code ignored;
  const fs::path file = fs::canonical(program, ignored);
  return fmt::format("{} {} {}", file.string(), fs::file_size(file, ignored),
                     fs::last_write_time(file, ignored).time_since_epoch().count());
}

// Makes model.profile in `work` by a run of an instrumented model, for the compilation of model.so. Where that fails,
// for instance because the compiler fails, the log says why, and the model is built without.
void make_profile(const spec::Config& config, const Compiler& compiler, const std::string& jobs, const fs::path& work,
                  const fs::path& log) {
  const auto say = [&](std::string_view text) { std::ofstream(log, std::ios::app) << text << '\n'; };
  if (run_program({"make", "-j", jobs, "instrumented.so"}, work, log) != 0) {
    return say("no profile: the compiler cannot make an instrumented model");
  }
  if (const Status run = write_profile(config, work / "instrumented.so", work / "raw.profile"); !run) {
    return say(fmt::format("no profile: {}", run.error().str()));
  }
  if (run_program({compiler.profile_tool.string(), "merge", "-o", "model.profile", "raw.profile"}, work, log) != 0) {
    return say("no profile: llvm-profdata fails");
  }
  say("the model is compiled with the profile of a run");
}

// Builds in `work`: sources, model, objects, model.so.
Status build(const spec::Config& config, const BuildOptions& options, const Compiler& compiler, const fs::path& harness,
             const fs::path& work, const fs::path& log) {
  const auto fail = [&](const std::string& what, std::string help = {}) -> Status {
    if (help.empty()) help = fmt::format("see what the tools printed in {}", log.string());
    return error(fmt::format("building the Verilated model of {}: {}", config.name, what), {}, std::move(help),
                 Fault::kInternal);
  };
  TENON_TRY_ASSIGN(sources, generator::generate(config, work));
  std::error_code fault;
  for (const auto& file : kHarnessFiles) {
    fs::copy_file(harness / file, work / file, fs::copy_options::overwrite_existing, fault);
    if (fault) return fail(fmt::format("cannot copy {}: {}", file, fault.message()));
  }
  std::vector<std::string> command = {"verilator"};
  std::ranges::copy(split_flags(kVerilatorFlags), std::back_inserter(command));
  if (options.vcd) command.insert(command.end(), {"--trace", "--trace-structs"});
  if (options.coverage) command.emplace_back("--coverage-line");
  if (options.fast_dot) command.emplace_back(kFastDotFlag);
  command.insert(command.end(), {"--Mdir", "model", "-f", "files.f"});
  if (const int status = run_program(command, work, log); status != 0) {
    return fail(fmt::format("verilator ends with status {}", status));
  }
  const fs::path include = fs::path(output_of({"verilator", "--getenv", "VERILATOR_ROOT"}, work)) / "include";
  const bool ccache = find_program("ccache").has_value();
  const std::string jobs = std::to_string(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  const auto make_model = [&](const Compiler& with) {
    std::ofstream(work / "Makefile") << makefile(include, config, options, with, ccache);
    if (!with.profile_tool.empty()) make_profile(config, with, jobs, work, log);
    return run_program({"make", "-j", jobs, "model.so"}, work, log);
  };
  int status = make_model(compiler);
  if (status != 0 && compiler.name != Compiler().name) {  // for instance a Clang without C++ headers
    for (const auto& entry : fs::directory_iterator(work, fault)) {
      std::error_code ignored;
      if (entry.path().extension() == ".o") fs::remove(entry.path(), ignored);
    }
    status = make_model({});
  }
  if (status != 0) return fail(fmt::format("the C++ compiler or linker ends with status {}", status));
  return {};
}

}  // namespace

std::string missing_verilator_tools() {
  std::vector<std::string_view> missing;
  for (const char* tool : {"verilator", "make", "c++"}) {
    if (!find_program(tool)) missing.push_back(tool);
  }
  if (missing.empty()) return {};
  return fmt::format("{} not found in PATH; install: {}", fmt::join(missing, ", "), kInstallHelp);
}

Expected<fs::path> build_verilated_model(const spec::Config& config, const BuildOptions& options) {
  TENON_TRY(spec::validate(config, config.name));
  if (const std::string missing = missing_verilator_tools(); !missing.empty()) {
    return error(fmt::format("the Verilated model of {} cannot be built: {}", config.name, missing), {},
                 "or use behavioral:, which needs no tools", Fault::kInternal);
  }
  TENON_TRY_ASSIGN(cache, cache_directory());
  TENON_TRY_ASSIGN(rtl, generator::rtl_directory());
  TENON_TRY_ASSIGN(harness, harness_directory());

  Fnv hash;
  for (const auto& source : generator::generated_sources(config)) hash.add(source.text);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(*rtl)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : kHarnessFiles) files.push_back(*harness / file);
  for (const fs::path& file : files) {
    hash.add(file.filename().string());
    hash.add(text_of(file));
  }
  const Compiler compiler = find_compiler();
  for (const std::string& tool : {std::string("verilator"), compiler.name}) hash.add(identity_of(*find_program(tool)));
  if (!compiler.profile_tool.empty()) {
    hash.add(identity_of(compiler.profile_tool));
    for (const fs::path& runtime : compiler.profile_runtimes) hash.add(identity_of(runtime));
  }
  hash.add(kVerilatorFlags);
  hash.add(options.fast_dot ? kFastDotFlag : "");
  hash.add(makefile("", config, options, compiler, false));

  remove_interrupted(*cache);
  const CacheEntry entry(*cache, fmt::format("verilator-{:016x}", hash.value()));
  const fs::path model = entry.ready / "model.so";
  std::error_code fault;
  if (fs::is_regular_file(model, fault)) return model;
  const FileLock lock(entry.lock, FileLock::kWait);
  if (!lock.held()) return error("cannot lock the cache", cache->string(), "set TENON_CACHE to a writable directory");
  if (fs::is_regular_file(model, fault)) return model;  // another process has built the model meanwhile

  const Stopwatch stopwatch;
  const auto report = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  report(fmt::format("building the Verilated model of {} (once; about a minute; log: {})", config.name,
                     entry.log.string()));
  remove_work(entry);
  fs::create_directories(entry.work, fault);
  if (fault) return error(fmt::format("cannot create a directory: {}", fault.message()), entry.work.string());
  const Status built = build(config, options, compiler, *harness, entry.work, entry.log);
  if (!built) discard(entry.work);
  TENON_TRY(built);

  // model.so alone moves into a directory that is then renamed: a reader sees the whole entry or no entry.
  const fs::path parts = entry.work / "ready";
  fs::create_directories(parts, fault);
  fs::rename(entry.work / "model.so", parts / "model.so", fault);
  if (!fault) fs::rename(entry.log, parts / "build.log", fault);
  std::ofstream(parts / "config.json") << spec::to_json(config);
  if (!fault) fs::rename(parts, entry.ready, fault);
  if (fault) {
    return error(fmt::format("cannot move the Verilated model into the cache: {}", fault.message()),
                 entry.ready.string());
  }
  discard(entry.work);
  report(fmt::format("built in {:.0f} s", stopwatch.seconds()));
  return model;
}

}  // namespace tenon::sim
