#include "compiler/backends/cuda/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/backends/cuda/channels_last.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/sizes.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/kernels/windows.h"
#include "compiler/loop/schedule/bind.h"
#include "compiler/loop/schedule/merge.h"
#include "compiler/loop/schedule/warp_rows.h"
#include "compiler/machine/machine.h"
#include "support/try.h"

namespace tenon::compiler::cuda {
namespace {

// Adds the bindings of `from` to `to`, with its parameters replaced by `copies`; returns the copy of its result.
Expected<Atom> append(const Module& module, const Function& from, std::map<VarId, Atom> copies, Function& to) {
  for (const Binding& binding : from.body.bindings) {
    Value value = binding.value;
    for_each_operand(value, [&](Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) atom = copies.at(*var);
    });
    const auto* call = std::get_if<Call>(&value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* composite = symbol ? module.function(*symbol) : nullptr;
    if (composite) {
      std::map<VarId, Atom> inner;
      for (size_t i = 0; i < composite->params.size(); ++i) inner.emplace(composite->params[i], call->args[i]);
      TENON_TRY_ASSIGN(result, append(module, *composite, std::move(inner), to));
      copies.emplace(binding.var, *result);
      continue;
    }
    const auto var = static_cast<VarId>(to.vars.size());
    to.vars.push_back(from.info(binding.var));
    to.body.bindings.push_back({var, std::move(value)});
    copies.emplace(binding.var, var);
  }
  const auto* result = std::get_if<VarId>(&from.body.result);
  return result ? copies.at(*result) : from.body.result;
}

class RegionSteps {
 public:
  RegionSteps(Context& context, const Module& module, const Function& region, const Machine& machine,
              const std::vector<schedules::UserSchedule>& schedules)
      : context_(context),
        module_(module),
        region_(region),
        machine_(machine),
        schedules_(schedules),
        bindings_(region.body.bindings) {}

  Expected<BoundKernels> run() {
    for (const VarId param : region_.params) define(param, region_.type(param).parts().size());
    const std::vector<Members> groups = group();
    channels_last_ = channels_last(region_, groups, readers_, machine_);
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Value& value = bindings_[i].value;
      if (const auto* tuple = std::get_if<Tuple>(&value)) {
        auto& values = values_[bindings_[i].var];
        for (const Atom& field : tuple->fields) std::ranges::copy(of(field), std::back_inserter(values));
      } else if (const auto* field = std::get_if<Project>(&value)) {
        values_[bindings_[i].var] = {of(field->tuple)[field->index]};
      } else if (!groups[i].empty()) {
        TENON_TRY(add(groups[i]));
      }
    }
    kernels_.results = of(region_.body.result);
    return std::move(kernels_);
  }

 private:
  // The operators of the step that ends with each binding; of bindings inside of steps, none.
  std::vector<Members> group() {
    for (size_t i = 0; i < bindings_.size(); ++i) {
      if (std::holds_alternative<Apply>(bindings_[i].value)) producers_.emplace(bindings_[i].var, i);
    }
    read(region_.body.result, bindings_.size());
    for (size_t i = 0; i < bindings_.size(); ++i)
      for_each_operand(bindings_[i].value, [&](const Atom& atom) { read(atom, i); });
    std::vector<Members> groups(bindings_.size());
    std::vector<bool> taken(bindings_.size(), false);
    for (size_t i = 0; i < bindings_.size(); ++i) {
      if (taken[i] || !std::holds_alternative<Apply>(bindings_[i].value)) continue;
      Members members = followed(i, taken);
      for (const size_t member : Members(members)) absorb(member, groups, members);
      std::ranges::sort(members);
      for (const size_t member : members) taken[member] = true;
      groups[members.back()] = std::move(members);
    }
    return groups;
  }

  void read(const Atom& atom, size_t reader) {
    if (const auto* var = std::get_if<VarId>(&atom)) readers_[*var].push_back(reader);
  }

  const Apply& apply(size_t binding) const { return std::get<Apply>(bindings_[binding].value); }

  // The operator and as many elementwise ones after it, of the same shape, as have one result that others read: the
  // last one's.
  Members followed(size_t first, const std::vector<bool>& taken) const {
    std::set<size_t> all{first}, open{first};  // open: whose readers were not visited
    while (!open.empty()) {
      const size_t next = open.extract(open.begin()).value();
      const auto readers = readers_.find(bindings_[next].var);
      if (readers == readers_.end()) continue;
      for (const size_t reader : readers->second) {
        const bool joins = reader < bindings_.size() && !taken[reader] && !all.contains(reader) &&
                           std::holds_alternative<Apply>(bindings_[reader].value) &&
                           continues(apply(reader), bindings_[reader].var, bindings_[next].var) &&
                           !is_conversion_for_contraction(reader, next);
        if (joins) all.insert(reader), open.insert(reader);
      }
    }
    Members members(all.begin(), all.end());
    while (members.size() > 1 && !has_one_result(members)) members.pop_back();
    return members;
  }

