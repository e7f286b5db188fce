// The verifier: scopes, single bindings, well-formed types and the typing rules.
#include "compiler/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/batching.h"
#include "compiler/ir/infer.h"
#include "compiler/ir/solver.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The type and dim variables in scope, and the types that are well formed in it.
struct Scope {
  std::vector<Symbol> dims, types;
  std::unordered_set<const TypeNode*> checked = {};

  // Ends the scope of the dims after the first `count`.
  void shrink(size_t count) {
    if (dims.size() == count) return;
    dims.resize(count);
    checked.clear();
  }
};

Status well_formed(const Context& context, const Scope& scope, Dim dim) {
  if (dim == context.invalid()) return error("a size cannot be computed: it is too large, or divided by 0");
  std::optional<Symbol> unknown;
  for_each_variable(dim, [&](Symbol variable) {
    if (std::ranges::find(scope.dims, variable) == scope.dims.end()) unknown = variable;
  });
  if (unknown) return error(fmt::format("the dim {} is not in scope here", context.name(*unknown)));
  return {};
}
Status well_formed(const Context& context, const Module&, const Scope& scope, const TensorType& x) {
  if (x.rank() > static_cast<int64_t>(runtime::kMaxRank))
    return error(fmt::format("a tensor has {} axes, at most {} are supported", x.rank(), runtime::kMaxRank));
  for (Dim dim : x.dims) TENON_TRY(well_formed(context, scope, dim));
  return {};
}
Status well_formed(const Context& context, const Module& module, const Scope&, const AdtType& x) {
  auto found = module.adts.find(x.name);
  if (found == module.adts.end()) return error(fmt::format("there is no type {}", context.name(x.name)));
  if (found->second.params.size() == x.args.size()) return {};
  return error(fmt::format("{} takes {} type arguments, found {}", context.name(x.name), found->second.params.size(),
                           x.args.size()));
}
Status well_formed(const Context& context, const Module&, const Scope& scope, const TypeVariable& x) {
  if (std::ranges::find(scope.types, x.name) != scope.types.end()) return {};
  return error(fmt::format("the type variable {} is not in scope here", context.name(x.name)));
}
Status well_formed(const Context&, const Module&, const Scope&, const UnknownType&) {
  return error("a type is not resolved");
}
// The parts of these are visited in turn.
Status well_formed(const Context&, const Module&, const Scope&, const TupleType&) { return {}; }
Status well_formed(const Context&, const Module&, const Scope&, const FunctionType&) { return {}; }
Status well_formed(const Context&, const Module&, const Scope&, const ReferenceType&) { return {}; }

Status well_formed(const Context& context, const Module& module, Scope& scope, Type type) {
  if (!type) return error("a type is missing");
  Status status;
  const auto check = [&](Type part) {
    if (!status) return;
    status = std::visit([&](const auto& form) { return well_formed(context, module, scope, form); },
                        part.node->alternatives());
  };
  for_each_part(type, check, scope.checked);
  return status;
}

Status bounded(const Context& context, const std::vector<Symbol>& dims, const DimBounds& bounds) {
  for (const auto& [name, range] : bounds) {
    if (std::ranges::find(dims, name) == dims.end()) {
      return error(fmt::format("bounds of {}, which is not a dim of this function", context.name(name)));
    }
    if (range.lo.value_or(0) >= 0 && range.hi.value_or(INT64_MAX) >= range.lo.value_or(0)) continue;
    return error(fmt::format("the bounds {} of {} contain no size", str(range), context.name(name)));
  }
  return {};
}

// Checks that each type variable appears in `signature`, the types of all parameters and of the result: no call could
// determine another type variable, and the text could not distinguish it from a dim.
Status check_type_variables(const Context& context, const std::vector<Symbol>& variables,
                            const std::vector<Type>& signature) {
  std::set<Symbol> names;
  for (Type type : signature) collect_type_variables(type, names);
  for (Symbol variable : variables) {
    if (names.contains(variable)) continue;
    return error(fmt::format("the type variable {} appears in no parameter and in no result", context.name(variable)));
  }
  return {};
}

