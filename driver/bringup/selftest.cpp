#include "driver/bringup/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "driver/bringup/programs.h"
#include "driver/bringup/replay.h"
#include "driver/identity.h"
#include "support/clock.h"
#include "support/pages.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace reg = spec::reg;
constexpr double kClockTolerance = 0.05;
constexpr size_t kMinWords = 512;
constexpr auto kLimit = std::chrono::seconds(10);
constexpr double kMinSeconds = 0.02;  // of wall time for a reliable rate

// The result of a check: a figure, or a failure.
struct Finding {
  std::string figure, failure;
  std::optional<Reproducer> reproducer;
  std::string next = {};  // advice; empty: the check's own advice
};
Finding passed(std::string figure) { return {std::move(figure), {}, {}}; }
Finding failed(std::string failure) { return {{}, std::move(failure), {}}; }
// A failure of the driver, whose advice takes precedence.
Finding failed(const Diagnostic& diagnostic) {
  Finding finding = failed(diagnostic.what);
  finding.next = diagnostic.help;
  return finding;
}

class Selftest {
 public:
  Selftest(Accelerator& accelerator, const SelftestOptions& options) : device_(accelerator), options_(options) {}

  std::vector<Check> run() {
    add("identity", identity(),
        "is this the bitstream that was built? Is the clock on, the reset released, the address of the registers "
        "right?");
    add("registers", registers(),
        "look at s_axi_control: address map, write strobes, a register slice that swaps or drops transfers");
    add("memory walking ones", memory("walking ones", [](size_t i) { return uint64_t{1} << (i % 64); }),
        "a data line is stuck or two are tied: look at the memory's interface, then at the host's mapping");
    add("memory address in address", memory("address in address", [](size_t i) { return 8 * i; }),
        "an address line is stuck, or two addresses of the buffer alias: look at the address map and the mapping's "
        "size");
    Random random(options_.seed);
    add("memory random", memory("random", [&](size_t) { return random.next(); }),
        "patterns pass, random data fails: caches that are not synchronized, or a memory at its timing limit");
    const int64_t vectors = 256;
    add("loopback", launched(loopback(device_.info().config, vectors, 1, options_.seed)),
        "the host's access to memory works, the accelerator's access fails: m_axi_gmem's connection, address offset, "
        "width");
    add("clock", clock(), "look at the clock's source and its constraint; a counter that does not count has no clock");
    for (const auto profile : {spec::Profile::kBase, spec::Profile::kNative}) {
      const spec::Config& config = device_.info().config;
      if (profile == spec::Profile::kBase ? !config.base : !config.native) continue;
      add(fmt::format("gemm {}", name(profile)), launched(gemm(config, profile, options_.seed)),
          "transfers work, the product is wrong: did the design meet its timing? Replay the reproducer on lockstep:");
    }
    return std::move(checks_);
  }

 private:
  void add(std::string name, Finding finding, std::string_view next) {
    Check check{.name = std::move(name),
                .passed = finding.failure.empty(),
                .figure = std::move(finding.figure),
                .failure = std::move(finding.failure),
                .next = {},
                .reproducer = std::move(finding.reproducer)};
    if (!check.passed) check.next = finding.next.empty() ? std::string(next) : std::move(finding.next);
    checks_.push_back(std::move(check));
  }

  Finding identity() {
    const auto version = device_.read_register(reg::kVersion);
    if (!version) return failed(version.error());
    const uint32_t expected = uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion;
    if (*version != expected) {
      return failed(fmt::format("VERSION reads {:#010x}, must be {:#010x}{}", *version, expected,
                                *version == 0 || *version == 0xffffffff ? ": no device answers at this address" : ""));
    }
    const auto hash = read_hash(device_);
    if (!hash) return failed(hash.error());
    const spec::Config& config = device_.info().config;
    if (*hash != spec::hash(config)) {
      return failed(fmt::format("CONFIG_HASH reads {:016x}, configuration {} has {:016x}", *hash, config.name,
                                spec::hash(config)));
    }
    return passed(fmt::format("configuration {}, hash {:016x}, instruction set {}, register map {}", config.name, *hash,
                              *version >> 16, *version & 0xffff));
  }

