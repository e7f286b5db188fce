#include "runtime/vm/run_state.h"

#include <fmt/format.h>

#include <chrono>

#include "support/try.h"

namespace tenon::runtime {

RunState::RunState(Session::State& of_session)
    : session(of_session),
      executable(of_session.executable),
      heap(of_session.options.max_bytes),
      frames(of_session, heap, profile.memory) {}

BatchCounts& BatchCounts::operator+=(const BatchCounts& other) {
  nodes += other.nodes;
  calls += other.calls;
  flushes += other.flushes;
  bytes_gathered += other.bytes_gathered;
  bytes_in_place += other.bytes_in_place;
  return *this;
}

Status RunState::check_stop() const {
  if (stop.is_cancelled()) return error("the run was cancelled");
  if (!stop.is_late()) return {};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(session.options.max_time);
  return error(fmt::format("the run takes more than {} ms", limit.count()));
}

Status RunState::or_stopped(Status status) const {
  if (!status) TENON_TRY(check_stop());
  return status;
}

void RunState::begin_writing_states() {
  update->has_written = true;
  stop = {};
}

std::unexpected<Diagnostic> RunState::no_memory() const {
  if (session.options.max_bytes == 0) return error("not enough memory for the values of the run");
  return error(fmt::format("the values of the run take more than {} bytes", session.options.max_bytes), {},
               "a recursion without end, or a larger max_bytes is needed");
}

}  // namespace tenon::runtime
