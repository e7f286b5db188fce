// Types for a function as it was read: annotations where there are some, inferred everywhere else.
#pragma once

#include <functional>
#include <unordered_map>

#include "compiler/base/lexer.h"
#include "compiler/ir/infer.h"

namespace tenon::compiler {

// A function without types. Each variable has its annotation or an unknown of the solver's as its type.
struct Draft {
  Draft(Context& context, Function header)
      : function(std::move(header)), declared(function.result.node != nullptr), solver(context, function.bounds) {}

  Function function;
  bool declared = true;  // its result is; otherwise its type is null
  Solver solver;
  std::vector<size_t> results;                     // places of the blocks' results, inner blocks first
  std::unordered_map<uint32_t, size_t> annotated;  // variables that have one, and the place of their names
  std::vector<VarId> forgetting;                   // casts that stand for an annotation with `?`
  struct Alias {
    Atom atom;
    Type type;
    size_t offset;
    std::string name;
  };
  std::vector<Alias> aliases;  // annotated names of what was bound already
};

// The function with all types, checked. `offset` gives the place of a span.
//
// Where sizes are handed over that are not proved equal, a match_cast goes before (or it is an error). What has an
// annotation with `?`, or leaves the scope of a size, goes through a match_cast that forgets the size; what has `?` is
// opened by a match_cast behind its binding when it is used.
Expected<Function> elaborate(Context& context, const Module& module, Draft draft, const InferOptions& options,
                             const Source& source, const std::function<size_t(SpanId)>& offset);

}  // namespace tenon::compiler
