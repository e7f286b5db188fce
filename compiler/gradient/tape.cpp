#include "compiler/gradient/tape.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/term.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

void collect_dims(Type type, std::set<Symbol>& names) {
  if (!type || !type.node->variables) return;
  for_each_part(type, [&](Type part) {
    if (!part.tensor()) return;
    for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol name) { names.insert(name); });
  });
}

// The dims that the block and its nested blocks compute with.
std::set<Symbol> dims_of(const Function& function, const Block& block) {
  std::set<Symbol> names;
  for_each_binding(block, [&](const Binding& binding) {
    collect_dims(function.type(binding.var), names);
    for_each_dim(binding.value, [&](Dim dim) { for_each_variable(dim, [&](Symbol name) { names.insert(name); }); });
    if (auto* cast = std::get_if<Cast>(&binding.value)) collect_dims(cast->type, names);
    if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
      collect_dims(lambda->result, names);
      for (const VarId param : lambda->params) collect_dims(function.type(param), names);
    }
    if (auto* construct = std::get_if<Construct>(&binding.value)) {
      for (const Type type : construct->types) collect_dims(type, names);
    }
    if (auto* match = std::get_if<Case>(&binding.value)) {
      for (const Arm& arm : match->arms)
        for_each_variable(arm.pattern, [&](VarId var) { collect_dims(function.type(var), names); });
    }
  });
  return names;
}

// The dims of `wanted` that a match_cast to the type can bind: those that are a size by themselves.
std::vector<Symbol> plain_dims(Context& context, Type type, const std::set<Symbol>& wanted) {
  std::vector<Symbol> found;
  context.map_sizes(type, [&](Dim dim) {
    for_each_variable(dim, [&](Symbol name) {
      const bool plain = context.dim(name) == dim && wanted.contains(name);
      if (plain && std::ranges::find(found, name) == found.end()) found.push_back(name);
    });
    return dim;
  });
  return found;
}

}  // namespace

TapeType declare_tape(Context& context, Module& module, std::string_view name, size_t constructors) {
  std::string base;  // CamelCase, as types are written
  bool upper = true;
  for (const char c : name) {
    const bool alnum = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (alnum) base += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = !alnum;
  }
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0) base = fmt::format("F{}", base);
  for (size_t i = 0;; ++i) {
    const std::string type = fmt::format("{}Tape{}", base, i == 0 ? "" : std::to_string(i));
    const Symbol symbol = context.symbol(type);
    TapeType tape{context.adt(symbol, {}), {}};
    for (size_t k = 0; k < constructors; ++k)
      tape.constructors.push_back(context.symbol(fmt::format("{}Arm{}", type, k)));
    const bool taken = module.adts.contains(symbol) || std::ranges::any_of(tape.constructors, [&](Symbol constructor) {
                         return module.constructor(constructor).has_value();
                       });
    if (taken) continue;
    Adt adt;
    for (const Symbol constructor : tape.constructors) adt.constructors.push_back({constructor, {}});
    module.adts.emplace(symbol, std::move(adt));
    return tape;
  }
}

Expected<Saved> save(Builder& builder, Block& block, const SavedScope& scope) {
  Context& context = builder.context();
  Function& function = builder.function();
  struct Item {
    VarId var;  // as the block reads it
    Atom source;
    Type type;
  };
  std::vector<Item> items;
  std::vector<VarId> fields;  // the variables of the pattern
  Saved saved;
  std::set<Symbol> dims = dims_of(function, block);
  std::set<VarId> seen;
  std::vector<Type> field_types;
  for (const Received& received : scope.received) {
    seen.insert(received.var);
    items.push_back({received.var, received.source, function.type(received.var)});
  }
  std::optional<Diagnostic> problem;
  for_each_use(std::as_const(block), [&](const Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var || !scope.vars.contains(*var) || !seen.insert(*var).second) return;
    const VarInfo info = function.info(*var);
    const Type type = erased(context, info.type);
    std::set<Symbol> inside;
    collect_dims(type, inside);
    if (!inside.empty() && !problem) {
      problem =
          error(fmt::format("%{} is needed by the backward pass, but its type {} has the size {} inside of another "
                            "type, which a tape cannot store",
                            context.name(info.name), context.str(info.type), context.name(*inside.begin())),
                builder.module().span(info.span).str(), "give the size a constant value")
              .error();
    }
    fields.push_back(builder.declare(type, context.name(info.name)));
    field_types.push_back(type);
    saved.forward.fields.emplace_back(*var);
    items.push_back({*var, fields.back(), info.type});
  });
  if (problem) return std::unexpected(std::move(*problem));
  for (const Item& item : items) collect_dims(item.type, dims);
  std::erase_if(dims, [&](Symbol name) { return !scope.dims.contains(name); });

  // Names the sizes, from values that have them as plain sizes, then from a tensor that is saved for them.
  std::map<VarId, Atom> renamed;
  builder.open();
  std::vector<Item> waiting = items;
  const auto open = [&](Symbol name) { return dims.contains(name); };
  while (!waiting.empty() || !dims.empty()) {
    const auto ready = std::ranges::find_if(waiting, [&](const Item& item) {
      std::set<Symbol> mentioned;
      collect_dims(item.type, mentioned);
      const std::vector<Symbol> plain = plain_dims(context, item.type, dims);
      return std::ranges::count_if(mentioned, open) == static_cast<ptrdiff_t>(plain.size());
    });
    if (ready != waiting.end()) {
      Item item = *ready;
      waiting.erase(ready);
      TENON_TRY_ASSIGN(found, builder.type_of(item.source));
      if (*found == item.type) {
        renamed.emplace(item.var, item.source);
        continue;
      }
      const std::vector<Symbol> fresh = plain_dims(context, item.type, dims);
      for (const Symbol name : fresh) dims.erase(name);
      const Symbol name = function.info(item.var).name;
      TENON_TRY_ASSIGN(cast, builder.bind(Cast{item.source, item.type, fresh}, name));
      renamed.emplace(item.var, *cast);
      continue;
    }
    // A tensor for each size: the product of all of them may be larger than a tensor can be.
    for (const Symbol name : std::exchange(dims, {})) {
      const Dims sizes{context.dim(name), context.dim(0)};
      const Type type = context.tensor(sizes, DType::kBool);
      fields.push_back(builder.declare(erased(context, type), "sizes"));
      field_types.push_back(erased(context, type));
      TENON_TRY(builder.bind(Cast{fields.back(), type, {name}}, Symbol{}));
      builder.open();
      auto [attrs, computed] = sizes_attribute("shape", sizes);
      attrs.emplace("dtype", std::string("bool"));
      TENON_TRY_ASSIGN(full, builder.apply(ops::kFull, {}, std::move(attrs), "sizes", std::move(computed)));
      std::ranges::move(builder.close(*full).bindings, std::back_inserter(saved.forward.bindings));
      saved.forward.fields.push_back(*full);
    }
  }
  std::vector<Binding> opening = builder.close(Atom{}).bindings;
  for_each_use(block, [&](Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    if (const auto found = renamed.find(*var); found != renamed.end()) atom = found->second;
  });
  block.bindings.insert(block.bindings.begin(), std::make_move_iterator(opening.begin()),
                        std::make_move_iterator(opening.end()));
  ConstructPattern pattern{scope.constructor, {}};
  for (const VarId field : fields) pattern.fields.push_back({BindPattern{field}});
  saved.pattern = {std::move(pattern)};
  const auto decl = builder.module().constructor(scope.constructor);
  builder.module().adts.at(decl->name).constructors[decl->index].fields = field_types;
  return saved;
}

}  // namespace tenon::compiler::gradient
