// Inference over a function as it was read: in order, with what is not known yet postponed.
#include "compiler/ir/text/elaborate.h"

#include <fmt/format.h>

#include "compiler/ir/try.h"
#include "compiler/ir/verifier.h"

namespace tenon::compiler {
namespace {

class Elaborator {
 public:
  Elaborator(Context& context, const Module& module, Draft& draft, const std::function<size_t(SpanId)>& offset)
      : context_(context),
        module_(module),
        draft_(draft),
        function_(draft.function),
        solver_(draft.solver),
        rules_(context, module, draft.function, draft.solver),
        offset_(offset) {}

  size_t at() const { return at_; }  // where the error is

  Status run() {
    const Type declared = function_.result;
    TENON_TRY(block(function_.body));
    TENON_TAKE(found, rules_.atom(function_.body.result));
    if (!solver_.unify(declared, *found)) {
      return error(fmt::format("the function returns {}, but its result is {}", text(declared), text(*found)));
    }
    for (const Draft::Alias& alias : draft_.aliases) {
      TENON_TAKE(type, rules_.atom(alias.atom));
      at_ = alias.offset;
      TENON_TRY(declared_as(alias.name, alias.type, *type));
    }
    TENON_TRY(settle());
    TENON_TRY(complete());
    for_each_type(function_, [&](Type& type) { type = solver_.resolve(type); });
    if (auto finding = check(context_, module_, function_)) {
      at_ = offset_(finding->span);
      return error(std::move(finding->what), "", std::move(finding->help));
    }
    return {};
  }

 private:
  std::string text(Type type) { return context_.str(solver_.resolve(type)); }
  std::string_view name(VarId var) const { return context_.name(function_.info(var).name); }

  Status declared_as(std::string_view name, Type declared, Type found) {
    if (solver_.unify(declared, found)) return {};
    return error(fmt::format("%{} is declared {}, but is {}", name, text(declared), text(found)));
  }

  Status block(Block& block) {
    for (Binding& next : block.bindings) TENON_TRY(binding(next));
    at_ = draft_.results[results_++];
    return {};
  }

  Status binding(Binding& binding) {
    Value& value = binding.value;
    const Type type = function_.type(binding.var);
    if (auto* lambda = std::get_if<Lambda>(&value)) {  // what its body sees of it
      std::vector<Type> params;
      for (VarId param : lambda->params) params.push_back(function_.type(param));
      TENON_TRY(given(binding.var, type, context_.function(std::move(params), lambda->result)));
    }
    if (auto* match = std::get_if<Case>(&value)) {  // what the arms see
      at_ = offset_(function_.info(binding.var).span);
      TENON_TAKE(subject, rules_.atom(match->subject));
      for (const Arm& arm : match->arms) TENON_TRY(rules_.pattern(arm.pattern, *subject));
    }
    Status status;
    for_each_block(value, [&](Block& inner) {
      if (status) status = block(inner);
    });
    TENON_TRY(status);
    return bound(binding);
  }

  // Unifies the binding's type with its value's, or keeps it for later.
  Status bound(const Binding& binding) {
    at_ = offset_(function_.info(binding.var).span);
    TENON_TAKE(found, rules_.value(binding.value));
    if (*found) return given(binding.var, function_.type(binding.var), **found);
    pending_.push_back(&binding);
    return {};
  }
  Status given(VarId var, Type declared, Type found) {
    auto place = draft_.annotated.find(static_cast<uint32_t>(var));
    at_ = place == draft_.annotated.end() ? offset_(function_.info(var).span) : place->second;
    return declared_as(name(var), declared, found);
  }

  // What waited for the types of its operands, as often as one of them gets any.
  Status settle() {
    while (true) {
      if (!solver_.retry()) {
        at_ = 0;
        return error("the sizes of the function contradict each other");
      }
      std::vector<const Binding*> open = std::move(pending_);
      pending_.clear();
      for (const Binding* binding : open) TENON_TRY(bound(*binding));
      if (pending_.empty()) return {};
      if (pending_.size() == open.size()) break;
    }
    const Binding& first = *pending_.front();
    at_ = offset_(function_.info(first.var).span);
    std::string unknown = "an operand";
    for_each_operand(first.value, [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (var && !solver_.known(solver_.resolve(function_.type(*var)))) unknown = fmt::format("%{}", name(*var));
    });
    return error(fmt::format("the type of {} cannot be inferred", unknown), "",
                 "annotate it, as %x: Tensor[(4,), f32]");
  }

  Status complete() {
    for (const VarInfo& info : function_.vars) {
      const Type type = solver_.resolve(info.type);
      if (solver_.known(type)) continue;
      at_ = offset_(info.span);
      return error(fmt::format("the type is not decided: it is {} so far", context_.str(type)), "",
                   "annotate it, as let %x: TYPE = ...");
    }
    return {};
  }

  Context& context_;
  const Module& module_;
  Draft& draft_;
  Function& function_;
  Solver& solver_;
  Rules rules_;
  const std::function<size_t(SpanId)>& offset_;
  std::vector<const Binding*> pending_;
  size_t results_ = 0;
  size_t at_ = 0;
};

}  // namespace

Expected<Function> elaborate(Context& context, const Module& module, Draft draft, const Source& source,
                             const std::function<size_t(SpanId)>& offset) {
  Elaborator elaborator(context, module, draft, offset);
  Status status = elaborator.run();
  if (!status) return source.error_at(elaborator.at(), status.error().what, status.error().help);
  return std::move(draft.function);
}

}  // namespace tenon::compiler
