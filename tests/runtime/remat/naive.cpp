#include "tests/runtime/remat/naive.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

namespace tenon::runtime::remat {
namespace {

struct GivesUp : std::runtime_error {
  GivesUp() : std::runtime_error("the step fails") {}
};

struct NaiveTensor {
  int storage = 0, op = -1;
  bool defined = false;
};
struct NaiveOperator {
  std::vector<int> args, results;
  int64_t cost = 0;
};
struct NaiveStorage {
  int64_t bytes = 0, last = 0;
  int root = 0, locks = 0, references = 0;
  bool resident = false, was_computed = false, pinned = false;
  int set = -1;
  std::set<int> parents, children, operators;
};

class NaiveReplay {
 public:
  NaiveReplay(const StepLog& log, const CoreOptions& options) : log_(log), options_(options) {}

  int64_t run() {
    for (const StepLog::Event& event : log_.events) {
      const auto index = static_cast<int>(event.index);
      switch (event.kind) {
        case StepLog::Kind::kConstant: add_constant(log_.bytes[event.index]); break;
        case StepLog::Kind::kCall: call(log_.calls[event.index]); break;
        case StepLog::Kind::kRetain: ++of(index).references; break;
        case StepLog::Kind::kRelease:
          if (--of(index).references == 0 && evictable(tensors_[event.index].storage))
            evict(tensors_[event.index].storage);
          break;
        case StepLog::Kind::kKeep: break;  // no log of a file has it
      }
    }
    for (const uint32_t tensor : log_.results) {
      if (!tensors_[tensor].defined) execute(tensors_[tensor].op, static_cast<int>(tensor), true);
      of(static_cast<int>(tensor)).pinned = true;
      refresh(tensors_[tensor].storage);
    }
    return clock_;
  }

