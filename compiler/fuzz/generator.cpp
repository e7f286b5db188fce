#include "compiler/fuzz/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/fuzz/body.h"
#include "compiler/fuzz/loops.h"

namespace tenon::compiler::fuzz {
namespace {

class Generator {
 public:
  Generator(Context& context, uint64_t seed, const Options& options)
      : context_(context), random_(seed), options_(options), types_(context, random_, module_, options) {}

  Module run() {
    if (options_.control) {
      types_.define();
      if (!options_.derivable) define_libraries();
      for (int64_t i = !options_.derivable && random_.chance(60) ? random_.between(1, 3) : 0; i > 0; --i)
        loop_function();
      for (int64_t i = random_.between(0, 4); i > 0; --i) group();
    }
    while (!main()) {
    }
    drop_unused_constants();
    return std::move(module_);
  }

 private:
  void define_libraries() {
    const Symbol n = context_.symbol("n");
    const Type vector = context_.tensor(Dims{context_.dim(n)}, types_.floats());
    const Type integer = types_.scalar(DType::kI32);
    library("log", {n}, vector, kLibraries[0]);
    library("tick", {}, integer, kLibraries[1]);
  }
  void library(std::string_view name, const std::vector<Symbol>& dims, Type type, std::string symbol) {
    if (random_.chance(50)) return;
    const Symbol global = context_.symbol(name);
    module_.globals.emplace(global, Library{dims, {}, {type}, type, std::move(symbol), {}});
    libraries_.push_back(
        {.atom = global, .dims = dims, .types = {}, .params = {type}, .result = type, .fuel = {}, .subject = {}});
  }

  void loop_function() {
    const std::string name = fmt::format("k{}", loops_++);
    loop::Function function = random_loop_function(context_, types_, random_, name);
    const Symbol symbol = function.name;
    const Signature signature = signature_of(context_, function);
    module_.globals.emplace(symbol, std::move(function));
    callees_.push_back({.atom = symbol,
                        .dims = signature.dims,
                        .types = {},
                        .params = signature.params,
                        .result = signature.result,
                        .cost = 4,
                        .fuel = {},
                        .subject = {}});
  }

  // A function, or a group of mutually recursive functions.
  void group() {
    const int64_t draw = random_.between(0, 9);
    const bool by_fuel = draw < 3, by_structure = draw >= 3 && draw < 6;
    const int64_t count = by_fuel && random_.chance(40) ? 2 : by_structure && random_.chance(30) ? 2 : 1;
    std::vector<Callee> members;
    for (int64_t i = 0; i < count; ++i) members.push_back(signature(by_fuel, by_structure, count == 1));
    // Until the whole group is generated, its members see functions without a body.
    std::vector<Function> functions;
    bool whole = true;
    for (const Callee& member : members) {
      Function function = declared(member);
      module_.globals[std::get<Symbol>(member.atom)] = function;
      functions.push_back(std::move(function));
    }
    int64_t cost = 0;
    for (size_t i = 0; whole && i < members.size(); ++i) {
      int64_t member_cost = 0;
      whole = define(members[i], members, functions[i], member_cost);
      cost += member_cost;
    }
    for (size_t i = 0; i < members.size(); ++i) {
      const Symbol name = std::get<Symbol>(members[i].atom);
      if (!whole) {
        module_.globals.erase(name);
        continue;
      }
      module_.globals[name] = std::move(functions[i]);
      members[i].cost = cost;
      callees_.push_back(members[i]);
    }
  }

