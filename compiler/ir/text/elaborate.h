// The elaboration of a parsed function: it takes types from annotations and infers all others.
#pragma once

#include <set>
#include <unordered_map>

#include "compiler/base/lexer.h"
#include "compiler/ir/infer.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// A function before inference. The type of each variable is its annotation or an unknown of the solver.
struct Draft {
  Draft(Context& context, Function header)
      : function(std::move(header)), declared(function.result.node != nullptr), solver(context, function.bounds) {}

  Function function;
  bool declared = true;  // whether the result is declared; otherwise its type is null
  Solver solver;
  std::vector<size_t> results;                     // offsets of the blocks' results, inner blocks first
  std::unordered_map<uint32_t, size_t> annotated;  // variables with an annotation, and the offsets of their names
  std::vector<VarId> erasing;                      // casts that represent an annotation with `?`
  struct Alias {
    Atom atom;
    Type type;
    size_t offset;
    std::string name;
  };
  std::set<VarId> expanded;    // closures that call a polymorphic global, which is used as a value
  std::vector<Alias> aliases;  // annotated names of values that are bound already
};

// The function with all types, checked. `offset` returns the offset of a span.
//
// A match_cast precedes each use of a value whose sizes must be equal to other sizes without a proof (or this is an
// error). A value with a `?` in its annotation, or that leaves the scope of one of its sizes, passes through a
// match_cast that erases the size. A value with a `?` in its type is opened by a match_cast after its binding when it
// is used.
Expected<Function> elaborate(Context& context, const Module& module, Draft draft, const InferOptions& options,
                             const Source& source, FunctionRef<size_t(SpanId)> offset);

}  // namespace tenon::compiler
