#include "runtime/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "runtime/train/names.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr std::string_view kStepCount = "steps";

template <class T>
Tensor scalar(T value) {
  return Tensor::of<T>({}, std::span<const T>(&value, 1));
}

std::unexpected<Diagnostic> no_step(const std::string& why) {
  return error(fmt::format("the executable is no step of training: {}", why), {},
               "tenon train MODEL --step FILE.tnx makes one");
}

// The first element of a tensor of floats for which `test` holds.
template <class Test>
std::optional<int64_t> first_element(const Tensor& tensor, const Test& test) {
  const auto search = [&](const auto& data) -> std::optional<int64_t> {
    const auto found = std::ranges::find_if(data, test);
    if (found == data.end()) return std::nullopt;
    return found - data.begin();
  };
  if (tensor.dtype() == DType::kF32) return search(tensor.data<float>());
  if (tensor.dtype() == DType::kF64) return search(tensor.data<double>());
  return std::nullopt;
}
std::optional<int64_t> first_infinite(const Tensor& tensor) {
  return first_element(tensor, [](auto value) { return !std::isfinite(value); });
}
std::optional<int64_t> first_nan(const Tensor& tensor) {
  return first_element(tensor, [](auto value) { return std::isnan(value); });
}

}  // namespace

Tensor rows(const Tensor& tensor, std::span<const int64_t> indices) {
  Shape shape = tensor.shape();
  shape[0] = static_cast<int64_t>(indices.size());
  Tensor result = Tensor::for_overwrite(tensor.dtype(), shape);
  const int64_t all = tensor.shape()[0];
  const size_t row = all == 0 ? 0 : tensor.bytes().size() / static_cast<size_t>(all);
  std::byte* to = result.bytes().data();
  for (const int64_t index : indices) {
    std::memcpy(to, tensor.bytes().data() + static_cast<size_t>(index) * row, row);
    to += row;
  }
  return result;
}

std::vector<int64_t> shuffled(int64_t samples, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed + 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(epoch) + 1));
  for (int64_t i = samples - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.between(0, i))]);
  return order;
}

Status add_states(Executable& step, const NamedTensors& weights) {
  const std::vector<Port>& params = step.main().params;
  std::vector<StateTensor> states;
  std::vector<Tensor> first;
  for (uint32_t i = 0; i < params.size(); ++i) {
    const Port& port = params[i];
    const bool is_weight = port.name.starts_with(kWeightPrefix);
    if (!is_weight && !port.name.starts_with(kStatePrefix)) break;
    StateTensor& state = states.emplace_back(StateTensor{i, i + 1, std::nullopt});  // the loss is the first result
    if (!is_weight) continue;
    const auto found = weights.find(std::string_view(port.name).substr(kWeightPrefix.size()));
    if (found == weights.end()) return error(fmt::format("the weight '{}' is missing", port.name));
    if (!port.accepts(found->second)) {
      return error(fmt::format("the weight '{}' is {} {}, the model needs {}", port.name, name(found->second.dtype()),
                               to_string(found->second.shape()), to_string(port)));
    }
    state.first = static_cast<uint32_t>(step.constants.size() + first.size());
    first.push_back(found->second.clone());
  }
  if (states.empty()) return no_step("its first input is no weight");
  if (step.main().results.size() != states.size() + 1) {
    return no_step(fmt::format("it has {} results, must have the loss and one for each of {} weights and states",
                               step.main().results.size(), states.size()));
  }
  step.states = std::move(states);
  std::ranges::move(first, std::back_inserter(step.constants));
  return {};
}

Expected<Trainer> Trainer::create(const Executable& step, SessionOptions options) {
  const std::vector<Port>& params = step.main().params;
  const std::vector<StateTensor>& states = step.states;
  if (states.empty()) return no_step("no run of it updates a tensor");
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (states[i].param == i && states[i].result == i + 1) continue;
    return no_step(fmt::format("its result {} updates its input {}, and not its result {} its input {}",
                               states[i].result, states[i].param, i + 1, i));
  }
  const size_t kept = states.size();
  if (params.size() < kept + 4 || params[kept].name != kRate || params[kept + 1].name != kStep ||
      params.back().name != kLabels) {
    return no_step("it has no inputs 'rate', 'step' and 'labels'");
  }
  for (size_t i = kept + 2; i < params.size(); ++i) {
    if (params[i].is_tensor() && !params[i].shape.empty()) continue;
    return no_step(
        fmt::format("'{}' is {}, and no tensor whose first axis counts samples", params[i].name, type_text(params[i])));
  }
  const Port& loss = step.main().results.front();
  if (!loss.is_tensor() || !loss.shape.empty() || (loss.dtype != DType::kF32 && loss.dtype != DType::kF64))
    return no_step(fmt::format("its loss is {}, must be a float", type_text(loss)));
  TENON_TRY_ASSIGN(session, Session::create(step, options));
  return Trainer(step, std::move(*session), std::move(options));
}

