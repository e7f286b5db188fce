// What the parts of one run share: its values, frames, records and limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/native/stop_request.h"
#include "runtime/vm/frames.h"
#include "runtime/vm/heap.h"
#include "runtime/vm/state.h"

namespace tenon::runtime {

inline constexpr size_t kMaxCallRecords = size_t{1} << 20;  // of a profile; a loop would fill the memory with them

class Rematerializer;

struct RunState {
  explicit RunState(Session::State& session);
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  bool records_calls() const { return session.options.profile && profile.calls.size() < kMaxCallRecords; }
  // An error if the run was cancelled, or its time is over.
  Status check_stop() const;
  // A kernel that was told to end fails for the reason of the run.
  Status or_stopped(Status status) const;
  [[gnu::cold]] std::unexpected<Diagnostic> no_memory() const;

  bool has_written_states() const { return update && update->has_written; }
  // A kernel is about to write into a state: from here on the run has to come to its end.
  void begin_writing_states();

  Session::State& session;
  const Executable& executable;
  Heap heap;
  Profile profile;
  Frames frames;
  StopRequest stop;
  uint64_t number = 0;                       // of the run in its session, from 1 on
  Rematerializer* rematerializer = nullptr;  // where the session has a budget
  std::optional<StateUpdate> update;         // where this run may replace the session's states
};

// An instruction that is being executed.
struct CallSite {
  const Words& words;
  uint32_t instruction;
  const std::string& layer() const { return words.function->code[instruction].layer; }
};

}  // namespace tenon::runtime
