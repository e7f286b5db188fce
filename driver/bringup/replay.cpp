#include "driver/bringup/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "driver/identity.h"
#include "sim/simulator.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

void fill(sim::Simulator& simulator, const Reproducer& reproducer) {
  const auto memory = simulator.memory().first(reproducer.memory_bytes);
  for (size_t at = 0; at < memory.size(); at += kPageBytes) {  // unused pages are not written, and stay unallocated
    const auto page = memory.subspan(at, std::min<size_t>(kPageBytes, memory.size() - at));
    if (std::ranges::any_of(page, [](std::byte b) { return b != std::byte{}; })) std::ranges::fill(page, std::byte{});
  }
  for (const Region& region : reproducer.memory) {
    std::ranges::copy(region.bytes, memory.begin() + static_cast<std::ptrdiff_t>(region.address));
  }
}

// The range [first, last) of memory that contains all regions and bases of the reproducer.
std::pair<uint64_t, uint64_t> extent(const Reproducer& reproducer) {
  uint64_t first = UINT64_MAX, last = 0;
  const auto include = [&](uint64_t address, uint64_t bytes) {
    first = std::min(first, address);
    last = std::max(last, address + bytes);
  };
  for (const Region& region : reproducer.memory) include(region.address, region.bytes.size());
  for (const Region& region : reproducer.expected) include(region.address, region.bytes.size());
  for (const Launch& launch : reproducer.launches) {
    for (const uint64_t base : launch.bases) {
      if (base != 0) include(base, 1);
    }
  }
  last = std::max(last, reproducer.memory_bytes);
  return {std::min(first, last) / kPageBytes * kPageBytes, last};
}

}  // namespace

Expected<Placement> load(Accelerator& accelerator, const Reproducer& reproducer) {
  const Info& info = accelerator.info();
  if (spec::hash(info.config) != spec::hash(reproducer.config)) {
    return error(fmt::format("the reproducer is for configuration {}, the device has {}:\n{}", reproducer.config.name,
                             info.config.name, spec::difference(reproducer.config, info.config)),
                 info.uri, "use a device of the reproducer's configuration");
  }
  TENON_TRY(reset(accelerator));
  if (sim::Simulator* simulator = accelerator.simulator()) {
    if (simulator->memory().size() < reproducer.memory_bytes) {
      return error(fmt::format("the device has {} bytes of memory, the reproducer requires {}",
                               simulator->memory().size(), reproducer.memory_bytes),
                   info.uri, fmt::format("?memory={}", reproducer.memory_bytes));
    }
    fill(*simulator, reproducer);
    return Placement{};
  }
  const auto [first, last] = extent(reproducer);
  TENON_TRY_ASSIGN(buffer, accelerator.allocate(std::max<uint64_t>(last - first, 1), kPageBytes));
  const Placement placement{*buffer, buffer->address - first};
  const std::vector<std::byte> zeros(last - first);
  TENON_TRY(accelerator.write(*buffer, 0, zeros));
  for (const Region& region : reproducer.memory) {
    TENON_TRY(accelerator.write(*buffer, region.address - first, region.bytes));
  }
  return placement;
}

Launch relocated(const Launch& launch, const Placement& placement) {
  Launch result = launch;
  result.instructions += placement.shift;
  for (uint64_t& base : result.bases) {
    if (base != 0) base += placement.shift;
  }
  return result;
}

std::string difference_of(const Region& region, std::span<const std::byte> found) {
  const auto [a, b] = std::ranges::mismatch(found, region.bytes);
  if (a == found.end()) return {};
  const auto at = static_cast<size_t>(a - found.begin());
  size_t count = 0;
  for (size_t i = at; i < found.size(); ++i) count += found[i] != region.bytes[i];
  return fmt::format("{}: byte {} (dram[{:#x}]): expected {:#04x}, got {:#04x}; {} of {} bytes differ", region.name, at,
                     region.address + at, static_cast<unsigned>(*b), static_cast<unsigned>(*a), count, found.size());
}

Expected<std::string> compare_expected(Accelerator& accelerator, const Reproducer& reproducer,
                                       const Placement& placement) {
  for (const Region& region : reproducer.expected) {
    std::vector<std::byte> found(region.bytes.size());
    if (sim::Simulator* simulator = accelerator.simulator()) {
      std::memcpy(found.data(), simulator->memory().data() + region.address, found.size());
    } else {
      const uint64_t offset = region.address + placement.shift - placement.buffer.address;
      TENON_TRY(accelerator.read(placement.buffer, offset, found));
    }
    if (std::string difference = difference_of(region, found); !difference.empty()) return difference;
  }
  return std::string();
}

Expected<std::string> replay(Accelerator& accelerator, const Reproducer& reproducer) {
  TENON_TRY_ASSIGN(placement, load(accelerator, reproducer));
  const auto run = [&]() -> Expected<std::string> {
    for (const Launch& launch : reproducer.launches) {
      TENON_TRY(start(accelerator, relocated(launch, *placement)));
      const Status finished = finish(accelerator, reproducer.limit);
      if (!finished) return finished.error().what;
    }
    return compare_expected(accelerator, reproducer, *placement);
  };
  auto result = run();
  if (placement->buffer.size > 0) accelerator.free(placement->buffer);
  return result;
}

Expected<std::unique_ptr<Accelerator>> open_for(const Reproducer& reproducer, const std::string& device,
                                                const std::filesystem::path& scratch) {
  const size_t colon = device.find(':'), question = device.find('?');
  const std::string scheme = device.substr(0, colon);
  if (colon == std::string::npos) return open(device);  // returns the error
  // The name of a board is the file of its design, an address or a node of /dev, not a configuration.
  const auto config = spec::load_config(reproducer.config.name);
  std::string name = device.substr(colon + 1, (question == std::string::npos ? device.size() : question) - colon - 1);
  const bool names_configuration = scheme == "behavioral" || scheme == "verilator" || scheme == "lockstep" ||
                                   scheme == "systemc" || name == reproducer.config.name || name.ends_with(".json");
  if (!names_configuration) return open(device);
  if (!config || spec::hash(*config) != spec::hash(reproducer.config) || name != reproducer.config.name) {
    const auto file = scratch / (reproducer.config.name + ".json");
    std::ofstream stream(file);
    stream << spec::to_json(reproducer.config);
    stream.close();
    if (!stream) return error("cannot write the file", file.string());
    name = file.string();
  }
  std::string options = question == std::string::npos ? "" : device.substr(question + 1);
  if (options.find("memory=") == std::string::npos) {
    options = fmt::format("memory={}{}{}", std::max<uint64_t>(reproducer.memory_bytes, 8 << 10),
                          options.empty() ? "" : "&", options);
  }
  return open(fmt::format("{}:{}?{}", scheme, name, options));
}

}  // namespace tenon::driver
