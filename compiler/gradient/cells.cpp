#include "compiler/gradient/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/rewrite.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

constexpr size_t kMaxTypes = 1000;  // a type whose arguments grow, as T[(A, A)] in T[A], ends here

bool search(Context& context, const Module& module, Type type, std::set<Type>& seen) {
  if (const ReferenceType* reference = type.reference())
    return has_adjoint(context, module, reference->value) || search(context, module, reference->value, seen);
  const auto part = [&](Type next) { return search(context, module, next, seen); };
  if (const TupleType* tuple = type.tuple())
    return seen.insert(type).second && std::ranges::any_of(tuple->fields, part);
  const AdtType* adt = type.adt();
  if (!adt || seen.size() > kMaxTypes || !seen.insert(type).second) return false;
  const Adt& decl = module.adts.at(adt->name);
  return std::ranges::any_of(decl.constructors, [&](const Constructor& constructor) {
    return std::ranges::any_of(field_types(context, module, constructor.name, type), part);
  });
}

}  // namespace

bool has_reference_to_floats(Context& context, const Module& module, Type type) {
  std::set<Type> seen;
  return search(context, module, type, seen);
}

class Cells::Conversion {
 public:
  Conversion(Cells& cells, Module& module, DimNames& dims)
      : cells_(cells), context_(cells.context_), module_(module), dims_(dims) {}

  Status run() {
    for (const auto& [name, global] : module_.globals) {
      if (module_.function(name) && context_.name(name) != "main") continue;
      const Signature signature = signature_of(context_, global);
      bool found = has_reference_to_floats(context_, module_, signature.result);
      for (const Type param : signature.params) found |= has_reference_to_floats(context_, module_, param);
      if (!found) continue;
      return error(fmt::format("@{} has a reference as an argument or result, and the module has a derivative of code "
                               "with references, which get an adjoint beside them",
                               context_.name(name)),
                   "", "pass the content, and make the reference inside of the module");
    }
    std::vector<Symbol> names;
    for_each_function(module_, [&](Symbol name, const Function&) { names.push_back(name); });
    // What types contain is found before they change.
    for (const Symbol name : names) for_each_type(*module_.function(name), [&](Type& type) { converted(type); });
    for (auto& [name, adt] : module_.adts) {
      for (const Constructor& constructor : adt.constructors) {
        for (const Type field : constructor.fields) converted(field);
      }
    }
    if (problem_) return std::unexpected(std::move(*problem_));
    for (auto& [name, adt] : module_.adts) {
      for (Constructor& constructor : adt.constructors) {
        for (Type& field : constructor.fields) field = converted(field);
      }
    }
    module_.adts.merge(declared_);
    for (const Symbol name : names) for_each_type(*module_.function(name), [&](Type& type) { type = converted(type); });
    for (const auto& [content, cell] : cells_.cells_) TENON_TRY(functions(cell));
    for (const Symbol name : names) {
      const Function before = *module_.function(name);
      TENON_TRY_ASSIGN(after, rewrite(context_, module_, before, [&](Builder& builder, Binding& binding) {
                         return instruction(builder, binding);
                       }));
      *module_.function(name) = std::move(*after);
    }
    return {};
  }

 private:
  // The type with cells in place of references.
  Type converted(Type type) {
    if (!type) return type;
    if (const auto known = types_.find(type); known != types_.end()) return known->second;
    Type result = type;
    if (const TupleType* tuple = type.tuple()) {
      std::vector<Type> fields;
      for (const Type field : tuple->fields) fields.push_back(converted(field));
      result = context_.tuple(std::move(fields));
    } else if (const AdtType* adt = type.adt()) {
      check(*adt);
      std::vector<Type> args;
      for (const Type arg : adt->args) args.push_back(converted(arg));
      result = context_.adt(adt->name, std::move(args));
    } else if (const FunctionType* function = type.function()) {
      std::vector<Type> params;
      for (const Type param : function->params) params.push_back(converted(param));
      result = context_.function(std::move(params), converted(function->result));
    } else if (const ReferenceType* reference = type.reference()) {
      const Type content = converted(reference->value);
      result = context_.reference(content);
      if (has_adjoint(context_, module_, reference->value)) {
        const Type adjoint = adjoint_type(context_, module_, reference->value);
        check(reference->value);
        const auto [cell, is_new] =
            cells_.cells_.try_emplace(content, Cell{.content = content, .adjoint = adjoint, .type = {}});
        if (is_new) declare(cell->second);
        result = cell->second.type;
      }
    }
    types_.emplace(type, result);
    return result;
  }

