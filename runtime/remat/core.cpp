// Execution of operators under the budget, eviction, and what follows from releases.
#include "runtime/remat/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "support/try.h"

namespace tenon::runtime::remat {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double quotient(int64_t cost, double divisor) { return divisor > 0 ? static_cast<double>(cost) / divisor : kInfinity; }

// An id for a new element of `elements`: a free one, whose lists keep their memory, or the next.
template <class T>
uint32_t allocate(std::vector<T>& elements, std::vector<uint32_t>& free_ids) {
  if (free_ids.empty()) {
    elements.emplace_back();
    return static_cast<uint32_t>(elements.size() - 1);
  }
  const uint32_t id = free_ids.back();
  free_ids.pop_back();
  if constexpr (requires { elements[id].clear(); }) elements[id].clear();
  else elements[id] = T();
  return id;
}

}  // namespace

Core::Core(const CoreOptions& options, Host& host)
    : options_(options),
      host_(host),
      graph_(options.scorer != nullptr ? options.scorer->uses_classes() : options.policy == Policy::kEq,
             options.scorer != nullptr ? options.scorer->uses_exact()
                                       : options.policy == Policy::kDtr || options.policy == Policy::kMsps) {}

std::unexpected<Diagnostic> Core::fail(Failure failure, std::string what, std::string help) {
  failure_ = failure;
  return error(std::move(what), {}, std::move(help));
}

StorageId Core::add_storage(int64_t bytes) {
  const StorageId id = allocate(storages_, free_storages_);
  storages_[id].bytes = bytes;
  graph_.add(id);
  return id;
}

TensorId Core::add_tensor(StorageId storage, OperatorId producer) {
  const TensorId id = allocate(tensors_, free_tensors_);
  tensors_[id] = {storage, producer, false};
  storages_[storage].tensors.push_back(id);
  ++storages_[storage].references;
  return id;
}

Expected<TensorId> Core::constant(int64_t bytes) {
  TENON_TRY(make_room(bytes));
  const StorageId storage = add_storage(bytes);
  const TensorId tensor = add_tensor(storage, kNone);
  graph_.set_resident(storage);
  storages_[storage].pinned = true;
  tensors_[tensor].defined = true;
  use(bytes);
  return tensor;
}

Expected<std::span<const TensorId>> Core::call(std::span<const TensorId> args, std::span<const NewResult> results,
                                               int64_t cost) {
  assert(!results.empty());
  const OperatorId op = allocate(operators_, free_operators_);
  operators_[op].args.assign(args.begin(), args.end());
  operators_[op].cost = cost;
  operators_[op].live = static_cast<uint32_t>(results.size());
  for (const NewResult& result : results) {
    const StorageId storage = result.view_of ? tensors_[args[*result.view_of]].storage : add_storage(result.bytes);
    // A storage of several results of one operator, as two views of an argument, costs this operator once.
    const auto shares = [&](TensorId other) { return tensors_[other].storage == storage; };
    if (std::ranges::none_of(operators_[op].results, shares)) graph_.add_cost(storage, cost);
    operators_[op].results.push_back(add_tensor(storage, op));
    for (const TensorId arg : args) {
      const StorageId parent = tensors_[arg].storage;
      if (parent != storage && !storages_[parent].pinned) graph_.add_edge(parent, storage);
    }
  }
  TENON_TRY(execute(op, operators_[op].results.front(), false));
  return std::span<const TensorId>(operators_[op].results);
}

Status Core::set_bytes(TensorId result, int64_t bytes) {
  const StorageId id = tensors_[result].storage;
  if (storages_[id].bytes == bytes) return {};
  assert(storages_[id].bytes == kUnknownBytes);
  TENON_TRY(make_room(bytes));
  storages_[id].bytes = bytes;
  use(bytes);
  return {};
}

