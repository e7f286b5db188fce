// Device against integer reference, layer by layer and bit for bit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/interpreter.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {

// Compares a session with the reference interpreter's run of the same partitioned module: every
// intermediate tensor that a program keeps (CompileOptions::keep_intermediates), every output of a program and every
// result of the model.
class Comparison {
 public:
  Comparison(const Model& model, const Compilation& compilation) : model_(model), compilation_(compilation) {}

  // Runs the reference on one sample and keeps all its values; returns its results.
  Expected<std::vector<runtime::Tensor>> reference(std::span<const runtime::Tensor> inputs);

  // For SessionOptions::hook: compares each program's probes and outputs with the values of the last reference(). A
  // difference ends the run with an error that names the layer, the element and both values.
  runtime::Hook hook();

  // The results of the session against those of the reference: integers bit for bit, floats to kTolerance of their
  // size.
  static constexpr double kTolerance = 1e-4;
  Status results(std::span<const runtime::Tensor> expected, std::span<const runtime::Tensor> found);
  // Whether all results so far were equal bit for bit.
  bool exact() const { return exact_; }

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
  Status compare(const std::string& name, const runtime::Tensor& value, int base, uint64_t offset);

  bool exact_ = true;
  const Model& model_;
  const Compilation& compilation_;
  std::map<std::string, runtime::Tensor, std::less<>> values_;  // of regions, by name
  std::optional<Mismatch> mismatch_;
  int64_t layers_ = 0, elements_ = 0;
};

}  // namespace tenon::compiler