std::span<const Port> Trainer::data_ports() const {
  return std::span(executable_->main().params).subspan(states() + 2);
}

int64_t Trainer::batch() const { return data_ports().back().shape[0]; }

Status Trainer::check(const TrainingData& data, int64_t classes) const {
  const std::span<const Port> ports = data_ports();
  if (data.inputs.size() + 1 != ports.size()) {
    return error(fmt::format("the model has {} inputs, the data {}", ports.size() - 1, data.inputs.size()));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor& tensor = i + 1 == ports.size() ? data.labels : data.inputs[i];
    const Port& port = ports[i];
    bool fits =
        tensor && tensor.dtype() == port.dtype && tensor.shape().size() == port.shape.size() && !tensor.shape().empty();
    for (size_t axis = 1; fits && axis < port.shape.size(); ++axis)
      fits = port.shape[axis] == kAnySize || port.shape[axis] == tensor.shape()[axis];
    if (!fits) {
      return error(fmt::format("the data of '{}' is {} {}, the model takes {}", port.name, name(tensor.dtype()),
                               to_string(tensor.shape()), to_string(port)),
                   {}, "the leading axis counts samples");
    }
    if (tensor.shape()[0] != data.samples()) {
      return error(
          fmt::format("'{}' has {} samples, and there are {} labels", port.name, tensor.shape()[0], data.samples()));
    }
    if (const auto bad = first_infinite(tensor)) {
      return error(fmt::format("sample {} of '{}' has a value that is not finite",
                               *bad / std::max<int64_t>(1, tensor.size() / tensor.shape()[0]), port.name),
                   {}, "remove the sample, or replace the value");
    }
  }
  if (data.labels.dtype() == DType::kI64) {
    for (int64_t i = 0; i < data.labels.size(); ++i) {
      const int64_t label = data.labels.data<int64_t>()[i];
      if (label < 0) return error(fmt::format("the label of sample {} is {}", i, label), {}, "classes begin with 0");
      if (classes == 0 || label < classes) continue;
      return error(fmt::format("the label of sample {} is {}, and the model has {} classes", i, label, classes), {},
                   fmt::format("labels are 0 to {}", classes - 1));
    }
  }
  return {};
}

std::vector<Tensor> Trainer::inputs(const TrainingData& data, std::span<const int64_t> samples, double rate) const {
  std::vector<Tensor> inputs;
  inputs.push_back(scalar(static_cast<float>(rate)));
  inputs.push_back(scalar(static_cast<float>(steps_ + 1)));
  for (const Tensor& tensor : data.inputs) inputs.push_back(rows(tensor, samples));
  inputs.push_back(rows(data.labels, samples));
  return inputs;
}

std::string Trainer::origin_of_infinite(std::span<const Tensor> data) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < states(); ++i) inputs.push_back(session_.state(i));
  inputs.insert(inputs.end(), data.begin(), data.end());
  for (size_t i = 0; i < states(); ++i) {
    if (first_infinite(inputs[i])) return fmt::format("; '{}' was not finite before it", port(i).name);
  }
  std::string infinite, nan;
  SessionOptions options = options_;
  options.budget = 0;  // values are looked at where they are made
  options.hook = [&](const Step& step) -> Status {
    for (const Tensor& result : step.results) {
      const auto at = first_infinite(result);
      if (!at) continue;
      const std::string& layer = step.instruction->layer;
      const std::string found =
          fmt::format("element {} of the {} of {}", *at, to_string(result.shape()),
                      layer.empty() ? fmt::format("instruction {} of '{}'", step.index, step.function->name)
                                    : fmt::format("'{}'", layer));
      const bool is_nan = first_nan(result).has_value();
      if (infinite.empty() && !is_nan) infinite = "; the first infinite value is " + found;  // which a mask may be
      if (!is_nan) continue;
      nan = (infinite.empty() ? "; the first NaN is " : ", the first NaN ") + found;
      return error("found");
    }
    return {};
  };
  if (auto session = Session::create(*executable_, std::move(options)); session)
    static_cast<void>(session->run(inputs));
  return infinite + nan;
}