  // A field that is a reference to a parameter of the type is a cell in some instances of it only.
  void check(const AdtType& adt) {
    const Adt& decl = module_.adts.at(adt.name);
    std::map<Symbol, Type> args;
    for (size_t i = 0; i < decl.params.size(); ++i) args.emplace(decl.params[i], adt.args[i]);
    for (const Constructor& constructor : decl.constructors) {
      for (const Type field : constructor.fields) {
        for_each_part(field, [&](Type part) {
          if (!part.reference() || problem_) return;
          const Type content = part.reference()->value, given = context_.substitute(content, {}, args);
          if (given == content || !has_adjoint(context_, module_, given)) return;
          problem_ =
              error(fmt::format("{} has a reference whose content is a parameter of the type, and is {} where it is "
                                "differentiated",
                                context_.name(constructor.name), context_.str(given)),
                    "", "write a type with this content for code that is differentiated")
                  .error();
        });
      }
    }
  }

  void check(Type content) {
    for_each_part(content, [&](Type part) {
      if (!part.tensor() || problem_) return;
      for (const Dim dim : part.tensor()->dims) {
        for_each_variable(dim, [&](Symbol symbol) {
          problem_ = error(fmt::format("a reference has the content {}, with the size {} inside of another type",
                                       context_.str(content), context_.name(symbol)),
                           "", "a derivative needs a constant size there, or `?`")
                         .error();
        });
      }
    });
  }

  void declare(Cell& cell) {
    for (size_t i = 0;; ++i) {
      const std::string base = fmt::format("cell{}", i);
      const Symbol make = context_.symbol(base + ".new");
      cell.constructor = context_.symbol(fmt::format("Cell{}", i));
      if (module_.globals.contains(make) || cells_.functions_.contains(make)) continue;
      if (declared_.contains(cell.constructor) || module_.adts.contains(cell.constructor) ||
          module_.constructor(cell.constructor))
        continue;
      cell.type = context_.adt(cell.constructor, {});
      declared_.emplace(
          cell.constructor,
          Adt{{}, {{cell.constructor, {context_.reference(cell.content), context_.reference(cell.adjoint)}}}});
      cell.make = make, cell.read = context_.symbol(base + ".read"), cell.write = context_.symbol(base + ".write");
      cells_.functions_.emplace(cell.make, std::pair(Kind::kNew, cell.content));
      cells_.functions_.emplace(cell.read, std::pair(Kind::kRead, cell.content));
      cells_.functions_.emplace(cell.write, std::pair(Kind::kWrite, cell.content));
      return;
    }
  }

  // A parameter, with dims of the function where the type has `?`.
  Atom param(Builder& builder, Type type, std::string_view name) {
    return builder.param(with_named_sizes(context_, type, dims_, builder.function().dims), name);
  }

  Status functions(const Cell& cell) {
    AdjointAdders adders;
    {
      Function function;
      Builder builder(context_, module_, function);
      AdjointBuilder adjoints(builder, adders, dims_);
      const Atom value = param(builder, cell.content, "value");
      TENON_TRY_ASSIGN(content, adjoints.cast(value, cell.content));
      TENON_TRY_ASSIGN(first, builder.bind(MakeReference{*content}, Symbol{}));
      TENON_TRY_ASSIGN(zero, adjoints.materialize({}, cell.content, value));
      TENON_TRY_ASSIGN(second, builder.bind(MakeReference{*zero}, Symbol{}));
      TENON_TRY_ASSIGN(both, builder.bind(Construct{cell.constructor, {}, {*first, *second}}, Symbol{}));
      builder.finish(*both);
      module_.globals.emplace(cell.make, std::move(function));
    }
    {
      Function function;
      Builder builder(context_, module_, function);
      const Atom both = builder.param(cell.type, "cell");
      TENON_TRY_ASSIGN(first, reference(builder, cell, both, 0));
      TENON_TRY_ASSIGN(value, builder.bind(ReadReference{*first}, Symbol{}));
      builder.finish(*value);
      module_.globals.emplace(cell.read, std::move(function));
    }
    Function function;
    Builder builder(context_, module_, function);
    AdjointBuilder adjoints(builder, adders, dims_);
    const Atom both = builder.param(cell.type, "cell"), value = param(builder, cell.content, "value");
    TENON_TRY_ASSIGN(first, reference(builder, cell, both, 0));
    TENON_TRY_ASSIGN(content, adjoints.cast(value, cell.content));
    TENON_TRY_ASSIGN(done, builder.bind(WriteReference{*first, *content}, Symbol{}));
    builder.finish(*done);
    module_.globals.emplace(cell.write, std::move(function));
    return {};
  }

