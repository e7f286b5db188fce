// Common subexpression elimination: a value computed before, in this block or in an enclosing one, is not computed
// again. Only values without effects and without blocks are considered. Equal constants are merged. The results of a
// function are kept, since users refer to them by name.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "compiler/ir/effects.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler {
namespace {

// A value as bytes that are equal only for equal values: floats by their bits, so that -0 is not 0 and NaN is NaN.
class Key {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& x) {
    char raw[sizeof(T)];
    std::memcpy(raw, &x, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void add(std::string_view text) {
    add(text.size());
    bytes_ += text;
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& next : list) add(next);
  }
  void add(const Atom& atom) {
    add(static_cast<uint8_t>(atom.index()));
    std::visit([&](auto id) { add(static_cast<uint32_t>(id)); }, atom);
  }
  void add(const Attrs& attrs) {
    for (const auto& [name, attr] : attrs) {
      add(std::string_view(name));
      add(static_cast<uint8_t>(attr.index()));
      std::visit(
          [&](const auto& x) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, std::string>) add(std::string_view(x));
            else add(x);
          },
          attr);
    }
  }
  void add(const ComputedAttrs& attrs) {
    for (const auto& [name, attr] : attrs) {
      add(std::string_view(name));
      add(static_cast<uint8_t>(attr.index()));
      std::visit([&](const auto& x) { add(x); }, attr);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Numbering {
 public:
  Numbering(Context& context, const Effects& effects, Function& function) : context_(context), effects_(effects) {
    for (uint32_t i = 0; i < function.vars.size(); ++i) renamed_.emplace_back(static_cast<VarId>(i));
    is_result_.resize(function.vars.size(), false);
    auto add_result = [&](const Atom& atom) {
      if (auto* var = std::get_if<VarId>(&atom)) is_result_[index(*var)] = true;
    };
    add_result(function.body.result);
    for (const Binding& binding : function.body.bindings) {
      const auto* tuple = std::get_if<Tuple>(&binding.value);
      if (tuple && is_result_[index(binding.var)]) std::ranges::for_each(tuple->fields, add_result);
    }
    block(function.body);
  }

 private:
  void rename(Atom& atom) const {
    if (auto* var = std::get_if<VarId>(&atom)) atom = renamed_[index(*var)];
  }

  void block(Block& block) {
    const size_t outer = order_.size();
    std::erase_if(block.bindings, [&](Binding& binding) { return is_redundant(binding); });
    rename(block.result);
    // Values of this block are not in scope after it.
    for (; order_.size() > outer; order_.pop_back()) available_.erase(std::string(*order_.back()));
  }

  // Whether an earlier binding has the value.
  bool is_redundant(Binding& binding) {
    context_.visit();
    for_each_operand(binding.value, [&](Atom& atom) { rename(atom); });
    for_each_block(binding.value, [&](Block& inner) { block(inner); });
    std::optional<Key> key = key_of(binding.value);
    if (!key) return false;
    const auto [entry, is_new] = available_.emplace(key->take(), binding.var);
    if (is_new) order_.push_back(&entry->first);
    else if (is_result_[index(binding.var)]) return false;
    else renamed_[index(binding.var)] = entry->second;
    return !is_new;
  }

  std::optional<Key> key_of(const Value& value) const {
    struct Visitor {
      const Effects& effects;
      std::optional<Key> operator()(const Apply& apply) const {
        Key key = begin(0);
        key.add(apply.op);
        key.add(apply.attrs);
        key.add(apply.args);
        key.add(apply.computed);
        return key;
      }
      std::optional<Key> operator()(const DimValue& value) const {
        Key key = begin(5);
        key.add(value.dim);
        return key;
      }
      std::optional<Key> operator()(const Call& call) const {
        auto* callee = std::get_if<Symbol>(&call.callee);
        if (!callee || effects.of_function(*callee) != Effect::kNone) return std::nullopt;
        Key key = begin(1);
        key.add(*callee);
        key.add(call.types);
        key.add(call.args);
        return key;
      }
      std::optional<Key> operator()(const Tuple& tuple) const {
        Key key = begin(2);
        key.add(tuple.fields);
        return key;
      }
      std::optional<Key> operator()(const Project& project) const {
        Key key = begin(3);
        key.add(project.tuple);
        key.add(project.index);
        return key;
      }
      std::optional<Key> operator()(const Construct& construct) const {
        Key key = begin(4);
        key.add(construct.constructor);
        key.add(construct.types);
        key.add(construct.fields);
        return key;
      }
      std::optional<Key> operator()(const Gradient&) const { return std::nullopt; }
      std::optional<Key> operator()(const Lambda&) const { return std::nullopt; }
      std::optional<Key> operator()(const If&) const { return std::nullopt; }
      std::optional<Key> operator()(const Case&) const { return std::nullopt; }
      std::optional<Key> operator()(const Cast&) const { return std::nullopt; }
      std::optional<Key> operator()(const MakeReference&) const { return std::nullopt; }
      std::optional<Key> operator()(const ReadReference&) const { return std::nullopt; }
      std::optional<Key> operator()(const WriteReference&) const { return std::nullopt; }

      static Key begin(uint8_t kind) {
        Key key;
        key.add(kind);
        return key;
      }
    };
    return std::visit(Visitor{effects_}, value);
  }

  Context& context_;
  const Effects& effects_;
  std::vector<Atom> renamed_;    // by variable
  std::vector<bool> is_result_;  // by variable
  std::unordered_map<std::string, VarId> available_;
  std::vector<const std::string*> order_;  // the keys in order of insertion
};

// By constant: the first constant with the same type and bytes.
std::vector<ConstId> equal_constants(const Module& module) {
  std::unordered_map<std::string_view, std::vector<ConstId>> by_bytes;
  std::vector<ConstId> first;
  for (uint32_t i = 0; i < module.constants.size(); ++i) {
    const runtime::Tensor& tensor = module.constants[i];
    const auto raw = tensor.bytes();
    auto& same = by_bytes[std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size())];
    const auto found = std::ranges::find_if(same, [&](ConstId id) {
      const runtime::Tensor& other = module.constant(id);
      return other.dtype() == tensor.dtype() && other.shape() == tensor.shape();
    });
    first.push_back(found == same.end() ? static_cast<ConstId>(i) : *found);
    if (found == same.end()) same.push_back(first.back());
  }
  return first;
}

}  // namespace

Expected<Module> cse(Context& context, Module module) {
  const std::vector<ConstId> first = equal_constants(module);
  for_each_function(module, [&](Symbol, Function& function) {
    for_each_use(function.body, [&](Atom& atom) {
      if (auto* constant = std::get_if<ConstId>(&atom)) atom = first[index(*constant)];
    });
  });
  const Effects effects(context, module);
  for_each_function(module, [&](Symbol, Function& function) { Numbering(context, effects, function); });
  return dead_code(context, std::move(module));
}

Pass cse_pass() { return {"cse", "Eliminates common subexpressions and merges equal constants.", cse}; }

}  // namespace tenon::compiler