  bool has_one_result(const Members& members) const {
    return std::all_of(members.begin(), members.end() - 1, [&](size_t member) {
      const auto readers = readers_.find(bindings_[member].var);
      return readers != readers_.end() && std::ranges::all_of(readers->second, [&](size_t reader) {
               return std::ranges::find(members, reader) != members.end();
             });
    });
  }

  // Moves the steps into `members` whose results the operator alone reads, and which it computes with its own loops:
  // conversions of bytes, and copies in another order, of operands of contractions and of copies.
  void absorb(size_t member, std::vector<Members>& groups, Members& members) const {
    for (const Atom& atom : apply(member).args) {
      const auto* var = std::get_if<VarId>(&atom);
      const auto producer = var ? producers_.find(*var) : producers_.end();
      if (producer == producers_.end() || readers_.at(*var).size() != 1) continue;
      Members& group = groups[producer->second];
      const bool copies =
          !group.empty() && std::ranges::all_of(group, [&](size_t i) { return only_copies(*apply(i).op); });
      const bool joins =
          widens_bytes(apply(member), producer->second) ||
          (copies && (only_copies(*apply(member).op) || apply(member).op->pattern == OpPattern::kAnchor));
      if (joins) std::ranges::move(std::exchange(group, {}), std::back_inserter(members));
    }
  }

  // Whether the operator computes each element from the element of `before` at the same position.
  bool continues(const Apply& apply, VarId var, VarId before) const {
    const TensorType *result = region_.type(var).tensor(), *operand = region_.type(before).tensor();
    return result && operand && result->dims == operand->dims &&
           (apply.op->pattern == OpPattern::kElementwise || apply.op->pattern == OpPattern::kBroadcast);
  }

  // Whether the operator converts bytes to the i32 of a contraction, of whose step it is a part.
  bool is_conversion_for_contraction(size_t binding, size_t bytes) const {
    return runtime::bytes(region_.type(bindings_[bytes].var).tensor()->dtype) == 1 && feeds_contraction(binding);
  }
  // Whether a contraction reads the integers, as they are or after elementwise operators.
  bool feeds_contraction(size_t binding) const {
    const auto readers = readers_.find(bindings_[binding].var);
    if (readers == readers_.end() || readers->second.size() != 1) return false;
    const size_t reader = readers->second.front();
    if (reader >= bindings_.size() || !std::holds_alternative<Apply>(bindings_[reader].value)) return false;
    const TensorType* result = region_.type(bindings_[binding].var).tensor();
    return widens_bytes(apply(reader), binding) ||
           (result->dtype == runtime::DType::kI32 && feeds_contraction(reader) &&
            continues(apply(reader), bindings_[reader].var, bindings_[binding].var));
  }

  // Whether a contraction reads what the binding converts to i32: the kernel multiplies the bytes themselves.
  bool widens_bytes(const Apply& apply, size_t producer) const {
    const auto* operand = std::get_if<Apply>(&bindings_[producer].value);
    const TensorType* result = region_.type(bindings_[producer].var).tensor();
    const bool is_simple =
        operand->op->pattern == OpPattern::kElementwise || operand->op->pattern == OpPattern::kBroadcast;
    return apply.op->pattern == OpPattern::kAnchor && is_simple && result && result->dtype == runtime::DType::kI32;
  }

  // A step of these operators, or one for each where they are no kernel together.
  Status add(const Members& members) {
    auto [function, args] = function_of(members);
    const std::vector<std::string> names = kernels::kernel_names(context_, function);
    const schedules::UserSchedule* own = schedules::find_schedule(schedules_, names, machine_.name);
    auto step = bound_step(context_, module_, function, machine_, own);
    if (!step && members.size() > 1 && !own) {
      for (const size_t member : members) TENON_TRY(add(Members{member}));
      return {};
    }
    if (!step) return std::unexpected(std::move(step.error()));
    for (auto& operand : step->operands) {
      if (auto* param = std::get_if<size_t>(&operand)) *param = of(args[*param]).front();
    }
    kernels_.steps.push_back(std::move(*step));
    kernels_.computed.insert(kernels_.computed.end(), names.begin(), names.end());
    if (own) kernels_.schedules.push_back(static_cast<size_t>(own - schedules_.data()));
    define(bindings_[members.back()].var, function.result.parts().size());
    return {};
  }

