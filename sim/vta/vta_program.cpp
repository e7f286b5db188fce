#include "sim/vta/vta_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::sim::vta {
namespace {

constexpr char kMagic[] = "VTAC0001";
constexpr size_t kHeaderBytes = 32, kRecordHeaderBytes = 16;

uint32_t word(std::span<const std::byte> bytes, size_t offset) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + offset, 4);
  return value;
}

}  // namespace

Expected<Program> parse_program(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, 8) != 0) {
    return error("not a VTAC0001 file: the first eight bytes must be \"VTAC0001\" in a header of 32", name);
  }
  Program program{.name = name,
                  .instructions = word(bytes, 8),
                  .stream = word(bytes, 12),
                  .memory_bytes = word(bytes, 16),
                  .before = {},
                  .after = {}};
  const uint64_t before = word(bytes, 20), after = word(bytes, 24);
  size_t at = kHeaderBytes;
  for (uint64_t i = 0; i < before + after; ++i) {
    const auto where = fmt::format("{}: record {} at byte {}", name, i, at);
    if (bytes.size() - at < kRecordHeaderBytes) return error("the file ends inside a record's header", where);
    Record record;
    record.address = word(bytes, at);
    const uint32_t length = word(bytes, at + 4), kind = word(bytes, at + 8);
    at += kRecordHeaderBytes;
    if (bytes.size() - at < length) {
      return error(fmt::format("the record has {} bytes, but the file ends after {}", length, bytes.size() - at),
                   where);
    }
    if (kind > static_cast<uint32_t>(Record::Kind::kAccumulators8)) {
      return error(fmt::format("unknown kind {}, must be 0 .. 6", kind), where);
    }
    if (record.address + length > program.memory_bytes) {
      return error(fmt::format("bytes {:#x}..{:#x} are outside its memory of {:#x}", record.address,
                               record.address + length, program.memory_bytes),
                   where);
    }
    record.kind = static_cast<Record::Kind>(kind);
    record.data.assign(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + length));
    at += length;
    (i < before ? program.before : program.after).push_back(std::move(record));
  }
  if (at != bytes.size()) return error(fmt::format("{} bytes after the last record", bytes.size() - at), name);
  return program;
}

Expected<Program> read_program(const std::filesystem::path& file) {
  TENON_TRY_ASSIGN(bytes, read_file(file));
  return parse_program(*bytes, file.string());
}

Status start(Simulator& simulator, const Program& program) {
  const auto memory = simulator.memory();
  if (memory.size() < program.memory_bytes) {
    return error(
        fmt::format("the program needs {} bytes of memory, the simulator has {}", program.memory_bytes, memory.size()),
        program.name);
  }
  for (const Record& r : program.before) std::ranges::copy(r.data, memory.begin() + static_cast<ptrdiff_t>(r.address));
  namespace reg = spec::reg;
  const auto write = [&](uint32_t offset, uint64_t value) {
    simulator.write_register(offset, static_cast<uint32_t>(value));
    simulator.write_register(offset + 4, static_cast<uint32_t>(value >> 32));
  };
  write(reg::kInstructions, program.stream);
  for (uint32_t i = 0; i < spec::kBases; ++i) write(reg::kBase0 + 8 * i, 0);
  simulator.write_register(reg::kCount, program.instructions);
  simulator.write_register(reg::kMode, 0);
  simulator.write_register(reg::kControl, spec::kApStart);
  return {};
}

Status run(Simulator& simulator, const Program& program, uint64_t cycles) {
  TENON_TRY(start(simulator, program));
  constexpr uint64_t kStep = uint64_t{1} << 20;
  bool busy = true;
  for (uint64_t passed = 0; busy && passed < cycles; passed += kStep)
    busy = simulator.advance(std::min(kStep, cycles - passed));
  if (busy) return error(fmt::format("the program is not done after {} cycles", cycles), program.name);
  const uint32_t status = simulator.read_register(spec::reg::kStatus);
  if (const auto code = static_cast<spec::StopCode>(status & 0xff); code != spec::StopCode::kNone) {
    return error(fmt::format("stopped: {}\n{}", spec::describe(code), simulator.explain()),
                 fmt::format("{}: instruction {}", program.name, simulator.read_register(spec::reg::kErrorIndex)));
  }
  for (const Record& r : program.after) {
    const auto actual = simulator.memory().subspan(r.address, r.data.size());
    const auto [want, have] = std::ranges::mismatch(r.data, actual);
    if (want == r.data.end()) continue;
    return error(fmt::format("byte {:#x}: expected {:#04x}, got {:#04x}",
                             r.address + static_cast<uint64_t>(want - r.data.begin()), static_cast<unsigned>(*want),
                             static_cast<unsigned>(*have)),
                 program.name);
  }
  return {};
}

}  // namespace tenon::sim::vta
