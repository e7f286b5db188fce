// A built Verilated model: its shared object (abi.h), opened, and the Simulator around it.
#pragma once

#include <filesystem>
#include <memory>

#include "sim/verilator/abi.h"
#include "sim/verilator/verilated.h"

namespace tenon::sim {

struct OpenModel {
  void* handle = nullptr;  // of dlopen; never closed: a later open of the same model finds it loaded
  const tenon_rtl_api* api = nullptr;
};

// Opens a model that build_verilated_model has made. A file that is none, or is of another version of Tenon, is an
// error that says which directory to remove.
Expected<OpenModel> open_model(const spec::Config& config, const std::filesystem::path& file);

// A simulator that runs the model; it ignores `fast_dot` and `progress` of the options, which concern the build.
Expected<std::unique_ptr<Simulator>> make_simulator(const spec::Config& config, const tenon_rtl_api& api,
                                                    const VerilatedOptions& options);

}  // namespace tenon::sim
