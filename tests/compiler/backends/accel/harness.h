// Runs a region on the behavioral simulator, race detector on, beside an integer reference that knows nothing of tiles,
// blocks or layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/backends/accel/compile.h"
#include "compiler/backends/accel/layer.h"

namespace tenon::compiler::accel {

using Values = std::vector<int8_t>;  // a tensor, NCHW

// The values of all tensors of the region, from those of its inputs.
std::vector<Values> reference(const Region& region, const std::vector<Values>& inputs);

// Compiles and runs it; the values of the outputs. Lanes beyond the channels are filled with noise on the way in.
Expected<std::vector<Values>> run_on_simulator(const spec::Config& config, const Region& region,
                                               const std::vector<Values>& inputs, const ScheduleOptions& options = {});

// Runs what was compiled of it.
Expected<std::vector<Values>> run_on_simulator(const spec::Config& config, const Region& region,
                                               const std::vector<Values>& inputs,
                                               const runtime::AcceleratorProgram& program);

Values to_device(const Values& values, const RegionTensor& tensor, Layout layout, const spec::Config& config);
Values from_device(const Values& bytes, const RegionTensor& tensor, const spec::Config& config);

}  // namespace tenon::compiler::accel
