#include "runtime/vm/rematerializer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr size_t kSample = 512;
constexpr size_t kMostSizes = 32;  // of the costs of an instruction

bool is_tensor_of_run(const Word& word) { return word.tag == Tag::kTensor && word.object->count != Object::kImmortal; }

}  // namespace

Rematerializer::Rematerializer(RunState& run, CallOperands& operands, std::function<Status(const CallSite&)> invoke)
    : run_(run), operands_(operands), invoke_(std::move(invoke)) {}

void Rematerializer::begin() {
  const remat::CoreOptions options{.budget = static_cast<int64_t>(run_.session.options.budget),
                                   .policy = run_.session.options.remat_policy,
                                   .release = remat::Release::kForget,
                                   .sample = kSample};
  of_caller_ = -static_cast<int64_t>(pool_.used());
  for_tensors_ = -1;
  core_.emplace(options, static_cast<remat::Host&>(*this));
}

void Rematerializer::end() {
  operands_.release();
  MemoryRecord& memory = run_.profile.memory;
  memory.peak_bytes = static_cast<uint64_t>(core_->peak());
  memory.evictions = static_cast<uint64_t>(core_->evictions());
  memory.repeated_calls = static_cast<uint64_t>(core_->extra_count());
  memory.repeated_ns = core_->extra_cost();
  core_.reset();
  held_.clear();
  calls_.clear();
}

Status Rematerializer::add_input(TensorObject& tensor) {
  TENON_TRY_ASSIGN(id, core_->constant(static_cast<int64_t>(tensor.tensor.bytes().size())));
  tensor.node = *id + 1;
  of_caller_ += static_cast<int64_t>(tensor.tensor.bytes().size());
  held(*id) = {tensor.tensor, &tensor};
  return {};
}

Rematerializer::Held& Rematerializer::held(remat::TensorId tensor) {
  const remat::StorageId storage = core_->storage_of(tensor);
  if (storage >= held_.size()) held_.resize(size_t{2} * storage + 1);
  return held_[storage];
}

Status Rematerializer::call(const CallSite& site, std::span<const Register> from, std::span<const Register> to) {
  operands_.release();  // handles of an earlier call would keep memory
  operands_.results.clear();
  next_.words = &site.words;
  next_.instruction = site.instruction;
  next_.operands.clear();
  args_.clear();
  for (const Register r : from) {
    const Word& word = run_.frames.at(r);
    if (is_tensor_of_run(word)) {
      const remat::TensorId tensor = static_cast<const TensorObject*>(word.object)->node - 1;
      next_.operands.push_back({tensor, {}});
      args_.push_back(tensor);
    } else if (word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize)) {
      next_.operands.push_back({std::nullopt, word});
    } else {
      return run_.frames.is_not(r, "a tensor");
    }
  }
  results_.assign(to.size(), {remat::kUnknownBytes, std::nullopt});
  TENON_TRY_ASSIGN(made, core_->call(args_, results_, 0));
  made_.assign(made->begin(), made->end());
  if (operands_.memory.called_function) {
    for (const remat::TensorId result : made_) core_->keep(result);
  }
  for (size_t i = 0; i < to.size(); ++i) {
    Held& result = held(made_[i]);
    const bool is_scalar = result.tensor.shape().empty();
    const Word word = run_.heap.tensor(run_.heap.share(result.tensor), false);
    if (word.tag == Tag::kEmpty) return run_.no_memory();
    if (is_scalar) {
      core_->release(made_[i]);
    } else {
      result.object = static_cast<TensorObject*>(word.object);
      result.object->node = made_[i] + 1;
    }
    run_.frames.write(to[i], word);
  }
  return {};
}

Status Rematerializer::compute(remat::OperatorId op, bool again) {
  if (!again) {
    if (op >= calls_.size()) calls_.resize(size_t{2} * op + 1);
    std::swap(calls_[op], next_);
  }
  const Call& call = calls_[op];
  TENON_TRY(load(call));
  asking_ = again ? std::span<const remat::TensorId>() : core_->results_of(op);
  operands_.memory.called_function = false;
  const int64_t begin = run_.session.now();
  TENON_TRY(invoke({*call.words, call.instruction}));
  const int64_t ns = std::max<int64_t>(1, run_.session.now() - begin);
  const std::span<const remat::TensorId> results = core_->results_of(op);
  for (size_t i = 0; i < results.size(); ++i) TENON_TRY(hold(results[i], std::move(operands_.made[i]), again));
  if (!run_.session.options.hook) {
    operands_.release();
  } else if (!again) {
    for (const remat::TensorId result : results) operands_.results.push_back(held(result).tensor);
  }
  if (!again) core_->set_cost(op, cost(call, results, ns));
  return {};
}

// Kernels take memory of their own when they need it: a call that gets none begins again when room has been made. It
// begins with that room from then on.
Status Rematerializer::invoke(const CallSite& site) {
  ThreadPool* const pool = run_.session.pool;
  int64_t& known = of_instruction(kernel_bytes_, site);
  if (known > core_->other_bytes()) TENON_TRY(core_->set_other_bytes(known));
  for (bool again = false;; again = true) {
    refusal_.reset();
    share_budget();
    Status done = invoke_(site);
    if (done) {
      if (again) known = pool->arena_bytes();
      break;
    }
    if (refusal_) return std::unexpected(std::move(*refusal_));
    const int64_t wanted = pool ? pool->arena_bytes() + pool->refused_arena_bytes() : 0;
    if (wanted <= core_->other_bytes()) return done;
    operands_.made.clear();
    pool->free_arenas();  // what is there after the call is its own
    TENON_TRY(core_->set_other_bytes(wanted));
  }
  return pool ? core_->set_other_bytes(pool->arena_bytes()) : Status{};
}

