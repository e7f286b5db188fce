#include "runtime/vm/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/vm/rematerializer.h"
#include "runtime/vm/values.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

const Tensor kReleasedTensor;

// Instances that are there from the beginning, by their indices.
class GivenInstances : public InstanceSource {
 public:
  explicit GivenInstances(std::span<const std::vector<Value>* const> inputs)
      : results(inputs.size()), inputs_(inputs) {}
  std::optional<Next> next() override {
    if (next_ == inputs_.size()) return std::nullopt;
    const size_t index = next_++;
    return Next{.id = index, .inputs = inputs_[index]};
  }
  void finish(uint64_t id, Expected<std::vector<Value>> result) override { results[id] = std::move(result); }

  std::vector<Expected<std::vector<Value>>> results;

 private:
  std::span<const std::vector<Value>* const> inputs_;
  size_t next_ = 0;
};

}  // namespace

Expected<std::vector<Value>> Run::run(std::span<const Value> inputs, const std::atomic<bool>* cancel) {
  std::vector<Value> results;
  TENON_TRY(execute(
      inputs, [&] { state_.stop.cancel_one = cancel; }, [&] { return finish(results); }));
  return results;
}

Status Run::run(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  const auto release = [&] {
    results.resize(state_.executable.main().results.size());
    for (Tensor& result : results) result = kReleasedTensor;  // leaves the shape its capacity
  };
  return execute(inputs, release, [&] { return finish(results); });
}

Expected<bool> Run::update(std::span<const Tensor> inputs, std::vector<Tensor>& results,
                           FunctionRef<bool(const Tensor&)> accept) {
  const States& states = state_.session.states;
  state_.update = StateUpdate{.accept = accept};
  if (states.other_results.empty()) state_.update->accepted = true;
  TENON_TRY(run(inputs, results));
  if (!state_.update->accepted) state_.update->accepted = accept(results[states.other_results.front()]);
  return *state_.update->accepted;
}

template <class Input>
Status Run::enter(std::span<const Input> inputs) {
  const Words& main = state_.session.code[state_.executable.entry];
  TENON_TRY_ASSIGN(registers, state_.frames.reserve_entry(main));
  for (size_t i = 0; i < inputs.size(); ++i) {
    TENON_TRY_ASSIGN(word, import_word(state_, inputs[i]));
    (*registers)[i] = *word;
  }
  if (!state_.update) return {};
  for (const StateTensor& state : state_.executable.states) {
    const Word& word = (*registers)[state.param];
    if (word.tag == Tag::kTensor) static_cast<TensorObject*>(word.object)->is_state = true;
  }
  return {};
}

void Run::begin() {
  const SessionOptions& options = state_.session.options;
  state_.number = ++state_.session.runs;
  state_.stop = {.cancel = options.cancel};
  if (options.max_time.count() > 0) state_.stop.deadline = std::chrono::steady_clock::now() + options.max_time;
  state_.profile = {};
  state_.heap.reset();
  if (state_.rematerializer) state_.rematerializer->begin();
}

void Run::end() {
  state_.heap.collect({});
  if (state_.rematerializer) state_.rematerializer->end();
}

void Run::run_instances(InstanceSource& source, size_t most) {
  if (!instances_) instances_.emplace(state_, interpreter_);
  state_.profile.runs += instances_->run(source, most, state_.session.options.batch_policy);
  end();
  state_.profile.batches = instances_->take_counts();
  state_.profile.memory.allocations = state_.heap.allocations();
}

std::vector<Expected<std::vector<Value>>> Run::run_many(std::span<const std::vector<Value>* const> inputs) {
  begin();
  GivenInstances source(inputs);
  run_instances(source, inputs.size());
  return std::move(source.results);
}

void Run::serve(InstanceSource& source, size_t most) {
  begin();
  state_.stop.deadline = StopRequest().deadline;
  run_instances(source, most);
}

template <class Input>
Status Run::execute(std::span<const Input> inputs, FunctionRef<void()> begin, FunctionRef<Status()> finish) {
  const Words& main = state_.session.code[state_.executable.entry];
  this->begin();
  Status status = enter(inputs);
  begin();
  if (status) status = state_.frames.enter_entry(main);
  if (status) status = interpreter_.execute();
  if (status) status = finish();
  if (!status) status.error() = interpreter_.located(std::move(status.error()));
  interpreter_.abandon();
  state_.frames.abandon(main);
  end();
  if (!status) return status;
  ++state_.profile.runs;
  state_.profile.memory.allocations = state_.heap.allocations();
  return {};
}

Status Run::pin(std::span<const Register> returned) {
  if (!state_.rematerializer) return {};
  for (const Register r : returned) TENON_TRY(state_.rematerializer->pin(state_.frames.at(r)));
  return {};
}

