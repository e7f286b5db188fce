// Operator fusion: groups a contraction with the elementwise operators after it, a reduction with those around it, and
// elementwise and injective operators with each other. Each group becomes a global function with composite "fused",
// which only delimits a kernel: a code generator without a kernel for the whole group runs its operators one by one.
// The widening of bytes to i32 for a contraction joins the contraction's group. The algorithm is greedy, by the bytes
// of memory traffic that a merge saves; groups stay convex (compiler/ir/groups.h), have at most one contraction or
// reduction, and may have several results. A call of a loop function is grouped like an operator, by the pattern of its
// indices; a loop function that may fail, or has several results, stays alone.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <queue>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/groups.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/passes/growth.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr uint32_t kMaxOperators = 64;         // of a group
constexpr size_t kConvexitySearchLimit = 256;  // groups that one convexity check visits
constexpr int64_t kUnknownSize = 16;           // the estimate of a dim without a constant value
constexpr uint32_t kNone = UINT32_MAX;

double bytes_of(const TensorType& type) {
  double bytes = runtime::bytes(type.dtype);
  for (const Dim dim : type.dims) bytes *= static_cast<double>(dim.constant().value_or(kUnknownSize));
  return bytes;
}

// The bindings of one block as a graph, and its partition into groups.
class Grouping {
 public:
  // `patterns`: of the module's loop functions that may be fused.
  Grouping(Context& context, const Module& module, const Effects& effects, const std::map<Symbol, OpPattern>& patterns,
           const Function& function, const Block& block, const std::vector<uint32_t>& binding_index,
           const std::vector<bool>& growing)
      : context_(context),
        module_(module),
        function_(function),
        block_(block),
        binding_index_(binding_index),
        growing_(growing) {
    read(effects);
    groups_.emplace(operands_, kConvexitySearchLimit);
    traits_.resize(size());
    members_.resize(size());
    for (uint32_t i = 0; i < size(); ++i) members_[i].push_back(i);
    for (const Binding& binding : block.bindings) patterns_.push_back(pattern(patterns, binding.value));
    for (uint32_t i = 0; i < size(); ++i) traits_[i] = trait(i);
    // The elementwise operators after a contraction join its group first, before another group can claim them.
    contract(true);
    contract(false);
    context_.visit(groups_->steps());
  }

  const ConvexGroups& groups() const { return *groups_; }
  // Whether another group, a block inside another group, or the block's result uses the value of node i.
  const std::vector<bool>& visible() const { return visible_; }

  // Computes visible(), after all merges.
  void compute_visibility() {
    visible_.assign(size(), false);
    for (uint32_t i = 0; i < size(); ++i) {
      for (const uint32_t operand : reads_[i]) {
        if (groups_->find(operand) != groups_->find(i)) visible_[operand] = true;
      }
    }
    if (const uint32_t result = node(block_.result); result != kNone) visible_[result] = true;
  }

 private:
  struct Trait {
    bool fusible = false;
    uint32_t operators = 1;
    uint32_t heavy = kNone;      // the contraction or reduction
    bool moves = false;          // has an operator that is not elementwise, nor heavy
    bool widens = false;         // only widens bytes to i32 for a contraction
    const Dims* dims = nullptr;  // of all results, where they are equal; nullptr where they differ
  };
  struct Edge {
    double bytes;
    uint32_t from, to;
    bool operator<(const Edge& other) const {
      return std::tie(bytes, from, to) < std::tie(other.bytes, other.from, other.to);
    }
  };

  uint32_t size() const { return static_cast<uint32_t>(block_.bindings.size()); }
  uint32_t node(const Atom& atom) const {
    auto* var = std::get_if<VarId>(&atom);
    const uint32_t at = var ? binding_index_[index(*var)] : kNone;
    return at < size() && block_.bindings[at].var == *var ? at : kNone;
  }

  void read(const Effects& effects) {
    Dependencies graph = dependencies([&](const Value& value) { return effects.of(function_, value); }, block_);
    reads_ = std::move(graph.reads);
    operands_ = std::move(graph.follows);
    users_.resize(size());
    for (uint32_t i = 0; i < size(); ++i) {
      context_.visit(1 + reads_[i].size());
      for (const uint32_t from : reads_[i]) users_[from].push_back(i);
    }
  }