void Core::set_cost(OperatorId op, int64_t cost) {
  assert(operators_[op].cost == 0);
  operators_[op].cost = cost;
  const std::vector<TensorId>& results = operators_[op].results;
  for (size_t i = 0; i < results.size(); ++i) {
    const StorageId storage = tensors_[results[i]].storage;
    const auto shares = [&](TensorId other) { return tensors_[other].storage == storage; };
    if (std::ranges::none_of(std::span(results).first(i), shares)) graph_.add_cost(storage, cost);
  }
}

Status Core::set_other_bytes(int64_t bytes) {
  if (bytes > other_) TENON_TRY(evict_for(bytes - other_));
  use(bytes - std::exchange(other_, bytes));
  return {};
}

void Core::use(int64_t bytes) {
  used_ += bytes;
  peak_ = std::max(peak_, used_);
}

Status Core::define(TensorId tensor) {
  const Tensor& t = tensors_[tensor];
  return t.defined ? Status{} : execute(t.producer, tensor, true);
}

void Core::keep(TensorId tensor) {
  const StorageId storage = tensors_[tensor].storage;
  storages_[storage].irrecoverable = true;
  update_pool(storage);
}

Status Core::pin(TensorId tensor) {
  TENON_TRY(define(tensor));
  const StorageId storage = tensors_[tensor].storage;
  storages_[storage].pinned = true;
  update_pool(storage);
  return {};
}

void Core::retain(TensorId tensor) { ++storages_[tensors_[tensor].storage].references; }

void Core::release(TensorId tensor) {
  const StorageId storage = tensors_[tensor].storage;
  assert(storages_[storage].references > 0);
  if (--storages_[storage].references == 0) give_up(storage);
}

void Core::remove_from_pool(Storage& storage) {
  pool_[storage.slot] = kNone;
  storage.slot = kNone;
  ++holes_;
  if (holes_ <= 64 || holes_ * 2 <= pool_.size()) return;
  std::erase(pool_, kNone);
  holes_ = 0;
  for (uint32_t i = 0; i < pool_.size(); ++i) storages_[pool_[i]].slot = i;
}

void Core::update_pool(StorageId id) {
  Storage& storage = storages_[id];
  const bool wanted = evictable(id), present = storage.slot != kNone;
  if (wanted && !present) {
    storage.slot = static_cast<uint32_t>(pool_.size());
    pool_.push_back(id);
  } else if (!wanted && present) {
    remove_from_pool(storage);
  }
}

void Core::lock(StorageId storage) {
  if (storages_[storage].locks++ == 0) update_pool(storage);
}

void Core::unlock(StorageId storage) {
  if (--storages_[storage].locks > 0) return;
  update_pool(storage);
  if (options_.release != Release::kEvict && storages_[storage].references == 0) give_up(storage);
}

double Core::score(StorageId id) const {
  if (options_.scorer != nullptr) return options_.scorer->score(*this, id);
  const Storage& storage = storages_[id];
  const auto bytes = static_cast<double>(storage.bytes);
  const auto stale = static_cast<double>(clock_ - storage.last_access);
  switch (options_.policy) {
    case Policy::kEq: return quotient(graph_.cost(id) + graph_.class_cost(id), bytes * stale);
    case Policy::kDtr:
      return quotient(graph_.cost(id) + graph_.ancestors_cost(id) + graph_.descendants_cost(id), bytes * stale);
    case Policy::kLocal: return quotient(graph_.cost(id), bytes * stale);
    case Policy::kLru: return static_cast<double>(storage.last_access);
    case Policy::kSize: return quotient(1, bytes);
    case Policy::kMsps: return quotient(graph_.cost(id) + graph_.ancestors_cost(id), bytes);
  }
  return kInfinity;
}

StorageId Core::choose() const {
  if (options_.sample > 0 && pool_.size() > options_.sample) {
    const auto root = static_cast<size_t>(std::sqrt(static_cast<double>(pool_.size())));
    const size_t step = pool_.size() / (options_.sample + root);
    if (const StorageId found = step > 1 ? choose(static_cast<size_t>(evictions_) % step, step) : kNone; found != kNone)
      return found;
  }
  return choose(0, 1);
}

