#include "compiler/fuzz/mutate.h"

#include <algorithm>

#include "compiler/fuzz/types.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::fuzz {
namespace {

template <class T>
T& pick(std::vector<T>& list, Random& random) {
  return list[static_cast<size_t>(random.between(0, static_cast<int64_t>(list.size()) - 1))];
}

class Mutation {
 public:
  Mutation(Context& context, Module module, Random& random)
      : context_(context), random_(random), module_(std::move(module)), types_(context, random, module_, {}) {}

  Module run() {
    for (int64_t i = random_.between(1, 3); i > 0; --i) {
      std::vector<Function*> functions;
      for_each_function(module_, [&](Symbol, Function& function) { functions.push_back(&function); });
      change(*pick(functions, random_));
    }
    return std::move(module_);
  }

 private:
  Type type() {
    Types::Wish wish{.depth = 2,
                     .data = false,
                     .dims = {context_.symbol("n"), context_.symbol("N")},
                     .types = {context_.symbol("A")}};
    if (random_.chance(70)) wish.types.clear();
    if (random_.chance(70)) wish.dims.clear();
    return types_.any(wish);
  }
  // Another type, often of the same kind.
  Type other(Type old) {
    if (auto* tensor = old.tensor(); tensor && random_.chance(60)) {
      TensorType changed = *tensor;
      if (changed.dims.empty() || random_.chance(30)) changed.dtype = types_.dtype();
      else pick(changed.dims, random_) = context_.dim(random_.between(0, 4));
      return context_.tensor(std::move(changed.dims), changed.dtype);
    }
    return type();
  }
  Atom atom(const Function& function) {
    if (!module_.constants.empty() && random_.chance(20)) {
      return static_cast<ConstId>(random_.between(0, static_cast<int64_t>(module_.constants.size()) - 1));
    }
    if (function.vars.empty() || random_.chance(8)) {
      auto position = module_.globals.begin();
      std::advance(position, random_.between(0, static_cast<int64_t>(module_.globals.size()) - 1));
      return position->first;
    }
    return static_cast<VarId>(random_.between(0, static_cast<int64_t>(function.vars.size()) - 1));
  }

  void change(Function& function) {
    std::vector<Binding*> bindings;
    std::vector<Block*> blocks{&function.body};
    for_each_binding(function.body, [&](Binding& binding) {
      bindings.push_back(&binding);
      for_each_block(binding.value, [&](Block& block) { blocks.push_back(&block); });
    });
    switch (random_.between(0, 9)) {
      case 0:
        if (!function.vars.empty()) {
          VarInfo& info = pick(function.vars, random_);
          info.type = other(info.type);
        }
        break;
      case 1: function.result = other(function.result); break;
      case 2: pick(blocks, random_)->result = atom(function); break;
      case 3: {
        auto& list = pick(blocks, random_)->bindings;
        if (!list.empty()) list.erase(list.begin() + random_.between(0, static_cast<int64_t>(list.size()) - 1));
        break;
      }
      case 4: {
        auto& list = pick(blocks, random_)->bindings;
        if (list.size() < 2) break;
        const int64_t i = random_.between(0, static_cast<int64_t>(list.size()) - 2);
        std::swap(list[i], list[i + 1]);
        break;
      }
      case 5:
        if (random_.chance(50) && !function.dims.empty()) function.dims.pop_back();
        else if (!function.params.empty()) function.params.pop_back();
        break;
      default:
        if (!bindings.empty()) value(function, pick(bindings, random_)->value);
    }
  }

  void value(const Function& function, Value& value) {
    if (random_.chance(50)) {
      std::vector<Atom*> operands;
      for_each_operand(value, [&](Atom& operand) { operands.push_back(&operand); });
      if (!operands.empty()) {
        *pick(operands, random_) = atom(function);
        return;
      }
    }
    struct Visitor {
      Mutation& self;
      const Function& function;
      void operator()(Apply& apply) const {
        if (self.random_.chance(40)) {
          auto operators = self.context_.operators();
          const Operator* op = pick(operators, self.random_);
          Attrs common;
          for (const auto& [name, attr] : apply.attrs) {
            const AttrSpec* spec = op->attribute(name);
            if (spec && spec->kind == static_cast<AttrKind>(attr.index())) common[name] = attr;
          }
          auto attrs = complete_attrs(*op, std::move(common));
          if (attrs) apply = {op, std::move(*attrs), std::move(apply.args)};
        } else if (self.random_.chance(30)) {
          apply.args.push_back(self.atom(function));
        } else if (!apply.attrs.empty()) {
          auto position = apply.attrs.begin();
          std::advance(position, self.random_.between(0, static_cast<int64_t>(apply.attrs.size()) - 1));
          self.attribute(position->second);
        }
      }
      void operator()(Call& call) const {
        if (self.random_.chance(50)) call.callee = self.atom(function);
        else if (!call.types.empty()) call.types[0] = self.other(call.types[0]);
        else if (!call.args.empty()) call.args.pop_back();
      }
      void operator()(Gradient& gradient) const {
        if (self.random_.chance(50)) (*this)(gradient.call);
        else gradient.wrt.push_back(static_cast<uint32_t>(self.random_.between(0, 3)));
      }
      void operator()(Tuple& tuple) const { tuple.fields.push_back(self.atom(function)); }
      void operator()(Project& project) const { project.index += static_cast<uint32_t>(self.random_.between(0, 2)); }
      void operator()(Construct& construct) const {
        if (self.random_.chance(50)) construct.constructor = self.constructor();
        else if (!construct.types.empty()) construct.types[0] = self.other(construct.types[0]);
        else if (!construct.fields.empty()) construct.fields.pop_back();
      }
      void operator()(Lambda& lambda) const {
        if (self.random_.chance(50)) lambda.result = self.other(lambda.result);
        else if (!lambda.params.empty()) lambda.params.pop_back();
        else lambda.body.clear();
      }
      void operator()(If& branch) const {
        if (self.random_.chance(50)) std::swap(branch.arms.front(), branch.arms.back());
        else branch.arms.pop_back();
      }
      void operator()(Case& match) const {
        if (match.arms.empty()) return;
        Arm& arm = pick(match.arms, self.random_);
        if (self.random_.chance(40))
          match.arms.erase(match.arms.begin() + self.random_.between(0, static_cast<int64_t>(match.arms.size()) - 1));
        else self.pattern(arm.pattern);
      }
      void operator()(DimValue& value) const {
        value.dim = self.context_.dim(self.context_.symbol(self.random_.of({"k", "n", "k0", "missing"})));
      }
      void operator()(Cast& cast) const {
        if (self.random_.chance(30)) cast.fresh.clear();
        else cast.type = self.other(cast.type);
      }
      void operator()(MakeReference&) const {}
      void operator()(ReadReference&) const {}
      void operator()(WriteReference&) const {}
    };
    std::visit(Visitor{*this, function}, value);
  }

