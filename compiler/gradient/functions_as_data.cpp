#include "compiler/gradient/functions_as_data.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/gradient/tape.h"
#include "compiler/ir/adjoint.h"
#include "compiler/ir/rewrite.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

bool has_function(Type type) {
  bool found = false;
  for_each_part(type, [&](Type part) { found |= part.function() != nullptr; });
  return found;
}

class Defunctionalization {
 public:
  Defunctionalization(Context& context, Module& module, PassesOfCallees& passes)
      : context_(context), module_(module), passes_(passes), dims_(module) {}

  Status run() {
    TENON_TRY(check_interfaces());
    for (auto& [name, adt] : module_.adts) {
      for (Constructor& constructor : adt.constructors) {
        for (Type& field : constructor.fields) {
          if (!has_function(field)) continue;
          if (!adt.params.empty()) {
            return error(fmt::format("the type {} has a function in its field {}, and type parameters",
                                     context_.name(name), context_.str(field)),
                         "", "a derivative needs a type without parameters here");
          }
          pending_fields_.push_back(&field);
        }
      }
    }
    std::vector<Symbol> names;
    for_each_function(module_, [&](Symbol name, const Function&) { names.push_back(name); });
    TENON_TRY(collect());
    for (Type* field : pending_fields_) *field = data(*field);
    // The signatures first, which calls read.
    for (const Symbol name : names) {
      Function& function = *module_.function(name);
      for_each_type(function, [&](Type& type) { type = data(type); });
    }
    for (const Symbol name : names) TENON_TRY(convert(name));
    return dispatchers();
  }

 private:
  // The closures of one type of functions.
  struct Family {
    Type type;  // of the closures as data
    Symbol name{}, apply{};
    FunctionType function;                           // with data in place of closures, and `?` for each size
    std::vector<std::pair<Symbol, Symbol>> members;  // constructors, and the functions with the code
  };

  // What others call keeps its types.
  Status check_interfaces() const {
    for (const auto& [name, global] : module_.globals) {
      if (module_.function(name) && context_.name(name) != "main") continue;
      const Signature signature = signature_of(context_, global);
      bool found = has_function(signature.result);
      for (const Type param : signature.params) found |= has_function(param);
      if (!found) continue;
      return error(fmt::format("@{} has a function as an argument or result, and the module has a derivative of code "
                               "with closures, for which functions become data",
                               context_.name(name)),
                   "", "pass the values that the function computes from and call it inside of the module");
    }
    return {};
  }

  // The type with data in place of functions.
  Type data(Type type) {
    if (!has_function(type)) return type;
    if (const auto known = types_.find(type.node); known != types_.end()) return known->second;
    Type result = type;
    if (const TupleType* tuple = type.tuple()) {
      std::vector<Type> fields;
      for (const Type field : tuple->fields) fields.push_back(data(field));
      result = context_.tuple(std::move(fields));
    } else if (const ReferenceType* reference = type.reference()) {
      result = context_.reference(data(reference->value));
    } else if (const AdtType* adt = type.adt()) {
      std::vector<Type> args;
      for (const Type arg : adt->args) args.push_back(data(arg));
      result = context_.adt(adt->name, std::move(args));
    } else if (type.function()) {
      result = family(type).type;
    }
    types_.emplace(type.node, result);
    return result;
  }

  // Finds the types of all functions, and the sizes that those have in common which differ in nothing else.
  Status collect() {
    std::vector<Type> found;
    const auto add = [&](Type type) {
      if (!type || !has_function(type)) return;
      for_each_part(type, [&](Type part) {
        if (!part.function()) return;
        const Type plain = sizes_as(part, [&](Dim dim) { return dim.constant() ? dim : context_.erased(); });
        const auto [known, is_new] = common_.try_emplace(sizeless(part), plain);
        if (!is_new) known->second = join(known->second, plain);
        found.push_back(part);
      });
    };
    for (Type* field : pending_fields_) add(*field);
    for_each_function(module_, [&](Symbol, Function& function) {
      for_each_type(function, [&](Type& type) { add(type); });
      for_each_use(std::as_const(function.body), [&](const Atom& atom) {
        auto* symbol = std::get_if<Symbol>(&atom);
        if (!symbol) return;
        const Signature signature = signature_of(context_, module_.globals.at(*symbol));
        globals_.emplace(*symbol, context_.function(signature.params, signature.result));
        add(globals_.at(*symbol));
      });
    });
    // What is stored under another type must have the sizes in common.
    const auto inner = [&](Type type) {
      return context_.map_sizes(data(type), [&](Dim) { return context_.erased(); });
    };
    for (const Type type : found) {
      const FunctionType& function = *type.function();
      const FunctionType& common = *common_.at(sizeless(type)).function();
      bool fits = inner(function.result) == inner(common.result);
      for (size_t i = 0; i < function.params.size(); ++i)
        fits = fits && inner(function.params[i]) == inner(common.params[i]);
      if (fits) continue;
      return error(fmt::format("a closure has the type {}, with a size inside of another type that is not the same in "
                               "all closures of such types",
                               context_.str(type)),
                   "", "give the size a constant value");
    }
    return {};
  }