int64_t Rematerializer::free_other() {
  ThreadPool* const pool = run_.session.pool;
  if (!pool) return 0;
  pool->free_arenas();
  return pool->arena_bytes();
}

void Rematerializer::share_budget() {
  const int64_t budget = static_cast<int64_t>(run_.session.options.budget) - of_caller_;
  const int64_t for_tensors = std::max<int64_t>(0, budget - core_->other_bytes());
  if (for_tensors_ != for_tensors) pool_.limit(static_cast<size_t>(for_tensors));
  for_tensors_ = for_tensors;
  if (run_.session.pool) run_.session.pool->limit_arenas(budget - static_cast<int64_t>(pool_.held()));
}

Status Rematerializer::load(const Call& call) {
  operands_.release();
  for (const Operand& operand : call.operands) {
    if (operand.tensor) operands_.args.push_back(run_.heap.share(held(*operand.tensor).tensor));
    else TENON_TRY(operands_.load(operand.word));
  }
  return {};
}

Storage Rematerializer::result_memory(size_t result, size_t bytes) {
  if (!asking_.empty()) {
    if (Status room = core_->set_bytes(asking_[result], static_cast<int64_t>(BufferPool::footprint(bytes))); !room) {
      refusal_ = std::move(room.error());
      return {};
    }
  }
  Storage taken = pool_.take(bytes);
  share_budget();
  return taken;
}

Status Rematerializer::hold(remat::TensorId tensor, Tensor made, bool again) {
  const size_t bytes = made.bytes().size();
  if (!again) TENON_TRY(core_->set_bytes(tensor, static_cast<int64_t>(BufferPool::footprint(bytes))));
  Held& result = held(tensor);
  if (core_->banished(core_->storage_of(tensor)) || result.tensor) return {};
  if (!made.alone()) {
    Storage own = pool_.take(bytes);
    if (!own.memory) return run_.no_memory();
    const std::span<const std::byte> shared = std::as_const(made).bytes();
    std::copy(shared.begin(), shared.end(), own.memory.get());
    made = Tensor::in(std::move(own), made.dtype(), made.shape());
  }
  result.tensor = std::move(made);
  if (result.object) result.object->tensor = result.tensor;
  return {};
}

template <class T>
T& Rematerializer::of_instruction(ByInstruction<T>& all, const CallSite& site) const {
  if (all.empty()) all.resize(run_.executable.functions.size());
  std::vector<T>& of_function = all[site.words.index];
  if (of_function.empty()) of_function.resize(site.words.function->code.size());
  return of_function[site.instruction];
}

int64_t Rematerializer::cost(const Call& call, std::span<const remat::TensorId> results, int64_t ns) {
  int64_t bytes = 0;
  const auto add = [&](remat::TensorId tensor) { bytes += core_->bytes(core_->storage_of(tensor)); };
  for (const Operand& operand : call.operands) {
    if (operand.tensor) add(*operand.tensor);
  }
  std::ranges::for_each(results, add);
  std::vector<Cost>& sizes = of_instruction(costs_, {*call.words, call.instruction});
  auto found = std::ranges::find(sizes, bytes, &Cost::bytes);
  if (found == sizes.end()) {
    if (sizes.size() >= kMostSizes) sizes.erase(sizes.begin());
    found = sizes.insert(sizes.end(), {.bytes = bytes});
  }
  if (found->count < found->times.size()) {
    found->times[found->count++] = ns;
    std::ranges::sort(std::span(found->times).first(found->count));
  }
  return found->times[found->count / 2];
}

void Rematerializer::free(remat::StorageId storage) {
  if (storage >= held_.size()) return;
  Held& freed = held_[storage];
  freed.tensor = {};
  if (freed.object) freed.object->tensor.drop_buffer();
}

void Rematerializer::released(TensorObject& tensor) {
  if (!core_ || core_->failure()) return;
  held(tensor.node - 1).object = nullptr;
  core_->release(tensor.node - 1);
}

Status Rematerializer::define(TensorObject& tensor) {
  return tensor.node == 0 || tensor.tensor ? Status{} : core_->define(tensor.node - 1);
}

Status Rematerializer::pin(const Word& value) {
  operands_.release();
  std::vector<Word> open{value};
  std::unordered_set<const Object*> seen;
  while (!open.empty()) {
    const Word word = open.back();
    open.pop_back();
    if (!word.is_object() || word.object->count == Object::kImmortal) continue;
    if (word.tag == Tag::kTensor) {
      TENON_TRY(core_->pin(static_cast<const TensorObject*>(word.object)->node - 1));
    } else if (seen.insert(word.object).second) {
      const std::span<const Word> fields(word.object->words(), word.object->length);
      open.insert(open.end(), fields.begin(), fields.end());
    }
  }
  return {};
}

}  // namespace tenon::runtime