  static OpPattern pattern(const std::map<Symbol, OpPattern>& patterns, const Value& value) {
    if (auto* apply = std::get_if<Apply>(&value)) return apply->op->pattern;
    auto* call = std::get_if<Call>(&value);
    auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const auto found = symbol ? patterns.find(*symbol) : patterns.end();
    return found == patterns.end() ? OpPattern::kOpaque : found->second;
  }
  Trait trait(uint32_t i) const {
    const TensorType* type = function_.type(block_.bindings[i].var).tensor();
    auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
    const bool computed = apply && std::ranges::any_of(apply->computed, [](const auto& attr) {
                            return std::holds_alternative<Atom>(attr.second);
                          });
    if (!type || computed || growing_[index(block_.bindings[i].var)] || !has_native_code(i) || is_instruction(i))
      return {};
    Trait trait{.fusible = true, .dims = &type->dims};
    switch (patterns_[i]) {
      case OpPattern::kElementwise:
      case OpPattern::kBroadcast: trait.widens = widens(i); break;
      case OpPattern::kInjective: trait.moves = true; break;
      case OpPattern::kReduction:
      case OpPattern::kAnchor: trait.heavy = i; break;
      case OpPattern::kOpaque: return {};
    }
    return trait;
  }
  // Whether binding i is a single instruction of the virtual machine, which takes less time than the call of a kernel:
  // arithmetic, a comparison or logic on scalars of integers or booleans.
  bool is_instruction(uint32_t i) const {
    const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
    if (!apply || !apply->op->scalar) return false;
    const auto is_small = [&](DType dtype) {
      return (runtime::kIntegers.contains(dtype) || dtype == DType::kBool) &&
             runtime::is_defined(*apply->op->scalar, dtype);
    };
    return std::ranges::all_of(apply->args, [&](const Atom& atom) {
      const runtime::Tensor* constant = constant_of(module_, atom);
      if (constant) return constant->shape().empty() && is_small(constant->dtype());
      const auto* var = std::get_if<VarId>(&atom);
      const TensorType* type = var ? function_.type(*var).tensor() : nullptr;
      return type && type->dims.empty() && is_small(type->dtype);
    });
  }
  // Whether loop functions have the dtypes of binding i and of its operands.
  bool has_native_code(uint32_t i) const {
    bool native = true;
    const auto check = [&](VarId var) {
      for (const Type part : function_.type(var).parts())
        native &= !part.tensor() || loop::kElementTypes.contains(part.tensor()->dtype);
    };
    check(block_.bindings[i].var);
    for_each_operand(block_.bindings[i].value, [&](const Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) check(*var);
    });
    return native;
  }
  // Whether binding i is a `cast` of bytes to i32, or a `subtract` of a constant from one, whose only user is a
  // contraction: kernels of contractions read the bytes themselves.
  bool widens(uint32_t i) const {
    const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
    const auto is_cast = [&](uint32_t at) {
      const auto* cast = at == kNone ? nullptr : std::get_if<Apply>(&block_.bindings[at].value);
      if (!cast || !cast->op->is(ops::kCast)) return false;
      const auto* from = std::get_if<VarId>(&cast->args[0]);
      const TensorType *bytes = from ? function_.type(*from).tensor() : nullptr,
                       *wide = function_.type(block_.bindings[at].var).tensor();
      return bytes && wide && (bytes->dtype == runtime::DType::kI8 || bytes->dtype == runtime::DType::kU8) &&
             wide->dtype == runtime::DType::kI32;
    };
    const auto is_centered = [&](uint32_t at) {
      const auto* difference = std::get_if<Apply>(&block_.bindings[at].value);
      return difference && difference->op->is(ops::kSubtract) && std::holds_alternative<ConstId>(difference->args[1]) &&
             is_cast(node(difference->args[0]));
    };
    const auto has_one_user = [&](uint32_t at) { return users_[at].size() == 1 && node(block_.result) != at; };
    const auto is_contraction = [&](uint32_t at) {
      return std::holds_alternative<Apply>(block_.bindings[at].value) && is_anchor(at);
    };
    if (!apply || !has_one_user(i)) return false;
    const uint32_t user = users_[i][0];
    if (is_centered(i)) return has_one_user(node(apply->args[0])) && is_contraction(user);
    return is_cast(i) &&
           (is_contraction(user) || (is_centered(user) && has_one_user(user) && is_contraction(users_[user][0])));
  }
  bool is_anchor(uint32_t i) const { return patterns_[i] == OpPattern::kAnchor; }

  // Whether the group of `from` and the group of `to`, which reads `from`, can form one kernel.
  bool fit(uint32_t from, uint32_t to) const {
    const Trait &above = traits_[groups_->find(from)], &below = traits_[groups_->find(to)];
    if (!above.fusible || !below.fusible || above.operators + below.operators > kMaxOperators) return false;
    if (above.heavy != kNone && below.heavy != kNone) return false;
    if (spreads(from, to) || collects(from, to)) return false;
    if (below.widens && !above.widens) return false;  // the narrow bytes are stored, not the widened values
    if (above.heavy != kNone) {
      // Operators after the contraction or reduction must be elementwise on its result.
      return !below.moves && below.dims &&
             *below.dims == function_.type(block_.bindings[above.heavy].var).tensor()->dims;
    }
    if (below.heavy == kNone) return true;
    if (above.moves) return false;
    // A contraction reads each operand many times, so its producers stay outside, except for the widening of bytes.
    return !is_anchor(below.heavy) || above.widens || !feeds(groups_->find(from), below.heavy);
  }
  // Whether one kernel would have results of much more memory than the value that they are parts or copies of, as all
  // windows' elements: they would live at once.
  bool spreads(uint32_t from, uint32_t to) const {
    constexpr size_t kMostResults = 4;
    constexpr double kMostBytes = 2;  // times those of the value
    if (users_[from].size() <= kMostResults) return false;
    const uint32_t above = groups_->find(from), below = groups_->find(to);
    double bytes = 0;
    for (const uint32_t group : {above, below}) {
      for (const uint32_t i : members_[group]) {
        const auto inside = [&](uint32_t user) { return groups_->find(user) == above || groups_->find(user) == below; };
        if (!std::ranges::all_of(users_[i], inside))
          bytes += bytes_of(*function_.type(block_.bindings[i].var).tensor());
      }
    }
    return bytes > kMostBytes * bytes_of(*function_.type(block_.bindings[from].var).tensor());
  }
  // Whether one kernel would read many values as large as its own, as the sum of the terms of a gradient: they would
  // live until the last one is there, where sums of a few need memory for a few.
  bool collects(uint32_t from, uint32_t to) const {
    constexpr size_t kMostOperands = 8;
    const uint32_t above = groups_->find(from), below = groups_->find(to);
    if (members_[above].size() + members_[below].size() <= kMostOperands) return false;
    const double bytes = bytes_of(*function_.type(block_.bindings[from].var).tensor());
    std::set<uint32_t> large;
    for (const uint32_t group : {above, below}) {
      for (const uint32_t i : members_[group]) {
        for (const uint32_t operand : reads_[i]) {
          const uint32_t other = groups_->find(operand);
          const TensorType* type = function_.type(block_.bindings[operand].var).tensor();
          if (other != above && other != below && type && bytes_of(*type) >= bytes) large.insert(operand);
        }
      }
    }
    return large.size() > kMostOperands;
  }
  // Whether the node reads from the group, directly or through nodes of its own group.
  bool feeds(uint32_t group, uint32_t node) const {
    return std::ranges::any_of(reads_[node], [&](uint32_t operand) {
      const uint32_t operand_group = groups_->find(operand);
      return operand_group == group || (operand_group == groups_->find(node) && feeds(group, operand));
    });
  }

  bool merge(uint32_t from, uint32_t to) {
    const Trait above = traits_[groups_->find(from)], below = traits_[groups_->find(to)];
    const uint32_t from_group = groups_->find(from), to_group = groups_->find(to);
    if (!groups_->merge(from, to)) return false;
    std::vector<uint32_t> members = std::exchange(members_[from_group], {});
    const std::vector<uint32_t> others = std::exchange(members_[to_group], {});
    members.insert(members.end(), others.begin(), others.end());
    members_[groups_->find(from)] = std::move(members);
    Trait& merged = traits_[groups_->find(from)];
    merged = {.fusible = true,
              .operators = above.operators + below.operators,
              .heavy = above.heavy != kNone ? above.heavy : below.heavy,
              .moves = above.moves || below.moves,
              .widens = above.widens && below.widens,
              .dims = above.dims && below.dims && *above.dims == *below.dims ? above.dims : nullptr};
    return true;
  }

  // A merge saves the read of the value, and its write where the value has no other reader.
  Edge edge(uint32_t from, uint32_t to) const {
    const double bytes = bytes_of(*function_.type(block_.bindings[from].var).tensor());
    return {users_[from].size() == 1 ? 2 * bytes : bytes, from, to};
  }

  // Merges along edges, the heaviest first; with `tails`, only after contractions and reductions, along edges that
  // appear as their groups grow. A refused merge is tried again while other merges succeed.
  void contract(bool tails) {
    std::priority_queue<Edge> open;
    const auto add = [&](uint32_t from) {
      for (const uint32_t to : users_[from]) {
        if (traits_[from].fusible && traits_[to].fusible) open.push(edge(from, to));
      }
    };
    for (uint32_t i = 0; i < size(); ++i) {
      if (!tails || (traits_[i].fusible && traits_[i].heavy != kNone)) add(i);
    }
    constexpr int kRounds = 3;
    std::vector<Edge> refused;
    for (int round = 0; round < kRounds && !open.empty(); ++round) {
      bool merged = false;
      while (!open.empty()) {
        const auto [bytes, from, to] = open.top();
        open.pop();
        context_.visit();
        if (groups_->find(from) == groups_->find(to)) continue;
        if (fit(from, to) && merge(from, to)) {
          merged = true;
          if (tails) add(to);
        } else {
          refused.push_back({bytes, from, to});
        }
      }
      if (!merged) break;
      open = std::priority_queue<Edge>({}, std::exchange(refused, {}));
    }
  }

  Context& context_;
  const Module& module_;
  const Function& function_;
  const Block& block_;
  const std::vector<uint32_t>& binding_index_;  // by variable: the index of its binding in its block
  const std::vector<bool>& growing_;            // by variable
  // By node: the nodes that it reads, those and the nodes that it must follow, and its readers.
  std::vector<std::vector<uint32_t>> reads_, operands_, users_;
  std::optional<ConvexGroups> groups_;
  std::vector<OpPattern> patterns_;
  std::vector<Trait> traits_;                   // by node first, then by group
  std::vector<std::vector<uint32_t>> members_;  // likewise
  std::vector<bool> visible_;
};

