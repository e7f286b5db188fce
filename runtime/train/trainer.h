// Training: the step of a model (compiler/train/step.h), an executable like any other, run over batches of samples; its
// weights and states, and their file.
//
// The same weights result from the same data, seed and options, byte for byte, with any number of threads, and whether
// or not the training was interrupted between two calls of save() and load().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/npy.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

// Samples: tensors whose leading axis counts them.
struct TrainingData {
  std::vector<Tensor> inputs;  // in the order of the step's inputs
  Tensor labels;

  int64_t samples() const { return labels.shape().empty() ? 0 : labels.shape()[0]; }
};

// The rows of a tensor with these indices along the leading axis.
Tensor rows(const Tensor& tensor, std::span<const int64_t> indices);

// The order of the samples of an epoch, by Fisher and Yates with splitmix64: for all machines the same.
std::vector<int64_t> shuffled(int64_t samples, uint64_t seed, int64_t epoch);

// Makes the weights and the states of the optimizer in a step the executable's states: first values are these weights,
// by their names without "weight.", and zeros. An error where the executable is no step, or where a weight is missing
// or of another type.
Status add_states(Executable& step, const NamedTensors& weights);

class Trainer {
 public:
  // Begins with the first values of the step's states. The executable outlives the trainer. An error where it is no
  // step.
  static Expected<Trainer> create(const Executable& step, SessionOptions options);

  // Checks that the data has one tensor for each input, of its type behind the leading axis, and as many labels. A
  // label of classes must be in [0, classes); no float may be NaN or infinite. Errors name the input and the sample.
  Status check(const TrainingData& data, int64_t classes) const;

  // One step with the samples of these indices: the loss before it. An error where the loss is NaN or infinite, after
  // which weights and states are those before the step: the step has run once more, to name the first layer with such a
  // value. The step writes new weights over the old ones where no one else has these (Session::update), and then a
  // kernel that fails leaves none: is_lost().
  Expected<double> step(const TrainingData& data, std::span<const int64_t> samples, double rate);
  // The loss of these samples, which changes nothing.
  Expected<double> loss(const TrainingData& data, std::span<const int64_t> samples);

  int64_t steps() const { return steps_; }
  const MemoryRecord& memory() const { return session_.memory(); }  // of the last step
  NamedTensors weights() const;                                     // by their names; none where they are lost
  bool is_lost() const;                                             // until load()
  // Replaces weights; an error, after which nothing has changed, where the step has none of a name, or of another type.
  Status set_weights(const NamedTensors& weights);
  // The inputs of the step that samples are given to, and the labels, the last.
  std::span<const Port> data_ports() const;
  // Samples in a batch; kAnySize where batches may be of any size.
  int64_t batch() const;

  // Weights, states and the number of steps in an .npz file, with `extra` tensors; the file is replaced as a whole.
  Status save(const std::filesystem::path& path, const NamedTensors& extra) const;
  // Continues from such a file; the other tensors in it are returned. An error where one is missing, or not of the type
  // that the step needs: then nothing has changed.
  Expected<NamedTensors> load(const std::filesystem::path& path);

 private:
  Trainer(const Executable& step, Session session, SessionOptions options)
      : executable_(&step), session_(std::move(session)), options_(std::move(options)) {}
  const Port& port(size_t state) const { return executable_->main().params[executable_->states[state].param]; }
  size_t states() const { return executable_->states.size(); }
  // The inputs of the step that are no states.
  std::vector<Tensor> inputs(const TrainingData& data, std::span<const int64_t> samples, double rate) const;
  // The loss of a step, which replaces the states if `accept` returns true for it.
  Expected<double> run(std::span<const Tensor> inputs, FunctionRef<bool(double)> accept);
  // For people: where a step with these inputs has its first infinite value, and its first NaN; empty where it has
  // none.
  std::string origin_of_infinite(std::span<const Tensor> data) const;

  const Executable* executable_;
  Session session_;         // which has the states
  SessionOptions options_;  // of that session
  std::vector<Tensor> results_;
  int64_t steps_ = 0;
};

}  // namespace tenon::runtime
