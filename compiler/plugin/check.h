// `tenon plugin check`: the rows of a target on samples that match them, against the interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/partition/target.h"
#include "compiler/plugin/child.h"

namespace tenon::compiler::plugin {

struct CheckOptions {
  uint64_t seed = 1;
  int samples = 100;    // of each row
  int attempts = 2000;  // of each row, to make samples that it supports
  Limits limits = {};   // of a run
};

struct RowCheck {
  std::string composite, pattern;
  int samples = 0;      // which it supports, and whose results are right
  std::string refused;  // why the last match was not supported; empty: all were
};

// Functions whose result the pattern of a row describes, with random operands, compiled for this row alone and run in a
// process of their own: integers must be equal, floats to 1e-4 of the largest one or of 1. The error has the first
// function that fails, the sizes and the values that differ, or why the run has failed.
//
// Samples are made of operators with attributes, alternatives, optional operators, paths, tuples, fields and constants;
// a row that supports none of them has no samples.
Expected<std::vector<RowCheck>> check_rows(const Target& target, const CheckOptions& options);

}  // namespace tenon::compiler::plugin
