#include "driver/bringup/debugger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "hw/spec/requantize.h"

namespace tenon::driver {
namespace {

using spec::Engine;
using spec::Memory;

constexpr uint64_t kChunk = 1 << 14;       // cycles at a time where nothing is looked for
constexpr uint64_t kMostPrinted = 4096;    // elements, or bytes of DRAM
constexpr uint64_t kMostCycles = 1 << 30;  // of one command: a hang ends

constexpr std::string_view kHelp =
    "  step [N]                 until N more instructions are done (1); an empty line repeats the last command\n"
    "  cycles N                 at most N cycles\n"
    "  continue                 until a breakpoint or the end of the launch; behind its end: the next launch\n"
    "  break SLOT               stop when the instruction at this slot is done\n"
    "  break ENGINE             ... when an instruction of this queue is done: ldi, ldw, ldm, gemm, dw, rq, st\n"
    "  break ENGINE->ENGINE     ... when this token counter changes\n"
    "  watch MEMORY FIRST [N]   ... when one of N elements is written: inp, wgt, acc, out, uop, par, res; dram in "
    "bytes\n"
    "  breaks, delete N         list breakpoints, remove one\n"
    "  print MEMORY [FIRST [N]] elements of a scratchpad, or N bytes of dram\n"
    "  list [SLOT]              instructions around a slot, or around what is done last\n"
    "  queues, tokens, counters, where, info\n"
    "  restart                  from before the first launch; breakpoints stay\n"
    "  quit\n";

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<uint64_t> number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Engine> engine(std::string_view text) {
  for (int i = 0; i < spec::kEngines; ++i) {
    if (name(static_cast<Engine>(i)) == text) return static_cast<Engine>(i);
  }
  return std::nullopt;
}

std::optional<Memory> memory(std::string_view text) {
  for (int i = 0; i <= spec::kScratchpads; ++i) {
    if (name(static_cast<Memory>(i)) == text) return static_cast<Memory>(i);
  }
  return std::nullopt;
}

std::unexpected<Diagnostic> refuse(std::string what) {
  return error(std::move(what), {}, "help lists the commands", Fault::kUsage);
}

std::unexpected<Diagnostic> no_number(std::string_view text) {
  return refuse(fmt::format("\"{}\" is no number", text));
}

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
    case Memory::kWgt: {  // a matrix: one line an output
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

Expected<std::string> Debugger::run(std::string_view line) {
  auto words = split(line);
  const std::string again = last_line_;
  if (words.empty()) words = split(again);
  else last_line_ = line;
  if (words.empty()) return std::string();
  const std::string_view command = words[0];
  const Words rest = std::span<const std::string_view>(words).subspan(1);
  if (command == "help" || command == "h") return std::string(kHelp);
  if (command == "quit" || command == "q") return over_ = true, std::string();
  if (command == "step" || command == "s") return step(rest);
  if (command == "cycles") {
    const auto cycles = rest.size() == 1 ? number(rest[0]) : std::nullopt;
    if (!cycles || *cycles == 0 || *cycles > kMostCycles) return refuse("cycles wants a number from 1 to 2^30");
    return go(UINT64_MAX, *cycles);
  }
  if (command == "continue" || command == "c") return go(UINT64_MAX, kMostCycles);
  if (command == "break" || command == "b" || command == "watch") return add_break(words);
  if (command == "breaks") {
    std::string text;
    for (const Break& b : breaks_) text += fmt::format("{}: {}\n", b.number, b.text);
    return text.empty() ? "no breakpoints\n" : text;
  }
  if (command == "delete") {
    const auto which = rest.size() == 1 ? number(rest[0]) : std::nullopt;
    const auto it =
        std::ranges::find_if(breaks_, [&](const Break& b) { return which == static_cast<uint64_t>(b.number); });
    if (it == breaks_.end()) return refuse("delete wants the number of a breakpoint; breaks lists them");
    breaks_.erase(it);
    return std::string();
  }
  if (command == "print" || command == "p") return print(rest);
  if (command == "list" || command == "l") return list(rest);
  if (command == "queues") return queues();
  if (command == "tokens") return tokens();
  if (command == "counters") return counters();
  if (command == "where") return where();
  if (command == "info") return info();
  if (command == "restart") {
    if (auto status = machine_.restart(); !status) return forward_error(status);
    for (Break& b : breaks_) b.last = 0;
    return std::string("before launch 0\n");
  }
  return refuse(fmt::format("no command is called \"{}\"", command));
}

Expected<std::string> Debugger::step(Words words) {
  const auto count = words.empty() ? std::optional<uint64_t>(1) : number(words[0]);
  if (!count || *count == 0) return no_number(words.empty() ? "" : words[0]);
  return go(*count, kMostCycles);
}

// Until so many more instructions are done, so many cycles have passed, a breakpoint or the end.
Expected<std::string> Debugger::go(uint64_t instructions, uint64_t cycles) {
  if (machine_.state() == Machine::State::kStopped) {
    return error("the launch has stopped: " + machine_.why_stopped(), {}, "restart begins again");
  }
  if (machine_.state() == Machine::State::kOver) {
    if (auto status = machine_.next_launch(); !status) return forward_error(status);
  }
  std::string text;
  if (machine_.state() == Machine::State::kReady) {
    if (auto status = machine_.start(); !status) return forward_error(status);
  }
  const bool fine = !breaks_.empty() || instructions != UINT64_MAX;
  std::string hit;
  uint64_t left = cycles, done = 0;
  while (machine_.state() == Machine::State::kRunning && left > 0 && done < instructions && hit.empty()) {
    const uint64_t some = fine ? 1 : std::min(left, kChunk);
    if (auto status = machine_.advance(some); !status) return forward_error(status);
    left -= some;
    const auto newly = machine_.take_done();
    hit = hits(newly, machine_.take_writes());
    done += newly.size();
    if (instructions == UINT64_MAX && hit.empty()) continue;
    for (const uint32_t slot : newly) {
      if (const auto at = machine_.position(slot)) text += line_of(*at);
    }
  }
  text += hit;
  switch (machine_.state()) {
    case Machine::State::kReady:
    case Machine::State::kRunning:
      if (hit.empty() && left == 0 && cycles == kMostCycles)
        text += fmt::format("nothing ends after {} cycles\n", cycles);
      break;
    case Machine::State::kOver:
      text += fmt::format("launch {} is over: {} of {} instructions done\n", machine_.launch(), machine_.done(),
                          machine_.program().size());
      break;
    case Machine::State::kStopped: text += fmt::format("stopped: {}\n", machine_.why_stopped()); break;
  }
  if (!fine && machine_.state() == Machine::State::kRunning) text += where();
  return text;
}

// Which breakpoints the last advance has met.
std::string Debugger::hits(std::span<const uint32_t> done, std::span<const Machine::Event> writes) {
  std::string found;
  for (Break& b : breaks_) {
    const auto met = [&](const std::string& how) {
      found += fmt::format("breakpoint {}: {}{}\n", b.number, b.text, how);
    };
    switch (b.kind) {
      case Break::Kind::kInstruction:
        if (std::ranges::find(done, b.value) != done.end()) met("");
        break;
      case Break::Kind::kQueue:
        for (const uint32_t slot : done) {
          const auto at = machine_.position(slot);
          if (at && spec::engine_of(machine_.program()[*at].instruction) == b.engine)
            met(fmt::format(", slot {}", slot));
        }
        break;
      case Break::Kind::kTokens: {
        const unsigned now = machine_.tokens(b.engine, b.consumer);
        if (now != b.last) met(fmt::format(", {} before, {} now", b.last, now));
        b.last = now;
        break;
      }
      case Break::Kind::kWrite: {
        const auto it = std::ranges::find_if(writes, [&](const Machine::Event& w) {
          if (w.memory != b.memory) return false;
          // A write to DRAM is a range whose length is not kept; a burst is no longer than 4 KiB.
          return w.memory == Memory::kDram ? w.address < b.value + b.count && b.value < w.address + 4096
                                           : w.address >= b.value && w.address < b.value + b.count;
        });
        if (it != writes.end()) met(fmt::format(", by the instruction at slot {}", it->instruction));
        break;
      }
    }
  }
  return found;
}

Expected<std::string> Debugger::add_break(Words words) {
  Break b;
  if (words[0] == "watch") {
    const auto where = words.size() >= 3 ? memory(words[1]) : std::nullopt;
    const auto first = words.size() >= 3 ? number(words[2]) : std::nullopt;
    const auto count = words.size() >= 4 ? number(words[3]) : std::optional<uint64_t>(1);
    if (!where || !first || !count || *count == 0) return refuse("watch wants MEMORY FIRST [COUNT]");
    b.kind = Break::Kind::kWrite;
    b.memory = *where, b.value = *first, b.count = *count;
    b.text = fmt::format("{}[{}..{}] is written", words[1], *first, *first + *count - 1);
  } else if (words.size() != 2) {
    return refuse("break wants a slot, an engine, or ENGINE->ENGINE");
  } else if (const auto slot = number(words[1])) {
    if (!machine_.position(static_cast<uint32_t>(*slot)) || *slot > UINT32_MAX) {
      return refuse(fmt::format("no instruction begins at slot {}", *slot));
    }
    b.value = *slot;
    b.text = fmt::format("instruction {} is done", *slot);
  } else if (const auto queue = engine(words[1])) {
    b.kind = Break::Kind::kQueue;
    b.engine = *queue;
    b.text = fmt::format("an instruction of {} is done", words[1]);
  } else {
    const size_t arrow = words[1].find("->");
    const auto from = engine(words[1].substr(0, arrow));
    const auto to = arrow == std::string_view::npos ? std::nullopt : engine(words[1].substr(arrow + 2));
    if (!from || !to) return refuse(fmt::format("\"{}\" is no slot, no engine and no ENGINE->ENGINE", words[1]));
    b.kind = Break::Kind::kTokens;
    b.engine = *from, b.consumer = *to;
    b.last = machine_.tokens(*from, *to);
    b.text = fmt::format("tokens {} change", words[1]);
  }
  b.number = next_break_++;
  breaks_.push_back(b);
  return fmt::format("breakpoint {}: {}\n", b.number, b.text);
}

Expected<std::string> Debugger::print(Words words) {
  const auto which = words.empty() ? std::nullopt : memory(words[0]);
  if (!which) return refuse("print wants a memory: inp, wgt, acc, out, uop, par, res or dram");
  const auto first = words.size() > 1 ? number(words[1]) : std::optional<uint64_t>(0);
  if (!first) return no_number(words[1]);
  const auto count = words.size() > 2 ? number(words[2]) : std::optional<uint64_t>(*which == Memory::kDram ? 64 : 8);
  if (!count) return no_number(words[2]);
  const uint64_t depth = *which == Memory::kDram ? machine_.simulator().memory().size()
                                                 : static_cast<uint64_t>(machine_.isa().config().depth(*which));
  if (*first >= depth) return refuse(fmt::format("{} has elements 0 to {}, not {}", words[0], depth - 1, *first));
  const uint64_t shown = std::min({*count, kMostPrinted, depth - *first});
  if (*which == Memory::kDram) return print_dram(*first, shown);
  std::string text;
  for (uint64_t i = *first; i < *first + shown; ++i) {
    const auto bytes = machine_.element(*which, i);
    text += fmt::format("{}[{:>5}]:{}\n", words[0], i,
                        bytes.empty() ? " not written so far" : element_text(machine_.isa(), *which, bytes));
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

std::string Debugger::line_of(size_t position) const {
  const spec::Decoded& d = machine_.program()[position];
  const auto note = notes_.find(d.index);
  return fmt::format("{} {:>5} {:<5} {}{}\n", machine_.is_done(position) ? "done" : "    ", d.index,
                     name(spec::engine_of(d.instruction)), machine_.isa().disassemble(d.instruction),
                     note == notes_.end() ? "" : "  # " + note->second);
}

std::string Debugger::queues() {
  std::string text;
  for (int i = 0; i < spec::kEngines; ++i) {
    const auto which = static_cast<Engine>(i);
    const auto pending = machine_.pending(which);
    if (pending.empty()) {
      text += fmt::format("{:<5} empty\n", name(which));
      continue;
    }
    text += fmt::format("{:<5} {} not done{}; next: {}", name(which), pending.size(),
                        machine_.waits(which) ? ", waits for tokens" : "", line_of(pending.front()).substr(5));
  }
  return text + "(whether an instruction is in its queue or not fetched yet cannot be seen from outside)\n";
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
  for (const auto& [what, offset] : {std::pair{"cycles", reg::kCycles},
                                     {"instructions done", reg::kInstructionsDone},
                                     {"multiplications", reg::kMacs},
                                     {"read beats", reg::kReadBeats},
                                     {"write beats", reg::kWriteBeats},
                                     {"read bursts", reg::kReadBursts},
                                     {"write bursts", reg::kWriteBursts}}) {
    text += fmt::format("{:<18} {}\n", what, read(offset));
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
    const auto slot = number(words[0]);
    if (!slot) return no_number(words[0]);
    center = static_cast<size_t>(std::ranges::lower_bound(program, *slot, {}, &spec::Decoded::index) - program.begin());
  } else {  // the first that is not done
    while (center < program.size() && machine_.is_done(center)) ++center;
  }
  const size_t first = center > 5 ? center - 5 : 0, last = std::min(program.size(), center + 6);
  std::string text;
  for (size_t i = first; i < last; ++i) text += line_of(i);
  return text.empty() ? "there is no instruction there\n" : text;
}

std::string Debugger::where() {
  const char* state = "before";
  switch (machine_.state()) {
    case Machine::State::kReady: break;
    case Machine::State::kRunning: state = "in"; break;
    case Machine::State::kOver: state = "behind"; break;
    case Machine::State::kStopped: state = "stopped in"; break;
  }
  return fmt::format("{} launch {} of {}: {} of {} instructions done\n", state, machine_.launch(),
                     machine_.bundle().launches.size(), machine_.done(), machine_.program().size());
}

std::string Debugger::info() {
  const Bundle& bundle = machine_.bundle();
  const Launch& launch = bundle.launches[machine_.launch()];
  std::string text = fmt::format("configuration {}, {} launches, {} bytes of memory\n", bundle.config.name,
                                 bundle.launches.size(), machine_.simulator().memory().size());
  text += fmt::format("launch {}: {} profile, {} slots at {:#x}\n", machine_.launch(), name(launch.profile),
                      launch.count, launch.instructions);
  for (size_t i = 0; i < launch.bases.size(); ++i) {
    if (launch.bases[i] != 0) text += fmt::format("base {}: {:#x}\n", i, launch.bases[i]);
  }
  for (const Region& region : bundle.expected) {
    text += fmt::format("expected: {}, {} bytes at {:#x}\n", region.name, region.bytes.size(), region.address);
  }
  if (!bundle.reported.empty()) text += fmt::format("reported: {}\n", bundle.reported);
  return text +
         "not to be seen on any simulator: scratchpad elements that nothing has written yet, and the inside of an "
         "instruction.\nOn the RTL and in the virtual platform a step is a few cycles, and some pass while tokens and "
         "counters are read.\n";
}

}  // namespace tenon::driver
