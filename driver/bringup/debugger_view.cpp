// The views of the debugger: memories, queues, tokens, counters, instructions.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "driver/bringup/command_line.h"
#include "driver/bringup/debugger.h"
#include "hw/spec/requantize.h"
#include "support/number.h"

namespace tenon::driver {
namespace {

using spec::Engine;
using spec::Memory;

constexpr uint64_t kMaxPrinted = 4096;  // elements, or bytes of DRAM

std::string lanes(std::span<const std::byte> bytes, size_t width) {
  std::string text;
  for (size_t i = 0; i + width <= bytes.size(); i += width) {
    int32_t value = static_cast<int8_t>(bytes[i]);
    if (width == 4) std::memcpy(&value, bytes.data() + i, 4);
    text += fmt::format(" {:>{}}", value, width == 4 ? 6 : 4);
  }
  return text;
}

std::string element_text(const spec::Isa& isa, Memory memory, std::span<const std::byte> bytes) {
  switch (memory) {
    case Memory::kUop: {
      uint32_t word = 0;
      std::memcpy(&word, bytes.data(), 4);
      const spec::base::Uop uop = isa.decode_uop(word);
      return fmt::format(" dst {} src {} wgt {}", uop.dst, uop.src, uop.wgt);
    }
    case Memory::kAcc: return lanes(bytes, 4);
    case Memory::kPar: {
      std::string text;
      for (size_t i = 0; i + spec::kChannelParameterBytes <= bytes.size(); i += spec::kChannelParameterBytes) {
        int32_t bias = 0;
        uint16_t multiplier = 0;
        std::memcpy(&bias, bytes.data() + i, 4);
        std::memcpy(&multiplier, bytes.data() + i + 4, 2);
        text += fmt::format(" {}:{}>>{}", bias, multiplier, static_cast<unsigned>(bytes[i + 6]) & 0x3f);
      }
      return text;
    }
    case Memory::kWgt: {  // a matrix: one line per output
      const auto row = static_cast<size_t>(isa.config().block_in);
      std::string text;
      for (size_t i = 0; i < bytes.size(); i += row) {
        text += (i == 0 ? "" : "\n              ") + lanes(bytes.subspan(i, row), 1);
      }
      return text;
    }
    case Memory::kInp:
    case Memory::kOut:
    case Memory::kRes:
    case Memory::kDram: return lanes(bytes, 1);
  }
  return {};
}

}  // namespace

Expected<std::string> Debugger::print(Words words) {
  const auto memory = words.empty() ? std::nullopt : parse_memory(words[0]);
  if (!memory) return usage_error("print requires a memory: inp, wgt, acc, out, uop, par, res or dram");
  const auto first = words.size() > 1 ? parse_number<uint64_t>(words[1]) : std::optional<uint64_t>(0);
  if (!first) return not_an_integer(words[1]);
  const auto count =
      words.size() > 2 ? parse_number<uint64_t>(words[2]) : std::optional<uint64_t>(*memory == Memory::kDram ? 64 : 8);
  if (!count) return not_an_integer(words[2]);
  const uint64_t depth = *memory == Memory::kDram ? machine_.simulator().memory().size()
                                                  : static_cast<uint64_t>(machine_.isa().config().depth(*memory));
  if (*first >= depth) return usage_error(fmt::format("{} has elements 0 to {}, not {}", words[0], depth - 1, *first));
  const uint64_t shown = std::min({*count, kMaxPrinted, depth - *first});
  if (*memory == Memory::kDram) return print_dram(*first, shown);
  std::string text;
  for (uint64_t i = *first; i < *first + shown; ++i) {
    const auto bytes = machine_.element(*memory, i);
    text += fmt::format("{}[{:>5}]:{}\n", words[0], i,
                        bytes.empty() ? " not written so far" : element_text(machine_.isa(), *memory, bytes));
  }
  return text;
}

std::string Debugger::print_dram(uint64_t first, uint64_t count) {
  const auto bytes = machine_.simulator().memory().subspan(first, count);
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 16) {
    text += fmt::format("dram[{:#010x}]:", first + i);
    for (size_t j = i; j < std::min(bytes.size(), i + 16); ++j)
      text += fmt::format(" {:02x}", static_cast<unsigned>(bytes[j]));
    text += '\n';
  }
  return text;
}

std::string Debugger::line_of(size_t index) const {
  const spec::Decoded& d = machine_.program()[index];
  const auto note = notes_.find(d.index);
  return fmt::format("{} {:>5} {:<5} {}{}\n", machine_.is_done(index) ? "done" : "    ", d.index,
                     name(spec::engine_of(d.instruction)), machine_.isa().disassemble(d.instruction),
                     note == notes_.end() ? "" : "  # " + note->second);
}

