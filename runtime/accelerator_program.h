// An accelerator program: instructions, constants, memory plan, and the notes that lead from an instruction back to the
// model. The accelerator's back end makes one of each region, and the runtime launches it.
//
// Base registers of a native program: 0 constants, 1 workspace, 2 .. 7 the inputs and then the outputs, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "hw/spec/memory_timing.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

inline constexpr int kBaseConstants = 0, kBaseWorkspace = 1, kBaseFirstTensor = 2;

// An input or output of the region, as it is stored in device memory: dense, in the shape that the caller passes
// (blocked layouts are shapes of higher rank, made by an explicit layout_transform).
struct TensorSlot {
  std::string name;
  DType dtype = DType::kI8;
  Shape shape;
  int base = kBaseFirstTensor;
  bool operator==(const TensorSlot&) const = default;
};

// One operator of the region.
struct LayerNote {
  std::string name;                         // the model's node
  std::string op;                           // composite name, as accel.conv2d
  int64_t macs = 0;                         // of the operator as the model states it
  int64_t padded_macs = 0;                  // with channels padded to blocks
  int64_t read_bytes = 0, write_bytes = 0;  // DRAM traffic of its instructions
  bool operator==(const LayerNote&) const = default;
};

// The origin of one instruction; `slot` ascends.
struct InstructionNote {
  uint32_t slot = 0;
  uint32_t layer = 0;  // index into layers
  std::string tile;    // the tile operation, as "load inp co=0 rows 0..13"
  bool operator==(const InstructionNote&) const = default;
};

// A debug probe: an intermediate tensor that is still in the workspace when the program has run, for comparison layer
// by layer. Every layer whose output is not an output of the region has one, if the program was compiled to keep
// intermediates (no reuse of workspace); `name` is that of the value in the model, `shape` the shape in memory.
struct Probe {
  std::string name;
  DType dtype = DType::kI8;
  Shape shape;
  uint64_t offset = 0;  // in the workspace
  bool operator==(const Probe&) const = default;
};

struct AcceleratorProgram {
  std::string name;
  std::string device = "accel";    // for readers: where programs are for several configurations, as "accel:tiny"
  spec::Config config;             // that it was compiled for; its hash must be the device's
  spec::MemoryTiming memory = {};  // that its schedule assumes; with another one it takes longer
  spec::Profile profile = spec::Profile::kNative;
  std::vector<spec::Slot> instructions;
  std::vector<std::byte> constants;  // weights and parameters
  uint64_t workspace_bytes = 0;
  std::vector<TensorSlot> inputs, outputs;
  std::vector<LayerNote> layers;
  std::vector<InstructionNote> notes;
  std::vector<Probe> probes;
  bool operator==(const AcceleratorProgram&) const = default;
};

}  // namespace tenon::runtime
