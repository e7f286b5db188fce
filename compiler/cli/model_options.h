// The options of compilation, shared by `tenon compile` and `tenon run`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/cli/plugin_options.h"
#include "compiler/cli/quantization_options.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"

namespace tenon::cli {

struct ModelOptions : QuantizationOptions {
  std::string model;
  std::string entry = "main";       // the function that is compiled
  std::vector<std::string> shapes;  // one binds sizes; several are the buckets of an accelerator
  bool strict_shapes = false;
  double divide = 1;
  std::string kernels = "native";      // what computes on the CPU
  bool ahead_of_time = false;          // functions of the virtual machine become native code
  std::string fallback;                // of operators without a native kernel, and of plugins
  bool for_this_machine = false;       // native code only for the processor of this machine
  std::string memory;                  // READ/WRITE/OUTSTANDING of all accelerators; empty: of their AcceleratorOptions
  bool no_fuse = false;                // each layer of the accelerator stores its results
  std::string targets;                 // names, the preferred first
  std::string costs, placement;        // file with the figures of a machine; "cost", "order", or by the file
  std::vector<std::string> pins;       // "NODE=TARGET"
  std::string inexact;                 // types of factors
  std::string records;                 // file with the measurements of tenon tune
  std::string schedule;                // file with steps for kernels
  std::vector<std::string> libraries;  // with functions that the model calls
  PluginOptions plugins;
  std::string target, levels;  // of the machine that runs the executable, for cross compilation

  std::optional<std::vector<std::string>> batch = {};  // CompileOptions::batch
  std::optional<int64_t> budget = {};                  // CompileOptions::budget

  bool kernels_only = false;     // nothing is lowered: no executable is made
  bool executable_only = false;  // constants of the model and of the stages are freed once they are lowered
  bool keep_functions = false;   // CompileOptions::keep_functions
  bool quiet = false;            // no line about the stage of compilation
  enum class Records : uint8_t { kMayBe, kTuned };  // kTuned: of the command that measures; the caller checks them
  void declare(Options& options, Records kind = Records::kMayBe);
};

// What --inexact allows.
Expected<compiler::Machine::Inexact> parse_inexact(const ModelOptions& options);

// Whether this processor has the instruction set level; an empty name is its best one.
Status check_host_level(const std::string& level);

// Opens options.libraries.
Status open_libraries(const ModelOptions& options);

// The model, and its calibration samples (none where no data was given).
struct LoadedModel {
  compiler::Model model;
  compiler::Samples calibration;
};

// Which sizes of the inputs may be unknown: none, where an accelerator computes, or any (runtime::kAnySize), which are
// those of the data of each run.
enum class Sizes : uint8_t { kStatic, kAny };
// Of a model that is compiled for an accelerator or not.
Sizes sizes_of_inputs(const ModelOptions& options, bool has_accelerator);

// With kStatic, unknown sizes are those of the calibration samples, or else of `data` (sizes_of_data); without data,
// they stay unknown.
Expected<LoadedModel> load(const ModelOptions& options, const compiler::PassOptions& passes = {},
                           Sizes sizes = Sizes::kAny, std::span<const std::string> data = {});
// The same with tensors as the samples of the calibration, in the order of the inputs; `where` names them in errors.
Expected<LoadedModel> load_calibrated(const ModelOptions& options, Sizes sizes, std::span<const runtime::Tensor> data,
                                      const std::string& where);
// Tensors are large blocks of memory: the allocator returns them to the system as soon as they are freed, where it
// would keep blocks of the sizes that it has seen. To be called before the model is loaded.
void return_freed_memory();
Expected<compiler::Compilation> compile(LoadedModel& loaded, const ModelOptions& options,
                                        std::vector<compiler::AcceleratorOptions> accelerators,
                                        const compiler::PassOptions& passes = {});

// The accelerators of --config: names of configurations or .json files, joined by commas.
Expected<std::vector<compiler::AcceleratorOptions>> load_accelerators(const std::string& configs);
// The accelerators that a model is compiled for to run on these devices.
std::vector<compiler::AcceleratorOptions> accelerators_of(std::span<const driver::Info* const> devices);

// The inputs of a model that is run on samples: an error where one is no tensor, or has a size that `sizes` forbids.
Expected<std::vector<runtime::Port>> input_ports(const compiler::Model& model, Sizes sizes);

}  // namespace tenon::cli