class Fusion {
 public:
  Fusion(Context& context, Module& module) : context_(context), module_(module), effects_(context, module) {}

  Status run() {
    for (const auto& [name, global] : module_.globals) {
      auto* loops = std::get_if<loop::Function>(&global);
      // A loop function that may fail is not moved.
      if (!loops || effects_.of_function(name) != Effect::kNone) continue;
      const OpPattern pattern = loop::pattern_of(context_, *loops);
      const bool heavy = pattern == OpPattern::kReduction || pattern == OpPattern::kAnchor;
      // A user-defined schedule of a reduction is kept.
      if (!heavy || !loop::has_schedule(*loops)) patterns_[name] = pattern;
    }
    std::vector<Symbol> names;
    std::set<Symbol> called;
    for_each_function(module_, [&](Symbol name, const Function& function) {
      for_each_use(function.body, [&](const Atom& atom) {
        if (const auto* symbol = std::get_if<Symbol>(&atom)) called.insert(*symbol);
      });
      if (function.target.empty() && function.composite.empty()) names.push_back(name);
    });
    for (const Symbol name : names) {
      function_ = module_.function(name);
      scope_ = function_->dims;
      growing_ = growing_concats(*function_, !called.contains(name));
      binding_index_.assign(function_->vars.size(), kNone);
      TENON_TRY(block(function_->body));
    }
    return {};
  }

