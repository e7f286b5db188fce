// Analysis of a profile: cycles, utilization and traffic of each layer and of the whole model.
//
// A layer is complete when the last busy interval of its instructions ends. Its cycles run from the latest completion
// of any layer before it, in the order of completion, to its own: layers overlap, and by this rule their cycles add up
// to the launch's. Utilization is the model's MACs / (cycles * MACs a cycle): padding of channels does not count as
// work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/profile/profile.h"

namespace tenon::runtime {

struct LayerCost {
  std::string name, op;
  uint32_t program = 0, layer = 0;  // index into the executable's programs, and into the program's layers
  uint64_t begin = 0, cycles = 0;   // in its launch
  int64_t macs = 0, padded_macs = 0, read_bytes = 0, write_bytes = 0;
  double utilization = 0;
};

// CPU work of one layer: mean time of a run.
struct CpuCost {
  std::string layer, kernel;
  double microseconds = 0;
};

// The launches of an accelerator, of one run on average.
struct LaunchFigures {
  double cycles = 0, macs = 0, read_bytes = 0, write_bytes = 0;
  double utilization = 0;  // of all launches
  double launches = 0;
};

// Of the programs of a configuration.
struct AcceleratorCost : LaunchFigures {
  std::string_view device;  // of the programs, as "accel:tiny"
  const spec::Config* config = nullptr;
};

// The figures are the sums over all accelerators, whose cycles may be those of different clocks. It refers to the
// executable.
struct Analysis : LaunchFigures {
  std::vector<AcceleratorCost> accelerators;  // by configuration, in the order of the programs
  std::vector<LayerCost> layers;              // of the launches with a timeline, in order of completion; empty without
  std::vector<CpuCost> cpu;                   // in order of first execution
};

Analysis analyze(const Executable& executable, const Profile& profile);

// By program: its accelerator, as an index into Analysis::accelerators.
std::vector<size_t> accelerators_of(const Executable& executable);

// The layers of one launch; empty if it has no timeline.
std::vector<LayerCost> layer_costs(const AcceleratorProgram& program, uint32_t index, const LaunchRecord& launch);

// The note of the instruction at a slot, or nullptr.
const InstructionNote* find_note(const AcceleratorProgram& program, uint32_t slot);

}  // namespace tenon::runtime
