// The reference evaluator of loop functions: naive and strict. It executes the statements literally, so that a wrong
// step of a schedule shows as a different result or an error.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// Fills `outputs` from `inputs`.
using LibraryFunction =
    std::function<Status(std::span<const runtime::Tensor> inputs, std::span<runtime::Tensor> outputs)>;

// The order in which the evaluator executes the threads of a phase.
enum class ThreadOrder : uint8_t { kForward, kBackward, kShuffled };

struct EvaluateOptions {
  uint64_t max_steps = uint64_t{1} << 32;  // statements and expressions; more is an error
  ThreadOrder threads = ThreadOrder::kForward;
  int64_t max_bytes = INT64_MAX;                     // of one buffer; more is an error
  std::map<std::string, LibraryFunction> libraries;  // all others are those that the process has opened
};

// The results for these parameters. A tensor has the buffer's shape, except that the axes up to the last one whose size
// depends on an index are merged into one: rows of (b in n, s in lengths(b), 64) are a tensor (sum of lengths, 64).
//
// Errors: parameters that do not fit the signature; an index outside its buffer; an element that is read before it is
// written; a result that is not written completely; a stage whose axes leave their extents; a race: a thread accesses
// what another thread of its phase, or of another block of the launch, writes; errors of the arithmetic;
// more steps or memory than allowed.
Expected<std::vector<runtime::Tensor>> evaluate(const TypeContext& context, const Function& function,
                                                std::span<const runtime::Tensor> params,
                                                const EvaluateOptions& options = {});

}  // namespace tenon::compiler::loop
