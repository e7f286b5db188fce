#include "compiler/remat/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "compiler/ir/effects.h"
#include "compiler/ir/macs.h"
#include "compiler/ir/operator.h"
#include "compiler/passes/memory.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::remat::NewResult;
using runtime::remat::StepLog;
using Kind = StepLog::Kind;

// The model of time. A core of a current processor, with margins: only ratios decide.
constexpr double kMacsPerNanosecond = 30;
constexpr double kBytesPerNanosecond = 10;
constexpr double kNanosecondsOfCall = 500;

constexpr uint32_t kNoTensor = UINT32_MAX;

class LogReader {
 public:
  LogReader(Context& context, const Module& module, const Function& function, const LogOptions& options)
      : context_(context),
        options_(options),
        module_(module),
        function_(function),
        effects_(context, module),
        leaves_(function.vars.size()) {}

  Expected<FunctionLog> run() {
    for (const VarId param : function_.params) {
      TENON_TRY(declare(param));
      for (const uint32_t tensor : leaves_[index(param)]) {
        if (tensor != kNoTensor) log().events.push_back({Kind::kConstant, tensor});
      }
    }
    parameters_ = static_cast<uint32_t>(log().bytes.size());
    for (uint32_t i = 0; i < function_.body.bindings.size(); ++i) TENON_TRY(read(i));
    for (const uint32_t tensor : leaves(function_.body.result)) {
      if (tensor == kNoTensor) continue;
      log().results.push_back(tensor);
      last_use_[tensor] = kNoTensor;
    }
    write_events();
    return std::move(result_);
  }

 private:
  StepLog& log() { return result_.log; }

  // New tensors for the leaves of the variable's type, in depth first order; kNoTensor for what is no tensor.
  Status declare(VarId var) { return declare(var, function_.type(var)); }
  Status declare(VarId var, Type type) {
    if (const auto* tuple = type.tuple()) {
      for (const Type field : tuple->fields) TENON_TRY(declare(var, field));
      return {};
    }
    const TensorType* tensor = type.tensor();
    if (!tensor) {
      leaves_[index(var)].push_back(kNoTensor);
      return {};
    }
    const int64_t bytes = most_bytes(*tensor, function_.bounds);
    const bool empty = std::ranges::any_of(tensor->dims, [](Dim dim) { return dim.constant() == 0; });
    if (bytes == 0 && !empty) {
      const VarInfo& info = function_.info(var);
      return error(fmt::format("'{}' is {}: a plan of memory needs bounds of all sizes", context_.name(info.name),
                               context_.str(type)),
                   module_.span(info.span).str(), "bind the sizes with --shapes NAME=SIZE", Fault::kUsage);
    }
    leaves_[index(var)].push_back(static_cast<uint32_t>(log().bytes.size()));
    log().bytes.push_back(options_.footprint ? options_.footprint(bytes) : bytes);
    last_use_.push_back(0);
    return {};
  }

  static size_t leaf_count(Type type) {
    const auto* tuple = type.tuple();
    if (!tuple) return 1;
    size_t count = 0;
    for (const Type field : tuple->fields) count += leaf_count(field);
    return count;
  }

  std::span<const uint32_t> leaves(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var ? std::span(leaves_[index(*var)]) : std::span<const uint32_t>();
  }

  bool is_kernel(const Value& value) const {
    if (effects_.of(function_, value) == Effect::kState) return false;
    if (std::holds_alternative<Apply>(value)) return true;
    const auto* call = std::get_if<Call>(&value);
    const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    if (!callee) return false;
    const Function* group = module_.function(*callee);
    return module_.loop_function(*callee) || (group && (!group->composite.empty() || !group->target.empty()));
  }

  Status read(uint32_t position) {
    const Binding& binding = function_.body.bindings[position];
    std::vector<uint32_t>& own = leaves_[index(binding.var)];
    if (const auto* tuple = std::get_if<Tuple>(&binding.value)) {
      for (const Atom& field : tuple->fields) append_leaves(field, own);
      return {};
    }
    if (const auto* project = std::get_if<Project>(&binding.value)) return this->project(*project, own);
    const auto* cast = std::get_if<Cast>(&binding.value);
    if (cast && cast->fresh.empty()) {
      append_leaves(cast->value, own);
      return {};
    }
    return call(position);
  }

  // A constant is a leaf without bytes.
  void append_leaves(const Atom& atom, std::vector<uint32_t>& to) const {
    if (std::holds_alternative<VarId>(atom)) {
      const auto found = leaves(atom);
      to.insert(to.end(), found.begin(), found.end());
    } else {
      to.push_back(kNoTensor);
    }
  }

  Status project(const Project& project, std::vector<uint32_t>& to) const {
    const auto* from = std::get_if<VarId>(&project.tuple);
    const auto* tuple = from ? function_.type(*from).tuple() : nullptr;
    if (!tuple) return {};
    size_t first = 0;
    for (uint32_t i = 0; i < project.index; ++i) first += leaf_count(tuple->fields[i]);
    const auto all = leaves(project.tuple);
    const auto part = all.subspan(first, leaf_count(tuple->fields[project.index]));
    to.assign(part.begin(), part.end());
    return {};
  }