  const Cell* cell_of(Builder& builder, const Atom& reference) const {
    const auto type = builder.type_of(reference);
    for (const auto& [content, cell] : cells_.cells_) {
      if (type && cell.type == *type) return &cell;
    }
    return nullptr;
  }

  Expected<std::optional<Atom>> instruction(Builder& builder, Binding& binding) {
    if (auto* make = std::get_if<MakeReference>(&binding.value)) {
      TENON_TRY_ASSIGN(type, builder.type_of(make->value));
      const auto cell = cells_.cells_.find(*type);
      if (cell == cells_.cells_.end()) return std::nullopt;
      TENON_TRY_ASSIGN(value, opened(builder, make->value, dims_));
      TENON_TRY_ASSIGN(made, builder.call(cell->second.make, {*value}));
      return *made;
    }
    if (auto* read = std::get_if<ReadReference>(&binding.value)) {
      const Cell* cell = cell_of(builder, read->reference);
      if (!cell) return std::nullopt;
      TENON_TRY_ASSIGN(value, builder.call(cell->read, {read->reference}));
      return *value;
    }
    if (auto* write = std::get_if<WriteReference>(&binding.value)) {
      const Cell* cell = cell_of(builder, write->reference);
      if (!cell) return std::nullopt;
      TENON_TRY_ASSIGN(value, opened(builder, write->value, dims_));
      TENON_TRY_ASSIGN(done, builder.call(cell->write, {write->reference, *value}));
      return *done;
    }
    return std::nullopt;
  }

  Cells& cells_;
  Context& context_;
  Module& module_;
  DimNames& dims_;
  std::map<Type, Type> types_;
  std::map<Symbol, Adt> declared_;
  std::optional<Diagnostic> problem_;
};

Expected<Atom> Cells::reference(Builder& builder, const Cell& cell, const Atom& value, size_t which) {
  Context& context = builder.context();
  ConstructPattern pattern{cell.constructor, {{AnyPattern{}}, {AnyPattern{}}}};
  const VarId found = builder.declare(context.reference(which == 0 ? cell.content : cell.adjoint), "");
  pattern.fields[which] = {BindPattern{found}};
  Case match{value, {}};
  match.arms.push_back({MatchPattern{std::move(pattern)}, Block{{}, found}});
  return builder.bind(std::move(match), Symbol{});
}

Status Cells::convert(Module& module, DimNames& dims) { return Conversion(*this, module, dims).run(); }

