// How a target is known before it exists: its name, what it is for, and what it needs. A code generator offers one
// record for each of its targets (compiler/targets lists them).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/machine/machine.h"
#include "compiler/partition/target.h"
#include "compiler/schedules/user_schedule.h"
#include "hw/spec/config.h"
#include "hw/spec/memory_timing.h"

namespace tenon::compiler {

// The name of a target up to a colon: "accel" of "accel:tiny", "cuda" of "cuda:emulated".
inline std::string_view kind_of(std::string_view target) { return target.substr(0, target.find(':')); }

// A generated accelerator that a model is compiled for.
struct AcceleratorOptions {
  spec::Config config;
  spec::MemoryTiming memory = {};  // which programs are scheduled for
};

// What targets are made from; each reads what concerns it.
struct TargetOptions {
  std::string name = {};                               // of the target; empty: its record's
  std::optional<AcceleratorOptions> accelerator = {};  // of a target of a configuration
  bool fuse = true;                                    // layers of accelerators: values between them stay on the chip
  Machine::Inexact inexact = {};                       // what a user allows the products of a GPU
  // Steps of a user for kernels, instead of the templates': of the level sm_90, or of all levels.
  std::vector<schedules::UserSchedule> schedules = {};
};

struct TargetRecord {
  std::string name;           // as --targets has it
  std::string documentation;  // for the help
  std::function<Target(const TargetOptions&)> make;
  // Whether it generates code for TargetOptions::accelerator, without which it is not made; it is used where
  // configurations are given, once for each, and is the first target unless it is named at another position.
  bool of_configuration = false;
  bool native = false;             // its kernels are native code of the executable
  std::string_view excludes = {};  // a target that cannot be named beside it
};

}  // namespace tenon::compiler
