// Asynchronous copies while the evaluator executes a bound function: which elements are in flight.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "compiler/loop/loop.h"
#include "compiler/loop/races.h"
#include "compiler/loop/state.h"

namespace tenon::compiler::loop {

class InFlight {
 public:
  struct Copy {
    BufferId to{}, from{};
    int64_t to_element = 0, from_element = 0;
    RaceChecker::Position thread{};
  };

  explicit InFlight(const State& state) : state_(state) {}

  // A copy by the thread; of zeros where it has no source.
  void begin(const Copy& copy, bool has_source);
  void commit() { groups_.push_back(std::exchange(open_, {})); }
  // The copies of all groups but the last ones, which have arrived.
  std::vector<Copy> wait(int64_t groups);

  // An error if the element is in flight, or if it is written and is the source of an element in flight.
  Status read(BufferId buffer, int64_t element) const;
  Status write(BufferId buffer, int64_t element) const;
  // The buffer ends.
  Status release(BufferId buffer) const;

 private:
  using Element = std::pair<BufferId, int64_t>;
  struct Begun {
    Copy copy;
    bool has_source = false;
  };
  Status fail(BufferId buffer, int64_t element, std::string_view finding) const;

  const State& state_;
  std::vector<Begun> open_;
  std::deque<std::vector<Begun>> groups_;
  std::map<Element, int64_t> targets_, sources_;  // numbers of copies
};

}  // namespace tenon::compiler::loop
