#include "driver/bringup/debugger.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/bringup/command_line.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using spec::Memory;

constexpr uint64_t kChunk = 1 << 14;      // cycles at a time without breakpoints
constexpr uint64_t kMaxCycles = 1 << 30;  // of one command, so that a hang ends
constexpr uint64_t kMaxBurstBytes = 4096;

constexpr std::string_view kHelp =
    "  step [N]                 run until N more instructions are done (1); an empty line repeats the last command\n"
    "  cycles N                 run at most N cycles\n"
    "  continue                 run to a breakpoint or the end of the launch; after its end: the next launch\n"
    "  break SLOT               stop when the instruction at this slot is done\n"
    "  break ENGINE             ... when an instruction of this queue is done: ldi, ldw, ldm, gemm, dw, rq, st\n"
    "  break ENGINE->ENGINE     ... when this token counter changes\n"
    "  watch MEMORY FIRST [N]   ... when one of N elements is written: inp, wgt, acc, out, uop, par, res; dram in "
    "bytes\n"
    "  breaks, delete N         list breakpoints, remove breakpoint N\n"
    "  print MEMORY [FIRST [N]] elements of a scratchpad, or N bytes of dram\n"
    "  list [SLOT]              instructions around a slot, or around the first that is not done\n"
    "  queues, tokens, counters, where, info\n"
    "  restart                  return to before the first launch; breakpoints stay\n"
    "  quit\n";

}  // namespace

Expected<std::string> Debugger::run(std::string_view line) {
  auto words = split(line);
  const std::string repeated = last_line_;
  if (words.empty()) words = split(repeated);
  else last_line_ = line;
  if (words.empty()) return std::string();
  const std::string_view command = words[0];
  const Words arguments = std::span<const std::string_view>(words).subspan(1);
  if (command == "help" || command == "h") return std::string(kHelp);
  if (command == "quit" || command == "q") return over_ = true, std::string();
  if (command == "step" || command == "s") return step(arguments);
  if (command == "cycles") {
    const auto cycles = arguments.size() == 1 ? parse_number<uint64_t>(arguments[0]) : std::nullopt;
    if (!cycles || *cycles == 0 || *cycles > kMaxCycles) {
      return usage_error("cycles requires an integer from 1 to 2^30");
    }
    return go(UINT64_MAX, *cycles);
  }
  if (command == "continue" || command == "c") return go(UINT64_MAX, kMaxCycles);
  if (command == "break" || command == "b" || command == "watch") return add_break(words);
  if (command == "breaks") {
    std::string text;
    for (const Break& b : breaks_) text += fmt::format("{}: {}\n", b.id, b.text);
    return text.empty() ? "no breakpoints\n" : text;
  }
  if (command == "delete") {
    const auto id = arguments.size() == 1 ? parse_number<uint64_t>(arguments[0]) : std::nullopt;
    const auto it = std::ranges::find_if(breaks_, [&](const Break& b) { return id == static_cast<uint64_t>(b.id); });
    if (it == breaks_.end()) return usage_error("delete requires the id of a breakpoint; breaks lists them");
    breaks_.erase(it);
    return std::string();
  }
  if (command == "print" || command == "p") return print(arguments);
  if (command == "list" || command == "l") return list(arguments);
  if (command == "queues") return queues();
  if (command == "tokens") return tokens();
  if (command == "counters") return counters();
  if (command == "where") return where();
  if (command == "info") return info();
  if (command == "restart") {
    TENON_TRY(machine_.restart());
    for (Break& b : breaks_) b.last = 0;
    return std::string("before launch 0\n");
  }
  return usage_error(fmt::format("unknown command \"{}\"", command));
}

Expected<std::string> Debugger::step(Words words) {
  const auto count = words.empty() ? std::optional<uint64_t>(1) : parse_number<uint64_t>(words[0]);
  if (!count || *count == 0) return usage_error(fmt::format("\"{}\" is not a positive integer", words[0]));
  return go(*count, kMaxCycles);
}

