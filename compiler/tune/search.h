// The search: for each operator of a model, the candidates that promise most are compiled and measured, and the fastest
// is kept as a record.
//
// Semantics: candidates come in the order of their cost by counting, corrected by what was measured: one that shares
// options with fast ones moves up. Each is measured in turns with the default, so that a ratio means something however
// busy the machine is; the best few are measured again and longer, and the default stays unless another is faster by
// more than 2 %. The order is a function of the measurements alone. Every choice computes the same bits.
#pragma once

#include <functional>

#include "compiler/tune/candidates.h"
#include "compiler/tune/records.h"

namespace tenon::compiler::tune {

struct TuneOptions {
  int64_t trials = 24;  // candidates that are measured for an operator, those of earlier searches among them
  double seconds = 0;   // for all; 0: no limit
  std::string level;    // of this machine's processor
  std::function<void(size_t done, size_t of, const std::string& key)> progress = {};
};

struct Tuned {
  std::string key;
  int64_t uses = 0;       // in the model
  size_t candidates = 0;  // 0: it was known, or the time was over before
  size_t measured = 0;    // this time
  std::optional<Record> record;
};

// One an operator that leaves something open; records are written as soon as they are made.
Expected<std::vector<Tuned>> tune(Context& context, const Module& kernels, Symbol entry, Records& records,
                                  const TuneOptions& options);

}  // namespace tenon::compiler::tune