  // Mutually recursive functions have no type variables, which would have to be shared.
  Callee signature(bool by_fuel, bool by_structure, bool polymorphic) {
    Callee callee{.atom = context_.symbol(fmt::format("f{}", names_++)),
                  .dims = {},
                  .types = {},
                  .params = {},
                  .result = {},
                  .fuel = {},
                  .subject = {}};
    Types::Wish wish{.depth = 2};
    if (random_.chance(45)) wish.dims.push_back(context_.symbol("n"));
    if (!wish.dims.empty() && random_.chance(40)) wish.dims.push_back(context_.symbol("m"));
    if (polymorphic && random_.chance(40)) wish.types.push_back(context_.symbol("A"));
    if (!wish.types.empty() && random_.chance(40)) wish.types.push_back(context_.symbol("B"));
    if (by_fuel) {
      callee.fuel = callee.params.size();
      callee.params.push_back(types_.scalar(DType::kI32));
    }
    for (int attempt = 0; by_structure && !callee.subject && attempt < 12; ++attempt) {
      const Type type = types_.any(wish);
      if (!type.adt()) continue;
      callee.subject = callee.params.size();
      callee.params.push_back(type);
    }
    // Each dim is some parameter's size.
    for (Symbol name : wish.dims) {
      Dims dims{context_.dim(name)};
      if (random_.chance(50)) dims.insert(dims.begin() + random_.between(0, 1), context_.dim(types_.size()));
      const DType dtype = types_.dtype();
      callee.params.push_back(context_.tensor(std::move(dims), dtype));
    }
    for (int64_t i = random_.between(0, 3); i > 0; --i) callee.params.push_back(types_.any(wish));
    if (!wish.types.empty() && random_.chance(50)) {
      const Type a = context_.type_variable(wish.types.front()), b = context_.type_variable(wish.types.back());
      callee.params.push_back(context_.function({a}, b));
    }
    std::vector<Symbol> dims;
    for (Type param : callee.params) variables(param, dims, callee.types);
    callee.dims = wish.dims;
    callee.bounds = bounds(callee.dims);
    // A result type that can be made from the parameters.
    std::vector<Type> candidates;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      if (callee.fuel != i) candidates.push_back(callee.params[i]);
      if (auto* function = callee.params[i].function()) candidates.push_back(function->result);
      if (auto* adt = callee.params[i].adt(); adt && !adt->args.empty())
        candidates.push_back(context_.adt(adt->name, adt->args));
    }
    wish.dims.clear(), wish.types.clear();
    if (polymorphic && random_.chance(25)) {  // a list of anything, say, which is empty then
      wish.types.push_back(context_.symbol("C"));
      for (int attempt = 0; attempt < 12; ++attempt) {
        const Type type = types_.any(wish);
        if (!type.adt()) continue;
        std::vector<Symbol> types;
        variables(type, dims, types);
        if (types.empty()) continue;
        callee.types.push_back(types.front());
        callee.result = type;
        return callee;
      }
      wish.types.clear();
    }
    if (candidates.empty() || random_.chance(45)) callee.result = types_.any(wish);
    else
      callee.result = candidates[static_cast<size_t>(random_.between(0, static_cast<int64_t>(candidates.size()) - 1))];
    return callee;
  }

  // Of some of them.
  DimBounds bounds(const std::vector<Symbol>& dims) {
    DimBounds made;
    for (Symbol name : dims) {
      if (random_.chance(75)) continue;
      DimRange range{.lo = random_.between(0, 2), .hi = {}};
      if (random_.chance(60)) range.hi = *range.lo + random_.between(2, 6);
      made.emplace(name, range);
    }
    return made;
  }

  Function declared(const Callee& callee) {
    Function function;
    function.dims = callee.dims;
    function.bounds = callee.bounds;
    function.types = callee.types;
    for (Type param : callee.params) {
      const auto id = static_cast<VarId>(function.vars.size());
      function.vars.push_back(
          {param, context_.symbol(random_.chance(70) ? fmt::format("a{}", function.vars.size()) : ""), {}});
      function.params.push_back(id);
    }
    function.result = callee.result;
    return function;
  }

  void prepare(Body& body) {
    body.callees = callees_;
    body.libraries = libraries_;
    for (const Callee& callee : callees_) {  // as values
      if (!callee.dims.empty() || !callee.types.empty() || callee.fuel || random_.chance(50)) continue;
      const Type type = context_.function(callee.params, callee.result);
      if (callee.cost <= call_cost(type)) body.add({.atom = callee.atom, .type = type});
    }
  }

