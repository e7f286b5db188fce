#include "compiler/ir/module.h"

#include <fmt/format.h>

#include <cassert>

namespace tenon::compiler {
namespace {

// Compares two functions under the renaming of variables that their definitions set up.
class Comparison {
 public:
  Comparison(const Module& module_a, const Function& a, const Module& module_b, const Function& b)
      : module_a_(module_a), a_(a), module_b_(module_b), b_(b), renamed_(a.vars.size(), kUnset) {}

  bool run() {
    if (a_.dims != b_.dims || a_.params.size() != b_.params.size() || a_.result != b_.result ||
        a_.target != b_.target || a_.composite != b_.composite || a_.body.bindings.size() != b_.body.bindings.size()) {
      return false;
    }
    for (size_t i = 0; i < a_.params.size(); ++i) {
      if (!define(a_.params[i], b_.params[i])) return false;
    }
    for (size_t i = 0; i < a_.body.bindings.size(); ++i) {
      const Binding &left = a_.body.bindings[i], &right = b_.body.bindings[i];
      if (!same(left.value, right.value) || !define(left.var, right.var)) return false;
    }
    return same(a_.body.result, b_.body.result);
  }

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;

  bool define(VarId left, VarId right) {
    renamed_[index(left)] = static_cast<uint32_t>(right);
    return a_.type(left) == b_.type(right);
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
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!same(left[i], right[i])) return false;
    }
    return true;
  }
  bool same(const Value& left, const Value& right) const {
    if (left.index() != right.index()) return false;
    struct Visitor {
      const Comparison& self;
      const Value& right;
      bool operator()(const Apply& x) const {
        const auto& y = std::get<Apply>(right);
        return x.op == y.op && x.attrs == y.attrs && self.same(x.args, y.args);
      }
      bool operator()(const Call& x) const {
        const auto& y = std::get<Call>(right);
        return self.same(x.callee, y.callee) && self.same(x.args, y.args);
      }
      bool operator()(const Tuple& x) const { return self.same(x.fields, std::get<Tuple>(right).fields); }
      bool operator()(const Project& x) const {
        const auto& y = std::get<Project>(right);
        return x.index == y.index && self.same(x.tuple, y.tuple);
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

template <class T>
const T& attr_of(const Attrs& attrs, std::string_view name) {
  auto found = attrs.find(name);
  assert(found != attrs.end() && std::holds_alternative<T>(found->second));
  return std::get<T>(found->second);
}

}  // namespace

std::string Span::str() const {
  std::string text = file;
  if (line > 0) text += fmt::format("{}{}:{}", text.empty() ? "" : ":", line, column);
  if (!op.empty() || !node.empty()) {
    text += fmt::format("{}{}{}'{}'", text.empty() ? "" : ": ", op, op.empty() ? "" : " ", node);
  }
  return text;
}

const Function* Module::function(Symbol name) const {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<Function>(&found->second);
}
Function* Module::function(Symbol name) {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<Function>(&found->second);
}

ConstId Module::add_constant(runtime::Tensor tensor) {
  constants.push_back(std::move(tensor));
  return static_cast<ConstId>(constants.size() - 1);
}

SpanId Module::add_span(Span span) {
  spans.push_back(std::move(span));
  return static_cast<SpanId>(spans.size() - 1);
}

Module clone(const Module& module) {
  Module copy = module;
  for (runtime::Tensor& constant : copy.constants) {
    if (constant) constant = constant.clone();
  }
  return copy;
}

bool equal(const Module& module_a, const Function& a, const Module& module_b, const Function& b) {
  return Comparison(module_a, a, module_b, b).run();
}

bool equal(const Module& a, const Module& b) {
  if (a.globals.size() != b.globals.size()) return false;
  for (const auto& [name, global] : a.globals) {
    const Function* other = b.function(name);
    if (!other || !equal(a, std::get<Function>(global), b, *other)) return false;
  }
  return true;
}

std::vector<uint32_t> use_counts(const Function& function) {
  std::vector<uint32_t> counts(function.vars.size(), 0);
  auto use = [&](const Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) ++counts[index(*var)];
  };
  for (const Binding& binding : function.body.bindings) for_each_operand(binding.value, use);
  use(function.body.result);
  return counts;
}

int64_t int_attr(const Attrs& attrs, std::string_view name) { return attr_of<int64_t>(attrs, name); }
double float_attr(const Attrs& attrs, std::string_view name) { return attr_of<double>(attrs, name); }
const std::string& string_attr(const Attrs& attrs, std::string_view name) { return attr_of<std::string>(attrs, name); }
const std::vector<int64_t>& ints_attr(const Attrs& attrs, std::string_view name) {
  return attr_of<std::vector<int64_t>>(attrs, name);
}
const std::vector<double>& floats_attr(const Attrs& attrs, std::string_view name) {
  return attr_of<std::vector<double>>(attrs, name);
}

}  // namespace tenon::compiler
