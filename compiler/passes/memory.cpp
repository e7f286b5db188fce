#include "compiler/passes/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/effects.h"

namespace tenon::compiler {
namespace {

using Holds = std::vector<uint32_t>;  // tensors that a value may hold, sorted

void join(Holds& all, const Holds& more) {
  Holds both;
  std::ranges::set_union(all, more, std::back_inserter(both));
  all = std::move(both);
}

// One walk in order, which notes each tensor's life.
class Lives {
 public:
  Lives(Context& context, const Module& module, const Function& function)
      : module_(module), function_(function), effects_(context, module), holds_(function.vars.size()) {}

  std::vector<PlannedTensor> run() {
    block(function_.body);
    leave(held(function_.body.result));
    return std::move(tensors_);
  }

 private:
  const Holds& held(const Atom& atom) const {
    static const Holds kNothing;
    auto* var = std::get_if<VarId>(&atom);
    return var ? holds_[index(*var)] : kNothing;
  }
  Holds held(const Atoms& atoms) const {
    Holds all;
    for (const Atom& atom : atoms) join(all, held(atom));
    return all;
  }
  void use(const Holds& tensors) {
    for (uint32_t i : tensors) tensors_[i].last = std::max(tensors_[i].last, now_);
  }
  void leave(const Holds& tensors) {
    for (uint32_t i : tensors) tensors_[i].leaves = true;
  }

  int64_t bytes_of(const TensorType& type) const {
    int64_t bytes = runtime::bytes(type.dtype);
    for (Dim dim : type.dims) {
      const auto most = dim.constant() ? dim.constant() : dim.valid() ? range(dim, function_.bounds).hi : std::nullopt;
      if (!most || __builtin_mul_overflow(bytes, *most, &bytes)) return 0;
    }
    // An empty tensor is a place too.
    return bytes > INT64_MAX - kMemoryAlignment
               ? 0
               : std::max<int64_t>(1, (bytes + kMemoryAlignment - 1) / kMemoryAlignment) * kMemoryAlignment;
  }

  // The tensors that a binding makes.
  void make(VarId var, Type type, uint32_t& field, Holds& made) {
    if (auto* tuple = type.tuple()) {
      for (Type next : tuple->fields) {
        Holds part;
        make(var, next, field, part);
        join(made, part);
        if (type == function_.type(var)) fields_[var].push_back(part);
      }
    } else if (auto* tensor = type.tensor()) {
      made.push_back(static_cast<uint32_t>(tensors_.size()));
      tensors_.push_back({.var = var, .field = field++, .first = now_, .last = now_, .bytes = bytes_of(*tensor)});
    }
  }
  Holds make(VarId var) {
    Holds made;
    uint32_t field = 0;
    make(var, function_.type(var), field, made);
    return made;
  }

  void block(const Block& block) {
    for (const Binding& binding : block.bindings) {
      ++now_;
      const bool field = std::holds_alternative<Project>(binding.value);
      if (!field) for_each_operand(binding.value, [&](const Atom& atom) { use(held(atom)); });
      Holds found = std::visit(Visitor{*this, binding.var}, binding.value);
      if (field) use(found);  // the others are not read
      holds_[index(binding.var)] = std::move(found);
    }
    use(held(block.result));
  }

  struct Visitor {
    Lives& self;
    VarId var;

