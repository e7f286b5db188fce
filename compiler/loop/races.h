// Races between the threads and the blocks of a bound function, found while the evaluator executes it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/loop/loop.h"
#include "compiler/loop/state.h"

namespace tenon::compiler::loop {

class RaceChecker {
 public:
  using Position = std::array<int64_t, 3>;  // a block in the grid, or a thread in its block

  explicit RaceChecker(const State& state) : state_(state) {}

  // An iteration of a bound loop.
  void enter(LoopKind kind, int64_t iteration);
  // The buffer is a block's, in registers: nests of threads follow one another for it as phases do, for the threads of
  // a warp; it is read in no other warp.
  void declare_registers(BufferId buffer) { registers_[buffer].clear(); }
  void leave(LoopKind kind);
  void end_of_loop();  // over blocks
  void barrier() { ++phase_; }

  // An error if another thread of the phase, or of another block of the launch, has accessed the element such that one
  // of the two accesses is a write.
  Status read(BufferId buffer, int64_t element) { return check(buffer, element, false); }
  Status write(BufferId buffer, int64_t element) { return check(buffer, element, true); }
  // By this thread, at a statement of the block.
  Status write_of(const Position& thread, BufferId buffer, int64_t element) {
    const Position outer = std::exchange(thread_, thread);
    Status status = check(buffer, element, true);
    thread_ = outer;
    return status;
  }
  const Position& thread() const { return thread_; }
  // The buffer is a new one.
  void reset(BufferId buffer) { accesses_.erase(buffer), registers_.erase(buffer); }

 private:
  // The last accesses in one period: a phase, or a launch.
  struct Period {
    int64_t id = -1;
    bool written = false, read = false, read_by_many = false;
    Position writer{}, reader{};
  };
  struct Accesses {
    Period phase, launch;
  };

  Status check(BufferId buffer, int64_t element, bool writes);
  // The other thread or block, if the access conflicts with an earlier one.
  static const Position* conflict(Period& period, int64_t id, const Position& position, bool writes);

  const State& state_;
  Position block_{}, thread_{};
  int num_blocks_ = 0, num_threads_ = 0;  // bound loops around the statement
  int64_t phase_ = 0, launch_ = 0, nest_ = 0;
  std::map<BufferId, std::vector<Accesses>> accesses_;
  std::map<BufferId, std::map<int64_t, Position>> registers_;  // with the thread that wrote each element
};

}  // namespace tenon::compiler::loop
