// Dynamic tensor rematerialization: keeps the memory of tensors within a hard budget by evicting some, and computes an
// evicted one again when an operator needs it (Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021).
//
// Semantics
// - The core knows operators, tensors and storages as ids, with costs and bytes; what a tensor is, and how an operator
//   is executed, is the host's. A storage is a piece of memory; tensors that share one are views, and the first one is
//   its root. A storage is *resident* while it has memory, else *evicted* (or not computed yet). Its cost is the sum of
//   the costs of the distinct operators of all tensors that share it.
// - A tensor is *defined* while it can be read. Eviction undefines all tensors of a storage; the root's operator makes
//   the storage resident again and defines the root alone; a view is defined again by its own operator.
// - execution of an operator, the first time and each time it is computed again: the last access of its operands'
//   storages is set to the clock; the operands that are defined are locked; each other one is computed, if it is still
//   undefined then, and locked, in the order of the arguments; room for all results is made, one eviction at a time;
//   the host computes; the clock advances by the operator's cost; results that were resident already lose their
//   duplicate; the operands are unlocked. Results count as accessed after the first execution only. Which operands are
//   computed is a list of work and no recursion, so the depth of a chain is not limited by the stack.
// - A storage is evictable while it is resident, not locked and not pinned. The smallest score of the policy is
//   evicted, of equals the one that became evictable last; a score of 0 ends the search.
// - Memory never exceeds the budget: where nothing is evictable, the call fails (Failure::kMemory).
// - A tensor is held by the references that the host counts. A storage without references is evicted by its release
//   (eager eviction); its node remains as a ghost, because another storage may have to be computed from it. Release
//   says what happens where such a storage is computed again for another one.
// - After a failed call, the core may be destroyed only.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/remat/neighbours.h"
#include "runtime/remat/policy.h"
#include "support/diagnostic.h"

namespace tenon::runtime::remat {

using TensorId = uint32_t;
using OperatorId = uint32_t;

// What a core decides about. The ids are those that the core returned.
class Host {
 public:
  virtual ~Host() = default;
  // Executes the operator: its operands are defined, and its results have room. The first execution (`again` is false)
  // is within Core::call; there, Core::set_bytes makes room for results of unknown bytes, and set_cost says what it
  // cost.
  virtual Status compute(OperatorId op, bool again) = 0;
  // Frees the memory of the storage. Not called for what is resident when the core is destroyed.
  virtual void free(StorageId storage) = 0;
  // Frees what it can of the memory that it has beside all storages; how many bytes are left. Before any eviction.
  virtual int64_t free_other() { return 0; }
};

class Core;

// A score of the host's own, instead of a policy's.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual double score(const Core& core, StorageId storage) const = 0;
  // Whether it asks for Core::class_cost, and for Core::ancestors_cost or descendants_cost.
  virtual bool uses_classes() const = 0;
  virtual bool uses_exact() const = 0;
};

struct CoreOptions {
  int64_t budget = std::numeric_limits<int64_t>::max();           // bytes
  int64_t max_extra_cost = std::numeric_limits<int64_t>::max();   // of all operators that are computed again
  int64_t max_extra_count = std::numeric_limits<int64_t>::max();  // how many operators are computed again
  Policy policy = Policy::kEq;
  Release release = Release::kEvict;
  const Scorer* scorer = nullptr;  // outlives the core
  // Of more evictable storages than this, an eviction looks at a part: so many, and as many as the square root of their
  // number, spread evenly over the time at which they became evictable (0: at all of them). Section 5 of the paper
  // samples in the same way.
  size_t sample = 0;
};

// Why a core gave up: see CoreOptions for each.
enum class Failure : unsigned char { kMemory, kExtraCost, kExtraCount, kHost };

inline constexpr int64_t kUnknownBytes = -1;

struct NewResult {
  int64_t bytes = 0;                // of its storage; 0 for a view; kUnknownBytes: compute() calls set_bytes
  std::optional<uint32_t> view_of;  // the index of the argument whose storage it shares
};

class Core {
 public:
  Core(const CoreOptions& options, Host& host);

  // A storage that is never evicted: an input or a weight. Its tensor has one reference.
  Expected<TensorId> constant(int64_t bytes);
  // Executes a new operator; each result has one reference. At least one result; `cost` in units of the clock. The ids
  // are valid until the next call.
  Expected<std::span<const TensorId>> call(std::span<const TensorId> args, std::span<const NewResult> results,
                                           int64_t cost);
  // Within the first execution of an operator: makes room for a result whose bytes were unknown. The same bytes may be
  // set again.
  Status set_bytes(TensorId result, int64_t bytes);
  // Within the first execution of an operator whose call said a cost of 0.
  void set_cost(OperatorId op, int64_t cost);
  // Makes room for memory of the host's own beside all storages, which is `bytes` from now on, or until free_other().
  Status set_other_bytes(int64_t bytes);
  // Computes the tensor if it is undefined. It stays so until room is made.
  Status define(TensorId tensor);
  // The tensor, which is defined, cannot be computed again: its storage stays as long as it is referred to, or anything
  // that was computed from it.
  void keep(TensorId tensor);
  // Computes the tensor if it is undefined, and keeps its storage resident from then on.
  Status pin(TensorId tensor);
  void retain(TensorId tensor);
  void release(TensorId tensor);  // requires a reference