// A dim of `fresh` that the sizes of `type` do not determine, by linear equations solved one after another.
std::optional<Symbol> undetermined(Context& context, Type type, const std::vector<Symbol>& fresh) {
  std::set<Symbol> open(fresh.begin(), fresh.end());
  Dims sizes;
  context.map_sizes(type, [&](Dim dim) {
    sizes.push_back(dim);
    return dim;
  });
  for (bool progress = true; progress && !open.empty();) {
    progress = false;
    for (Dim dim : sizes) {
      std::set<Symbol> names;
      for_each_variable(dim, [&](Symbol name) {
        if (open.contains(name)) names.insert(name);
      });
      if (names.size() != 1 || !context.linear_in(*names.begin(), dim)) continue;
      open.erase(*names.begin());
      progress = true;
    }
  }
  return open.empty() ? std::nullopt : std::optional(*open.begin());
}

class Checker {
 public:
  Checker(Context& context, const Module& module, const Function& function)
      : context_(context),
        module_(module),
        function_(function),
        scope_{function.dims, function.types},
        seen_(function.vars.size(), false),
        visible_(function.vars.size(), false) {}

  std::optional<Finding> run() {
    Status status = whole();
    if (status) return std::nullopt;
    return Finding{at_, std::move(status.error().what), std::move(status.error().help)};
  }

 private:
  // The rows of several calls are one call whose sizes along these axes are other ones.
  Status joined_axes() const {
    if (function_.joined_axes == 0) return {};
    std::vector<Type> results{function_.result};
    if (function_.result.tuple()) results = function_.result.tuple()->fields;
    for (const Type result : results) {
      if (result.tensor() && result.tensor()->rank() >= function_.joined_axes) continue;
      return error(fmt::format("its calls are joined along {} axes, which its result {} does not have",
                               function_.joined_axes, context_.str(function_.result)));
    }
    for (uint32_t i = 0; i < function_.joined_axes && !results.empty(); ++i) {
      const Dim dim = results[0].tensor()->dims[i];
      if (dim.constant() == 1 || (dim.variable() && !function_.bounds.contains(*dim.variable()))) continue;
      return error(
          fmt::format("its calls are joined along axis {} of size {}, which must be 1 or a variable without "
                      "bounds",
                      i, context_.str(dim)));
    }
    return {};
  }

  Status whole() {
    TENON_TRY(joined_axes());
    TENON_TRY(bounded(context_, function_.dims, function_.bounds));
    TENON_TRY(well_formed(context_, module_, scope_, function_.result));
    for (VarId param : function_.params) TENON_TRY(define(param));
    std::vector<Type> signature{function_.result};
    for (VarId param : function_.params) signature.push_back(function_.type(param));
    TENON_TRY(check_type_variables(context_, function_.types, signature));
    TENON_TRY(block(function_.body));
    TENON_TRY_ASSIGN(result, infer_atom(context_, module_, function_, function_.body.result));
    if (Solver(context_, function_.bounds).fit(function_.result, *result) == Answer::kYes) return {};
    return error(
        fmt::format("the result is declared {}, but is {}", context_.str(function_.result), context_.str(*result)));
  }

  Status define(VarId var) {
    if (index(var) >= seen_.size()) return error(fmt::format("variable {} has no record", index(var)));
    if (seen_[index(var)]) return error(fmt::format("variable {} is bound twice", index(var)));
    const VarInfo& info = function_.info(var);
    if (index(info.span) >= module_.spans.size()) return error(fmt::format("variable {} has no span", index(var)));
    at_ = info.span;
    if (!info.type) return error(fmt::format("variable {} has no type", index(var)));
    seen_[index(var)] = visible_[index(var)] = true;
    bound_.push_back(var);
    return well_formed(context_, module_, scope_, info.type);
  }

  Status usable(const Atom& atom) const {
    if (auto* var = std::get_if<VarId>(&atom)) {
      if (index(*var) < visible_.size() && visible_[index(*var)]) return {};
      return error(fmt::format("variable {} is used before it is bound", index(*var)));
    }
    if (auto* constant = std::get_if<ConstId>(&atom)) {
      if (index(*constant) < module_.constants.size() && module_.constant(*constant)) return {};
      return error(fmt::format("there is no constant {}", index(*constant)));
    }
    const Symbol name = std::get<Symbol>(atom);
    if (module_.globals.contains(name)) return {};
    return error(fmt::format("there is no function @{}", context_.name(name)));
  }