 private:
  NaiveStorage& of(int tensor) { return storages_[static_cast<size_t>(tensors_[static_cast<size_t>(tensor)].storage)]; }
  NaiveStorage& at(int storage) { return storages_[static_cast<size_t>(storage)]; }
  bool evictable(int s) { return at(s).resident && at(s).locks == 0 && !at(s).pinned; }
  bool evicted(int s) { return !at(s).resident && at(s).was_computed; }
  void refresh(int s) {
    const auto found = std::ranges::find(pool_, s);
    if (evictable(s) && found == pool_.end()) pool_.push_back(s);
    if (!evictable(s) && found != pool_.end()) pool_.erase(found);
  }
  int64_t cost(int s) {
    int64_t sum = 0;
    for (const int op : at(s).operators) sum += operators_[static_cast<size_t>(op)].cost;
    return sum;
  }
  int64_t reachable(int s, bool up) {
    std::set<int> seen;
    const std::function<void(int)> visit = [&](int from) {
      for (const int next : up ? at(from).parents : at(from).children) {
        if (evicted(next) && seen.insert(next).second) visit(next);
      }
    };
    visit(s);
    int64_t sum = 0;
    for (const int other : seen) sum += cost(other);
    return sum;
  }
  // Classes are numbers, and uniting two renames one of them everywhere.
  int64_t classes(int s) {
    std::set<int> sets;
    for (const auto* neighbours : {&at(s).parents, &at(s).children}) {
      for (const int other : *neighbours) {
        if (evicted(other)) sets.insert(at(other).set);
      }
    }
    int64_t sum = 0;
    for (const int set : sets) sum += set_costs_[static_cast<size_t>(set)];
    return sum;
  }
  double score(int s) {
    const auto bytes = static_cast<double>(at(s).bytes), stale = static_cast<double>(clock_ - at(s).last);
    const auto over = [](int64_t c, double d) {
      return d > 0 ? static_cast<double>(c) / d : std::numeric_limits<double>::infinity();
    };
    switch (options_.policy) {
      case Policy::kEq: return over(cost(s) + classes(s), bytes * stale);
      case Policy::kDtr: return over(cost(s) + reachable(s, true) + reachable(s, false), bytes * stale);
      case Policy::kLocal: return over(cost(s), bytes * stale);
      case Policy::kLru: return static_cast<double>(at(s).last);
      case Policy::kSize: return over(1, bytes);
      case Policy::kMsps: return over(cost(s) + reachable(s, true), bytes);
    }
    return 0;
  }
  void make_room(int64_t bytes) {
    while (used_ + bytes > options_.budget) {
      if (pool_.empty()) throw GivesUp();
      int victim = pool_[0];
      double least = std::numeric_limits<double>::infinity();
      for (const int s : pool_) {
        const double value = score(s);
        if (value <= least) {
          least = value;
          victim = s;
        }
        if (value == 0) break;
      }
      evict(victim);
    }
  }
  void evict(int s) {
    at(s).resident = false;
    used_ -= at(s).bytes;
    for (NaiveTensor& tensor : tensors_) tensor.defined = tensor.defined && tensor.storage != s;
    refresh(s);
    at(s).set = static_cast<int>(set_costs_.size());
    set_costs_.push_back(cost(s));
    for (const auto* neighbours : {&at(s).parents, &at(s).children}) {
      for (const int other : *neighbours) {
        if (!evicted(other) || at(other).set == at(s).set) continue;
        const int gone = at(other).set;
        set_costs_[static_cast<size_t>(at(s).set)] += set_costs_[static_cast<size_t>(gone)];
        for (NaiveStorage& storage : storages_) {
          if (storage.set == gone) storage.set = at(s).set;
        }
      }
    }
  }
  void add_constant(int64_t bytes) {
    make_room(bytes);
    const int s = add_storage(bytes);
    add_tensor(s, -1);
    tensors_.back().defined = at(s).resident = at(s).was_computed = at(s).pinned = true;
    used_ += bytes;
  }
  int add_storage(int64_t bytes) {
    storages_.emplace_back().bytes = bytes;
    storages_.back().root = static_cast<int>(tensors_.size());
    return static_cast<int>(storages_.size()) - 1;
  }
  int add_tensor(int s, int op) {
    tensors_.push_back({s, op, false});
    ++at(s).references;
    return static_cast<int>(tensors_.size()) - 1;
  }
  void call(const StepLog::Call& call) {
    const auto op = static_cast<int>(operators_.size());
    operators_.push_back({{call.args.begin(), call.args.end()}, {}, call.cost});
    for (const NewResult& result : call.results) {
      const int s = result.view_of ? tensors_[call.args[*result.view_of]].storage : add_storage(result.bytes);
      operators_.back().results.push_back(add_tensor(s, op));
      at(s).operators.insert(op);
      for (const uint32_t arg : call.args) {
        const int parent = tensors_[arg].storage;
        if (parent == s) continue;
        at(s).parents.insert(parent);
        at(parent).children.insert(s);
      }
    }
    execute(op, operators_.back().results[0], false);
  }
  void execute(int id, int wanted, bool again) {
    const NaiveOperator op = operators_[static_cast<size_t>(id)];
    for (const int arg : op.args) of(arg).last = clock_;
    const auto lock = [&](int tensor) {
      ++of(tensor).locks;
      refresh(tensors_[static_cast<size_t>(tensor)].storage);
    };
    std::vector<int> later;
    for (const int arg : op.args) {
      if (tensors_[static_cast<size_t>(arg)].defined) lock(arg);
      else later.push_back(arg);
    }
    for (const int arg : later) {
      const NaiveTensor& tensor = tensors_[static_cast<size_t>(arg)];
      if (!tensor.defined) execute(tensor.op, arg, true);
      lock(arg);
    }
    int64_t bytes = 0;
    for (const int result : op.results) bytes += of(result).root == result ? of(result).bytes : 0;
    make_room(bytes);
    used_ += bytes;
    clock_ += op.cost;
    for (const int result : op.results) {
      NaiveStorage& s = of(result);
      if (s.root == result && s.resident) used_ -= s.bytes;
      if (s.root == result && evicted(tensors_[static_cast<size_t>(result)].storage)) {
        set_costs_[static_cast<size_t>(s.set)] -= cost(tensors_[static_cast<size_t>(result)].storage);
        s.set = -1;
      }
      if (s.root == result) s.resident = s.was_computed = true;
      tensors_[static_cast<size_t>(result)].defined = true;
      if (!again) s.last = clock_;
    }
    for (const int result : op.results) {
      if (result != wanted) refresh(tensors_[static_cast<size_t>(result)].storage);
    }
    refresh(tensors_[static_cast<size_t>(wanted)].storage);
    for (const int arg : op.args) {
      --of(arg).locks;
      refresh(tensors_[static_cast<size_t>(arg)].storage);
    }
    if (!again) return;
    extra_cost_ += op.cost;
    ++extra_count_;
    if (extra_cost_ > options_.max_extra_cost || extra_count_ > options_.max_extra_count) throw GivesUp();
  }

