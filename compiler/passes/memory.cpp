#include "compiler/passes/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/base/first_fit.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/liveness.h"

namespace tenon::compiler {
namespace {

using Holds = std::vector<uint32_t>;  // tensors that a value may hold, sorted

void join(Holds& to, const Holds& more) {
  Holds both;
  std::ranges::set_union(to, more, std::back_inserter(both));
  to = std::move(both);
}

// Alias analysis: the tensors that each variable may hold. A tensor is live as long as any of these variables is; a
// projection reads only the field that it returns, whose own variable holds it from there.
class TensorRanges {
 public:
  TensorRanges(Context& context, const Module& module, const Function& function)
      : module_(module),
        function_(function),
        effects_(context, module),
        live_(find_liveness(function, function.body)),
        holds_(function.vars.size()) {}

  std::vector<PlannedTensor> run() {
    block(function_.body);
    escape(held(function_.body.result));
    for (size_t var = 0; var < holds_.size(); ++var) {
      for (uint32_t i : holds_[var]) tensors_[i].last = std::max(tensors_[i].last, live_.last_whole_use[var]);
    }
    return std::move(tensors_);
  }

 private:
  const Holds& held(const Atom& atom) const {
    static const Holds kNothing;
    auto* var = std::get_if<VarId>(&atom);
    return var ? holds_[index(*var)] : kNothing;
  }
  Holds held(const Atoms& atoms) const {
    Holds joined;
    for (const Atom& atom : atoms) join(joined, held(atom));
    return joined;
  }
  void escape(const Holds& tensors) {
    for (uint32_t i : tensors) tensors_[i].escapes = true;
  }

  // The tensors that a binding makes, by its type.
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
      const uint32_t position = live_.first[index(var)];
      tensors_.push_back({.var = var,
                          .field = field++,
                          .first = position,
                          .last = position,
                          .bytes = most_bytes(*tensor, function_.bounds)});
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
      Holds holds = std::visit(Visitor{*this, binding.var}, binding.value);
      holds_[index(binding.var)] = std::move(holds);
    }
  }

  struct Visitor {
    TensorRanges& self;
    VarId var;

    Holds operator()(const Apply&) const { return self.make(var); }
    Holds operator()(const Gradient& gradient) const {
      self.escape(self.held(gradient.call.args));
      return self.make(var);
    }
    // A kernel returns the tensors that it makes; any other function may return its arguments, or keep them.
    Holds operator()(const Call& call) const {
      auto* symbol = std::get_if<Symbol>(&call.callee);
      const Function* callee = symbol ? self.module_.function(*symbol) : nullptr;
      if (callee && (!callee->composite.empty() || !callee->target.empty())) return self.make(var);
      if (symbol && self.module_.loop_function(*symbol)) return self.make(var);
      Holds passed = self.held(call.args);
      if (!symbol) join(passed, self.held(call.callee));
      if (!symbol || self.effects_.of_function(*symbol) == Effect::kState) self.escape(passed);
      Holds joined = self.make(var);
      self.fields_.erase(var);  // an argument may be any field
      join(joined, passed);
      return joined;
    }
    Holds operator()(const Tuple& tuple) const {
      auto& fields = self.fields_[var];
      for (const Atom& field : tuple.fields) fields.push_back(self.held(field));
      return self.held(tuple.fields);
    }
    Holds operator()(const DimValue&) const { return {}; }
    Holds operator()(const Project& project) const {
      auto* from = std::get_if<VarId>(&project.tuple);
      auto found = from ? self.fields_.find(*from) : self.fields_.end();
      return found == self.fields_.end() ? self.held(project.tuple) : found->second[project.index];
    }
    Holds operator()(const Construct& construct) const { return self.held(construct.fields); }
    // Captured values are live as long as the closure.
    Holds operator()(const Lambda& lambda) const {
      Holds joined;
      for_each_use(lambda.body[0], [&](const Atom& atom) { join(joined, self.held(atom)); });
      return joined;
    }
    Holds operator()(const If& branch) const {
      Holds joined;
      for (const Block& arm : branch.arms) {
        self.block(arm);
        join(joined, self.held(arm.result));
      }
      return joined;
    }
    Holds operator()(const Case& match) const {
      Holds joined;
      for (const Arm& arm : match.arms) {
        for_each_variable(arm.pattern, [&](VarId part) { self.holds_[index(part)] = self.held(match.subject); });
        self.block(arm.block);
        join(joined, self.held(arm.block.result));
      }
      return joined;
    }
    Holds operator()(const Cast& cast) const { return self.held(cast.value); }
    Holds operator()(const MakeReference& make) const {
      self.escape(self.held(make.value));
      return {};
    }
    Holds operator()(const ReadReference&) const { return {}; }
    Holds operator()(const WriteReference& write) const {
      self.escape(self.held(write.value));
      return {};
    }
  };

  const Module& module_;
  const Function& function_;
  Effects effects_;
  Liveness live_;
  std::vector<PlannedTensor> tensors_;
  std::vector<Holds> holds_;                    // by variable
  std::map<VarId, std::vector<Holds>> fields_;  // of variables whose tuple's fields are told apart
};

}  // namespace

int64_t most_bytes(const TensorType& type, const DimBounds& bounds) {
  int64_t bytes = runtime::bytes(type.dtype);
  for (const Dim dim : type.dims) {
    const auto most = dim.constant() ? dim.constant() : dim.valid() ? range(dim, bounds).hi : std::nullopt;
    if (!most || *most <= 0 || __builtin_mul_overflow(bytes, *most, &bytes)) return 0;
  }
  return bytes > INT64_MAX - kMemoryAlignment ? 0 : aligned_bytes(bytes);
}

MemoryPlan plan_memory(Context& context, const Module& module, const Function& function) {
  MemoryPlan plan{.tensors = TensorRanges(context, module, function).run()};
  std::vector<PlannedTensor*> placed;
  std::vector<LiveBuffer> buffers;
  for (PlannedTensor& tensor : plan.tensors) {
    if (tensor.escapes) {
      plan.outside += tensor.bytes;
    } else if (tensor.bytes == 0) {
      ++plan.unknown;
    } else {
      placed.push_back(&tensor);
      buffers.push_back({tensor.first, tensor.last, tensor.bytes});
    }
  }
  const ArenaPlan arena = first_fit(buffers);
  for (size_t i = 0; i < placed.size(); ++i) placed[i]->offset = arena.offsets[i];
  plan.arena = arena.bytes;
  plan.peak = arena.peak;
  plan.total = arena.total;
  return plan;
}

std::string str(const MemoryPlan& plan) {
  const auto inside = std::ranges::count_if(
      plan.tensors, [](const PlannedTensor& tensor) { return tensor.offset != PlannedTensor::kOutside; });
  return fmt::format(
      "{} tensors in {} bytes ({} live at once, {} without reuse); {} bytes of results outside; {} of unknown size",
      inside, plan.arena, plan.peak, plan.total, plan.outside, plan.unknown);
}

}  // namespace tenon::compiler
