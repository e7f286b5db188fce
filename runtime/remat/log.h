// Logs of training steps: what a framework did in one step, as the published simulator of Dynamic Tensor
// Rematerialization records it, read into a list of events without names.
//
// Format: a line is a JSON object with INSTRUCTION, and its other members by that:
//   ANNOTATE ANNOTATION          START: the step begins after this line; other annotations only inform
//   CONSTANT NAME                an input or a weight; the next line is its MEMORY
//   MEMORY NAME MEMORY           the bytes of a constant or of a result
//   CALL NAME ARGS RESULT TIME   an operator, followed for each result by a MEMORY and an ALIAS line, in this order
//   ALIAS NAME ALIAS             -1, or the index of the argument whose storage the result shares: it has no bytes then
//   MUTATE NAME ARGS MUTATE TIME the arguments at the indices MUTATE become new tensors of the same size
//   COPY DST SRC                 a new name for the tensor of SRC
//   COPY_FROM DST SRC            DST becomes another name for the tensor of SRC
//   RELEASE NAME                 the name ends
// Integers may be strings. A name is defined once. Other members are ignored. At the end of the step, the tensors that
// still have names are its results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/remat/core.h"
#include "support/diagnostic.h"

namespace tenon::runtime::remat {

// The largest sum of all bytes, and of all times, of a log: doubles hold such integers exactly.
inline constexpr int64_t kLargestSum = int64_t{1} << 53;

// Tensors are numbered in the order in which constants and calls define them.
struct StepLog {
  enum class Kind : unsigned char {
    kConstant,
    kCall,
    kRetain,
    kRelease,
    kKeep,  // the tensor cannot be computed again (Core::keep); no line of a file says so
  };
  struct Event {
    Kind kind = Kind::kConstant;
    uint32_t index = 0;  // of the tensor, or in `calls`
  };
  struct Call {
    std::string name;
    std::vector<uint32_t> args;      // tensors
    std::vector<NewResult> results;  // the next tensors
    int64_t cost = 0;                // of the log's unit of time
    int64_t own_bytes = 0;           // memory of the operator's own while it is executed; no line of a file says so
  };
  std::string name;  // of the file, for messages
  std::vector<Event> events;
  std::vector<Call> calls;
  std::vector<int64_t> bytes;     // of each tensor's storage
  std::vector<uint32_t> results;  // pinned at the end, in this order
  int64_t ignored_releases = 0;   // of names from before the step

  int64_t constant_bytes() const;
  int64_t cost() const;                         // of all calls
  std::vector<uint32_t> first_results() const;  // by call: its first result; the others are the next tensors
};

// Errors name the line.
Expected<StepLog> parse_log(std::string_view text, std::string_view name);
Expected<StepLog> read_log(const std::string& path);

}  // namespace tenon::runtime::remat