    Holds operator()(const Apply&) const { return self.make(var); }
    // A kernel gives back what it makes; any other function may give back its arguments, or keep them.
    Holds operator()(const Call& call) const {
      auto* symbol = std::get_if<Symbol>(&call.callee);
      const Function* callee = symbol ? self.module_.function(*symbol) : nullptr;
      if (callee && (!callee->composite.empty() || !callee->target.empty())) return self.make(var);
      if (symbol && self.module_.loop_function(*symbol)) return self.make(var);
      Holds passed = self.held(call.args);
      if (!symbol) join(passed, self.held(call.callee));
      if (!symbol || self.effects_.of_function(*symbol) == Effect::kState) self.leave(passed);
      Holds all = self.make(var);
      self.fields_.erase(var);  // which field is which argument, nobody knows
      join(all, passed);
      return all;
    }
    Holds operator()(const Tuple& tuple) const {
      auto& fields = self.fields_[var];
      for (const Atom& field : tuple.fields) fields.push_back(self.held(field));
      return self.held(tuple.fields);
    }
    Holds operator()(const Project& project) const {
      auto* from = std::get_if<VarId>(&project.tuple);
      auto found = from ? self.fields_.find(*from) : self.fields_.end();
      return found == self.fields_.end() ? self.held(project.tuple) : found->second[project.index];
    }
    Holds operator()(const Construct& construct) const { return self.held(construct.fields); }
    // What it captures lives as long as it does.
    Holds operator()(const Lambda& lambda) const {
      Holds all;
      for_each_use(lambda.body[0], [&](const Atom& atom) { join(all, self.held(atom)); });
      self.use(all);
      return all;
    }
    Holds operator()(const If& branch) const {
      Holds all;
      for (const Block& arm : branch.arms) {
        self.block(arm);
        join(all, self.held(arm.result));
      }
      return all;
    }
    Holds operator()(const Case& match) const {
      Holds all;
      for (const Arm& arm : match.arms) {
        for_each_variable(arm.pattern, [&](VarId part) { self.holds_[index(part)] = self.held(match.subject); });
        self.block(arm.block);
        join(all, self.held(arm.block.result));
      }
      return all;
    }
    Holds operator()(const Cast& cast) const { return self.held(cast.value); }
    Holds operator()(const MakeReference& make) const {
      self.leave(self.held(make.value));
      return {};
    }
    Holds operator()(const ReadReference&) const { return {}; }
    Holds operator()(const WriteReference& write) const {
      self.leave(self.held(write.value));
      return {};
    }
  };

  const Module& module_;
  const Function& function_;
  Effects effects_;
  std::vector<PlannedTensor> tensors_;
  std::vector<Holds> holds_;  // by variable
  std::map<VarId, std::vector<Holds>> fields_;
  uint32_t now_ = 0;
};

}  // namespace

MemoryPlan plan_memory(Context& context, const Module& module, const Function& function) {
  return place_tensors(Lives(context, module, function).run());
}

MemoryPlan place_tensors(std::vector<PlannedTensor> tensors) {
  MemoryPlan plan{.tensors = std::move(tensors)};
  std::vector<uint32_t> order;
  uint32_t bindings = 0;
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    bindings = std::max(bindings, tensor.last + 1);
    if (tensor.leaves) plan.outside += tensor.bytes;
    else if (tensor.bytes == 0) ++plan.unknown;
    else order.push_back(i);
  }
  std::vector<int64_t> change(bindings + 1);
  for (uint32_t i : order) {
    const PlannedTensor& tensor = plan.tensors[i];
    plan.apart += tensor.bytes;
    change[tensor.first] += tensor.bytes;
    change[tensor.last + 1] -= tensor.bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  plan.peak = std::ranges::max(change);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return plan.tensors[i].bytes; });
  std::vector<std::vector<uint32_t>> placed(bindings);  // by binding: the tensors that live there
  std::vector<uint32_t> seen(plan.tensors.size(), UINT32_MAX);
  for (uint32_t i : order) {
    PlannedTensor& tensor = plan.tensors[i];
    std::vector<std::pair<int64_t, int64_t>> taken;  // offset and end
    for (uint32_t at = tensor.first; at <= tensor.last; ++at) {
      for (uint32_t other : placed[at]) {
        if (std::exchange(seen[other], i) == i) continue;
        taken.emplace_back(plan.tensors[other].offset, plan.tensors[other].offset + plan.tensors[other].bytes);
      }
      placed[at].push_back(i);
    }
    std::ranges::sort(taken);
    int64_t offset = 0;
    for (const auto& [from, to] : taken) {
      if (from - offset >= tensor.bytes) break;
      offset = std::max(offset, to);
    }
    tensor.offset = offset;
    plan.arena = std::max(plan.arena, offset + tensor.bytes);
  }
  return plan;
}

std::string str(const MemoryPlan& plan) {
  const auto inside = std::ranges::count_if(
      plan.tensors, [](const PlannedTensor& tensor) { return tensor.offset != PlannedTensor::kOutside; });
  return fmt::format(
      "{} tensors in {} bytes ({} live at once, {} apart); {} bytes of results outside; {} of unknown size", inside,
      plan.arena, plan.peak, plan.apart, plan.outside, plan.unknown);
}

}  // namespace tenon::compiler