  // The variables and dims that the block binds are not visible after it.
  Status block(const Block& block) {
    const size_t bound = bound_.size(), dims = scope_.dims.size();
    for (const Binding& next : block.bindings) TENON_TRY(binding(next));
    TENON_TRY(usable(block.result));
    if (&block == &function_.body) return {};
    hide(bound);
    scope_.shrink(dims);
    return {};
  }
  void hide(size_t from) {
    for (; bound_.size() > from; bound_.pop_back()) visible_[index(bound_.back())] = false;
  }

  Status binding(const Binding& binding) {
    const Value& value = binding.value;
    if (index(binding.var) < function_.vars.size() && index(function_.info(binding.var).span) < module_.spans.size()) {
      at_ = function_.info(binding.var).span;
    }
    const SpanId span = at_;
    Status status = shape(value);
    for_each_operand(value, [&](const Atom& atom) {
      if (status) status = usable(atom);
    });
    for_each_dim(value, [&](Dim dim) {
      if (status) status = well_formed(context_, scope_, dim);
    });
    TENON_TRY(status);
    const bool early = std::holds_alternative<Lambda>(value);  // its body may refer to the variable
    if (early) TENON_TRY(define(binding.var));
    if (auto* cast = std::get_if<Cast>(&value)) {
      for (Symbol name : cast->fresh) {
        if (std::ranges::find(scope_.dims, name) != scope_.dims.end()) {
          return error(fmt::format("the dim {} is in scope already", context_.name(name)));
        }
        scope_.dims.push_back(name);
      }
      TENON_TRY(well_formed(context_, module_, scope_, cast->type));
      if (const auto open = undetermined(context_, cast->type, cast->fresh)) {
        return error(fmt::format("the dim {} is not determined by {}", context_.name(*open), context_.str(cast->type)),
                     "", "a size must be this dim, or a constant times this dim");
      }
    }
    TENON_TRY(inner(value));
    at_ = span;
    TENON_TRY_ASSIGN(type, infer_value(context_, module_, function_, value));
    if (!early) TENON_TRY(define(binding.var));
    at_ = span;
    if (*type == function_.type(binding.var)) return {};
    if (Solver(context_, function_.bounds).unify(function_.type(binding.var), *type)) return {};  // proved equal
    return error(fmt::format("%{} is recorded as {}, but is {}", context_.name(function_.info(binding.var).name),
                             context_.str(function_.type(binding.var)), context_.str(*type)));
  }

  // Checks that the value has the number of blocks of its kind.
  static Status shape(const Value& value) {
    auto* lambda = std::get_if<Lambda>(&value);
    auto* branch = std::get_if<If>(&value);
    if (lambda && lambda->body.size() != 1) return error("a lambda must have one body");
    if (branch && branch->arms.size() != 2) return error("an if must have two arms");
    return {};
  }

  Status inner(const Value& value) {
    const size_t bound = bound_.size();
    if (auto* lambda = std::get_if<Lambda>(&value)) {
      for (VarId param : lambda->params) TENON_TRY(define(param));
      TENON_TRY(block(lambda->body[0]));
    } else if (auto* match = std::get_if<Case>(&value)) {
      for (const Arm& arm : match->arms) {
        Status status;
        for_each_variable(arm.pattern, [&](VarId var) {
          if (status) status = define(var);
        });
        TENON_TRY(status);
        TENON_TRY(block(arm.block));
        hide(bound);
      }
    } else {
      Status status;
      for_each_block(value, [&](const Block& next) {
        if (status) status = block(next);
      });
      return status;
    }
    hide(bound);
    return {};
  }

  Context& context_;
  const Module& module_;
  const Function& function_;
  Scope scope_;
  std::vector<bool> seen_, visible_;
  std::vector<VarId> bound_;
  SpanId at_{};
};

}  // namespace

std::optional<Finding> check(Context& context, const Module& module, const Function& function) {
  return Checker(context, module, function).run();
}

