// Training by the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/c_api/handles.h"
#include "support/try.h"

namespace tenon::runtime::c_api {
namespace {

// The samples of a call, which are checked against the step.
struct Samples {
  const tenon_value* const* inputs = nullptr;
  size_t input_count = 0;
  const tenon_value* labels = nullptr;
};
Expected<TrainingData> training_data(const tenon_trainer* trainer, const Samples& samples, const char* function) {
  TENON_TRY(require(function, {{"trainer", trainer}, {"labels", samples.labels}}));
  if (samples.input_count > 0) TENON_TRY(require(function, {{"inputs", samples.inputs}}));
  const auto tensor_of = [&](const tenon_value* value, const std::string& which) -> Expected<Tensor> {
    if (!value) return error(fmt::format("{} is NULL", which), function, {}, Fault::kUsage);
    if (value->value.tensor()) return value->value.tensor();
    return error(fmt::format("{} is no tensor", which), function, {}, Fault::kUsage);
  };
  TrainingData data;
  for (size_t i = 0; i < samples.input_count; ++i) {
    TENON_TRY_ASSIGN(tensor, tensor_of(samples.inputs[i], fmt::format("input {}", i)));
    data.inputs.push_back(std::move(*tensor));
  }
  TENON_TRY_ASSIGN(labels, tensor_of(samples.labels, "labels"));
  data.labels = std::move(*labels);
  TENON_TRY(trainer->trainer->check(data, 0));
  return data;
}

// The samples `first`, ... of a batch.
Expected<std::vector<int64_t>> batch_at(const tenon_trainer* trainer, const TrainingData& data, size_t first,
                                        const char* function) {
  const int64_t samples = data.samples(), size = trainer->trainer->batch();
  const int64_t left = first > static_cast<size_t>(samples) ? -1 : samples - static_cast<int64_t>(first);
  const int64_t batch = size == kAnySize ? left : size;
  if (batch < 1 || left < batch) {
    return error(fmt::format("there are {} samples, and a batch begins with sample {} and has {}", samples, first,
                             size == kAnySize ? 1 : size),
                 function, {}, Fault::kUsage);
  }
  std::vector<int64_t> indices(static_cast<size_t>(batch));
  std::iota(indices.begin(), indices.end(), static_cast<int64_t>(first));
  return indices;
}

Status create_trainer(const tenon_program* step, const tenon_session_options* given, tenon_trainer** out) {
  constexpr char kFunction[] = "tenon_trainer_create";
  TENON_TRY(require(kFunction, {{"step", step}, {"out", out}}));
  TENON_TRY_ASSIGN(made, session_options(given, kFunction));
  auto trainer = std::make_unique<tenon_trainer>();
  trainer->executable = step->executable;
  trainer->accelerators = std::move(made->accelerators);
  TENON_TRY_ASSIGN(created, Trainer::create(*trainer->executable, std::move(made->options)));
  trainer->trainer = std::move(*created);
  for (const auto& [name, weight] : trainer->trainer->weights()) trainer->names.push_back(name);
  *out = trainer.release();
  return {};
}

Status train_step(tenon_trainer* trainer, const Samples& samples, size_t first, double rate, double* loss) {
  constexpr char kFunction[] = "tenon_trainer_step";
  TENON_TRY_ASSIGN(data, training_data(trainer, samples, kFunction));
  TENON_TRY_ASSIGN(batch, batch_at(trainer, *data, first, kFunction));
  TENON_TRY_ASSIGN(found, trainer->trainer->step(*data, *batch, rate));
  if (loss) *loss = *found;
  return {};
}

Status train_epoch(tenon_trainer* trainer, const Samples& samples, uint64_t seed, int64_t epoch, double rate,
                   double* loss) {
  constexpr char kFunction[] = "tenon_trainer_epoch";
  TENON_TRY_ASSIGN(data, training_data(trainer, samples, kFunction));
  TENON_TRY_ASSIGN(first, batch_at(trainer, *data, 0, kFunction));
  const std::vector<int64_t> order = shuffled(data->samples(), seed, epoch);
  const int64_t batch = std::ssize(*first), steps = data->samples() / batch;
  double sum = 0;
  for (int64_t i = 0; i < steps; ++i) {
    TENON_TRY_ASSIGN(found, trainer->trainer->step(*data, std::span(order).subspan(i * batch, batch), rate));
    sum += *found;
  }
  if (loss) *loss = sum / static_cast<double>(steps);
  return {};
}

Status loss_of(tenon_trainer* trainer, const Samples& samples, size_t first, double* loss) {
  constexpr char kFunction[] = "tenon_trainer_loss";
  TENON_TRY(require(kFunction, {{"loss", loss}}));
  TENON_TRY_ASSIGN(data, training_data(trainer, samples, kFunction));
  TENON_TRY_ASSIGN(batch, batch_at(trainer, *data, first, kFunction));
  TENON_TRY_ASSIGN(found, trainer->trainer->loss(*data, *batch));
  *loss = *found;
  return {};
}

Status weight_of(const tenon_trainer* trainer, const char* name, tenon_value** out) {
  constexpr char kFunction[] = "tenon_trainer_weight";
  TENON_TRY(require(kFunction, {{"trainer", trainer}, {"name", name}, {"out", out}}));
  if (trainer->trainer->is_lost())
    return error("the weights are lost, since a step has failed", kFunction,
                 "tenon_trainer_load() loads the state that was saved last", Fault::kUsage);
  const NamedTensors weights = trainer->trainer->weights();
  const auto found = weights.find(std::string_view(name));
  if (found == weights.end())
    return error(fmt::format("the step has no weight '{}'", name), kFunction, "tenon_trainer_weight_name() names them",
                 Fault::kUsage);
  *out = new tenon_value{Value(found->second)};
  return {};
}

Status set_weight(tenon_trainer* trainer, const char* name, const tenon_value* weight) {
  constexpr char kFunction[] = "tenon_trainer_set_weight";
  TENON_TRY(require(kFunction, {{"trainer", trainer}, {"name", name}, {"weight", weight}}));
  if (!weight->value.tensor()) return error("a weight is a tensor", kFunction, {}, Fault::kUsage);
  return trainer->trainer->set_weights({{name, weight->value.tensor()}});
}

}  // namespace
}  // namespace tenon::runtime::c_api

