// The equality of modules: two functions are equal under the renaming of variables that their bindings define.
#include <algorithm>

#include "compiler/ir/literal.h"
#include "compiler/ir/module.h"

namespace tenon::compiler {
namespace {

bool same_attrs(const Attrs& a, const Attrs& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.first == y.first && same_attr(x.second, y.second); });
}

class Comparison {
 public:
  Comparison(const Module& module_a, const Function& a, const Module& module_b, const Function& b)
      : module_a_(module_a), a_(a), module_b_(module_b), b_(b), renamed_(a.vars.size(), kUnset) {}

  bool run() {
    return a_.dims == b_.dims && a_.bounds == b_.bounds && a_.types == b_.types && a_.result == b_.result &&
           a_.target == b_.target && a_.composite == b_.composite && a_.batched == b_.batched &&
           a_.gradient == b_.gradient && a_.joined_axes == b_.joined_axes && define(a_.params, b_.params) &&
           same(a_.body, b_.body);
  }

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;

  bool define(VarId left, VarId right) {
    renamed_[index(left)] = static_cast<uint32_t>(right);
    return a_.type(left) == b_.type(right);
  }
  bool define(const std::vector<VarId>& left, const std::vector<VarId>& right) {
    return std::ranges::equal(left, right, [&](VarId x, VarId y) { return define(x, y); });
  }
  bool define(const MatchPattern& left, const MatchPattern& right) {
    if (left.form.index() != right.form.index()) return false;
    auto fields = [&](const std::vector<MatchPattern>& x, const std::vector<MatchPattern>& y) {
      return std::ranges::equal(x, y, [&](const MatchPattern& p, const MatchPattern& q) { return define(p, q); });
    };
    struct Visitor {
      Comparison& self;
      const MatchPattern& right;
      decltype(fields)& equal_fields;
      bool operator()(const AnyPattern&) const { return true; }
      bool operator()(const BindPattern& x) const { return self.define(x.var, std::get<BindPattern>(right.form).var); }
      bool operator()(const ConstructPattern& x) const {
        const auto& y = std::get<ConstructPattern>(right.form);
        return x.constructor == y.constructor && equal_fields(x.fields, y.fields);
      }
      bool operator()(const TuplePattern& x) const {
        return equal_fields(x.fields, std::get<TuplePattern>(right.form).fields);
      }
    };
    return std::visit(Visitor{*this, right, fields}, left.form);
  }

