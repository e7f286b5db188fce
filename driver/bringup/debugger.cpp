#include "driver/bringup/debugger.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/bringup/words.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using spec::Memory;

constexpr uint64_t kChunk = 1 << 14;       // cycles at a time where nothing is looked for
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
    TENON_TRY(machine_.restart());
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
    TENON_TRY(machine_.next_launch());
  }
  std::string text;
  if (machine_.state() == Machine::State::kReady) {
    TENON_TRY(machine_.start());
  }
  const bool fine = !breaks_.empty() || instructions != UINT64_MAX;
  std::string hit;
  uint64_t left = cycles, done = 0;
  while (machine_.state() == Machine::State::kRunning && left > 0 && done < instructions && hit.empty()) {
    const uint64_t some = fine ? 1 : std::min(left, kChunk);
    TENON_TRY(machine_.advance(some));
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

}  // namespace tenon::driver