using namespace tenon;  // NOLINT: the definitions below are the C interface of what these namespaces hold
using namespace tenon::runtime::c_api;  // NOLINT

tenon_error* tenon_trainer_create(const tenon_program* step, const tenon_session_options* options,
                                  tenon_trainer** out) {
  return guarded([&] { return create_trainer(step, options, out); });
}
void tenon_trainer_free(tenon_trainer* trainer) { delete trainer; }
int64_t tenon_trainer_batch(const tenon_trainer* trainer) { return trainer ? trainer->trainer->batch() : 0; }
int64_t tenon_trainer_steps(const tenon_trainer* trainer) { return trainer ? trainer->trainer->steps() : 0; }
tenon_error* tenon_trainer_step(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                const tenon_value* labels, size_t first, double rate, double* loss) {
  return guarded([&] { return train_step(trainer, {inputs, input_count, labels}, first, rate, loss); });
}
tenon_error* tenon_trainer_epoch(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                 const tenon_value* labels, uint64_t seed, int64_t epoch, double rate, double* loss) {
  return guarded([&] { return train_epoch(trainer, {inputs, input_count, labels}, seed, epoch, rate, loss); });
}
tenon_error* tenon_trainer_loss(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                const tenon_value* labels, size_t first, double* loss) {
  return guarded([&] { return loss_of(trainer, {inputs, input_count, labels}, first, loss); });
}
size_t tenon_trainer_weight_count(const tenon_trainer* trainer) { return trainer ? trainer->names.size() : 0; }
const char* tenon_trainer_weight_name(const tenon_trainer* trainer, size_t index) {
  return trainer && index < trainer->names.size() ? trainer->names[index].c_str() : nullptr;
}
tenon_error* tenon_trainer_weight(const tenon_trainer* trainer, const char* name, tenon_value** out) {
  return guarded([&] { return weight_of(trainer, name, out); });
}
tenon_error* tenon_trainer_set_weight(tenon_trainer* trainer, const char* name, const tenon_value* weight) {
  return guarded([&] { return set_weight(trainer, name, weight); });
}
tenon_error* tenon_trainer_save(const tenon_trainer* trainer, const char* path) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_trainer_save", {{"trainer", trainer}, {"path", path}}));
    return trainer->trainer->save(path, {});
  });
}
tenon_error* tenon_trainer_load(tenon_trainer* trainer, const char* path) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_trainer_load", {{"trainer", trainer}, {"path", path}}));
    TENON_TRY(trainer->trainer->load(path));
    return {};
  });
}