 private:
  Status block(Block& block) {
    const size_t scope = scope_.size();
    for (uint32_t i = 0; i < block.bindings.size(); ++i) binding_index_[index(block.bindings[i].var)] = i;
    for (Binding& binding : block.bindings) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) {
        scope_.insert(scope_.end(), cast->fresh.begin(), cast->fresh.end());
      }
      Status status;
      for_each_block(binding.value, [&](Block& inner) {
        if (status) status = this->block(inner);
      });
      TENON_TRY(status);
    }
    TENON_TRY(group(block));
    scope_.resize(scope);
    return {};
  }

  Status group(Block& block) {
    Grouping grouping(context_, module_, effects_, patterns_, *function_, block, binding_index_, growing_);
    grouping.compute_visibility();
    const ConvexGroups& groups = grouping.groups();
    std::vector<std::vector<uint32_t>> members(block.bindings.size());
    for (uint32_t i = 0; i < block.bindings.size(); ++i) members[groups.find(i)].push_back(i);
    std::vector<Binding> bindings;
    bindings.reserve(block.bindings.size());
    for (const uint32_t root : groups.topological()) {
      std::vector<VarId> results;
      for (const uint32_t i : members[root]) {
        if (grouping.visible()[i]) results.push_back(block.bindings[i].var);
      }
      // A group without users is dead code, which this pass leaves alone.
      const bool ungrouped = members[root].size() == 1 || results.empty();
      // The kernel's sizes are the original dims; where a call cannot infer them, as `n * m`, each becomes a variable.
      if (!ungrouped && (kernel(block, members[root], results, false, bindings) ||
                         kernel(block, members[root], results, true, bindings))) {
        continue;
      }
      for (const uint32_t i : members[root]) bindings.push_back(std::move(block.bindings[i]));
    }
    block.bindings = std::move(bindings);
    return {};
  }

  // Makes a function of the members, and a call of it; returns false, with nothing changed, where the call would not be
  // well typed because inference cannot derive its sizes from those of the arguments.
  bool kernel(const Block& block, const std::vector<uint32_t>& members, const std::vector<VarId>& results,
              bool abstract, std::vector<Binding>& out) {
    Function kernel;
    kernel.composite = "fused";
    Builder builder(context_, module_, kernel);
    std::map<VarId, Atom> copies;
    std::map<Dim, Dim> abstracted;
    std::vector<VarId> args;
    std::set<VarId> inside;
    for (const uint32_t i : members) inside.insert(block.bindings[i].var);
    std::string name = "fused";
    size_t named = 0;
    for (const uint32_t i : members) {
      const Value& value = block.bindings[i].value;
      auto* apply = std::get_if<Apply>(&value);
      if (++named <= 4) {
        name += "_";
        name += apply ? apply->op->name : context_.name(std::get<Symbol>(std::get<Call>(value).callee));
      }
      for_each_operand(value, [&](const Atom& atom) {
        auto* var = std::get_if<VarId>(&atom);
        if (!var || inside.contains(*var) || copies.contains(*var)) return;
        const VarInfo& info = function_->info(*var);
        builder.at(info.span);
        const Type type = abstract ? with_variable_dims(info.type, abstracted, kernel) : info.type;
        copies.emplace(*var, builder.param(type, context_.name(info.name)));
        args.push_back(*var);
        if (!abstract) declare_dims(type, kernel);
      });
    }
    for (const uint32_t i : members) {
      context_.visit();
      const Binding& binding = block.bindings[i];
      Value value = binding.value;
      for_each_operand(value, [&](Atom& atom) {
        if (auto* var = std::get_if<VarId>(&atom)) atom = copies.at(*var);
      });
      const VarInfo& info = function_->info(binding.var);
      builder.at(info.span);
      // The dims that it computes with must be those of the parameters' sizes.
      bool known = true;
      for_each_dim(value, [&](Dim dim) {
        known &= !abstract;
        for_each_variable(dim,
                          [&](Symbol symbol) { known &= std::ranges::find(kernel.dims, symbol) != kernel.dims.end(); });
      });
      if (!known) return false;
      auto copy = builder.bind(std::move(value), info.name);
      if (!copy) return false;
      copies.emplace(binding.var, *copy);
    }
    Atoms values;
    for (const VarId var : results) values.push_back(copies.at(var));
    auto result = values.size() == 1 ? Expected<Atom>(values[0]) : builder.tuple(std::move(values));
    if (!result) return false;
    builder.finish(*result);

    const Symbol symbol = fresh_name(name);
    module_.globals.emplace(symbol, std::move(kernel));
    Value call = Call{symbol, Atoms(args.begin(), args.end())};
    const Expected<Type> found = infer_value(context_, module_, *function_, call);
    std::vector<Type> types;
    for (const VarId var : results) types.push_back(function_->type(var));
    const Type expected = types.size() == 1 ? types[0] : context_.tuple(std::move(types));
    if (!found || *found != expected) {
      module_.globals.erase(symbol);
      --kernels_;
      return false;
    }
    if (results.size() == 1) {
      out.push_back({results[0], std::move(call)});
      return true;
    }
    const auto tuple = static_cast<VarId>(function_->vars.size());
    function_->vars.push_back({*found, context_.symbol(name), function_->info(results.back()).span});
    binding_index_.push_back(kNone);
    out.push_back({tuple, std::move(call)});
    for (uint32_t i = 0; i < results.size(); ++i) out.push_back({results[i], Project{tuple, i}});
    return true;
  }

  // Replaces every dim without a constant value by a variable.
  Type with_variable_dims(Type type, std::map<Dim, Dim>& abstracted, Function& kernel) {
    const TensorType* tensor = type.tensor();
    Dims dims;
    for (const Dim dim : tensor->dims) {
      if (dim.constant()) {
        dims.push_back(dim);
        continue;
      }
      const auto [entry, is_new] = abstracted.emplace(dim, dim);
      if (is_new) {
        kernel.dims.push_back(context_.symbol(fmt::format("n{}", kernel.dims.size())));
        entry->second = context_.dim(kernel.dims.back());
      }
      dims.push_back(entry->second);
    }
    return context_.tensor(std::move(dims), tensor->dtype);
  }

  // Declares the dim variables of a parameter's sizes in the kernel.
  void declare_dims(Type type, Function& kernel) {
    for (const Dim dim : type.tensor()->dims) {
      if (dim.constant()) continue;
      for (const Symbol name : scope_) {
        if (std::ranges::find(kernel.dims, name) != kernel.dims.end()) continue;
        const bool uses = dim.variable() ? *dim.variable() == name
                                         : context_.substitute(dim, {{name, context_.dim(int64_t{1})}}) != dim;
        if (!uses) continue;
        kernel.dims.push_back(name);
        const auto bounds = function_->bounds.find(name);  // without them a size may not be proved to be 1
        if (bounds != function_->bounds.end()) kernel.bounds.insert(*bounds);
      }
    }
  }

  Symbol fresh_name(const std::string& base) {
    for (;; ++kernels_) {
      const Symbol symbol = context_.symbol(fmt::format("{}_{}", base, kernels_));
      if (!module_.globals.contains(symbol)) return ++kernels_, symbol;
    }
  }

  Context& context_;
  Module& module_;
  Effects effects_;
  std::map<Symbol, OpPattern> patterns_;  // of loop functions
  Function* function_ = nullptr;
  std::vector<Symbol> scope_;            // dim variables that are in scope
  std::vector<uint32_t> binding_index_;  // by variable of the function: the index of its binding in its block
  std::vector<bool> growing_;            // by variable, which is no part of a kernel: see growth.h
  uint32_t kernels_ = 0;
};

}  // namespace

Expected<Module> fuse(Context& context, Module module) {
  TENON_TRY(Fusion(context, module).run());
  return infer(context, std::move(module));
}

Pass fuse_pass() {
  return {"fuse", "Groups operators into kernels: a contraction with its elementwise tail, elementwise operators.",
          fuse};
}

}  // namespace tenon::compiler
