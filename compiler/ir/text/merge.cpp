// The import of one module's definitions into another: ids of constants and spans are shifted.
#include "compiler/ir/text/merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/loop.h"

namespace tenon::compiler {
namespace {

bool same(const Module& a, const Function& x, const Module& b, const Function& y) { return equal(a, x, b, y); }
bool same(const Module&, const loop::Function& x, const Module&, const loop::Function& y) { return equal(x, y); }
bool same(const Module&, const Library& x, const Module&, const Library& y) {
  return x.dims == y.dims && x.types == y.types && x.params == y.params && x.result == y.result &&
         x.symbol == y.symbol && x.bounds == y.bounds;
}

bool same(const Adt& a, const Adt& b) {
  return a.params == b.params &&
         std::ranges::equal(a.constructors, b.constructors, [](const Constructor& x, const Constructor& y) {
           return x.name == y.name && x.fields == y.fields;
         });
}

bool same_global(const Module& a, const Global& x, const Module& b, const Global& y) {
  if (x.index() != y.index()) return false;
  return std::visit(
      [&](const auto& left) { return same(a, left, b, std::get<std::remove_cvref_t<decltype(left)>>(y)); }, x);
}

}  // namespace

std::string merge(const Context& context, Module& to, const Module& from) {
  for (const auto& [name, adt] : from.adts) {
    const auto [found, is_new] = to.adts.try_emplace(name, adt);
    if (!is_new && !same(found->second, adt)) return std::string(context.name(name));
    if (!is_new) continue;
    for (const Constructor& constructor : adt.constructors) {
      if (to.constructor(constructor.name)->name != name) return std::string(context.name(constructor.name));
    }
  }
  const auto constants = static_cast<uint32_t>(to.constants.size()), spans = static_cast<uint32_t>(to.spans.size());
  to.constants.insert(to.constants.end(), from.constants.begin(), from.constants.end());
  to.spans.insert(to.spans.end(), from.spans.begin() + 1, from.spans.end());
  for (const auto& [name, global] : from.globals) {
    const auto [found, is_new] = to.globals.try_emplace(name, global);
    if (!is_new && !same_global(to, found->second, from, global)) return fmt::format("@{}", context.name(name));
    auto* function = std::get_if<Function>(&found->second);
    if (!is_new || !function) continue;
    for (VarInfo& info : function->vars) {
      if (index(info.span) != 0) info.span = static_cast<SpanId>(static_cast<uint32_t>(info.span) + spans - 1);
    }
    for_each_use(function->body, [&](Atom& atom) {
      if (auto* constant = std::get_if<ConstId>(&atom))
        atom = static_cast<ConstId>(static_cast<uint32_t>(*constant) + constants);
    });
  }
  return "";
}

}  // namespace tenon::compiler
