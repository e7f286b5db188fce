#include "compiler/lower/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

// Calls beyond these are single nodes: functions that call each other twice each would be an exponential graph.
constexpr size_t kMaxExpanded = 10000;

class GraphMaker {
 public:
  GraphMaker(const Context& context, const Module& module) : context_(context), module_(module) {}

  runtime::Graph run(const Function& function) {
    std::vector<Parts> params;
    for (const VarId param : function.params) {
      params.push_back({Makers{
          add(std::string(context_.name(function.info(param).name)), "input", "input", function.type(param), {})}});
    }
    add("output", "output", "output", function.result, joined(walk(function, params)));
    return std::move(graph_);
  }

 private:
  using Makers = std::set<uint32_t>;  // the nodes that compute a value
  using Parts = std::vector<Makers>;  // of each field of a tuple; one entry for all fields if they are not told apart

  static Makers joined(const Parts& parts) {
    Makers makers;
    for (const Makers& part : parts) makers.insert(part.begin(), part.end());
    return makers;
  }

  uint32_t add(std::string name, std::string op, std::string device, Type type, const Makers& from) {
    const std::string base = name.empty() ? op : name;
    std::string unique = base;
    for (size_t& i = repeated_[base]; !names_.insert(unique).second; ++i) unique = fmt::format("{} ({})", base, i + 2);
    const auto node = static_cast<uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back({unique, std::move(op), std::move(device), context_.str(type)});
    for (const uint32_t source : from) graph_.edges.push_back({source, node});
    return node;
  }

  // Adds the function's nodes; returns the makers of its result. `params`: the makers of its parameters.
  Parts walk(const Function& function, const std::vector<Parts>& params) {
    std::vector<Parts> makers(function.vars.size());
    open_.push_back(&function);
    for (size_t i = 0; i < params.size(); ++i) makers[index(function.params[i])] = params[i];
    const auto of = [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      return var ? makers[index(*var)] : Parts();
    };
    for (const Binding& binding : function.body.bindings) {
      Makers from;
      for_each_operand(binding.value, [&](const Atom& atom) { from.merge(joined(of(atom))); });
      Parts& result = makers[index(binding.var)];
      const std::string node = module_.span(function.info(binding.var).span).node;
      const Type type = function.type(binding.var);
      if (const auto* apply = std::get_if<Apply>(&binding.value)) {
        // Inside a region only the layout_transforms of its inputs and outputs are operators: they are the layout of
        // its buffers.
        result = {function.target.empty() ? Makers{add(node, apply->op->name, "cpu", type, from)} : from};
      } else if (const auto* call = std::get_if<Call>(&binding.value)) {
        const auto* symbol = std::get_if<Symbol>(&call->callee);
        const Symbol name = symbol ? *symbol : Symbol();
        const Function* callee = symbol ? module_.function(name) : nullptr;
        if (!symbol) {
          result = {from};
        } else if (module_.loop_function(name)) {
          result = {Makers{add(node, std::string(context_.name(name)), "cpu", type, from)}};
        } else if (callee && (callee->composite.empty() || callee->target.empty()) && expanded_ < kMaxExpanded) {
          ++expanded_;
          std::vector<Parts> args;
          for (const Atom& arg : call->args) args.push_back(of(arg));
          // A recursive call is part of the node of the first one.
          const bool is_open = std::ranges::find(open_, callee) != open_.end();
          result = is_open ? Parts{from} : walk(*callee, args);
        } else if (callee) {
          const bool composite = !callee->composite.empty() && !callee->target.empty();
          result = {Makers{add(node, composite ? callee->composite : std::string(context_.name(name)),
                               composite ? callee->target : "cpu", type, from)}};
        }
      } else if (const auto* tuple = std::get_if<Tuple>(&binding.value)) {
        for (const Atom& field : tuple->fields) result.push_back(joined(of(field)));
      } else if (const auto* project = std::get_if<Project>(&binding.value)) {
        const Parts parts = of(project->tuple);
        result = {parts.size() > 1 ? parts[project->index] : from};
      } else {
        result = {from};
      }
    }
    open_.pop_back();
    return of(function.body.result);
  }

  const Context& context_;
  const Module& module_;
  runtime::Graph graph_;
  std::vector<const Function*> open_;  // that are being walked
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> repeated_;  // the nodes of a name that have a number
  size_t expanded_ = 0;                               // calls whose callees were expanded
};

}  // namespace

runtime::Graph make_graph(const Context& context, const Module& module, const Function& function) {
  return GraphMaker(context, module).run(function);
}

}  // namespace tenon::compiler