// Runs until `instructions` more instructions are done, `cycles` have passed, a breakpoint or the end of the launch.
Expected<std::string> Debugger::go(uint64_t instructions, uint64_t cycles) {
  if (machine_.state() == Machine::State::kStopped) {
    return error("the launch has stopped: " + machine_.stop_reason(), {}, "use restart");
  }
  if (machine_.state() == Machine::State::kOver) {
    TENON_TRY(machine_.next_launch());
  }
  std::string text;
  if (machine_.state() == Machine::State::kReady) {
    TENON_TRY(machine_.start());
  }
  const bool single_cycles = !breaks_.empty() || instructions != UINT64_MAX;
  std::string hit;
  uint64_t remaining = cycles, done = 0;
  while (machine_.state() == Machine::State::kRunning && remaining > 0 && done < instructions && hit.empty()) {
    const uint64_t chunk = single_cycles ? 1 : std::min(remaining, kChunk);
    TENON_TRY(machine_.advance(chunk));
    remaining -= chunk;
    const auto newly = machine_.take_done();
    hit = hits(newly, machine_.take_writes());
    done += newly.size();
    if (instructions == UINT64_MAX && hit.empty()) continue;
    for (const uint32_t slot : newly) {
      if (const auto index = machine_.index_of(slot)) text += line_of(*index);
    }
  }
  text += hit;
  switch (machine_.state()) {
    case Machine::State::kReady:
    case Machine::State::kRunning:
      if (hit.empty() && remaining == 0 && cycles == kMaxCycles)
        text += fmt::format("no instruction ends within {} cycles\n", cycles);
      break;
    case Machine::State::kOver:
      text += fmt::format("launch {} is over: {} of {} instructions done\n", machine_.launch(), machine_.done(),
                          machine_.program().size());
      break;
    case Machine::State::kStopped: text += fmt::format("stopped: {}\n", machine_.stop_reason()); break;
  }
  if (!single_cycles && machine_.state() == Machine::State::kRunning) text += where();
  return text;
}

// The messages of the breakpoints that the last advance has hit.
std::string Debugger::hits(std::span<const uint32_t> done, std::span<const Machine::Event> writes) {
  std::string found;
  for (Break& b : breaks_) {
    const auto report = [&](const std::string& details) {
      found += fmt::format("breakpoint {}: {}{}\n", b.id, b.text, details);
    };
    switch (b.kind) {
      case Break::Kind::kInstruction:
        if (std::ranges::find(done, b.value) != done.end()) report("");
        break;
      case Break::Kind::kQueue:
        for (const uint32_t slot : done) {
          const auto index = machine_.index_of(slot);
          if (index && spec::engine_of(machine_.program()[*index].instruction) == b.engine)
            report(fmt::format(", slot {}", slot));
        }
        break;
      case Break::Kind::kTokens: {
        const unsigned now = machine_.tokens(b.engine, b.consumer);
        if (now != b.last) report(fmt::format(", {} before, {} now", b.last, now));
        b.last = now;
        break;
      }
      case Break::Kind::kWrite: {
        const auto it = std::ranges::find_if(writes, [&](const Machine::Event& w) {
          if (w.memory != b.memory) return false;
          // The length of a write to DRAM is not recorded; a burst has at most 4 KiB.
          return w.memory == Memory::kDram ? w.address < b.value + b.count && b.value < w.address + kMaxBurstBytes
                                           : w.address >= b.value && w.address < b.value + b.count;
        });
        if (it != writes.end()) report(fmt::format(", by the instruction at slot {}", it->instruction));
        break;
      }
    }
  }
  return found;
}

Expected<std::string> Debugger::add_break(Words words) {
  Break b;
  if (words[0] == "watch") {
    constexpr std::string_view kUsage = "watch requires MEMORY FIRST [COUNT]";
    if (words.size() < 3) return usage_error(std::string(kUsage));
    const auto memory = parse_memory(words[1]);
    const auto first = parse_number<uint64_t>(words[2]);
    const auto count = words.size() >= 4 ? parse_number<uint64_t>(words[3]) : std::optional<uint64_t>(1);
    if (!memory || !first || !count || *count == 0) return usage_error(std::string(kUsage));
    b.kind = Break::Kind::kWrite;
    b.memory = *memory, b.value = *first, b.count = *count;
    b.text = fmt::format("{}[{}..{}] is written", words[1], *first, *first + *count - 1);
  } else if (words.size() != 2) {
    return usage_error("break requires a slot, an engine, or ENGINE->ENGINE");
  } else if (const auto slot = parse_number<uint64_t>(words[1])) {
    if (!machine_.index_of(static_cast<uint32_t>(*slot)) || *slot > UINT32_MAX) {
      return usage_error(fmt::format("no instruction begins at slot {}", *slot));
    }
    b.value = *slot;
    b.text = fmt::format("instruction {} is done", *slot);
  } else if (const auto queue = parse_engine(words[1])) {
    b.kind = Break::Kind::kQueue;
    b.engine = *queue;
    b.text = fmt::format("an instruction of {} is done", words[1]);
  } else {
    const size_t arrow = words[1].find("->");
    const auto from = parse_engine(words[1].substr(0, arrow));
    const auto to = arrow == std::string_view::npos ? std::nullopt : parse_engine(words[1].substr(arrow + 2));
    if (!from || !to) {
      return usage_error(fmt::format("\"{}\" is not a slot, an engine or ENGINE->ENGINE", words[1]));
    }
    b.kind = Break::Kind::kTokens;
    b.engine = *from, b.consumer = *to;
    b.last = machine_.tokens(*from, *to);
    b.text = fmt::format("tokens {} change", words[1]);
  }
  b.id = next_id_++;
  breaks_.push_back(b);
  return fmt::format("breakpoint {}: {}\n", b.id, b.text);
}

}  // namespace tenon::driver