  // The operators as a function, and its arguments. Values with their channels innermost are transposed where they
  // enter and leave it, which costs nothing: kernels read and store them at transposed indices.
  std::pair<Function, std::vector<VarId>> function_of(const Members& members) const {
    Function function;
    std::vector<VarId> args;
    std::map<VarId, VarId> copies;
    const auto add = [&](const VarInfo& info) {
      function.vars.push_back(info);
      return static_cast<VarId>(function.vars.size() - 1);
    };
    const auto copy = [&](VarId var) {
      copies.emplace(var, add(region_.info(var)));
      return copies.at(var);
    };
    const auto transpose = [&](VarId from, VarId to, std::vector<int64_t> axes) {
      const Operator* op = context_.find_operator("transpose");
      function.body.bindings.push_back({to, Apply{op, {{"axes", std::move(axes)}}, {from}}});
    };
    for (const size_t member : members) {
      Value value = bindings_[member].value;
      for_each_operand(value, [&](Atom& atom) {
        const auto* var = std::get_if<VarId>(&atom);
        if (!var) return;
        if (!copies.contains(*var)) {
          args.push_back(*var);
          if (channels_last_.contains(*var)) {
            function.params.push_back(add(with_channels_innermost(region_.info(*var))));
            transpose(function.params.back(), copy(*var),
                      kernels::channels_second(region_.type(*var).tensor()->rank()));
          } else {
            function.params.push_back(copy(*var));
          }
        }
        atom = copies.at(*var);
      });
      function.body.bindings.push_back({copy(bindings_[member].var), std::move(value)});
    }
    const VarId last = bindings_[members.back()].var;
    VarId result = copies.at(last);
    if (channels_last_.contains(last)) {
      const VarId stored = add(with_channels_innermost(region_.info(last)));
      transpose(std::exchange(result, stored), stored,
                kernels::channels_innermost(region_.type(last).tensor()->rank()));
    }
    function.body.result = result;
    function.result = function.type(result);
    declare_dims(context_, function);
    std::ranges::copy(add_size_params(context_, region_, loop::kElementTypes, function), std::back_inserter(args));
    return {std::move(function), std::move(args)};
  }

  VarInfo with_channels_innermost(VarInfo info) const {
    const TensorType* type = info.type.tensor();
    Dims dims;
    for (const int64_t axis : kernels::channels_innermost(type->rank()))
      dims.push_back(type->dims[static_cast<size_t>(axis)]);
    info.type = context_.tensor(std::move(dims), type->dtype);
    return info;
  }

  void define(VarId var, size_t count) {
    for (size_t i = 0; i < count; ++i) values_[var].push_back(next_++);
  }
  const std::vector<size_t>& of(const Atom& atom) const { return values_.at(std::get<VarId>(atom)); }

  Context& context_;
  const Module& module_;
  const Function& region_;
  const Machine& machine_;
  const std::vector<schedules::UserSchedule>& schedules_;
  const std::vector<Binding>& bindings_;
  std::map<VarId, size_t> producers_;  // bindings of operators
  Readers readers_;
  std::set<VarId> channels_last_;  // values that are stored so
  BoundKernels kernels_;
  std::map<VarId, std::vector<size_t>> values_;  // a tuple has one for each field
  size_t next_ = 0;
};

}  // namespace

Expected<Function> inlined(Context& context, const Module& module, const Function& region) {
  Function function;
  std::map<VarId, Atom> copies;
  for (const VarId param : region.params) {
    const auto var = static_cast<VarId>(function.vars.size());
    function.vars.push_back(region.info(param));
    function.params.push_back(var);
    copies.emplace(param, var);
  }
  TENON_TRY_ASSIGN(result, append(module, region, std::move(copies), function));
  function.body.result = *result;
  function.result = region.result;
  declare_dims(context, function);
  return function;
}

Expected<BoundStep> bound_step(Context& context, const Module& module, const Function& function, const Machine& machine,
                               const schedules::UserSchedule* own) {
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context, module, "kernel", function, machine, {}, own));
  loop::Function scheduled = std::move(kernel->function);
  if (!own) {
    scheduled = loop::merged(context, loop::with_warp_rows(context, std::move(scheduled)));
    scheduled = kernels::schedule(context, std::move(scheduled)).function;
  }
  TENON_TRY_ASSIGN(bound, loop::bound(context, std::move(scheduled)));
  return BoundStep{std::move(*bound), std::move(kernel->operands)};
}

Expected<BoundKernels> steps_of(Context& context, const Module& module, const Function& region, const Machine& machine,
                                const std::vector<schedules::UserSchedule>& schedules) {
  return RegionSteps(context, module, region, machine, schedules).run();
}

}  // namespace tenon::compiler::cuda
