#include "compiler/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/builder.h"

namespace tenon::compiler {
namespace {

class Verifier {
 public:
  Verifier(Context& context, const Module& module) : context_(context), module_(module) {}

  Status run() {
    for (const auto& [name, global] : module_.globals) {
      if (Status status = check(name, std::get<Function>(global)); !status) {
        std::string where = fmt::format("@{}", context_.name(name));
        if (!status.error().where.empty()) where += ", " + status.error().where;
        return error("the module is inconsistent: " + status.error().what, where, "", Fault::kInternal);
      }
    }
    for (const auto& [name, global] : module_.globals) {
      if (reaches(name, name)) {
        return error(fmt::format("the module is inconsistent: @{} calls itself", context_.name(name)), "", "",
                     Fault::kInternal);
      }
    }
    return {};
  }

 private:
  Status check(Symbol name, const Function& function) {
    for (const char c : context_.name(name)) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') {
        return error("the function's name has characters other than letters, digits, _ and .");
      }
    }
    std::vector<bool> bound(function.vars.size(), false);
    auto define = [&](VarId var) -> Status {
      if (index(var) >= bound.size()) return error(fmt::format("variable {} has no record", index(var)));
      if (bound[index(var)]) return error(fmt::format("variable {} is bound twice", index(var)));
      if (!function.type(var)) return error(fmt::format("variable {} has no type", index(var)));
      if (index(function.info(var).span) >= module_.spans.size()) {
        return error(fmt::format("variable {} has no span", index(var)));
      }
      bound[index(var)] = true;
      return {};
    };
    auto usable = [&](const Atom& atom) -> Status {
      if (auto* var = std::get_if<VarId>(&atom)) {
        if (index(*var) < bound.size() && bound[index(*var)]) return {};
        return error(fmt::format("variable {} is used before it is bound", index(*var)));
      }
      if (auto* constant = std::get_if<ConstId>(&atom)) {
        if (index(*constant) < module_.constants.size() && module_.constant(*constant)) return {};
        return error(fmt::format("there is no constant {}", index(*constant)));
      }
      return error("a function is used as a value");
    };
    for (VarId param : function.params) {
      if (Status status = define(param); !status) return status;
    }
    for (const Binding& binding : function.body.bindings) {
      Status status;
      for_each_operand(binding.value, [&](const Atom& atom) {
        if (status) status = usable(atom);
      });
      if (status) status = define(binding.var);
      if (!status) return status;
      const Span& span = module_.span(function.info(binding.var).span);
      const Expected<Type> type = infer_value(context_, module_, function, binding.value);
      if (!type) return error(type.error().what, span.str());
      if (*type != function.type(binding.var)) {
        return error(fmt::format("{} is recorded as {}, but is {}", print_name(function, binding.var),
                                 context_.str(function.type(binding.var)), context_.str(*type)),
                     span.str());
      }
    }
    if (Status status = usable(function.body.result); !status) return status;
    const Expected<Type> result = infer_atom(context_, module_, function, function.body.result);
    if (!result) return std::unexpected(result.error());
    if (*result != function.result) {
      return error(
          fmt::format("the result is declared {}, but is {}", context_.str(function.result), context_.str(*result)));
    }
    return {};
  }

  std::string print_name(const Function& function, VarId var) const {
    return fmt::format("%{} '{}'", index(var), context_.name(function.info(var).name));
  }

  bool reaches(Symbol from, Symbol wanted) {
    std::vector<Symbol> open{from}, seen;
    while (!open.empty()) {
      const Function* function = module_.function(open.back());
      open.pop_back();
      if (!function) continue;
      for (const Binding& binding : function->body.bindings) {
        auto* call = std::get_if<Call>(&binding.value);
        auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
        if (!callee) continue;
        if (*callee == wanted) return true;
        if (std::ranges::find(seen, *callee) != seen.end()) continue;
        seen.push_back(*callee);
        open.push_back(*callee);
      }
    }
    return false;
  }

  Context& context_;
  const Module& module_;
};

}  // namespace

Status verify(Context& context, const Module& module) { return Verifier(context, module).run(); }

}  // namespace tenon::compiler