  Status call(uint32_t position) {
    const Binding& binding = function_.body.bindings[position];
    const auto index_of_call = static_cast<uint32_t>(log().calls.size());
    StepLog::Call call{
        .name = std::string(context_.name(function_.info(binding.var).name)), .args = {}, .results = {}, .cost = 0};
    const auto read = [&](const Atom& atom) {
      for (const uint32_t tensor : leaves(atom)) {
        if (tensor == kNoTensor || std::ranges::find(call.args, tensor) != call.args.end()) continue;
        call.args.push_back(tensor);
        last_use_[tensor] = std::max(last_use_[tensor], index_of_call + 1);
      }
    };
    for_each_operand(binding.value, read);
    for_each_block(binding.value, [&](const Block& block) { for_each_use(block, read); });
    const bool kernel = is_kernel(binding.value);
    if (!kernel) {
      for (const uint32_t tensor : call.args) last_use_[tensor] = kNoTensor;
    }
    TENON_TRY(declare(binding.var));
    const auto* apply = std::get_if<Apply>(&binding.value);
    const bool view = apply && apply->op->elements == Elements::kSame;
    // A call has a result at least, by which it has a position in the order.
    std::vector<uint32_t>& own = leaves_[index(binding.var)];
    if (std::ranges::count(own, kNoTensor) == static_cast<std::ptrdiff_t>(own.size())) {
      call.results.push_back({0, std::nullopt});
      log().bytes.push_back(0);
      last_use_.push_back(kernel ? 0 : kNoTensor);
    }
    for (const uint32_t tensor : own) {
      if (tensor == kNoTensor) continue;
      NewResult result{log().bytes[tensor], std::nullopt};
      if (view && call.args.size() == 1) {
        result = {0, 0};
        log().bytes[tensor] = log().bytes[call.args.front()];
      }
      call.results.push_back(result);
    }
    call.cost = cost(binding, call);
    const std::optional<int64_t> own_bytes = view || !options_.kernel_bytes ? 0
                                             : kernel                       ? options_.kernel_bytes(binding)
                                                                            : std::nullopt;
    call.own_bytes = own_bytes.value_or(0);
    result_.has_other_kernels |= !own_bytes;
    result_.repeatable.push_back(kernel);
    first_result_.push_back(static_cast<uint32_t>(log().bytes.size() - call.results.size()));
    log().calls.push_back(std::move(call));
    result_.bindings.push_back(position);
    return {};
  }

  int64_t cost(const Binding& binding, const StepLog::Call& call) const {
    double bytes = 0, macs = 0;
    for (const uint32_t tensor : call.args) bytes += static_cast<double>(result_.log.bytes[tensor]);
    for (const NewResult& result : call.results) bytes += static_cast<double>(result.bytes);
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {
      if (apply->op->elements == Elements::kSame) return 1;
      macs += static_cast<double>(macs_of(module_, function_, binding.var, *apply));
    }
    const Call* callee = call_of(binding.value);
    const auto* symbol = callee ? std::get_if<Symbol>(&callee->callee) : nullptr;
    if (const Function* group = symbol ? module_.function(*symbol) : nullptr) {
      for_each_binding(group->body, [&](const Binding& inner) {
        const auto* apply = std::get_if<Apply>(&inner.value);
        if (apply) macs += static_cast<double>(macs_of(module_, *group, inner.var, *apply));
      });
    }
    return std::llround(macs / kMacsPerNanosecond + bytes / kBytesPerNanosecond + kNanosecondsOfCall);
  }

  // The calls with what is kept after them, and the releases after last uses.
  void write_events() {
    std::vector<std::vector<uint32_t>> ends(log().calls.size());  // by call: the tensors that end after it
    for (uint32_t i = 0; i < log().calls.size(); ++i) {
      for (uint32_t k = 0; k < log().calls[i].results.size(); ++k) {
        const uint32_t tensor = first_result_[i] + k;
        if (last_use_[tensor] != kNoTensor) ends[last_use_[tensor] == 0 ? i : last_use_[tensor] - 1].push_back(tensor);
      }
    }
    for (uint32_t i = 0; i < log().calls.size(); ++i) {
      log().events.push_back({Kind::kCall, i});
      if (!result_.repeatable[i]) {
        for (const uint32_t tensor : log().calls[i].args) {
          if (tensor >= parameters_) log().events.push_back({Kind::kKeep, tensor});
        }
        for (uint32_t k = 0; k < log().calls[i].results.size(); ++k)
          log().events.push_back({Kind::kKeep, first_result_[i] + k});
      }
      for (const uint32_t tensor : ends[i]) log().events.push_back({Kind::kRelease, tensor});
    }
  }

  Context& context_;
  const LogOptions& options_;
  const Module& module_;
  const Function& function_;
  Effects effects_;
  FunctionLog result_;
  uint32_t parameters_ = 0;                    // tensors that are parameters
  std::vector<std::vector<uint32_t>> leaves_;  // by variable: tensors of the log, kNoTensor for what is none
  std::vector<uint32_t> last_use_;      // by tensor: the last call that reads it, from 1; 0: none, kNoTensor: the end
  std::vector<uint32_t> first_result_;  // by call: its first result's tensor
};

}  // namespace

Expected<FunctionLog> function_log(Context& context, const Module& module, const Function& function,
                                   const LogOptions& options) {
  return LogReader(context, module, function, options).run();
}

}  // namespace tenon::compiler