StorageId Core::choose(size_t first, size_t step) const {
  double least = kInfinity;
  StorageId found = kNone;
  for (size_t i = first; i < pool_.size(); i += step) {
    const StorageId storage = pool_[i];
    if (storage == kNone) continue;
    const double s = score(storage);
    if (s <= least) {
      least = s;
      found = storage;
    }
    if (s == 0) break;
  }
  return found;
}

void Core::evict(StorageId id) {
  Storage& storage = storages_[id];
  used_ -= storage.bytes;
  for (const TensorId tensor : storage.tensors) tensors_[tensor].defined = false;
  graph_.set_evicted(id);
  update_pool(id);
  host_.free(id);
}

Status Core::make_room(int64_t bytes) {
  if (other_ > 0 && bytes > options_.budget - used_) {
    const int64_t left = host_.free_other();
    use(left - std::exchange(other_, left));
  }
  return evict_for(bytes);
}

Status Core::evict_for(int64_t bytes) {
  while (bytes > options_.budget - used_) {
    const StorageId victim = choose();
    if (victim == kNone) {
      return fail(
          Failure::kMemory,
          fmt::format("{} bytes are needed, {} of the budget of {} bytes are in use, and none of them can be evicted",
                      bytes, used_, options_.budget),
          fmt::format("the budget must be at least {} bytes here", used_ + bytes));
    }
    evict(victim);
    ++evictions_;
  }
  return {};
}

void Core::begin(OperatorId op, TensorId wanted, bool again) {
  const size_t flags = locked_.size();
  const std::vector<TensorId>& args = operators_[op].args;
  for (const TensorId arg : args) storages_[tensors_[arg].storage].last_access = clock_;
  for (const TensorId arg : args) {
    locked_.push_back(tensors_[arg].defined);
    if (tensors_[arg].defined) lock(tensors_[arg].storage);
  }
  frames_.push_back({op, wanted, 0, flags, again});
}

Status Core::execute(OperatorId op, TensorId wanted, bool again) {
  begin(op, wanted, again);
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    const std::vector<TensorId>& args = operators_[frame.op].args;
    if (frame.next == args.size()) {
      const Frame done = frame;
      TENON_TRY(finish(done));
      locked_.resize(done.flags);
      frames_.pop_back();
      continue;
    }
    const TensorId arg = args[frame.next];
    char& locked = locked_[frame.flags + frame.next];
    if (!locked && !tensors_[arg].defined) {
      begin(tensors_[arg].producer, arg, true);  // and then this operand again, which is defined
      continue;
    }
    if (!locked) lock(tensors_[arg].storage);
    locked = 1;
    ++frame.next;
  }
  for (const StorageId storage : std::exchange(unread_, {})) {
    if (!storages_[storage].banished && storages_[storage].references == 0) give_up(storage);
  }
  return {};
}

Status Core::finish(const Frame& frame) {
  // References to operators remain valid: nothing is added or removed before the operands are unlocked.
  const Operator& op = operators_[frame.op];
  int64_t bytes = 0;
  for (const TensorId result : op.results) {
    if (!is_view(result)) bytes += std::max<int64_t>(0, storages_[tensors_[result].storage].bytes);
  }
  TENON_TRY(make_room(bytes));
  use(bytes);
  if (Status done = host_.compute(frame.op, frame.again); !done) {
    failure_ = Failure::kHost;
    return done;
  }
  clock_ += op.cost;
  for (const TensorId result : op.results) {
    const StorageId id = tensors_[result].storage;
    if (!is_view(result)) {
      // A result that is resident, or that nothing can ask for, was computed twice or in vain.
      if (graph_.resident(id) || storages_[id].banished) used_ -= storages_[id].bytes;
      else graph_.set_resident(id);
    }
    tensors_[result].defined = !storages_[id].banished;
    if (!frame.again) storages_[id].last_access = clock_;
  }
  for (const TensorId result : op.results) {
    if (result != frame.wanted && !storages_[tensors_[result].storage].banished) {
      update_pool(tensors_[result].storage);
    }
  }
  update_pool(tensors_[frame.wanted].storage);
  const int64_t cost = op.cost;
  // Copies, since the operator may be removed.
  args_.assign(op.args.begin(), op.args.end());
  if (options_.release != Release::kEvict) {
    results_.assign(op.results.begin(), op.results.end());
    for (const TensorId result : results_) {
      const StorageId id = tensors_[result].storage;
      const Storage& storage = storages_[id];
      if (result != frame.wanted && id != tensors_[frame.wanted].storage && storage.references == 0) give_up(id);
    }
  }
  for (const TensorId arg : args_) unlock(tensors_[arg].storage);
  return frame.again ? count_extra(cost) : Status{};
}