  const StepLog& log_;
  CoreOptions options_;
  std::vector<NaiveTensor> tensors_;
  std::vector<NaiveOperator> operators_;
  std::vector<NaiveStorage> storages_;
  std::vector<int64_t> set_costs_;
  std::vector<int> pool_;
  int64_t clock_ = 1, used_ = 0, extra_cost_ = 0, extra_count_ = 0;
};

}  // namespace

StepLog random_step(Random& random) {
  StepLog log;
  log.name = "random";
  std::vector<uint32_t> live;
  std::vector<int> references;
  const auto add = [&](int64_t bytes) {
    live.push_back(static_cast<uint32_t>(log.bytes.size()));
    log.bytes.push_back(bytes);
    references.push_back(1);
  };
  const int64_t constants = random.between(0, 2), calls = random.between(3, 40);
  for (int64_t i = 0; i < constants; ++i) {
    log.events.push_back({StepLog::Kind::kConstant, static_cast<uint32_t>(log.bytes.size())});
    add(random.between(0, 20));
  }
  for (int64_t i = 0; i < calls; ++i) {
    StepLog::Call call;
    call.cost = random.chance(10) ? 0 : random.between(1, 50);
    // Mostly recent tensors, also the same one twice.
    for (int64_t k = random.between(0, 3); k > 0 && !live.empty(); --k) {
      const auto last = static_cast<int64_t>(live.size()) - 1;
      const int64_t first = random.chance(50) ? std::max<int64_t>(0, last - 3) : 0;
      call.args.push_back(live[static_cast<size_t>(random.between(first, last))]);
    }
    for (int64_t k = random.chance(25) ? random.between(2, 3) : 1; k > 0; --k) {
      NewResult result{random.between(0, 30), std::nullopt};
      if (!call.args.empty() && random.chance(15)) {
        result = {0, static_cast<uint32_t>(random.between(0, static_cast<int64_t>(call.args.size()) - 1))};
      }
      call.results.push_back(result);
    }
    log.events.push_back({StepLog::Kind::kCall, static_cast<uint32_t>(log.calls.size())});
    for (const NewResult& result : call.results) {
      add(result.view_of ? log.bytes[call.args[*result.view_of]] : result.bytes);
    }
    log.calls.push_back(std::move(call));
    while (!live.empty() && random.chance(50)) {
      const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(live.size()) - 1));
      const uint32_t tensor = live[at];
      if (random.chance(10)) {
        log.events.push_back({StepLog::Kind::kRetain, tensor});
        ++references[tensor];
        continue;
      }
      log.events.push_back({StepLog::Kind::kRelease, tensor});
      if (--references[tensor] == 0) live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  for (const uint32_t tensor : live) {
    if (random.chance(30)) log.results.push_back(tensor);
  }
  return log;
}

std::optional<int64_t> naive_clock(const StepLog& log, const CoreOptions& options) {
  try {
    return NaiveReplay(log, options).run();
  } catch (const GivesUp&) {
    return std::nullopt;
  }
}

}  // namespace tenon::runtime::remat