  // Writes walking ones and their complements to all argument registers, then reads all of them.
  Finding registers() {
    const auto written = check_written_registers();
    return written ? *written : failed(written.error());
  }

  Expected<Finding> check_written_registers() {
    std::vector<uint32_t> offsets = {reg::kInstructions, reg::kInstructions + 4, reg::kCount};
    for (uint32_t i = 0; i < 2 * spec::kBases; ++i) offsets.push_back(reg::kBase0 + 4 * i);
    const auto bits = [&](size_t i) { return spec::argument_bits(device_.info().config, offsets[i]); };
    size_t accesses = 0;
    for (int bit = 0; bit < 32; ++bit) {
      for (const uint32_t flip : {0u, ~0u}) {
        const auto value = [&](size_t i) { return (uint32_t{1} << ((static_cast<size_t>(bit) + i) % 32)) ^ flip; };
        for (size_t i = 0; i < offsets.size(); ++i, ++accesses) {
          TENON_TRY(device_.write_register(offsets[i], value(i)));
        }
        for (size_t i = 0; i < offsets.size(); ++i, ++accesses) {
          TENON_TRY_ASSIGN(read, device_.read_register(offsets[i]));
          const uint32_t expected = value(i) & bits(i);
          if (*read != expected) {
            return failed(fmt::format("register {:#05x} was written {:#010x} and reads {:#010x}: bits {:#010x} differ",
                                      offsets[i], value(i), *read, *read ^ expected));
          }
        }
      }
    }
    TENON_TRY_ASSIGN(before, device_.read_register(reg::kVersion));
    TENON_TRY(device_.write_register(reg::kVersion, 0x5a5a5a5a));
    TENON_TRY_ASSIGN(after, device_.read_register(reg::kVersion));
    if (*before != *after) {
      return failed(fmt::format("VERSION is read only, but a write changes it from {:#x} to {:#x}", *before, *after));
    }
    for (const uint32_t offset : offsets) TENON_TRY(device_.write_register(offset, 0));
    return passed(fmt::format("{} registers, {} accesses", offsets.size(), accesses));
  }

  template <class F>
  Finding memory(std::string_view, F&& word) {
    // Where the device has less free memory than requested, the check uses a smaller buffer.
    size_t words = std::max<size_t>(options_.memory_bytes / 8, 1);
    auto buffer = device_.allocate(words * 8, 64);
    for (; !buffer && words > kMinWords; buffer = device_.allocate(words * 8, 64)) words /= 2;
    if (!buffer) return failed(buffer.error());
    std::vector<uint64_t> out(words), in(words);
    for (size_t i = 0; i < words; ++i) out[i] = word(i);
    const Stopwatch stopwatch;
    auto status = device_.write(*buffer, 0, std::as_bytes(std::span(out)));
    if (status) status = device_.read(*buffer, 0, std::as_writable_bytes(std::span(in)));
    const double seconds = stopwatch.seconds();
    device_.free(*buffer);
    if (!status) return failed(status.error());
    const auto [a, b] = std::ranges::mismatch(in, out);
    if (a != in.end()) {
      size_t wrong = 0;
      uint64_t bits = 0;
      for (size_t i = 0; i < words; ++i) wrong += in[i] != out[i], bits |= in[i] ^ out[i];
      return failed(
          fmt::format("at byte {:#x} of the buffer: wrote {:#018x}, read {:#018x}; {} of {} words are wrong, "
                      "in bits {:#018x}",
                      8 * (a - in.begin()), *b, *a, wrong, words, bits));
    }
    return passed(fmt::format("{} KiB, {:.0f} MB/s written and read", words * 8 / 1024,
                              seconds > 0 ? 16e-6 * static_cast<double>(words) / seconds : 0));
  }