  bool define(const Callee& callee, const std::vector<Callee>& members, Function& function, int64_t& cost) {
    Builder builder(context_, module_, function);
    Body body(types_, random_, builder, options_);
    prepare(body);
    body.limit = callee.fuel || callee.subject ? 60 : 400;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      body.add({.atom = function.params[i], .type = callee.params[i], .fuel = callee.fuel == i});
    }
    std::optional<Atom> made;
    const int64_t before = random_.between(0, 3), inside = random_.between(0, 4);
    body.statements(before);
    if (callee.fuel || callee.subject) body.group = members;
    if (callee.fuel) made = body.by_fuel(function.params[*callee.fuel], callee.result, inside);
    else if (callee.subject) {
      const Local subject{.atom = function.params[*callee.subject], .type = callee.params[*callee.subject]};
      made = body.by_structure(subject, callee.result);
    } else made = body.value(callee.result, 3);
    if (!made) return false;
    function.body.result = *made;
    const int64_t rounds = callee.fuel || callee.subject ? (body.recursions() > 1 ? 16 : 5) : 1;
    cost = (body.cost() + 1) * rounds;
    return true;
  }

  // The result of @main: the locals in scope at its end, references read.
  bool main() {
    Function function;
    if (random_.chance(50)) function.dims.push_back(context_.symbol("N"));
    if (!function.dims.empty() && random_.chance(30)) function.dims.push_back(context_.symbol("M"));
    function.bounds = bounds(function.dims);
    Builder builder(context_, module_, function);
    Body body(types_, random_, builder, options_);
    prepare(body);
    auto param = [&](Type type) {
      const Atom atom = builder.param(type, fmt::format("in{}", function.params.size()));
      body.add({.atom = atom, .type = type, .exact = type.tensor() != nullptr});
    };
    for (Symbol name : function.dims) {
      Dims dims{context_.dim(name)};
      if (random_.chance(60)) dims.push_back(context_.dim(types_.size()));
      const DType dtype = types_.dtype();
      param(context_.tensor(std::move(dims), dtype));
    }
    if (random_.chance(30)) {
      Dims dims{function.dims.empty() ? context_.dim(1) : context_.dim(function.dims[0])};
      for (int i = 0; i < 3; ++i) dims.push_back(context_.dim(random_.between(1, 4)));
      param(context_.tensor(std::move(dims), types_.floats()));
    }
    for (int64_t i = random_.between(1, 4); i > 0; --i) {
      param(options_.control ? types_.any({.depth = 3, .data = true, .dims = function.dims})
                             : types_.tensor(function.dims));
    }
    body.limit = 8000;
    body.statements(random_.between(options_.size / 4, options_.size));
    Atoms fields;
    auto visible = [&](Type type) {
      std::vector<Symbol> dims, types;
      variables(type, dims, types);
      return types.empty() && std::ranges::all_of(dims, [&](Symbol name) {
               return std::ranges::find(function.dims, name) != function.dims.end();
             });
    };
    const std::vector<Local> scope = body.scope();
    for (const Local& local : scope) {
      if (!visible(local.type) || random_.chance(40)) continue;
      if (local.type.reference() && random_.chance(60)) {
        auto content = builder.bind(ReadReference{local.atom}, context_.symbol(""));
        if (content) fields.push_back(*content);
      } else {
        fields.push_back(local.atom);
      }
    }
    auto result = builder.tuple(std::move(fields));
    if (!result) return false;
    builder.finish(*result);
    module_.globals[context_.symbol("main")] = std::move(function);
    return true;
  }

  void drop_unused_constants() {
    if (random_.chance(10)) return;  // they are legal
    std::vector<std::optional<ConstId>> renamed(module_.constants.size());
    std::vector<runtime::Tensor> kept;
    for_each_function(module_, [&](Symbol, Function& function) {
      for_each_use(function.body, [&](Atom& atom) {
        auto* constant = std::get_if<ConstId>(&atom);
        if (!constant) return;
        auto& name = renamed[index(*constant)];
        if (!name) {
          name = static_cast<ConstId>(kept.size());
          kept.push_back(module_.constant(*constant));
        }
        atom = *name;
      });
    });
    module_.constants = std::move(kept);
  }

  Context& context_;
  Random random_;
  Options options_;
  Module module_;
  Types types_;
  std::vector<Callee> callees_, libraries_;
  int names_ = 0, loops_ = 0;
};

}  // namespace

Module random_module(Context& context, uint64_t seed, const Options& options) {
  return Generator(context, seed, options).run();
}

}  // namespace tenon::compiler::fuzz