Status Run::finish(std::vector<Value>& results) {
  const std::span<const Register> returned = interpreter_.returned();
  TENON_TRY(pin(returned));
  std::vector<Word> words;
  for (const Register r : returned) {
    words.push_back(state_.frames.at(r));
    if (words.back().tag == Tag::kEmpty) return state_.frames.is_empty(r);
  }
  TENON_TRY_ASSIGN(exported, export_results(state_, words));
  results = std::move(*exported);
  return {};
}

Status Run::finish(std::vector<Tensor>& results) {
  const std::span<const Register> returned = interpreter_.returned();
  TENON_TRY(pin(returned));
  for (size_t i = 0; i < returned.size(); ++i) {
    const Word& word = state_.frames.at(returned[i]);
    if (word.tag == Tag::kEmpty) return state_.frames.is_empty(returned[i]);
    const Port& port = state_.executable.main().results[i];
    if (word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize)) {
      Tensor& result = results[i];
      if (word.tag == Tag::kTensor) result = static_cast<const TensorObject*>(word.object)->tensor;
      else result = *interpreter_.tensor(returned[i]);
      if (!port.is_tensor() || port.accepts(result)) continue;
    }
    ExportedObjects made;
    const std::string found = describe(state_.executable, export_word(word, made));
    if (port.is_tensor()) return error(fmt::format("result {} became {}", to_string(port), found));
    return error(fmt::format("result '{}' is {}, not a tensor", port.name, found));
  }
  return {};
}

// The runs that a session keeps.

void Session::State::add(Profile made, bool ended) {
  const auto first = static_cast<int32_t>(profile.launches.size());
  for (CallRecord& call : made.calls) {
    if (profile.calls.size() >= kMaxCallRecords) break;
    if (call.launch >= 0) call.launch += first;
    profile.calls.push_back(std::move(call));
  }
  std::ranges::move(made.launches, std::back_inserter(profile.launches));
  if (ended) {
    profile.runs += made.runs;
    profile.memory = made.memory;
  }
}

std::unique_lock<std::mutex> Session::State::one_at_a_time() {
  return options.budget == 0 ? std::unique_lock<std::mutex>() : std::unique_lock(budgeted);
}

std::unique_ptr<Run> Session::State::take_run() {
  {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      std::unique_ptr<Run> run = std::move(idle.back());
      idle.pop_back();
      return run;
    }
  }
  return std::make_unique<Run>(*this);
}

void Session::State::give_back(std::unique_ptr<Run> run, bool ended) {
  buffers.age();
  const std::lock_guard lock(mutex);
  profile.batches += run->profile().batches;
  if (options.profile) add(std::move(run->profile()), ended);
  else if (ended) profile.memory = run->profile().memory;
  idle.push_back(std::move(run));
}

Expected<std::vector<Value>> Session::State::run(std::span<const Value> inputs, const std::atomic<bool>* cancel) {
  const std::unique_lock alone = one_at_a_time();
  std::unique_ptr<Run> run = take_run();
  auto results = run->run(inputs, cancel);
  give_back(std::move(run), results.has_value());
  return results;
}

std::vector<Expected<std::vector<Value>>> Session::State::run_many(
    std::span<const std::vector<Value>* const> instances) {
  // In an instance alone, calls are joined only where they are siblings, as those of a tree, and not those of a chain.
  constexpr uint64_t kEnough = 256;
  const bool alone = instances.size() == 1;
  std::vector<Expected<std::vector<Value>>> results;
  if (alone && alone_nodes > kEnough && alone_nodes < 2 * alone_calls) {
    results.push_back(this->run(*instances[0]));
    return results;
  }
  std::unique_ptr<Run> run = take_run();
  results = run->run_many(instances);
  if (alone) {
    alone_nodes += run->profile().batches.nodes;
    alone_calls += run->profile().batches.calls;
  }
  give_back(std::move(run), true);
  return results;
}

void Session::State::serve(InstanceSource& source, size_t most) {
  std::unique_ptr<Run> run = take_run();
  run->serve(source, most);
  give_back(std::move(run), true);
}

Status Session::State::update(std::span<const Tensor> inputs, std::vector<Tensor>& results,
                              FunctionRef<bool(const Tensor&)> accept) {
  for (size_t i = 0; i < inputs.size(); ++i) states.inputs[states.other_inputs[i]] = inputs[i];
  Status status = check_inputs(states.inputs);
  if (status) {
    const std::unique_lock alone = one_at_a_time();
    std::unique_ptr<Run> run = take_run();
    const auto replaces = run->update(states.inputs, states.results, accept);
    if (!replaces) status = std::unexpected(replaces.error());
    if (!replaces && run->has_written_states()) states.lose(status.error());
    if (replaces && *replaces) states.replace();
    run->end_update();
    give_back(std::move(run), replaces.has_value());
  }
  states.take_results(results);
  return status;
}

Status Session::State::run(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  const std::unique_lock alone = one_at_a_time();
  std::unique_ptr<Run> run = take_run();
  Status status = run->run(inputs, results);
  give_back(std::move(run), status.has_value());
  return status;
}

}  // namespace tenon::runtime
