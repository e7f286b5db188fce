// tenon doctor: the tools and devices of this machine, which are missing, for which purpose, and how to get them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "compiler/cli/command.h"
#include "driver/accelerator.h"
#include "hw/spec/config.h"
#include "runtime/library/library.h"
#include "runtime/native/native.h"
#include "support/json.h"

namespace tenon::cli {
namespace {

// An optional tool: a program in PATH, or the header of a library.
struct Tool {
  std::string_view name;
  std::string_view program;   // or, with a slash, a file
  std::string_view question;  // the option that makes the program print its version; empty: it has none
  std::string_view purpose;
  std::string_view remedy;
};

constexpr Tool kTools[] = {
    {"g++", "g++", "--version", "verilator: devices (compiles the model)", "apt-get install g++"},
    {"make", "make", "--version", "verilator: devices", "apt-get install make"},
    {"verilator", "verilator", "--version", "verilator: devices, tenon fuzz accel", "apt-get install verilator"},
    {"ccache", "ccache", "--version", "faster second builds", "apt-get install ccache"},
    {"yosys", "yosys", "-V", "lint and cell counts of the RTL", "apt-get install yosys"},
    {"iverilog", "iverilog", "-V", "simulation of netlists", "apt-get install iverilog"},
    {"systemc", "/usr/include/systemc.h", "", "the TLM-2.0 virtual platform", "apt-get install libsystemc-dev"},
    {"xrt", "/usr/include/xrt/xrt.h", "", "xrt: devices (boards with XRT, and the emulated one)",
     "apt-get install libxrt-dev uuid-dev"},
    {"dtc", "dtc", "--version", "device-tree overlays of Zynq boards", "apt-get install device-tree-compiler"},
    {"g++ arm64", "aarch64-linux-gnu-g++", "--version", "tenon-run for 64-bit ARM boards: scripts/cross",
     "apt-get install g++-aarch64-linux-gnu"},
    {"g++ armhf", "arm-linux-gnueabihf-g++", "--version", "tenon-run for 32-bit ARM boards: scripts/cross",
     "apt-get install g++-arm-linux-gnueabihf"},
    {"qemu-user", "qemu-aarch64", "--version", "running programs built for boards", "apt-get install qemu-user"},
    {"tclsh", "tclsh", "", "checks of the scripts for Vitis", "apt-get install tcl"},
    {"xmllint", "xmllint", "", "checks of kernel.xml", "apt-get install libxml2-utils"},
    {"valgrind", "valgrind", "--version", "the emulated XRT device under it", "apt-get install valgrind"},
    {"vivado", "vivado", "-version", "building for boards: tenon hw package, build.sh",
     "AMD's Vitis with Vivado, then . settings64.sh"},
    {"v++", "v++", "--version", "building for boards with XRT: tenon hw package, build.sh",
     "AMD's Vitis with the board's platform, then . settings64.sh"},
    {"clang 19", "clang++-19", "--version", "the presets asan, tsan and fuzz",
     "apt-get install clang-19 libclang-rt-19-dev"},
};

std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream parts(path == nullptr ? "" : path);
  for (std::string part; std::getline(parts, part, ':');) {
    const std::string candidate = part + "/" + std::string(name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

// The first line with a version; some tools print an empty line first.
std::string version(const Tool& tool) {
  const std::string command = fmt::format("{} {} 2>/dev/null </dev/null", tool.program, tool.question);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    if (text.empty()) text = line.data();
  }
  pclose(pipe);
  return text.substr(0, text.find('\n')).substr(0, 60);
}

struct Finding {
  std::string name, found, purpose, remedy;
};

Finding examine(const Tool& tool) {
  Finding finding{std::string(tool.name), "", std::string(tool.purpose), std::string(tool.remedy)};
  if (tool.program.starts_with('/')) {
    if (std::filesystem::exists(tool.program)) finding.found = tool.program;
    return finding;
  }
  finding.found = find_program(tool.program);
  if (finding.found.empty() || tool.question.empty()) return finding;
  if (std::string line = version(tool); !line.empty()) finding.found = std::move(line);
  return finding;
}

std::string cpu_note() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) return "AVX-512 with VNNI: the behavioral simulator's fastest kernels";
  if (__builtin_cpu_supports("avx2")) return "AVX2: the behavioral simulator takes its second kernels";
#endif
  return "no AVX2: the behavioral simulator takes its portable kernels, which are several times slower";
}

std::string native_note() {
  return fmt::format("native kernels: {}, levels {}", runtime::host_architecture(),
                     fmt::join(runtime::host_levels(), ", "));
}

std::string library_note(std::string_view name) {
  const auto library = runtime::open_library(name);
  if (library) {
    const std::string_view doc = runtime::doc(**library);
    return fmt::format("ready{}{}", doc.empty() ? "" : ": ", doc);
  }
  return fmt::format("{}; {}", library.error().what, library.error().help);
}

struct Doctor {
  bool json = false;

  Status run() const {
    std::vector<Finding> findings;
    for (const Tool& tool : kTools) findings.push_back(examine(tool));
    return json ? print_json(findings) : print_text(findings);
  }

  Status print_text(const std::vector<Finding>& findings) const {
    print_stdout("Processor\n  {}\n  {}\n\nTools\n", cpu_note(), native_note());
    for (const Finding& f : findings) {
      if (f.found.empty()) print_stdout("  {:<11}missing; for {}; get it: {}\n", f.name, f.purpose, f.remedy);
      else print_stdout("  {:<11}{}\n", f.name, f.found);
    }
    print_stdout("\nDevices\n");
    for (const auto& transport : driver::transports()) {
      const std::string missing = transport.missing();
      print_stdout("  {:<13}{}\n", transport.scheme + ":", missing.empty() ? "ready: " + transport.doc : missing);
    }
    print_stdout("\nLibraries of kernels\n");
    for (const std::string& name : runtime::library_names()) print_stdout("  {:<13}{}\n", name, library_note(name));
    print_stdout("\nConfigurations\n");
    Status status;
    for (const std::string& name : spec::named_configs()) {
      auto config = spec::load_config(name);
      print_stdout("  {:<16}{}\n", name, config ? "good" : config.error().str());
      if (!config) status = error(fmt::format("configuration {} is broken", name));
    }
    return status;
  }

  Status print_json(const std::vector<Finding>& findings) const {
    Json out;
    out.begin_object().field("processor", cpu_note()).field("native", native_note()).key("tools").begin_array();
    for (const Finding& f : findings) {
      out.begin_object().field("name", f.name).field("found", f.found).field("for", f.purpose);
      out.field("remedy", f.remedy).end();
    }
    out.end().key("devices").begin_array();
    for (const auto& transport : driver::transports()) {
      out.begin_object().field("scheme", transport.scheme).field("missing", transport.missing()).end();
    }
    out.end().key("libraries").begin_array();
    for (const std::string& name : runtime::library_names())
      out.begin_object().field("name", name).field("state", library_note(name)).end();
    out.end().key("configurations").begin_array();
    for (const std::string& name : spec::named_configs()) {
      auto config = spec::load_config(name);
      out.begin_object().field("name", name).field("fault", config ? "" : config.error().str()).end();
    }
    print_stdout("{}", out.end().end().str());
    return {};
  }
};

}  // namespace

Action doctor(Options& options) {
  auto command = std::make_shared<Doctor>();
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