Expected<double> Trainer::run(std::span<const Tensor> inputs, FunctionRef<bool(double)> accept) {
  const auto value = [](const Tensor& loss) {
    return loss.dtype() == DType::kF64 ? loss.data<double>()[0] : double{loss.data<float>()[0]};
  };
  TENON_TRY(session_.update(inputs, results_, [&](const Tensor& loss) { return accept(value(loss)); }));
  return value(results_.front());
}

Expected<double> Trainer::step(const TrainingData& data, std::span<const int64_t> samples, double rate) {
  if (!(rate >= 0) || !std::isfinite(rate))
    return error(fmt::format("the learning rate is {}, must be 0 or more, and finite", rate));
  const std::vector<Tensor> inputs = this->inputs(data, samples, rate);
  TENON_TRY_ASSIGN(value, run(inputs, [](double loss) { return std::isfinite(loss); }));
  if (!std::isfinite(*value)) {
    return error(fmt::format("the loss of step {} is {}{}", steps_ + 1, std::isnan(*value) ? "NaN" : "infinite",
                             origin_of_infinite(inputs)),
                 {},
                 "a smaller learning rate, or a limit of the gradients' norm (--clip), may help; the weights are those "
                 "before this step");
  }
  ++steps_;
  return *value;
}

Expected<double> Trainer::loss(const TrainingData& data, std::span<const int64_t> samples) {
  return run(inputs(data, samples, 0), [](double) { return false; });
}

bool Trainer::is_lost() const {
  for (size_t i = 0; i < states(); ++i) {
    if (!session_.state(i)) return true;
  }
  return false;
}

NamedTensors Trainer::weights() const {
  NamedTensors named;
  for (size_t i = 0; i < states(); ++i) {
    const std::string& name = port(i).name;
    if (name.starts_with(kWeightPrefix) && session_.state(i))
      named.emplace(name.substr(kWeightPrefix.size()), session_.state(i));
  }
  return named;
}

Status Trainer::set_weights(const NamedTensors& weights) {
  std::map<size_t, const Tensor*> given;  // by state
  for (const auto& [name, weight] : weights) {
    size_t i = 0;
    while (i < states() && port(i).name != fmt::format("{}{}", kWeightPrefix, name)) ++i;
    if (i == states()) {
      std::vector<std::string> names;
      for (const auto& [known, tensor] : this->weights()) names.push_back(known);
      return error(fmt::format("the step has no weight '{}'", name), {},
                   fmt::format("it has {}", fmt::join(names, ", ")));
    }
    if (!port(i).accepts(weight)) {
      return error(fmt::format("the weight '{}' is {} {}, the model needs {}", name, runtime::name(weight.dtype()),
                               to_string(weight.shape()), to_string(port(i))));
    }
    given.emplace(i, &weight);
  }
  for (const auto& [i, weight] : given) TENON_TRY(session_.set_state(i, weight->clone()));
  return {};
}

Status Trainer::save(const std::filesystem::path& path, const NamedTensors& extra) const {
  if (is_lost()) return error("the weights are lost, since a step has failed", path.string(), "load the last state");
  NamedTensors all = extra;
  for (size_t i = 0; i < states(); ++i) all.insert_or_assign(port(i).name, session_.state(i));
  all.insert_or_assign(std::string(kStepCount), scalar(steps_));
  return save_npz(path, all);
}

Expected<NamedTensors> Trainer::load(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(all, load_npz(path));
  const auto take = [&](std::string_view name) -> Expected<Tensor> {
    const auto found = all->find(name);
    if (found == all->end()) {
      return error(fmt::format("the state has no '{}'", name), path.string(),
                   "it is of another model or another optimizer");
    }
    Tensor tensor = std::move(found->second);
    all->erase(found);
    return tensor;
  };
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < states(); ++i) {
    TENON_TRY_ASSIGN(tensor, take(port(i).name));
    if (!port(i).accepts(*tensor)) {
      return error(fmt::format("'{}' is {} {} in the state, the model needs {}", port(i).name, name(tensor->dtype()),
                               to_string(tensor->shape()), to_string(port(i))),
                   path.string(), "it is of another model");
    }
    tensors.push_back(std::move(*tensor));
  }
  TENON_TRY_ASSIGN(steps, take(kStepCount));
  if (steps->dtype() != DType::kI64 || steps->size() != 1 || steps->data<int64_t>()[0] < 0)
    return error("'steps' is no count", path.string());
  for (size_t i = 0; i < states(); ++i) TENON_TRY(session_.set_state(i, std::move(tensors[i])));
  steps_ = steps->data<int64_t>()[0];
  return std::move(*all);
}

}  // namespace tenon::runtime
