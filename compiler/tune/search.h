// The search: for each operator of a model, the most promising candidates are compiled and measured, and the fastest is
// stored as a record.
//
// Semantics: candidates are ordered by the cost model, corrected by measurements: a candidate that shares options with
// fast ones moves up. Each candidate is measured interleaved with the default, so that the ratio does not depend on
// other load of the machine; the best few are measured again and longer, and the default stays unless another candidate
// is more than 2 % faster. The order is a function of the measurements alone. All settings compute the same bits.
#pragma once

#include <functional>

#include "compiler/tune/candidates.h"
#include "compiler/tune/records.h"

namespace tenon::compiler::tune {

struct TuneOptions {
  int64_t trials = 24;  // candidates measured for an operator, including those of earlier searches
  double seconds = 0;   // for all operators; 0: no limit
  std::string level;    // of this machine's processor
  std::function<void(size_t done, size_t total, const std::string& key)> progress = {};
};

struct Tuned {
  std::string key;
  int64_t uses = 0;       // in the model
  size_t candidates = 0;  // 0: the record is complete, or the time limit was reached
  size_t measured = 0;    // in this search
  std::optional<Record> record;
};

// Tunes each operator that has knobs; records are written as soon as they are measured.
Expected<std::vector<Tuned>> tune(Context& context, const Module& kernels, Symbol entry, Records& records,
                                  const TuneOptions& options);

}  // namespace tenon::compiler::tune