namespace {

// Compares types of a function of one instance with those of its batched function.
class BatchedTypes {
 public:
  // Whether the type is that of all instances: the same, or with one more, leading axis, which has one size in all.
  bool fits(Type one, Type all) {
    if (one.tuple() && all.tuple()) {
      const std::vector<Type>&fields = one.tuple()->fields, &others = all.tuple()->fields;
      return std::ranges::equal(fields, others, [&](Type field, Type other) { return fits(field, other); });
    }
    const TensorType *tensor = one.tensor(), *other = all.tensor();
    if (!tensor || !other) return one == all;
    std::span<const Dim> dims = other->dims;
    if (dims.size() == tensor->dims.size() + 1) {
      if (!batch_) batch_ = dims[0];
      if (dims[0] != *batch_) return false;
      dims = dims.subspan(1);
    }
    const auto may_be_equal = [](Dim a, Dim b) { return !a.constant() || !b.constant() || a == b; };
    return tensor->dtype == other->dtype && std::ranges::equal(tensor->dims, dims, may_be_equal);
  }
  // Whether it is that of a length for each instance.
  bool are_lengths(Type type) const {
    const TensorType* tensor = type.tensor();
    return tensor && tensor->dtype == runtime::DType::kI64 && tensor->rank() == 1 && tensor->dims[0] == batch_;
  }

 private:
  std::optional<Dim> batch_;
};

std::optional<Finding> check_batched(const Context& context, const Module& module, const Function& function) {
  const Function* batched = module.function(*function.batched);
  const size_t count = function.params.size();
  const bool has_lengths = batched && batched->params.size() == count + 1 && sequence_length(module, function);
  const std::string which = fmt::format("its batched function @{}", context.name(*function.batched));
  if (!batched || (batched->params.size() != count && !has_lengths)) {
    return Finding{{},
                   fmt::format("{} must be a function of the module with {} parameters, or one more with the lengths "
                               "of sequences",
                               which, count),
                   ""};
  }
  BatchedTypes types;
  const std::string help = "a type is the same, or has one more, leading axis, of one size in all";
  for (size_t i = 0; i < count; ++i) {
    const Type one = function.type(function.params[i]), all = batched->type(batched->params[i]);
    if (!types.fits(one, all))
      return Finding{
          {},
          fmt::format("{} takes {} as parameter {}, the function {}", which, context.str(all), i, context.str(one)),
          help};
  }
  if (has_lengths && !types.are_lengths(batched->type(batched->params.back())))
    return Finding{{},
                   fmt::format("{} takes {} as its last parameter, must be the lengths of the instances' sequences",
                               which, context.str(batched->type(batched->params.back()))),
                   "they are a vector of i64 with the leading axis of the other parameters"};
  if (!types.fits(function.result, batched->result))
    return Finding{{},
                   fmt::format("{} returns {}, the function {}", which, context.str(batched->result),
                               context.str(function.result)),
                   help};
  return std::nullopt;
}

}  // namespace

std::optional<Finding> check_annotations(Context& context, const Module& module, const Function& function) {
  if (function.batched) {
    if (auto finding = check_batched(context, module, function)) return finding;
  }
  if (!function.gradient) return std::nullopt;
  // f(A...) -> R has the gradient g(A..., R, D(R)) -> (D(A)...), with sizes that g may leave unknown.
  const std::string which = fmt::format("its gradient @{}", context.name(*function.gradient));
  const Function* gradient = module.function(*function.gradient);
  if (!gradient) return Finding{{}, which + " is no function of the module", ""};
  if (!function.types.empty() || !gradient->types.empty())
    return Finding{{}, "a function with a gradient of its own has no type variables", "write one for each type"};
  std::vector<Type> params, adjoints, given;
  for (const VarId param : function.params) params.push_back(function.type(param));
  for (const Type type : params) adjoints.push_back(adjoint_type(context, module, type));
  params.push_back(function.result);
  params.push_back(adjoint_type(context, module, function.result));
  for (const VarId param : gradient->params) given.push_back(gradient->type(param));
  const Type wanted = context.function(params, context.tuple(adjoints));
  const Type found = context.function(given, gradient->result);
  const auto open = [&](Type type) { return context.map_sizes(type, [&](Dim) { return context.erased(); }); };
  if (open(wanted) == open(found)) return std::nullopt;
  return Finding{{},
                 fmt::format("{} is {}, must be {}", which, context.str(found), context.str(wanted)),
                 "it takes the arguments, the result and the adjoint of the result, and returns a tuple with the "
                 "adjoint of each argument"};
}

