#include "runtime/vm/program_on_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {

Status check_configuration(const AcceleratorProgram& program, const driver::Accelerator& accelerator) {
  const driver::Info& device = accelerator.info();
  uint64_t wanted = spec::hash(program.config), found = spec::hash(device.config);
  if (wanted == found) return {};
  // The differences are written from the program's side: "here" is its configuration.
  std::string fields = spec::difference(program.config, device.config);
  while (fields.ends_with('\n')) fields.pop_back();
  return error(
      fmt::format("program '{}' was compiled for configuration '{}' ({:016x}), the device has '{}' ({:016x}):\n{}",
                  program.name, program.config.name, wanted, device.config.name, found, fields),
      device.uri,
      fmt::format("compile the model for this device: tenon compile MODEL --config {}", device.config.name));
}

driver::Accelerator* find_accelerator(std::span<driver::Accelerator* const> accelerators,
                                      const AcceleratorProgram& program) {
  const uint64_t wanted = spec::hash(program.config);
  const auto found = std::ranges::find_if(
      accelerators, [&](driver::Accelerator* other) { return spec::hash(other->info().config) == wanted; });
  return found == accelerators.end() ? nullptr : *found;
}

bool is_used(std::span<const AcceleratorProgram> programs, const driver::Accelerator& accelerator) {
  const uint64_t hash = spec::hash(accelerator.info().config);
  return std::ranges::any_of(programs, [&](const AcceleratorProgram& each) { return spec::hash(each.config) == hash; });
}

ProgramOnDevice::ProgramOnDevice(driver::Accelerator& accelerator, const AcceleratorProgram& program)
    : accelerator_(&accelerator), program_(&program) {}

ProgramOnDevice::ProgramOnDevice(ProgramOnDevice&& other) noexcept
    : accelerator_(other.accelerator_),
      program_(other.program_),
      instructions_(other.instructions_),
      constants_(other.constants_),
      workspace_(other.workspace_),
      inputs_(std::move(other.inputs_)),
      outputs_(std::move(other.outputs_)),
      owned_(std::exchange(other.owned_, {})) {}

ProgramOnDevice::~ProgramOnDevice() {
  for (const driver::Buffer& buffer : owned_) accelerator_->free(buffer);
}

Expected<driver::Buffer> ProgramOnDevice::allocate(uint64_t bytes, std::string_view purpose) {
  auto buffer = accelerator_->allocate(std::max<uint64_t>(bytes, 1));
  if (!buffer) {
    buffer.error().what =
        fmt::format("no device memory for {} of program '{}': {}", purpose, program_->name, buffer.error().what);
    return buffer;
  }
  owned_.push_back(*buffer);
  return buffer;
}

Expected<ProgramOnDevice> ProgramOnDevice::upload(driver::Accelerator& accelerator, const AcceleratorProgram& program) {
  TENON_TRY(check_configuration(program, accelerator));
  ProgramOnDevice result(accelerator, program);
  auto instructions = std::as_bytes(std::span(program.instructions));
  struct Part {
    driver::Buffer* buffer;
    uint64_t bytes;
    std::string_view purpose;
  };
  std::vector<Part> parts = {{&result.instructions_, instructions.size(), "the instructions"},
                             {&result.constants_, program.constants.size(), "the constants"},
                             {&result.workspace_, program.workspace_bytes, "the workspace"}};
  result.inputs_.resize(program.inputs.size());
  result.outputs_.resize(program.outputs.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorSlot& slot = program.inputs[i];
    parts.push_back({&result.inputs_[i], static_cast<uint64_t>(*checked_bytes(slot.dtype, slot.shape)), slot.name});
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorSlot& slot = program.outputs[i];
    parts.push_back({&result.outputs_[i], static_cast<uint64_t>(*checked_bytes(slot.dtype, slot.shape)), slot.name});
  }
  for (const Part& part : parts) {
    TENON_TRY_ASSIGN(buffer, result.allocate(part.bytes, part.purpose));
    *part.buffer = *buffer;
  }
  TENON_TRY(accelerator.write(result.instructions_, 0, instructions));
  TENON_TRY(accelerator.write(result.constants_, 0, program.constants));
  return result;
}

Status ProgramOnDevice::start(std::span<const Tensor> inputs, DeviceCopies& copies) {
  assert(inputs.size() == inputs_.size());
  for (const driver::Buffer& output : outputs_) copies.forget(output);  // an input there is written again
  driver::Launch launch;
  launch.profile = program_->profile;
  launch.instructions = instructions_.address;
  launch.count = static_cast<uint32_t>(program_->instructions.size());
  launch.bases[kBaseConstants] = constants_.address;
  launch.bases[kBaseWorkspace] = workspace_.address;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSlot& slot = program_->inputs[i];
    if (inputs[i].dtype() != slot.dtype || inputs[i].shape() != slot.shape) {
      return error(fmt::format("input '{}' of program '{}' is {} {}, must be {} {}", slot.name, program_->name,
                               name(inputs[i].dtype()), to_string(inputs[i].shape()), name(slot.dtype),
                               to_string(slot.shape)));
    }
    const auto copy = copies.find(inputs[i]);
    if (!copy) TENON_TRY(accelerator_->write(inputs_[i], 0, inputs[i].bytes()));
    launch.bases[static_cast<size_t>(slot.base)] = copy.value_or(inputs_[i]).address;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    launch.bases[static_cast<size_t>(program_->outputs[i].base)] = outputs_[i].address;
  }
  return driver::start(*accelerator_, launch);
}

Status ProgramOnDevice::finish(std::chrono::nanoseconds limit) { return driver::finish(*accelerator_, limit); }

Expected<std::vector<Tensor>> ProgramOnDevice::outputs(DeviceCopies& copies) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TENON_TRY_ASSIGN(tensor, read(outputs_[i], 0, program_->outputs[i].dtype, program_->outputs[i].shape));
    copies.add(*tensor, outputs_[i]);
    results.push_back(std::move(*tensor));
  }
  return results;
}

Expected<Tensor> ProgramOnDevice::read(const Probe& probe) {
  return read(workspace_, probe.offset, probe.dtype, probe.shape);
}

Expected<Tensor> ProgramOnDevice::read(const driver::Buffer& buffer, uint64_t offset, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  TENON_TRY(accelerator_->read(buffer, offset, tensor.bytes()));
  return tensor;
}

}  // namespace tenon::runtime