  Symbol constructor() {
    std::vector<Symbol> names{context_.symbol("Nowhere")};
    for (const auto& [name, adt] : module_.adts) {
      for (const Constructor& next : adt.constructors) names.push_back(next.name);
    }
    return pick(names, random_);
  }

  void pattern(MatchPattern& pattern) {
    if (auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
      if (!construct->fields.empty() && random_.chance(60)) this->pattern(pick(construct->fields, random_));
      else if (random_.chance(50)) construct->constructor = constructor();
      else construct->fields.push_back({AnyPattern{}});
    } else if (auto* tuple = std::get_if<TuplePattern>(&pattern.form); tuple && !tuple->fields.empty()) {
      if (random_.chance(60)) this->pattern(pick(tuple->fields, random_));
      else tuple->fields.pop_back();
    } else {
      pattern.form = ConstructPattern{constructor(), {}};
    }
  }

  void attribute(Attr& attr) {
    if (auto* integer = std::get_if<int64_t>(&attr)) {
      *integer = random_.of<int64_t>({-1, 0, 1, 2, 7, INT64_MAX, INT64_MIN, int64_t{1} << 31});
    } else if (auto* real = std::get_if<double>(&attr)) {
      *real = random_.of({0.0, -1.0, 1e300, -0.0, 1.0 / 0.0});
    } else if (auto* text = std::get_if<std::string>(&attr)) {
      *text = random_.of({"", "f32", "i8", "bool", "NCHW", "NCHW0c", "q\"\\\n", "NCHW999999999999999999999c"});
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
      if (list->empty() || random_.chance(30)) {
        list->push_back(random_.between(-3, 3));
      } else if (random_.chance(30)) {
        list->pop_back();
      } else {
        pick(*list, random_) = random_.of<int64_t>({-1, 0, 1, 2, 7, INT64_MAX, INT64_MIN, int64_t{1} << 40, 1 << 28});
      }
    } else {
      auto& reals = std::get<std::vector<double>>(attr);
      reals.push_back(random_.of({0.0, -1.0, 1e300, 0.5}));
    }
  }

  Context& context_;
  Random& random_;
  Module module_;
  Types types_;
};

// Tokens with their leading white space: joined they are the text.
std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> found;
  auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '@' || c == '$' || c == '.';
  };
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    if (i < text.size() && word(text[i])) {
      while (i < text.size() && word(text[i])) ++i;
    } else if (i < text.size()) {
      ++i;
    }
    found.emplace_back(text.substr(begin, i - begin));
  }
  return found;
}

}  // namespace

Module mutate(Context& context, const Module& module, Random& random) {
  return Mutation(context, clone(module), random).run();
}

std::string mutate(std::string_view text, Random& random) {
  std::vector<std::string> list = tokens(text);
  for (int64_t i = random.between(1, 3); i > 0 && !list.empty(); --i) {
    const int64_t at = random.between(0, static_cast<int64_t>(list.size()) - 1);
    const int64_t other = random.between(0, static_cast<int64_t>(list.size()) - 1);
    switch (random.between(0, 6)) {
      case 0: list.erase(list.begin() + at); break;
      case 1: list.insert(list.begin() + at, list[at]); break;
      case 2: std::swap(list[at], list[other]); break;
      case 3: list[at] = list[other]; break;
      case 4:
        list[at] = random.of({" 0",          " -1",    " 99999999999999999999",
                              " 4294967296", " 1e400", " ?",
                              " _",          " %",     "\"",
                              " {",          " }",     " (",
                              " )",          " [",     " ]",
                              ",",           ";",      " let",
                              " fn",         " match", " if",
                              " ref",        " n",     " A",
                              "\x01",        "\xff",   " Tensor",
                              " f32",        " -> ",   " => ",
                              " 2*n",        " n + n", " #",
                              "//",          " def"});
        break;
      case 5: list.resize(static_cast<size_t>(at)); break;
      default:
        if (!list[at].empty()) list[at].back() = static_cast<char>(random.between(32, 126));
    }
  }
  std::string joined;
  for (const std::string& next : list) joined += next;
  return joined;
}

}  // namespace tenon::compiler::fuzz
