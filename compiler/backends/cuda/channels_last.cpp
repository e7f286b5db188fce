#include "compiler/backends/cuda/channels_last.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/operator.h"
#include "compiler/kernels/kernels.h"
#include "compiler/schedules/mma_product.h"
#include "compiler/schedules/thread_product.h"

namespace tenon::compiler::cuda {
namespace {

using runtime::DType;

bool is_convolution(const Operator& op) { return op.is(ops::kConv1d) || op.is(ops::kConv2d) || op.is(ops::kConv3d); }
bool is_pooling(const Operator& op) {
  constexpr OperatorId kPoolings[] = {ops::kAvgPool1d, ops::kAvgPool2d, ops::kAvgPool3d, ops::kLpPool1d, ops::kLpPool2d,
                                      ops::kLpPool3d,  ops::kMaxPool1d, ops::kMaxPool2d, ops::kMaxPool3d};
  return std::ranges::find(kPoolings, op.id) != std::end(kPoolings);
}
bool is_elementwise(const Operator& op) {
  return op.pattern == OpPattern::kElementwise || op.pattern == OpPattern::kBroadcast;
}

class Layouts {
 public:
  Layouts(const Function& region, const std::vector<Members>& groups, const Readers& readers, const Machine& machine)
      : region_(region),
        bindings_(region.body.bindings),
        groups_(groups),
        readers_(readers),
        machine_(machine),
        ends_(bindings_.size()) {
    for (size_t i = 0; i < bindings_.size(); ++i)
      for (const size_t member : groups[i]) ends_[member] = i;
  }

  // Readers are decided before what they read.
  std::set<VarId> run() {
    for (size_t i = bindings_.size(); i-- > 0;) {
      if (groups_[i].empty() || !stores_any_layout(groups_[i])) continue;
      const VarId var = bindings_[i].var;
      const Use use = use_of(var, region_.type(var).tensor()->dtype);
      if (use.is_possible && use.gains) chosen_.insert(var);
    }
    return std::move(chosen_);
  }

 private:
  struct Use {
    bool is_possible = true, gains = false;
  };

  const Operator& operator_of(size_t binding) const { return *std::get<Apply>(bindings_[binding].value).op; }

  bool stores_any_layout(const Members& members) const {
    const TensorType* result = region_.type(bindings_[members.back()].var).tensor();
    return result && result->rank() >= 3 && !only_copies(operator_of(members.back())) &&
           std::ranges::all_of(members, [&](size_t member) {
             const Operator& op = operator_of(member);
             return is_convolution(op) || is_pooling(op) || is_elementwise(op) || only_copies(op);
           });
  }

  // `stored`: the type in memory, before conversions that are part of the readers.
  Use use_of(VarId var, DType stored) const {
    Use all;
    const auto readers = readers_.find(var);
    if (readers == readers_.end()) return {.is_possible = false};
    for (const size_t reader : readers->second) {
      const Use use = reader < bindings_.size() ? use_by(reader, var, stored) : Use{.is_possible = false};
      all.is_possible &= use.is_possible, all.gains |= use.gains;
    }
    return all;
  }

  Use use_by(size_t reader, VarId var, DType stored) const {
    const auto* apply = std::get_if<Apply>(&bindings_[reader].value);
    if (!apply) return {.is_possible = false};
    const TensorType *value = region_.type(var).tensor(), *result = region_.type(bindings_[reader].var).tensor();
    const bool passes_on = chosen_.contains(bindings_[ends_[reader]].var);
    if (is_elementwise(*apply->op)) {
      if (!result || result->dims != value->dims) return {.is_possible = false};
      return ends_[reader] == reader ? Use{.gains = passes_on} : use_of(bindings_[reader].var, stored);
    }
    const bool is_input = apply->args.front() == Atom(var) && std::ranges::count(apply->args, Atom(var)) == 1;
    if (is_pooling(*apply->op)) return {.gains = passes_on};
    if (!is_convolution(*apply->op) || !is_input) return {.is_possible = false};
    return {.gains = is_depthwise(*apply, *value) ? passes_on : has_words(*apply, *value, *result, stored)};
  }

  static bool is_depthwise(const Apply& convolution, const TensorType& value) {
    return value.dims[1].constant() == int_attr(convolution.attrs, "groups");
  }

  // Whether tensor cores multiply whole words of the value's channels.
  bool has_words(const Apply& convolution, const TensorType& value, const TensorType& result, DType stored) const {
    const int64_t groups = int_attr(convolution.attrs, "groups");
    const bool is_integer = result.dtype == DType::kI32;
    const auto instruction = schedules::matrix_instruction(stored, is_integer ? DType::kI8 : stored,
                                                           is_integer ? DType::kI32 : DType::kF32, machine_);
    int64_t pixels = 1;
    for (size_t d = 2; d < result.dims.size(); ++d) pixels *= result.dims[d].constant().value_or(0);
    return instruction && value.dims[1].constant().value_or(0) / groups % instruction->word == 0 &&
           result.dims[1].constant().value_or(0) / groups >= schedules::kBlockSide && pixels >= schedules::kBlockSide;
  }

  const Function& region_;
  const std::vector<Binding>& bindings_;
  const std::vector<Members>& groups_;
  const Readers& readers_;
  const Machine& machine_;
  std::vector<size_t> ends_;  // the last member of each binding's kernel
  std::set<VarId> chosen_;
};

}  // namespace

bool only_copies(const Operator& op) { return op.elements == Elements::kSame || op.is(ops::kTranspose); }

std::set<VarId> channels_last(const Function& region, const std::vector<Members>& groups, const Readers& readers,
                              const Machine& machine) {
  return Layouts(region, groups, readers, machine).run();
}

}  // namespace tenon::compiler::cuda
