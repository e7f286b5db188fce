// An accelerator program with its buffers on a device: uploaded once, launched often.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/accelerator_program.h"
#include "runtime/vm/device_copies.h"

namespace tenon::runtime {

// An error if the device has another configuration: the message has the fields that differ and the command that
// rebuilds.
Status check_configuration(const AcceleratorProgram& program, const driver::Accelerator& accelerator);

// The accelerator that has the program's configuration; nullptr where none has it.
driver::Accelerator* find_accelerator(std::span<driver::Accelerator* const> accelerators,
                                      const AcceleratorProgram& program);

// Whether one of the programs is for the accelerator's configuration.
bool is_used(std::span<const AcceleratorProgram> programs, const driver::Accelerator& accelerator);

class ProgramOnDevice {
 public:
  // Allocates all device memory that the program needs; `program` and `accelerator` outlive the result.
  static Expected<ProgramOnDevice> upload(driver::Accelerator& accelerator, const AcceleratorProgram& program);
  ProgramOnDevice(ProgramOnDevice&& other) noexcept;
  ProgramOnDevice& operator=(ProgramOnDevice&&) = delete;
  ~ProgramOnDevice();

  const AcceleratorProgram& program() const { return *program_; }

  // A launch in three steps: writes the inputs that have no copy on the device yet, and starts; waits, which may be
  // done by another thread; reads the outputs, whose copies are known then.
  Status start(std::span<const Tensor> inputs, DeviceCopies& copies);
  Status finish(std::chrono::nanoseconds limit);
  Expected<std::vector<Tensor>> outputs(DeviceCopies& copies);

  // An intermediate tensor of the last run.
  Expected<Tensor> read(const Probe& probe);

 private:
  ProgramOnDevice(driver::Accelerator& accelerator, const AcceleratorProgram& program);
  Expected<driver::Buffer> allocate(uint64_t bytes, std::string_view purpose);
  Expected<Tensor> read(const driver::Buffer& buffer, uint64_t offset, DType dtype, const Shape& shape);

  driver::Accelerator* accelerator_;
  const AcceleratorProgram* program_;
  driver::Buffer instructions_, constants_, workspace_;
  std::vector<driver::Buffer> inputs_, outputs_;
  std::vector<driver::Buffer> owned_;
};

}  // namespace tenon::runtime
