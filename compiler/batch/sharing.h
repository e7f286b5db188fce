// Sharing: which values are the same in every instance of a batch.
//
// Semantics: a batch joins calls of one unit from all instances, and from different calls and steps of one instance. A
// value is shared if it is the same object in all of them: a constant, an input that all instances share, or what is
// computed from such values alone. Otherwise it is own. A parameter that gets two different shared values is own, since
// one batch may join calls with both; the pass `specialize` makes copies in which it is a constant.
//
// The analysis is a forward fix point over all functions that the entry calls, directly or not, as the one of ACRoBat
// (Fegade et al., "ACRoBat: optimizing auto-batching of dynamic deep learning at compile time", section 4.1). A
// function value is followed to its calls as long as it is the only one there; one that is stored or mixed with another
// may be called with anything.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler::batch {

// Which value a variable has, in every execution.
struct Origin {
  enum class Kind : uint8_t {
    kNone,      // the code is not reached
    kConstant,  // `id`: a ConstId
    kGlobal,    // `function`
    kShared,    // the value of variable `id` of `function`: an input, or computed from shared values
    kOwn,       // there may be more than one
  };
  Kind kind = Kind::kNone;
  Symbol function{};
  uint32_t id = 0;

  auto operator<=>(const Origin&) const = default;
  bool shared() const { return kind != Kind::kOwn; }
};

struct Sharing {
  std::map<Symbol, std::vector<Origin>> origins;  // of each function that is reached, by variable

  const Origin& of(Symbol function, VarId var) const { return origins.at(function)[index(var)]; }
};

// `own`: the parameters of the entry that each instance has its own value of.
Sharing sharing(Context& context, const Module& module, Symbol entry, const std::vector<bool>& own);

// "constant", "shared" or "own" after each variable of the functions that are reached, for readers and tests.
std::string str(const Context& context, const Module& module, const Sharing& sharing);

}  // namespace tenon::compiler::batch
