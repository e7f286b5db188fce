#include "compiler/loop/races.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace tenon::compiler::loop {

void RaceChecker::enter(LoopKind kind, int64_t iteration) {
  if (binds_thread(kind)) {
    thread_[bound_axis(kind)] = iteration;
    ++num_threads_;
    return;
  }
  block_[bound_axis(kind)] = iteration;
  ++num_blocks_, ++phase_;
}

void RaceChecker::leave(LoopKind kind) {
  if (binds_thread(kind)) {
    thread_[bound_axis(kind)] = 0;
    --num_threads_;
    return;
  }
  block_[bound_axis(kind)] = 0;
  ++phase_;
  --num_blocks_;
}

void RaceChecker::end_of_loop() {
  if (num_threads_ == 0) ++nest_;
  if (num_blocks_ == 0) ++launch_;
}

const RaceChecker::Position* RaceChecker::conflict(Period& period, int64_t id, const Position& position, bool writes) {
  if (period.id != id) period = {.id = id};
  if (period.written && period.writer != position) return &period.writer;
  if (writes) {
    if (period.read && (period.read_by_many || period.reader != position)) return &period.reader;
    period.written = true, period.writer = position;
  } else if (!period.read || period.reader != position) {
    period.read_by_many |= period.read;
    period.read = true, period.reader = position;
  }
  return nullptr;
}

Status RaceChecker::check(BufferId buffer, int64_t element, bool writes) {
  if (num_blocks_ == 0) return {};
  std::vector<Accesses>& of_buffer = accesses_[buffer];
  if (of_buffer.size() <= static_cast<size_t>(element)) of_buffer.resize(static_cast<size_t>(element) + 1);
  Accesses& accesses = of_buffer[static_cast<size_t>(element)];
  const auto fail = [&](std::string_view kind, const Position& position, const Position& other, std::string_view help) {
    Diagnostic diagnostic = state_
                                .fail(fmt::format("race: {} ({}) {} element {} of {}, which {} ({}) accesses too", kind,
                                                  fmt::join(position, ", "), writes ? "writes" : "reads", element,
                                                  state_.name(buffer), kind, fmt::join(other, ", ")))
                                .error();
    diagnostic.help = help;
    return std::unexpected(std::move(diagnostic));
  };
  const auto found = registers_.find(buffer);
  if (found != registers_.end()) {
    const auto [owner, is_first] = found->second.emplace(element, thread_);
    if (!std::ranges::equal(std::span(owner->second).subspan(1), std::span(thread_).subspan(1)))
      return fail("thread", thread_, owner->second,
                  "threads of different y or z are in different warps: use shared memory");
  }
  if (const Position* other = conflict(accesses.phase, found != registers_.end() ? nest_ : phase_, thread_, writes))
    return fail("thread", thread_, *other, "separate the two accesses by a barrier");
  if (const Position* other = conflict(accesses.launch, launch_, block_, writes))
    return fail("block", block_, *other, "blocks of one launch cannot wait for each other: use two launches");
  return {};
}

}  // namespace tenon::compiler::loop