  Finding launched(Reproducer reproducer) {
    reproducer.device = device_.info().uri;
    reproducer.origin = "tenon selftest " + reproducer.device;
    const auto found = run(reproducer);
    if (!found) return failed(found.error());
    if (!found->empty()) {
      reproducer.reported = *found;
      return {{}, *found, std::move(reproducer)};
    }
    auto counters = read_counters(device_);
    if (!counters) return failed(counters.error());
    size_t bytes = 0;
    for (const Region& region : reproducer.expected) bytes += region.bytes.size();
    return passed(fmt::format("{} bytes as expected, {} multiply-accumulates, {} cycles", bytes, counters->macs,
                              counters->cycles));
  }

  // Runs the reproducer in a new buffer, also on a simulator, since a caller may have other buffers on this device.
  Expected<std::string> run(const Reproducer& reproducer) {
    auto buffer = device_.allocate(reproducer.memory_bytes, kPageBytes);
    if (!buffer) {
      return error(buffer.error().what, device_.info().uri, "this check requires more memory than the device has free");
    }
    const auto run_in_buffer = [&]() -> Expected<std::string> {
      for (const Region& region : reproducer.memory) {
        TENON_TRY(device_.write(*buffer, region.address, region.bytes));
      }
      for (const Region& region : reproducer.expected) {
        const std::vector<std::byte> dirt(region.bytes.size(), std::byte{0xdd});
        TENON_TRY(device_.write(*buffer, region.address, dirt));
      }
      const Placement placement{*buffer, buffer->address};
      for (const Launch& launch : reproducer.launches) {
        TENON_TRY(start(device_, relocated(launch, placement)));
        const Status finished = finish(device_, kLimit);
        if (!finished) return finished.error().what;
      }
      for (const Region& region : reproducer.expected) {
        std::vector<std::byte> found(region.bytes.size());
        TENON_TRY(device_.read(*buffer, region.address, found));
        if (std::string difference = difference_of(region, found); !difference.empty()) return difference;
      }
      return std::string();
    };
    auto result = run_in_buffer();
    device_.free(*buffer);
    return result;
  }

  // Compares the cycles of a launch with its wall time, with longer launches until the time is reliable.
  Finding clock() {
    const Info& info = device_.info();
    if (!info.config.counters) return passed("not measured: the configuration has no counters");
    for (int64_t passes = 4;; passes *= 4) {
      const Reproducer reproducer = loopback(info.config, 64, passes, options_.seed);
      const Stopwatch stopwatch;
      const auto found = run(reproducer);
      const double seconds = stopwatch.seconds();
      if (!found) return failed(found.error());
      if (!found->empty()) return failed(*found);
      const auto counters = read_counters(device_);
      if (!counters) return failed(counters.error());
      const auto least = static_cast<uint64_t>(passes);
      if (counters->cycles < least) {
        return failed(fmt::format("a launch of {} transfers counts {} cycles, must be at least {}", 2 * passes,
                                  counters->cycles, least));
      }
      const double rate = static_cast<double>(counters->cycles) / seconds;
      if (info.simulated) return passed(fmt::format("{:.0f} simulated cycles per second of wall time", rate));
      if (seconds < kMinSeconds && passes < 1 << 16) continue;
      const std::string figure = fmt::format("{:.1f} MHz measured over {:.0f} ms", rate / 1e6, 1e3 * seconds);
      // The host's overhead makes the measured rate too low, never too high.
      if (info.clock_hz > 0 && (rate > info.clock_hz * (1 + kClockTolerance) || rate < info.clock_hz * 0.5)) {
        return failed(fmt::format("{}, the design has {:.1f} MHz", figure, info.clock_hz / 1e6));
      }
      return passed(figure);
    }
  }

  Accelerator& device_;
  const SelftestOptions& options_;
  std::vector<Check> checks_;
};

}  // namespace

std::vector<Check> selftest(Accelerator& accelerator, const SelftestOptions& options) {
  return Selftest(accelerator, options).run();
}

}  // namespace tenon::driver
