// Device against integer reference, region by region, layer by layer and bit for bit.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/kernel_check.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/vm/session.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// An element of a tensor in the plain layout and in the device's.
struct ElementPosition {
  size_t plain, blocked;
  int64_t n, c, y, x;
};
// Visits the elements of a tensor of shape `plain`, [n][c][h][w] or [n][c], which the device holds blocked:
// [n][ceil(c / B)][h][w][B]; a matrix as [n][ceil(c / B)][B] for one row and as [ceil(c / B)][n][B] for several;
// several matrices [..][w][c] as [..][ceil(c / B)][w][B]. Of outputs and probes only, never of transposed inputs.
// False where the shapes do not belong to one tensor.
bool for_each_element(runtime::Shape blocked, runtime::Shape plain, FunctionRef<void(const ElementPosition&)> visit);

// Compares each launch with the reference interpreter's run of its region on the inputs that the device was given, so
// that nothing before the launch, as the rounding of floats, counts as a fault of the device: every tensor between
// layers that the program keeps, and every output.
class Comparison {
 public:
  Comparison(const Model& model, const Compilation& compilation)
      : model_(model),
        compilation_(compilation),
        kernels_(*model.context, compilation.executable, compilation.gpu_functions) {}

  // The whole model on one sample in the reference interpreter.
  Expected<std::vector<runtime::Tensor>> reference(std::span<const runtime::Tensor> inputs) const;

  // For SessionOptions::hook: compares each launch, and checks the kernels of an emulated GPU. A difference ends the
  // run with an error that names the layer, the element and both values.
  runtime::Hook hook();

  // The results of the session beside those of reference(): integers bit for bit, floats to kTolerance of their size.
  // Where the model rounds floats to integers, a float just beside the boundary may be rounded otherwise on another
  // processor, so that results differ although every launch is right: an error only where nothing was launched.
  static constexpr double kTolerance = 1e-4;
  Status results(std::span<const runtime::Tensor> expected, std::span<const runtime::Tensor> found);
  // Whether all results so far were equal bit for bit; the number of samples with a result beyond the tolerance.
  bool exact() const { return exact_; }
  int64_t differing() const { return differing_; }

  // The tensor that differs, with the bytes expected in device memory.
  struct Mismatch {
    std::string name;
    int base = 0;  // register of its launch
    uint64_t offset = 0;
    std::vector<std::byte> expected;
  };
  const std::optional<Mismatch>& mismatch() const { return mismatch_; }

  int64_t layers() const { return layers_; }  // compared so far
  int64_t elements() const { return elements_; }

 private:
  using Values = std::map<std::string, runtime::Tensor, std::less<>>;  // of a region, by name
  Expected<Values> region_values(const std::string& program, std::span<const runtime::Tensor> args) const;
  Status compare(const runtime::Tensor& expected, const std::string& name, const runtime::Tensor& value, int base,
                 uint64_t offset);

  bool exact_ = true;
  int64_t differing_ = 0;
  const Model& model_;
  const Compilation& compilation_;
  KernelCheck kernels_;
  std::optional<Mismatch> mismatch_;
  int64_t layers_ = 0, elements_ = 0;
};

}  // namespace tenon::compiler