// The tape has the second reference; of a write, where only the old content tells the sizes of its zero, that too.
Status Cells::define(Module& module, Tables& tables, Symbol function, const std::vector<bool>& active,
                     const Passes& passes) const {
  const auto& [kind, content] = functions_.at(function);
  const Cell& cell = cells_.at(content);
  const Type second = context_.reference(cell.adjoint);
  const bool restores = kind == Kind::kWrite && has_erased(cell.adjoint);
  std::vector<Type> fields{second};
  if (restores) fields.push_back(content);
  const Symbol constructor = passes.tape.constructors[0];
  module.adts.at(passes.tape.type.adt()->name).constructors[0].fields = fields;

  Function forward;
  {
    const Function& stub = *module.function(passes.forward);
    forward.dims = stub.dims;
    Builder builder(context_, module, forward);
    AdjointBuilder adjoints(builder, tables.adders, tables.dims);
    Atoms args;
    for (const VarId param : stub.params)
      args.push_back(builder.param(stub.type(param), context_.name(stub.info(param).name)));
    Atoms saved;
    if (kind == Kind::kWrite) {
      TENON_TRY_ASSIGN(adjoint, reference(builder, cell, args[0], 1));
      saved.push_back(*adjoint);
      if (restores) {
        TENON_TRY_ASSIGN(first, reference(builder, cell, args[0], 0));
        TENON_TRY_ASSIGN(old, builder.bind(ReadReference{*first}, Symbol{}));
        saved.push_back(*old);
        TENON_TRY_ASSIGN(zero, adjoints.materialize({}, content, args[1]));
        TENON_TRY(builder.bind(WriteReference{*adjoint, *zero}, Symbol{}));
      }
    }
    TENON_TRY_ASSIGN(result, builder.call(function, args));
    if (kind != Kind::kWrite) {
      TENON_TRY_ASSIGN(adjoint, reference(builder, cell, kind == Kind::kNew ? *result : args[0], 1));
      saved.push_back(*adjoint);
    }
    TENON_TRY_ASSIGN(tape, builder.bind(Construct{constructor, {}, std::move(saved)}, Symbol{}));
    TENON_TRY_ASSIGN(pair, builder.tuple({*result, *tape}));
    builder.finish(*pair);
    forward.result = stub.result;
  }
  Function backward;
  const Function& stub = *module.function(passes.backward);
  backward.dims = stub.dims;
  Builder builder(context_, module, backward);
  AdjointBuilder adjoints(builder, tables.adders, tables.dims);
  const Atom tape = builder.param(stub.type(stub.params[0]), "tape");
  const Atom cotangent = builder.param(stub.type(stub.params[1]), "cotangent");
  Case match{tape, {}};
  ConstructPattern pattern{constructor, {}};
  std::vector<VarId> vars;
  for (const Type field : fields) {
    vars.push_back(builder.declare(field, ""));
    pattern.fields.push_back({BindPattern{vars.back()}});
  }
  builder.open();
  const Atom adjoint = vars[0];
  TENON_TRY_ASSIGN(gathered, builder.bind(ReadReference{adjoint}, Symbol{}));
  Atoms results;
  if (kind == Kind::kRead) {
    TENON_TRY_ASSIGN(sum, adjoints.parts(*gathered));
    TENON_TRY_ASSIGN(term, adjoints.parts(cotangent));
    TENON_TRY(adjoints.add(*sum, *term));
    TENON_TRY_ASSIGN(value, adjoints.materialize(*sum, content, std::nullopt));
    TENON_TRY_ASSIGN(fitting, adjoints.cast(*value, cell.adjoint));
    TENON_TRY(builder.bind(WriteReference{adjoint, *fitting}, Symbol{}));
  }
  if (kind == Kind::kWrite) {
    const std::optional<Atom> primal = restores ? std::optional<Atom>(vars[1]) : std::nullopt;
    TENON_TRY_ASSIGN(zero, adjoints.materialize({}, content, primal));
    TENON_TRY(builder.bind(WriteReference{adjoint, *zero}, Symbol{}));
  }
  if (kind != Kind::kNew && active[0]) {
    TENON_TRY_ASSIGN(none, builder.tuple({}));  // the adjoint of a cell
    results.push_back(*none);
  }
  if (kind != Kind::kRead && active.back()) results.push_back(*gathered);
  TENON_TRY_ASSIGN(all, builder.tuple(std::move(results)));
  TENON_TRY_ASSIGN(fitting, adjoints.cast(*all, stub.result));
  match.arms.push_back({MatchPattern{std::move(pattern)}, builder.close(*fitting)});
  TENON_TRY_ASSIGN(result, builder.bind(std::move(match), Symbol{}));
  const Type declared = stub.result;
  builder.finish(*result);
  backward.result = declared;
  *module.function(passes.forward) = std::move(forward);
  *module.function(passes.backward) = std::move(backward);
  return {};
}

}  // namespace tenon::compiler::gradient