  Type sizes_as(Type type, FunctionRef<Dim(Dim)> size) {
    return context_.map_type(
        type, [](Type leaf) { return leaf; }, size);
  }
  Type sizeless(Type type) {
    return sizes_as(type, [&](Dim) { return context_.erased(); });
  }

  // Two types that differ in sizes, with `?` for those.
  Type join(Type a, Type b) {
    if (a == b) return a;
    const auto all = [&](const std::vector<Type>& x, const std::vector<Type>& y) {
      std::vector<Type> types;
      for (size_t i = 0; i < x.size(); ++i) types.push_back(join(x[i], y[i]));
      return types;
    };
    if (const TensorType* tensor = a.tensor()) {
      Dims dims = tensor->dims;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] != b.tensor()->dims[i]) dims[i] = context_.erased();
      }
      return context_.tensor(std::move(dims), tensor->dtype);
    }
    if (const TupleType* tuple = a.tuple()) return context_.tuple(all(tuple->fields, b.tuple()->fields));
    if (const ReferenceType* reference = a.reference())
      return context_.reference(join(reference->value, b.reference()->value));
    if (const AdtType* adt = a.adt()) return context_.adt(adt->name, all(adt->args, b.adt()->args));
    const FunctionType& x = *a.function();
    const FunctionType& y = *b.function();
    return context_.function(all(x.params, y.params), join(x.result, y.result));
  }

  Family& family(Type type) {
    const Type key = sizeless(type);
    if (const auto known = families_.find(key); known != families_.end()) return known->second;
    const FunctionType& common = *common_.at(key).function();
    std::vector<Type> params;
    for (const Type param : common.params) params.push_back(data(param));
    const Type result = data(common.result);
    Family& made = families_[key];
    for (size_t i = families_.size();; ++i) {
      made.name = context_.symbol(fmt::format("Function{}", i));
      made.apply = context_.symbol(fmt::format("apply.{}", i));
      if (!module_.adts.contains(made.name) && !module_.globals.contains(made.apply)) break;
    }
    made.type = context_.adt(made.name, {});
    made.function = {std::move(params), result};
    module_.adts.emplace(made.name, Adt{});
    // The signature; the body is written when all members are known.
    Function stub;
    stub.params.push_back(VarId{0});
    stub.vars.push_back({made.type, context_.symbol("f"), {}});
    for (const Type param : made.function.params) add_param(stub, param, Symbol{});
    stub.result = made.function.result;
    module_.globals.emplace(made.apply, std::move(stub));
    return made;
  }

  // A parameter, with dims of the function where the type has `?`.
  void add_param(Function& function, Type type, Symbol name) {
    const Type named = with_named_sizes(context_, type, dims_, function.dims);
    function.params.push_back(static_cast<VarId>(function.vars.size()));
    function.vars.push_back({named, name, {}});
  }

  Symbol member(Family& family, Symbol code) {
    for (const auto& [constructor, known] : family.members) {
      if (known == code) return constructor;
    }
    const Symbol name = context_.symbol(fmt::format("{}Case{}", context_.name(family.name), family.members.size()));
    family.members.emplace_back(name, code);
    return name;
  }
  void declare(Family& family, Symbol constructor, std::vector<Type> fields) {
    module_.adts.at(family.name).constructors.push_back({constructor, std::move(fields)});
  }

  Status convert(Symbol name) {
    function_ = *module_.function(name);
    name_ = name;
    // All dims that a match_cast of the function names; each is in scope where it is used.
    all_fresh_.clear();
    for_each_binding(function_.body, [&](const Binding& binding) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) all_fresh_.insert(cast->fresh.begin(), cast->fresh.end());
    });
    Builder builder(context_, module_, function_);
    TENON_TRY(block(builder, function_.body));
    TENON_TRY_ASSIGN(dense, rewrite(context_, module_, function_, [](Builder&, Binding&) { return std::nullopt; }));
    *module_.function(name) = std::move(*dense);
    return {};
  }

  Status block(Builder& builder, Block& block) {
    std::vector<Binding> bindings;
    for (Binding& binding : block.bindings) {
      Status status;
      for_each_block(binding.value, [&](Block& inner) {
        if (status) status = this->block(builder, inner);
      });
      TENON_TRY(status);
      builder.at(function_.info(binding.var).span);
      TENON_TRY(globals_as_data(builder, binding.value, bindings));
      if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
        TENON_TRY(closure(builder, binding.var, *lambda, bindings));
        continue;
      }
      TENON_TRY(call(builder, binding, bindings));
    }
    block.bindings = std::move(bindings);
    return global_as_data(builder, block.result, block.bindings);
  }

  // A call of a closure becomes one of the function that branches on closures, and a pullback a closure as data.
  Status call(Builder& builder, Binding& binding, std::vector<Binding>& out) {
    Call* call = call_of(binding.value);
    auto* gradient = std::get_if<Gradient>(&binding.value);
    bool loose = false;  // whether the result has `?` for its sizes
    if (auto* callee = call ? std::get_if<VarId>(&call->callee) : nullptr) {
      const Family* family = family_of(function_.type(*callee));
      if (!family) return error("a call of an unknown closure", "", "", Fault::kInternal);
      builder.open();
      for (Atom& arg : call->args) {
        TENON_TRY_ASSIGN(open, opened(builder, arg, dims_));
        arg = *open;
      }
      std::ranges::move(builder.close(Atom{}).bindings, std::back_inserter(out));
      call->args.insert(call->args.begin(), Atom(*callee));
      call->callee = family->apply;
      if (gradient) {
        for (uint32_t& index : gradient->wrt) ++index;
      }
      loose = true;
    }
    if (gradient && gradient->kind == Gradient::Kind::kPullback) return pullback(builder, *gradient, binding.var, out);
    if (!loose) {
      out.push_back(std::move(binding));
      return {};
    }
    const Type wanted = function_.type(binding.var);
    Type result = wanted;
    if (!gradient) {
      result = module_.function(std::get<Symbol>(call->callee))->result;
    } else {
      std::vector<Type> adjoints;
      for (const uint32_t index : gradient->wrt) {
        TENON_TRY_ASSIGN(type, builder.type_of(call->args[index]));
        adjoints.push_back(adjoint_type(context_, module_, *type));
      }
      const Type value = module_.function(std::get<Symbol>(call->callee))->result;
      result = context_.tuple({value, context_.tuple(std::move(adjoints))});
    }
    const VarId made = wanted == result ? binding.var : builder.declare(result, "");
    out.push_back({made, std::move(binding.value)});
    if (made != binding.var) out.push_back({binding.var, Cast{made, wanted, {}}});
    return {};
  }

  // (result, closure of the tape), whose code is the backward pass.
  Status pullback(Builder& builder, const Gradient& gradient, VarId var, std::vector<Binding>& out) {
    const Symbol callee = std::get<Symbol>(gradient.call.callee);
    std::vector<bool> active(gradient.call.args.size(), false);
    for (const uint32_t index : gradient.wrt) active[index] = true;
    TENON_TRY_ASSIGN(passes, passes_.passes(callee, active));
    const std::vector<Type> wanted = function_.type(var).tuple()->fields;
    Family& family = *family_of(wanted[1]);
    const Symbol code = unused_name();
    const Symbol constructor = member(family, code);
    declare(family, constructor, {passes->tape.type});

    Function made;
    add_param(made, passes->tape.type, context_.symbol("tape"));
    add_param(made, family.function.params[0], context_.symbol("cotangent"));
    Builder inner(context_, module_, made);
    AdjointAdders adders;
    AdjointBuilder adjoints(inner, adders, dims_);
    TENON_TRY_ASSIGN(all, inner.call(passes->backward, {made.params[0], made.params[1]}));
    TENON_TRY_ASSIGN(fitting, adjoints.cast(*all, family.function.result));
    inner.finish(*fitting);
    module_.globals.emplace(code, std::move(made));

    builder.open();
    TENON_TRY_ASSIGN(pair, builder.call(passes->forward, gradient.call.args));
    TENON_TRY_ASSIGN(loose, builder.project(*pair, 0));
    TENON_TRY_ASSIGN(saved, builder.project(*pair, 1));
    AdjointBuilder casts(builder, adders, dims_);
    TENON_TRY_ASSIGN(result, casts.cast(*loose, wanted[0]));
    TENON_TRY_ASSIGN(closure, builder.bind(Construct{constructor, {}, {*saved}}, Symbol{}));
    TENON_TRY(builder.bind_to(var, Tuple{{*result, *closure}}));
    std::ranges::move(builder.close(Atom{}).bindings, std::back_inserter(out));
    return {};
  }

  Family* family_of(Type type) {
    const AdtType* adt = type.adt();
    for (auto& [key, family] : families_) {
      if (adt && family.name == adt->name) return &family;
    }
    return nullptr;
  }

  // Binds constructors to functions that are used as values.
  Status globals_as_data(Builder& builder, Value& value, std::vector<Binding>& out) {
    Status status;
    for_each_operand(value, [&](Atom& atom) {
      if (status) status = global_as_data(builder, atom, out);
    });
    return status;
  }
  Status global_as_data(Builder& builder, Atom& atom, std::vector<Binding>& out) {
    auto* symbol = std::get_if<Symbol>(&atom);
    if (!symbol) return {};
    Family& family = this->family(globals_.at(*symbol));
    const bool is_new =
        std::ranges::find(family.members, *symbol, &std::pair<Symbol, Symbol>::second) == family.members.end();
    const Symbol constructor = member(family, *symbol);
    if (is_new) declare(family, constructor, {});
    const VarId made = builder.declare(family.type, "");
    out.push_back({made, Construct{constructor, {}, {}}});
    atom = made;
    return {};
  }

  // Makes the closure's code a function of its captures and its arguments, and the closure a value of its captures.
  Status closure(Builder& builder, VarId self, Lambda& lambda, std::vector<Binding>& out) {
    Family& family = *family_of(function_.type(self));
    const Symbol code = unused_name();
    const Symbol constructor = member(family, code);
    const TapeType captures = declare_tape(context_, module_, fmt::format("{} captures", context_.name(code)), 1);
    declare(family, constructor, {captures.type});

    Block body = std::move(lambda.body[0]);
    std::set<VarId> inside{self}, vars;
    inside.insert(lambda.params.begin(), lambda.params.end());
    std::set<Symbol> dims(function_.dims.begin(), function_.dims.end());
    dims.insert(all_fresh_.begin(), all_fresh_.end());
    for_each_binding(body, [&](const Binding& binding) {
      inside.insert(binding.var);
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { inside.insert(var); });
      }
      if (auto* cast = std::get_if<Cast>(&binding.value)) {
        for (const Symbol fresh : cast->fresh) dims.erase(fresh);
      }
    });
    for_each_use(body, [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (var && !inside.contains(*var)) vars.insert(*var);
    });

    Function made;
    const VarId environment = builder.declare(captures.type, "captures");
    made.params.push_back(environment);
    const Function& stub = *module_.function(family.apply);
    std::map<Symbol, Dim> renamed;
    for (const Symbol dim : stub.dims) {
      made.dims.push_back(dims_.fresh(context_));
      renamed.emplace(dim, context_.dim(made.dims.back()));
    }
    std::vector<Received> received;
    for (size_t i = 0; i < lambda.params.size(); ++i) {
      const Type passed_type = context_.substitute(stub.type(stub.params[i + 1]), renamed);
      const VarId passed = builder.declare(passed_type, context_.name(function_.info(lambda.params[i]).name));
      made.params.push_back(passed);
      received.push_back({lambda.params[i], passed});
    }
    if (uses(body, self))
      body.bindings.insert(body.bindings.begin(), {self, Construct{constructor, {}, {environment}}});
    TENON_TRY_ASSIGN(found, builder.type_of(body.result));
    if (*found != family.function.result) {
      const VarId loose = builder.declare(family.function.result, "");
      body.bindings.push_back({loose, Cast{body.result, family.function.result, {}}});
      body.result = loose;
    }
    TENON_TRY_ASSIGN(saved, save(builder, body, {vars, dims, captures.constructors[0], std::move(received)}));
    Case match{environment, {}};
    match.arms.push_back({std::move(saved->pattern), std::move(body)});
    const VarId result = builder.declare(family.function.result, "");
    made.body.bindings.push_back({result, std::move(match)});
    made.body.result = result;
    made.result = family.function.result;
    made.vars = function_.vars;
    module_.globals.emplace(code, made);
    TENON_TRY_ASSIGN(dense, rewrite(context_, module_, made, [](Builder&, Binding&) { return std::nullopt; }));
    module_.globals.insert_or_assign(code, std::move(*dense));

    std::ranges::move(saved->forward.bindings, std::back_inserter(out));
    const VarId captured = builder.declare(captures.type, "");
    out.push_back({captured, Construct{captures.constructors[0], {}, saved->forward.fields}});
    out.push_back({self, Construct{constructor, {}, {captured}}});
    return {};
  }

  static bool uses(const Block& block, VarId var) {
    bool found = false;
    for_each_use(block, [&](const Atom& atom) { found |= atom == Atom(var); });
    return found;
  }

  Symbol unused_name() {
    for (;; ++lambdas_) {
      const Symbol name = context_.symbol(fmt::format("{}.fn{}", context_.name(name_), lambdas_));
      if (!module_.globals.contains(name)) return name;
    }
  }

  // apply(f, args): match f { Case0(captures) => @code0(captures, args), ... }
  Status dispatchers() {
    for (auto& [key, family] : families_) {
      if (family.members.empty()) {  // a type that no closure has: the calls cannot be reached
        declare(family, context_.symbol(fmt::format("{}Case0", context_.name(family.name))), {family.type});
      }
      Function function = *module_.function(family.apply);
      Builder builder(context_, module_, function);
      const Adt decl = module_.adts.at(family.name);
      Case match{function.params[0], {}};
      if (family.members.empty()) {
        const VarId inner = builder.declare(family.type, "inner");
        builder.open();
        Atoms args{inner};
        for (size_t i = 1; i < function.params.size(); ++i) args.emplace_back(function.params[i]);
        TENON_TRY_ASSIGN(value, builder.call(family.apply, std::move(args)));
        match.arms.push_back(
            {MatchPattern{ConstructPattern{decl.constructors[0].name, {{BindPattern{inner}}}}}, builder.close(*value)});
      }
      for (size_t i = 0; i < family.members.size(); ++i) {
        ConstructPattern pattern{family.members[i].first, {}};
        builder.open();
        Atoms args;
        for (const Type field : decl.constructors[i].fields) {
          const VarId captures = builder.declare(field, "captures");
          pattern.fields.push_back({BindPattern{captures}});
          args.emplace_back(captures);
        }
        for (size_t k = 1; k < function.params.size(); ++k) args.emplace_back(function.params[k]);
        TENON_TRY_ASSIGN(value, builder.call(family.members[i].second, std::move(args)));
        TENON_TRY_ASSIGN(type, builder.type_of(*value));
        Atom result = *value;
        if (*type != function.result) {
          TENON_TRY_ASSIGN(loose, builder.bind(Cast{result, function.result, {}}, Symbol{}));
          result = *loose;
        }
        match.arms.push_back({MatchPattern{std::move(pattern)}, builder.close(result)});
      }
      TENON_TRY_ASSIGN(result, builder.bind(std::move(match), Symbol{}));
      const Type declared = function.result;
      builder.finish(*result);
      function.result = declared;
      *module_.function(family.apply) = std::move(function);
    }
    return {};
  }

  Context& context_;
  Module& module_;
  PassesOfCallees& passes_;
  DimNames dims_;
  TypeMap<Type> types_;
  std::map<Type, Type> common_;     // the types of functions, by these types with `?` for each size
  std::map<Symbol, Type> globals_;  // the types of functions that are values
  std::map<Type, Family> families_;
  std::vector<Type*> pending_fields_;
  Function function_;
  Symbol name_{};
  size_t lambdas_ = 0;
  std::set<Symbol> all_fresh_;  // of the current function
};

}  // namespace

bool uses_closures(const Function& function) {
  for (const VarInfo& info : function.vars) {
    if (info.type && has_function(info.type)) return true;
  }
  bool found = false;
  for_each_use(function.body, [&](const Atom& atom) { found |= std::holds_alternative<Symbol>(atom); });
  return found;
}

Status functions_as_data(Context& context, Module& module, PassesOfCallees& passes) {
  return Defunctionalization(context, module, passes).run();
}

}  // namespace tenon::compiler::gradient