  bool same(const Block& left, const Block& right) {
    return std::ranges::equal(left.bindings, right.bindings,
                              [&](const Binding& x, const Binding& y) {
                                // A lambda may refer to its own variable, so the variables are paired first.
                                return define(x.var, y.var) && same(x.value, y.value);
                              }) &&
           same(left.result, right.result);
  }
  bool same(const std::vector<Block>& left, const std::vector<Block>& right) {
    return std::ranges::equal(left, right, [&](const Block& x, const Block& y) { return same(x, y); });
  }
  bool same(const Atom& left, const Atom& right) const {
    if (left.index() != right.index()) return false;
    if (auto* var = std::get_if<VarId>(&left)) {
      return renamed_[index(*var)] == static_cast<uint32_t>(std::get<VarId>(right));
    }
    if (auto* symbol = std::get_if<Symbol>(&left)) return *symbol == std::get<Symbol>(right);
    return module_a_.constant(std::get<ConstId>(left)) == module_b_.constant(std::get<ConstId>(right));
  }
  bool same(const Atoms& left, const Atoms& right) const {
    return std::ranges::equal(left, right, [&](const Atom& x, const Atom& y) { return same(x, y); });
  }
  bool same(const ComputedAttrs& left, const ComputedAttrs& right) const {
    return std::ranges::equal(left, right, [&](const auto& x, const auto& y) {
      if (x.first != y.first || x.second.index() != y.second.index()) return false;
      const auto* atom = std::get_if<Atom>(&x.second);
      return atom ? same(*atom, std::get<Atom>(y.second)) : x.second == y.second;
    });
  }
  bool same(const Value& left, const Value& right) {
    if (left.index() != right.index()) return false;
    struct Visitor {
      Comparison& self;
      const Value& right;
      bool operator()(const Apply& x) const {
        const auto& y = std::get<Apply>(right);
        return x.op == y.op && same_attrs(x.attrs, y.attrs) && self.same(x.args, y.args) &&
               self.same(x.computed, y.computed);
      }
      bool operator()(const DimValue& x) const { return x.dim == std::get<DimValue>(right).dim; }
      bool operator()(const Call& x) const { return same(x, std::get<Call>(right)); }
      bool operator()(const Gradient& x) const {
        const auto& y = std::get<Gradient>(right);
        return x.kind == y.kind && x.wrt == y.wrt && same(x.call, y.call);
      }
      bool same(const Call& x, const Call& y) const {
        return self.same(x.callee, y.callee) && x.types == y.types && self.same(x.args, y.args);
      }
      bool operator()(const Tuple& x) const { return self.same(x.fields, std::get<Tuple>(right).fields); }
      bool operator()(const Project& x) const {
        const auto& y = std::get<Project>(right);
        return x.index == y.index && self.same(x.tuple, y.tuple);
      }
      bool operator()(const Construct& x) const {
        const auto& y = std::get<Construct>(right);
        return x.constructor == y.constructor && x.types == y.types && self.same(x.fields, y.fields);
      }
      bool operator()(const Lambda& x) const {
        const auto& y = std::get<Lambda>(right);
        return x.result == y.result && self.define(x.params, y.params) && self.same(x.body, y.body);
      }
      bool operator()(const If& x) const {
        const auto& y = std::get<If>(right);
        return self.same(x.condition, y.condition) && self.same(x.arms, y.arms);
      }
      bool operator()(const Case& x) const {
        const auto& y = std::get<Case>(right);
        return self.same(x.subject, y.subject) && std::ranges::equal(x.arms, y.arms, [&](const Arm& p, const Arm& q) {
                 return self.define(p.pattern, q.pattern) && self.same(p.block, q.block);
               });
      }
      bool operator()(const Cast& x) const {
        const auto& y = std::get<Cast>(right);
        return x.type == y.type && x.fresh == y.fresh && self.same(x.value, y.value);
      }
      bool operator()(const MakeReference& x) const { return self.same(x.value, std::get<MakeReference>(right).value); }
      bool operator()(const ReadReference& x) const {
        return self.same(x.reference, std::get<ReadReference>(right).reference);
      }
      bool operator()(const WriteReference& x) const {
        const auto& y = std::get<WriteReference>(right);
        return self.same(x.reference, y.reference) && self.same(x.value, y.value);
      }
    };
    return std::visit(Visitor{*this, right}, left);
  }

  const Module& module_a_;
  const Function& a_;
  const Module& module_b_;
  const Function& b_;
  std::vector<uint32_t> renamed_;
};

bool equal(const Adt& a, const Adt& b) {
  return a.params == b.params && std::ranges::equal(a.constructors, b.constructors, [](const auto& x, const auto& y) {
           return x.name == y.name && x.fields == y.fields;
         });
}
bool equal(const Library& a, const Library& b) {
  return a.dims == b.dims && a.bounds == b.bounds && a.types == b.types && a.params == b.params &&
         a.result == b.result && a.symbol == b.symbol;
}

}  // namespace

bool equal(const Module& module_a, const Function& a, const Module& module_b, const Function& b) {
  return Comparison(module_a, a, module_b, b).run();
}

bool equal(const Module& a, const Module& b) {
  const bool adts = std::ranges::equal(
      a.adts, b.adts, [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
  if (!adts || a.globals.size() != b.globals.size()) return false;
  for (const auto& [name, global] : a.globals) {
    auto found = b.globals.find(name);
    if (found == b.globals.end() || found->second.index() != global.index()) return false;
    struct Visitor {
      const Module& a;
      const Module& b;
      const Global& other;
      bool operator()(const Function& x) const { return equal(a, x, b, std::get<Function>(other)); }
      bool operator()(const loop::Function& x) const { return loop::equal(x, std::get<loop::Function>(other)); }
      bool operator()(const Library& x) const { return equal(x, std::get<Library>(other)); }
    };
    if (!std::visit(Visitor{a, b, found->second}, global)) return false;
  }
  return true;
}

}  // namespace tenon::compiler