std::optional<Finding> check(Context& context, const Module& module, Symbol name, const Adt& adt) {
  Scope scope{{}, adt.params};
  for (size_t i = 0; i < adt.constructors.size(); ++i) {
    const Constructor& constructor = adt.constructors[i];
    const auto decl = module.constructor(constructor.name);
    if (!decl || decl->name != name || decl->index != i) {
      return Finding{{}, fmt::format("there are two constructors {}", context.name(constructor.name)), ""};
    }
    for (Type field : constructor.fields) {
      if (Status status = well_formed(context, module, scope, field); !status) {
        return Finding{{}, fmt::format("{}: {}", context.name(constructor.name), status.error().what), ""};
      }
    }
  }
  if (adt.constructors.empty()) return Finding{{}, "a type requires at least one constructor", ""};
  return std::nullopt;
}

std::optional<Finding> check(Context& context, const Module& module, const Library& library) {
  Scope scope{library.dims, library.types};
  if (Status status = bounded(context, library.dims, library.bounds); !status)
    return Finding{{}, status.error().what, ""};
  std::vector<Type> types = library.params;
  types.push_back(library.result);
  for (Type type : types) {
    if (Status status = well_formed(context, module, scope, type); !status) return Finding{{}, status.error().what, ""};
  }
  if (Status status = check_type_variables(context, library.types, types); !status)
    return Finding{{}, status.error().what, ""};
  return std::nullopt;
}

std::optional<Finding> check(Context& context, const Module& module, Symbol name, const loop::Function& function) {
  if (function.name != name) {
    return Finding{{}, fmt::format("the loop function's own name is @{}", context.name(function.name)), ""};
  }
  if (Status status = loop::verify(context, function); !status) {
    return Finding{{}, fmt::format("{}: {}", status.error().where, status.error().what), status.error().help};
  }
  if (function.results.empty()) return Finding{{}, "a loop function of a module must have a result", ""};
  if (Status status = bounded(context, function.dims, function.bounds); !status)
    return Finding{{}, status.error().what, ""};
  const Signature signature = signature_of(context, function);
  Scope scope{signature.dims, {}};
  for (Type type : signature.params) {
    if (Status status = well_formed(context, module, scope, type); !status) return Finding{{}, status.error().what, ""};
  }
  if (Status status = well_formed(context, module, scope, signature.result); !status)
    return Finding{{}, status.error().what, ""};
  const auto open = undetermined(context, context.tuple(signature.params), signature.dims);
  if (!open) return std::nullopt;
  return Finding{{},
                 fmt::format("no parameter determines the dim {}", context.name(*open)),
                 "give it a parameter in whose sizes this dim appears linearly"};
}

Status verify(Context& context, const Module& module) {
  auto report = [&](std::string where, const Finding& finding) {
    const std::string location = module.span(finding.span).str();
    if (!location.empty()) where += ", " + location;
    return error("the module is inconsistent: " + finding.what, where, "", Fault::kInternal);
  };
  for (const auto& [name, adt] : module.adts) {
    if (auto finding = check(context, module, name, adt)) {
      return report(fmt::format("type {}", context.name(name)), *finding);
    }
  }
  for (const auto& [name, global] : module.globals) {
    const std::string where = fmt::format("@{}", context.name(name));
    for (const char c : context.name(name)) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') {
        return report(where, {{}, "the function's name has characters other than letters, digits, _ and .", ""});
      }
    }
    struct Visitor {
      Context& context;
      const Module& module;
      Symbol name;
      std::optional<Finding> operator()(const Function& x) const {
        auto finding = check_annotations(context, module, x);
        return finding ? finding : check(context, module, x);
      }
      std::optional<Finding> operator()(const loop::Function& x) const { return check(context, module, name, x); }
      std::optional<Finding> operator()(const Library& x) const { return check(context, module, x); }
    };
    if (auto finding = std::visit(Visitor{context, module, name}, global)) return report(where, *finding);
  }
  return {};
}

}  // namespace tenon::compiler
