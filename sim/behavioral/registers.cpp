// Register accesses of software: the register file, and the state that the run contributes to it.
#include "sim/behavioral/machine.h"

namespace tenon::sim {

using spec::tokens_of;

uint32_t Behavioral::read_register(uint32_t offset) {
  return offset % 4 == 0 && offset < spec::kRegisterSpaceBytes ? registers_.read(offset, *this, tokens_) : 0;
}

void Behavioral::write_register(uint32_t offset, uint32_t value) {
  if (offset % 4 != 0 || offset >= spec::kRegisterSpaceBytes) return;
  switch (registers_.write(offset, value)) {
    case RegisterFile::Request::kNone: return;
    case RegisterFile::Request::kStart: return start();
    case RegisterFile::Request::kReset:
      registers_.reset();
      clear_queues();
      explanation_.clear();
      instructions_done_ = macs_ = 0;
      program_.clear();
      timing_.emplace();
      [[fallthrough]];
    case RegisterFile::Request::kClearTokens:
      tokens_.clear();
      races_.clear_tokens();
      return;
  }
}

RegisterFile::Progress Behavioral::progress() {
  RegisterFile::Progress progress;
  for (size_t e = 0; e < spec::kEngines; ++e) {
    const Queue& q = queues_[e];
    if (q.empty()) continue;
    const spec::Decoded& oldest = program_[q.giving ? *q.giving : q.instructions.front()];
    const bool waits =
        !q.instructions.empty() && !tokens_.can_take(e, tokens_of(program_[q.instructions.front()].instruction).wait);
    progress.engines[e] = {.has = true, .in_flight = q.giving.has_value(), .waits = waits, .slot = oldest.index};
  }
  if (dispatched_ < program_.size()) progress.decoded = program_[dispatched_].index;
  else progress.decoded = decode_error_ ? decode_error_->index : registers_.count();
  return progress;
}

}  // namespace tenon::sim