Status Core::count_extra(int64_t cost) {
  ++extra_count_;
  extra_cost_ += cost;
  if (extra_cost_ > options_.max_extra_cost) {
    return fail(Failure::kExtraCost,
                fmt::format("operators that are computed again cost {}, more than the limit of {}", extra_cost_,
                            options_.max_extra_cost),
                "raise the budget or the limit");
  }
  if (extra_count_ > options_.max_extra_count) {
    return fail(Failure::kExtraCount,
                fmt::format("{} operators are computed again, more than the limit of {}", extra_count_,
                            options_.max_extra_count),
                "raise the budget or the limit");
  }
  return {};
}

// A storage without references is evicted, and its node is removed where the options say so.
void Core::give_up(StorageId id) {
  if (options_.release == Release::kForget && frames_.size() > 1) {
    unread_.push_back(id);
    return;
  }
  if (evictable(id)) evict(id);
  if (options_.release >= Release::kForget) banish(id);
}

// Whether an evicted storage, or an undefined view, would be computed from this one.
bool Core::needed_again(StorageId id) const {
  return std::ranges::any_of(graph_.children(id), [&](StorageId child) {
    return std::ranges::any_of(storages_[child].tensors, [&](TensorId t) { return !tensors_[t].defined; });
  });
}

void Core::banish(StorageId first) {
  const size_t begin = work_.size();
  work_.push_back(first);
  while (work_.size() > begin) {
    const StorageId id = work_.back();
    work_.pop_back();
    Storage& storage = storages_[id];
    if (storage.banished || storage.references > 0 || storage.locks > 0 || storage.pinned) continue;
    if (options_.release == Release::kBanish ? needed_again(id) : !graph_.children(id).empty()) continue;
    for (const StorageId child : graph_.children(id)) {
      storages_[child].irrecoverable = true;
      update_pool(child);
    }
    if (graph_.resident(id)) {
      if (storage.slot != kNone) remove_from_pool(storage);
      used_ -= storage.bytes;
      host_.free(id);
    }
    const std::vector<StorageId>& parents = graph_.parents(id);
    work_.insert(work_.end(), parents.begin(), parents.end());
    graph_.remove(id);
    storage.banished = true;
    for (size_t i = storage.tensors.size(); i-- > 0;) {  // forget() removes tensors
      const TensorId tensor = storage.tensors[i];
      tensors_[tensor].defined = false;
      if (--operators_[tensors_[tensor].producer].live == 0) forget(tensors_[tensor].producer);
      i = std::min(i, storage.tensors.size());
    }
  }
}

// Returns the ids of an operator all of whose results are banished.
void Core::forget(OperatorId id) {
  for (const TensorId result : operators_[id].results) {
    const StorageId storage = tensors_[result].storage;
    std::erase(storages_[storage].tensors, result);
    if (storages_[storage].tensors.empty()) free_storages_.push_back(storage);
    free_tensors_.push_back(result);
  }
  operators_[id].clear();
  free_operators_.push_back(id);
}

}  // namespace tenon::runtime::remat
