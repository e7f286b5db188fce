#include "tests/cosim/conformance_transports.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/driver/serial/emulated_board.h"
#include "tests/driver/uio/emulated_zynq.h"
#ifdef TENON_REMOTE
#include "tests/driver/remote/served.h"
#endif
#ifdef TENON_XRT_SHIM
#include "driver/xrt/xclbin.h"
#endif

namespace tenon::driver {
namespace {

namespace base = spec::base;

constexpr uint64_t kPhysical = 0x1000'0000;

Column simulator(std::string name, std::string doc, std::string uri) {
  return {.name = std::move(name), .doc = std::move(doc), .in_process = true, .uri = [uri] { return uri; }};
}

Column systemc(std::string name, std::string doc, [[maybe_unused]] std::string uri) {
  Column column{.name = std::move(name), .doc = std::move(doc), .in_process = true, .one_opening = true};
#ifdef TENON_SYSTEMC
  column.uri = [uri] { return uri; };
#endif
  return column;
}

Column xrt(std::string name, std::string doc, [[maybe_unused]] const char* model) {
  Column column{.name = std::move(name), .doc = std::move(doc)};
#ifdef TENON_XRT_SHIM
  column.uri = [model] {
    setenv("TENON_XRT_MODEL", model, 1);
    return "xrt:0?xclbin=" + xrt_design(1);
  };
  column.wrong_uri = [model] {
    setenv("TENON_XRT_MODEL", model, 1);
    setenv("TENON_XRT_CONFIG", "tiny", 1);
    return "xrt:0?xclbin=" + xrt_design(1, "default");
  };
#endif
  return column;
}

Column emulated(std::string name, std::string doc, bool rtl) {
  const auto uri = [rtl] {
    static const EmulatedZynq board({.root = {},
                                     .config = spec::load_config("tiny").value(),
                                     .rtl = rtl,
                                     .memory_bytes = 1 << 20,
                                     .physical = kPhysical});
    return board.uri();
  };
  return {.name = std::move(name),
          .doc = std::move(doc),
          .memory_end = kPhysical + (1 << 20),
          .uri = uri,
          .wrong_uri = [uri] { return uri() + "&config=default"; }};
}

// A board with a serial line; `noise`: of a million bytes, so many are lost, flipped and duplicated.
Column serial_line(std::string name, std::string doc, uint32_t noise) {
  const auto uri = [noise] {
    static const EmulatedBoard board(bridge_of("tiny", 1 << 20),
                                     {.lost = noise, .flipped = noise, .duplicated = noise, .seed = 1});
    return board.uri("&timeout=200");
  };
  return {.name = std::move(name),
          .doc = std::move(doc),
          .coherent = true,
          .memory_end = spec::serial::memory_end(1 << 20),
          .uri = uri,
          .wrong_uri = [uri] { return uri() + "&config=default"; }};
}

// A device that another process serves. A client waits for it, since the server needs a moment to notice a killed one.
Column served(std::string name, std::string doc, uint64_t memory_end, [[maybe_unused]] std::string (*device)()) {
  Column column{.name = std::move(name), .doc = std::move(doc), .remote = true, .memory_end = memory_end};
#ifdef TENON_REMOTE
  const auto uri = [device] {
    static const Served server({"--device", device()});
    return server.uri("/0?wait=3");
  };
  column.uri = uri;
  column.wrong_uri = [uri] { return uri() + "&config=default"; };
#endif
  return column;
}

std::string emulated_zynq() {
  static const EmulatedZynq board(
      {.root = {}, .config = spec::load_config("tiny").value(), .memory_bytes = 1 << 20, .physical = kPhysical});
  return board.uri();
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Column& column) { return stream << column.name; }

const std::vector<Column>& all_columns() {
  static const std::vector<Column> list = {
      simulator("behavioral", "`behavioral:`", "behavioral:tiny?memory=1M"),
      simulator("verilator", "`verilator:`", "verilator:tiny?memory=1M"),
      simulator("verilator_stalls", "`verilator:` stalls=40, interleave=on, writes=any",
                "verilator:tiny?memory=1M&stalls=40&interleave=on&writes=any"),
      simulator("verilator_slow", "`verilator:` latency=300, outstanding=1, writes=data, late_ready=on",
                "verilator:tiny?memory=1M&latency=300&outstanding=1&writes=data&late_ready=on"),
      simulator("lockstep", "`lockstep:` stalls=10", "lockstep:tiny?memory=1M&stalls=10"),
      systemc("systemc", "`systemc:`", "systemc:tiny?memory=1M"),
      systemc("systemc_transport", "`systemc:` dmi=off", "systemc:tiny?memory=1M&dmi=off"),
      systemc("systemc_rtl", "`systemc:` model=rtl", "systemc:tiny?memory=1M&model=rtl"),
      xrt("xrt", "`xrt:`, emulated", "behavioral"),
      xrt("xrt_rtl", "`xrt:`, emulated, RTL", "rtl"),
      emulated("uio", "`uio:`, emulated", false),
      emulated("uio_rtl", "`uio:`, emulated, RTL", true),
      serial_line("serial", "`serial:`, emulated", 0),
      serial_line("serial_noise", "`serial:`, emulated, 0.03 % of the bytes lost, flipped or doubled", 100),
      served("remote", "`remote:`, of `behavioral:`", 1 << 20, [] { return std::string("behavioral:tiny?memory=1M"); }),
      served("remote_uio", "`remote:`, of `uio:`", kPhysical + (1 << 20), emulated_zynq)};
  return list;
}

std::vector<Column> columns() {
  std::vector<Column> built;
  for (const Column& column : all_columns()) {
    if (column.uri) built.push_back(column);
  }
  return built;
}

std::vector<spec::Instruction> copy_program(int times) {
  std::vector<spec::Instruction> program;
  for (int i = 0; i < times; ++i) {
    base::Load load;
    load.memory_type = static_cast<int64_t>(base::MemoryType::kAcc8);
    load.y_size = 1, load.x_size = kCopiedElements, load.x_stride = kCopiedElements;
    load.push_next = 1;
    load.pop_next = i > 0;
    base::Store store;
    store.memory_type = static_cast<int64_t>(base::MemoryType::kOut);
    store.y_size = 1, store.x_size = kCopiedElements, store.x_stride = kCopiedElements;
    store.pop_prev = 1;
    store.push_prev = i + 1 < times;
    program.insert(program.end(), {load, store});
  }
  program.emplace_back(base::Finish{});
  return program;
}

#ifdef TENON_XRT_SHIM
std::string xrt_design(int units, const std::string& config) {
  static const Scratch scratch;
  setenv("XILINX_XRT", TENON_XRT_SHIM, 1);
  setenv("TENON_XRT_BOARD", scratch.path().c_str(), 1);
  Xclbin xclbin =
      make_xclbin(spec::load_config(config).value(), {.units = units, .memory_bytes = 1 << 20, .bitstream = {}});
  const auto bytes = to_bytes(xclbin);
  const auto file = scratch.path() / fmt::format("{}-{}.xclbin", config, units);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file;
}
#endif

Holder::Holder(const std::string& uri, bool running) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    execl("/proc/self/exe", "holder", "--hold", uri.c_str(), running ? "running" : "idle", nullptr);
    _exit(1);
  }
  close(ends[1]);
  char byte = 0;
  holds_ = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
}

void Holder::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

int hold(const std::string& uri, bool running) {
  auto accelerator = open(uri);
  if (!accelerator) {
    fmt::print(stderr, "{}\n", accelerator.error().str());
    return 1;
  }
  if (running) {
    const spec::Isa isa((*accelerator)->info().config);
    std::vector<spec::Slot> slots;
    for (const auto& instruction : copy_program(2000)) (void)isa.encode(instruction, slots);
    const auto stream = (*accelerator)->allocate(slots.size() * spec::kSlotBytes);
    const auto data = (*accelerator)->allocate(1 << 12);
    if (!stream || !data || !(*accelerator)->write(*stream, 0, std::as_bytes(std::span(slots)))) return 1;
    Launch launch{
        .profile = spec::Profile::kBase, .instructions = stream->address, .count = static_cast<uint32_t>(slots.size())};
    launch.bases.fill(data->address);
    if (!start(**accelerator, launch)) return 1;
    const auto idle = (*accelerator)->wait_idle(std::chrono::microseconds(20));
    if (!idle || *idle) return 1;
  }
  fmt::print("x");
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace tenon::driver
