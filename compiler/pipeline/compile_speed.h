// The work of the compiler for an operator, on modules generated for this measurement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/passes/pass.h"

namespace tenon::compiler {

// The text of a module of about that many operators, equal for equal counts: dense layers with norms and
// ReLUs, skips over a few operators and over many, transposes and reshapes, calls, arms, closures and a list. One
// function has half of them in one straight line.
enum class SpeedShape : uint8_t {
  kMixed,  // what is described above
  kLine,   // one function, one straight line of elementwise operators
  kCalls,  // functions each of which calls the one before twice: 2^n calls if they were expanded
  kTypes,  // pairs of pairs, 1,000 deep: types of 2^1000 leaves in 1,000 nodes
};
std::string speed_module(size_t operators, SpeedShape shape = SpeedShape::kMixed);

struct SpeedStage {
  std::string name;
  uint64_t visits = 0;  // Context::visits()
  double seconds = 0;
};
struct Speed {
  size_t operators = 0;            // as they were read
  std::vector<SpeedStage> stages;  // parse (with inference), each pass, verify

  uint64_t visits() const;
  double seconds() const;
};

// Reads the module, and runs the standard passes and those for kernels.
Expected<Speed> measure_speed(size_t operators, SpeedShape shape = SpeedShape::kMixed);

}  // namespace tenon::compiler
