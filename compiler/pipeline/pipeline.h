// The way of one model, from its file to an executable: import, simplify, quantize, partition, lower. Each stage's
// module is kept, so that it can be printed, run and compared with the next.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/infer.h"
#include "compiler/lower/lower.h"
#include "compiler/machine/machine.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/target_record.h"
#include "compiler/passes/pass.h"
#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/mixed.h"
#include "compiler/quantize/quantize.h"
#include "compiler/remat/plan.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

// A model after import and simplification, in its original numeric types.
struct Model {
  std::unique_ptr<Context> context;  // owns types, names and operators of every module made from the model
  Module module;
  Symbol entry{};
  std::string name;  // the file's, without folder and ending

  const Function& main() const { return *module.function(entry); }
};

// Reads a model without simplification, by the ending of its file: .onnx, or the text form .tn. `shapes` binds unknown
// sizes by name; `inference` is for the text form.
Expected<Model> read_model(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                           const InferOptions& inference = {}, std::string_view entry = "main");
// An error that lists the module's functions where it does not have the entry; `where` is the file.
Status check_entry(const Model& model, const std::string& where);
// Reads a model that has the function `entry`, which becomes its @main, and runs the standard passes on it.
Expected<Model> load_model(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                           const PassOptions& passes = {}, const InferOptions& inference = {},
                           std::string_view entry = "main");

struct CompileOptions {
  std::vector<AcceleratorOptions> accelerators = {};  // of different configurations; none: everything is on the CPU
  bool fuse = true;                                   // their layers, whose values between them then stay on the chip
  // Names of targets (compiler/targets), the preferred first. The accelerators come before all that are named here,
  // unless they are named, too.
  std::vector<std::string> targets = {};
  // Targets beside those of compiler/targets, as of plugins: they come before the accelerators unless they are named.
  std::vector<TargetRecord> added_targets = {};
  // A target whose code generator has failed (Target::failure) is left out, with a note; else it is an error.
  bool skip_failed_targets = false;
  // Figures of a machine: targets are assigned by cost instead of by their order.
  std::optional<Costs> costs = {};
  Pins pins = {};  // the targets of nodes of the model
  // What a user allows the products of a GPU; by default, they are exact or rounded as the CPU's.
  Machine::Inexact inexact = {};
  // Sizes of the unknown sizes of the model, by name: programs of fixed sizes are made for these (make_buckets). A
  // model without unknown sizes, or without a target, has none.
  std::vector<std::map<std::string, int64_t>> buckets = {};
  const Samples* calibration = nullptr;  // none: the model keeps its numeric types
  CalibrationOptions calibrate{};
  QuantizeOptions quantize{};
  std::vector<std::string> keep = {};  // names of nodes, or of results, that stay in float (layers_named)
  AccuracyTarget accuracy = {};        // of the quantized model; further layers stay in float to reach it
  // The model runs many instances in batches (compiler/batch): the names of the inputs that all of them share. None: it
  // has the code for one instance.
  std::optional<std::vector<std::string>> batch = {};
  CpuOptions cpu = {};  // kernels of operators that the accelerator does not support
  // Bytes of tensors of one run of @main, inputs and results included: kernels are called again to keep within them
  // (compiler/remat). None: nothing is planned; 0: plans are found, and the order stays.
  std::optional<int64_t> budget = {};
  // Whether a budget that no plan keeps, or sizes without bounds, are errors; otherwise the plan of least memory is
  // taken, or none: a machine that has the budget (SessionOptions::budget) does what is missing.
  bool budget_required = true;
  PassOptions passes = {};
  bool keep_functions = false;  // the compilation has the loop functions of native kernels
  bool kernels_only = false;    // ends before code is generated: the compilation has no executable
  std::function<void(std::string_view stage)> progress = {};  // called as each stage begins
};

// A function of int8 layers whose weights can be trained (QuantizeOptions::trained), by options.calibration and the
// other options of quantization; its results are, to the bit, those of the module that compile() quantizes for an
// accelerator. `notes` receives what was measured, for people.
Expected<Module> quantized_for_training(const Model& model, CompileOptions options, std::string& notes);

// The same with the constant weights rounded to int8 constants: what compile() makes of it runs on an accelerator.
Expected<Module> with_integer_weights(Context& context, Module trained);

// A model that is not calibrated, as compile() partitions it: layers of one that comes quantized are integer ones. With
// `wants_integers` its requantizations are such as targets for integer layers have them; `scales` receives those of its
// values.
Expected<Module> with_integer_layers(Context& context, Module module, bool wants_integers,
                                     ValueScales* scales = nullptr, const PassOptions& passes = {});

// The steps of compile() that transform a module and depend on more than it, as samples, targets and costs, in their
// order. They have no `run`: the pass manager runs them, as passes of these names, where compile() has what they need.
std::span<const Pass> compile_steps();

struct Compilation {
  Module quantized;  // the executed function before partitioning; the model itself where it is not quantized
  // The float function that was quantized, where its layers were equalized; its results are the model's.
  std::optional<Module> equalized;
  std::string notes;   // for people: what was measured to quantize the model; lines, or empty
  ValueScales scales;  // of the int8 values of `quantized`
  std::string units;   // for people: with CompileOptions::batch, what batches join and why they do not (batch::explain)
  Module partitioned;
  Module kernels;  // the partitioned module with the CPU's operators grouped into kernels; it is lowered
  std::optional<MemoryPlans> memory;  // where a budget was given
  std::vector<Placement> placements;
  std::optional<PlacementCosts> costs;    // where targets are assigned by cost
  double partition_seconds = 0;           // wall time
  std::vector<CpuPlacement> interpreted;  // the operators whose kernel is the interpreter's
  runtime::Executable executable;
  std::vector<loop::Function> gpu_functions;  // LowerOptions::gpu_functions
  std::vector<loop::Function> cpu_functions;  // LowerOptions::cpu_functions, with CompileOptions::keep_functions
};

// The model outlives the compilation.
Expected<Compilation> compile(const Model& model, const CompileOptions& options);
// The same where only the executable, the placements and their explanation are needed: the constants of the model and
// of all stages are freed as soon as their kernels are made, so that large weights are not in memory twice.
Expected<Compilation> compile(Model&& model, const CompileOptions& options);

}  // namespace tenon::compiler