  StorageId storage_of(TensorId tensor) const { return tensors_[tensor].storage; }
  TensorId root_of(StorageId storage) const { return storages_[storage].tensors.front(); }
  std::span<const TensorId> args_of(OperatorId op) const { return operators_[op].args; }
  std::span<const TensorId> results_of(OperatorId op) const { return operators_[op].results; }
  bool defined(TensorId tensor) const { return tensors_[tensor].defined; }
  // Whether nothing can ask for the storage any more (Release::kForget and kBanish).
  bool banished(StorageId storage) const { return storages_[storage].banished; }
  int64_t bytes(StorageId storage) const { return storages_[storage].bytes; }
  int64_t cost(StorageId storage) const { return graph_.cost(storage); }
  int64_t references(StorageId storage) const { return storages_[storage].references; }
  int64_t staleness(StorageId storage) const { return clock_ - storages_[storage].last_access; }
  // The sums of costs that policies use: of the classes of evicted neighbours, of evicted ancestors and descendants.
  int64_t class_cost(StorageId storage) const { return graph_.class_cost(storage); }
  int64_t ancestors_cost(StorageId storage) const { return graph_.ancestors_cost(storage); }
  int64_t descendants_cost(StorageId storage) const { return graph_.descendants_cost(storage); }

  int64_t clock() const { return clock_; }  // 1 at first
  int64_t used() const { return used_; }    // bytes, the host's own memory included
  int64_t other_bytes() const { return other_; }
  int64_t peak() const { return peak_; }
  int64_t evictions() const { return evictions_; }      // for room, not by release
  int64_t extra_count() const { return extra_count_; }  // operators that were computed again
  int64_t extra_cost() const { return extra_cost_; }
  std::optional<Failure> failure() const { return failure_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Tensor {
    StorageId storage = 0;
    OperatorId producer = kNone;
    bool defined = false;
  };
  struct Operator {
    std::vector<TensorId> args, results;
    int64_t cost = 0;
    uint32_t live = 0;  // results whose storage is not banished

    void clear() {  // keeps the memory of the lists
      args.clear(), results.clear();
      cost = 0;
      live = 0;
    }
  };
  struct Storage {
    int64_t bytes = 0, last_access = 0, references = 0;
    uint32_t locks = 0;
    uint32_t slot = kNone;  // in pool_
    bool pinned = false, irrecoverable = false, banished = false;
    std::vector<TensorId> tensors;

    void clear() {
      std::vector<TensorId> kept = std::move(tensors);
      kept.clear();
      *this = Storage();
      tensors = std::move(kept);
    }
  };
  // An operator in execution. Its operands up to `locked` that were undefined at first are locked, and all others.
  struct Frame {
    OperatorId op = 0;
    TensorId wanted = 0;  // the result for which it is executed
    uint32_t next = 0;    // the index of the operand that is looked at next
    size_t flags = 0;     // where its operands' flags begin in locked_
    bool again = false;
  };

  TensorId add_tensor(StorageId storage, OperatorId producer);
  StorageId add_storage(int64_t bytes);
  bool evictable(StorageId id) const {
    const Storage& s = storages_[id];
    return graph_.resident(id) && s.locks == 0 && !s.pinned && !s.irrecoverable;
  }
  bool is_view(TensorId tensor) const { return storages_[tensors_[tensor].storage].tensors.front() != tensor; }
  void update_pool(StorageId storage);
  void remove_from_pool(Storage& storage);
  double score(StorageId storage) const;
  // What to evict: of all evictable storages or a sample; of every `step`-th one. kNone: there is none.
  StorageId choose() const;
  StorageId choose(size_t first, size_t step) const;
  void lock(StorageId storage);
  void unlock(StorageId storage);
  void evict(StorageId storage);
  Status make_room(int64_t bytes);
  Status evict_for(int64_t bytes);
  void use(int64_t bytes);  // counts them as used
  Status execute(OperatorId op, TensorId wanted, bool again);
  void begin(OperatorId op, TensorId wanted, bool again);
  Status finish(const Frame& frame);
  Status count_extra(int64_t cost);
  void give_up(StorageId storage);
  bool needed_again(StorageId storage) const;
  void banish(StorageId storage);
  void forget(OperatorId op);
  std::unexpected<Diagnostic> fail(Failure failure, std::string what, std::string help);

  CoreOptions options_;
  Host& host_;
  std::vector<Tensor> tensors_;
  std::vector<Operator> operators_;
  std::vector<Storage> storages_;
  std::vector<TensorId> free_tensors_;
  std::vector<OperatorId> free_operators_;
  std::vector<StorageId> free_storages_;
  NeighbourGraph graph_;
  std::vector<StorageId> pool_;  // in the order in which they became evictable, kNone where one was removed
  size_t holes_ = 0;
  std::vector<Frame> frames_;
  std::vector<char> locked_;
  std::vector<TensorId> args_, results_;  // of the operator that ends
  std::vector<StorageId> work_;           // to be banished
  std::vector<StorageId> unread_;         // without references, kept until the call ends
  int64_t clock_ = 1, used_ = 0, other_ = 0, peak_ = 0, evictions_ = 0, extra_count_ = 0, extra_cost_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace tenon::runtime::remat
