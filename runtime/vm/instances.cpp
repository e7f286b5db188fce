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

uint64_t Instances::run(InstanceSource& source, size_t most, BatchPolicy policy) {
  begun_ = 0;
  instances_.clear();
  free_.clear();
  live_ = 0;
  // Roots of references: what is in registers of instances that wait, and in calls that were put off.
  interpreter_.put_off(&calls_, [this](std::vector<std::span<const Word>>& roots) {
    for (const Instance& instance : instances_) {
      roots.push_back(instance.stack.live());
      roots.emplace_back(instance.results);
    }
    roots.push_back(calls_.operands());
  });
  admit(source, most);
  while (live_ > 0) {
    // The calls of an instance that has ended may still fail, so its results leave when none is put off.
    const bool executed = !calls_.empty();
    if (executed) flush(policy);
    if (!deliver(source) && !executed)
      fail_all({"instances wait for calls that nothing executes", run_.executable.name, {}, Fault::kInternal});
    for (uint32_t i = 0; i < instances_.size(); ++i) {
      if (instances_[i].state == Instance::State::kWaits) go_on(i);
    }
    admit(source, most);
  }
  interpreter_.put_off(nullptr, {});
  return begun_;
}

void Instances::admit(InstanceSource& source, size_t most) {
  while (live_ < most) {
    auto next = source.next();
    if (!next) return;
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(instances_.size()));
      instances_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    ++live_;
    ++begun_;
    Instance& instance = instances_[index];
    instance.state = Instance::State::kReady;
    instance.id = next->id;
    instance.stop = next->stop;
    run_.number = ++run_.session.runs;  // the caller may have written its tensors since the last one began
    if (Status status = begin(instance, *next->inputs); !status) {
      instance.error = std::move(status.error());
      end(instance);
      continue;
    }
    go_on(index);
  }
}

bool Instances::deliver(InstanceSource& source) {
  bool delivered = false;
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    Instance& instance = instances_[i];
    if (instance.state != Instance::State::kEnded) continue;
    auto result = results_of(instance);
    for (const Word& word : instance.results) run_.heap.release(word);
    instance.results.clear();
    instance.error.reset();
    instance.state = Instance::State::kFree;
    free_.push_back(i);
    --live_;
    source.finish(instance.id, std::move(result));
    delivered = true;
  }
  return delivered;
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
  // Its own stop ends it, even where it waits again and again; batches are for others too.
  const StopRequest stop = std::exchange(run_.stop, run_.stop.with(instance.stop));
  Status may_run = instance.stop.is_reached() ? run_.check_stop() : Status();
  auto waits = may_run ? interpreter_.go_on(index, instance.limits) : std::unexpected(std::move(may_run.error()));
  run_.stop = stop;
  if (waits && *waits) {
    instance.state = Instance::State::kWaits;
    run_.frames.exchange(instance.stack);
    return;
  }
  if (!waits) instance.error = may_run ? interpreter_.located(std::move(waits.error())) : std::move(waits.error());
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

void Instances::flush(BatchPolicy policy) {
  auto failures = calls_.flush(policy);
  if (!failures) return fail_all(failures.error());
  // The calls are from before the instance's own error, where it has one.
  for (PendingCalls::Failure& failure : *failures) {
    Instance& instance = instances_[failure.instance];
    instance.error = std::move(failure.diagnostic);
    if (instance.state != Instance::State::kEnded) end(instance);
  }
}

void Instances::fail_all(const Diagnostic& diagnostic) {
  for (Instance& instance : instances_) {
    if (instance.state == Instance::State::kFree) continue;
    if (!instance.error) instance.error = diagnostic;
    if (instance.state != Instance::State::kEnded) end(instance);
  }
}

Expected<std::vector<Value>> Instances::results_of(Instance& instance) {
  if (instance.error) return std::unexpected(std::move(*instance.error));
  return export_results(run_, instance.results);
}

}  // namespace tenon::runtime
