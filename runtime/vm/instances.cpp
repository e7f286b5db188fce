#include "runtime/vm/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/vm/values.h"
#include "support/try.h"

namespace tenon::runtime {

Instances::Instances(RunState& run, Interpreter& interpreter)
    : run_(run), interpreter_(interpreter), calls_(run, [this](const Words& function, std::span<const Word> args) {
        return interpreter_.call(function, args);
      }) {}

std::vector<Expected<std::vector<Value>>> Instances::run(std::span<const std::vector<Value>* const> inputs,
                                                         BatchPolicy policy) {
  instances_.clear();
  instances_.resize(inputs.size());
  // Roots of references: what is in registers of instances that wait, and in calls that were put off.
  interpreter_.put_off(&calls_, [this](std::vector<std::span<const Word>>& roots) {
    for (const Instance& instance : instances_) {
      roots.push_back(instance.stack.live());
      roots.emplace_back(instance.results);
    }
    roots.push_back(calls_.operands());
  });
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    Instance& instance = instances_[i];
    if (Status status = begin(instance, *inputs[i]); !status) {
      instance.error = std::move(status.error());
      end(instance);
      continue;
    }
    go_on(i);
  }
  while (!calls_.empty()) {
    if (!flush(policy)) break;
    for (uint32_t i = 0; i < instances_.size(); ++i) {
      if (instances_[i].state == Instance::State::kWaits) go_on(i);
    }
  }
  std::vector<Expected<std::vector<Value>>> results;
  results.reserve(instances_.size());
  for (Instance& instance : instances_) {
    results.push_back(results_of(instance));
    for (const Word& word : instance.results) run_.heap.release(word);
    instance.results.clear();
  }
  interpreter_.put_off(nullptr, {});
  return results;
}

Status Instances::begin(Instance& instance, const std::vector<Value>& inputs) {
  const Words& main = run_.session.code[run_.executable.entry];
  instance.limits = interpreter_.limits();
  if (!idle_.empty()) {
    instance.stack = std::move(idle_.back());
    idle_.pop_back();
  }
  run_.frames.exchange(instance.stack);
  const Status status = [&]() -> Status {
    TENON_TRY_ASSIGN(registers, run_.frames.reserve_entry(main));
    for (size_t i = 0; i < inputs.size(); ++i) {
      TENON_TRY_ASSIGN(word, import_word(run_, inputs[i]));
      (*registers)[i] = *word;
    }
    return run_.frames.enter_entry(main);
  }();
  run_.frames.exchange(instance.stack);
  return status;
}

void Instances::go_on(uint32_t index) {
  Instance& instance = instances_[index];
  run_.frames.exchange(instance.stack);
  auto waits = interpreter_.go_on(index, instance.limits);
  if (waits && *waits) {
    instance.state = Instance::State::kWaits;
    run_.frames.exchange(instance.stack);
    return;
  }
  if (!waits) instance.error = interpreter_.located(std::move(waits.error()));
  else {
    for (const Register r : interpreter_.returned()) {
      const Word& word = run_.frames.at(r);
      if (word.tag == Tag::kEmpty) {
        instance.error = interpreter_.located(run_.frames.is_empty(r).error());
        break;
      }
      Heap::retain(word);
      instance.results.push_back(word);
    }
  }
  interpreter_.abandon();
  run_.frames.exchange(instance.stack);
  end(instance);
}

void Instances::end(Instance& instance) {
  instance.state = Instance::State::kEnded;
  run_.frames.exchange(instance.stack);
  run_.frames.abandon(run_.session.code[run_.executable.entry]);
  run_.frames.exchange(instance.stack);
  idle_.push_back(std::exchange(instance.stack, Stack()));
}

bool Instances::flush(BatchPolicy policy) {
  auto failures = calls_.flush(policy);
  if (!failures) {
    fail_all(failures.error());
    return false;
  }
  // The calls are from before the instance's own error, where it has one.
  for (PendingCalls::Failure& failure : *failures) {
    Instance& instance = instances_[failure.instance];
    instance.error = std::move(failure.diagnostic);
    if (instance.state != Instance::State::kEnded) end(instance);
  }
  return true;
}

void Instances::fail_all(const Diagnostic& diagnostic) {
  for (Instance& instance : instances_) {
    if (!instance.error) instance.error = diagnostic;
    if (instance.state != Instance::State::kEnded) end(instance);
  }
}

Expected<std::vector<Value>> Instances::results_of(Instance& instance) {
  if (instance.error) return std::unexpected(std::move(*instance.error));
  return export_results(run_, instance.results);
}

}  // namespace tenon::runtime