std::string Debugger::queues() {
  std::string text;
  const auto decoded = machine_.decoded();
  const auto slot = [&](size_t index) { return machine_.program()[index].index; };
  for (int i = 0; i < spec::kEngines; ++i) {
    const auto engine = static_cast<Engine>(i);
    const auto pending = machine_.pending(engine);
    if (pending.empty()) {
      text += fmt::format("{:<5} empty\n", name(engine));
      continue;
    }
    std::string queued;
    if (decoded) {
      const auto count = std::ranges::count_if(pending, [&](size_t index) { return slot(index) < *decoded; });
      queued = fmt::format(", {} of them queued or in flight", count);
    }
    text += fmt::format("{:<5} {} not done{}{}; next: {}", name(engine), pending.size(), queued,
                        machine_.waits(engine) ? ", waits for tokens" : "", line_of(pending.front()).substr(5));
  }
  return text;
}

std::string Debugger::tokens() {
  const auto counts = machine_.all_tokens();
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format("{}->{}: {}\n", name(static_cast<Engine>(i / spec::kEngines)),
                        name(static_cast<Engine>(i % spec::kEngines)), counts[i]);
  }
  return text.empty() ? "no tokens\n" : text;
}

std::string Debugger::counters() {
  namespace reg = spec::reg;
  auto& simulator = machine_.simulator();
  const auto read = [&](uint32_t offset) {
    return simulator.read_register(offset) | uint64_t{simulator.read_register(offset + 4)} << 32;
  };
  std::string text;
  for (const auto& [counter, offset] : {std::pair{"cycles", reg::kCycles},
                                        {"instructions done", reg::kInstructionsDone},
                                        {"multiplications", reg::kMacs},
                                        {"read beats", reg::kReadBeats},
                                        {"write beats", reg::kWriteBeats},
                                        {"read bursts", reg::kReadBursts},
                                        {"write bursts", reg::kWriteBursts}}) {
    text += fmt::format("{:<18} {}\n", counter, read(offset));
  }
  for (uint32_t i = 0; i < spec::kEngines; ++i) {
    const uint64_t busy = read(reg::kBusy0 + 8 * i), stall = read(reg::kStall0 + 8 * i);
    if (busy + stall > 0)
      text += fmt::format("{:<18} busy {}, waiting {}\n", name(static_cast<Engine>(i)), busy, stall);
  }
  return text;
}

Expected<std::string> Debugger::list(Words words) {
  const auto& program = machine_.program();
  size_t center = 0;
  if (!words.empty()) {
    const auto slot = parse_number<uint64_t>(words[0]);
    if (!slot) return not_an_integer(words[0]);
    center = static_cast<size_t>(std::ranges::lower_bound(program, *slot, {}, &spec::Decoded::index) - program.begin());
  } else {  // the first instruction that is not done
    while (center < program.size() && machine_.is_done(center)) ++center;
  }
  const size_t first = center > 5 ? center - 5 : 0, last = std::min(program.size(), center + 6);
  std::string text;
  for (size_t i = first; i < last; ++i) text += line_of(i);
  return text.empty() ? "the launch has no instructions\n" : text;
}

std::string Debugger::where() {
  const char* state = "before";
  switch (machine_.state()) {
    case Machine::State::kReady: break;
    case Machine::State::kRunning: state = "in"; break;
    case Machine::State::kOver: state = "after"; break;
    case Machine::State::kStopped: state = "stopped in"; break;
  }
  return fmt::format("{} launch {} of {}: {} of {} instructions done\n", state, machine_.launch(),
                     machine_.reproducer().launches.size(), machine_.done(), machine_.program().size());
}

std::string Debugger::info() {
  const Reproducer& reproducer = machine_.reproducer();
  const Launch& launch = reproducer.launches[machine_.launch()];
  std::string text = fmt::format("configuration {}, {} launches, {} bytes of memory\n", reproducer.config.name,
                                 reproducer.launches.size(), machine_.simulator().memory().size());
  text += fmt::format("launch {}: {} profile, {} slots at {:#x}\n", machine_.launch(), name(launch.profile),
                      launch.count, launch.instructions);
  for (size_t i = 0; i < launch.bases.size(); ++i) {
    if (launch.bases[i] != 0) text += fmt::format("base {}: {:#x}\n", i, launch.bases[i]);
  }
  for (const Region& region : reproducer.expected) {
    text += fmt::format("expected: {}, {} bytes at {:#x}\n", region.name, region.bytes.size(), region.address);
  }
  if (!reproducer.reported.empty()) text += fmt::format("reported: {}\n", reproducer.reported);
  return text +
         "not available on any simulator: scratchpad elements that no instruction has written yet, and the inside of "
         "an "
         "instruction.\nOn the RTL and in the virtual platform a step is a few cycles, and reading tokens and counters "
         "takes a few cycles.\n";
}

}  // namespace tenon::driver
