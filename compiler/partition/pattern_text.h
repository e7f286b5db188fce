// The text form of patterns (pattern.h), which is read as the same pattern:
//
//   requantize?(%y: conv2d[groups=1, strides in {1, 2}](%x: i8(n, c, h, w) where h <= 1024, %w: const), const, const,
//   const) path(%a: conv2d, relu | clip | add(_, _), %b: max_pool2d)    add~(%p, %q)    fn(%f)(_)    if(_, %t, %e) (%a,
//   %b).0
//
//   PATTERN := ALTERNATIVE { "|" ALTERNATIVE }
//   ALTERNATIVE := "%NAME" [ ":" VALUE ] | VALUE
//   VALUE := TYPE | FORM { "." INDEX } [ ":" TYPE ]
//   FORM := "_" | "const" | OPERATOR [ "~" ] [ "?" ] [ "[" ATTRIBUTE, ... "]" ] [ "(" PATTERN, ... ")" ]
//         | "path" "(" PATTERN "," PATTERN "," PATTERN ")" | "if" "(" PATTERN "," PATTERN "," PATTERN ")"
//         | "fn" "(" PATTERN ")" [ "(" PATTERN, ... ")" ] | "(" PATTERN ")" | "(" PATTERN, ... ")"
//   ATTRIBUTE := NAME "=" VALUE | NAME "in" "{" VALUE, ... "}"
//   TYPE := ( DTYPE | "tensor" ) [ "(" SIZE, ... ")" ] [ "where" CONDITION { "and" CONDITION } ]
//   SIZE := "_" | NUMBER | NAME
//   CONDITION := NAME ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) ( NUMBER | NAME )
//
// An operator without operands matches whatever its operands are. "(P)" groups, "(P,)" is a tuple of one field.
#pragma once

#include <string>
#include <string_view>

#include "compiler/partition/pattern.h"
#include "support/diagnostic.h"

namespace tenon::compiler {

class Context;

std::string to_string(const GraphPattern& pattern);

// Reads a pattern over the built-in operators. The error has the location in the text, which messages call `source`,
// and what is expected there.
Expected<GraphPattern> read_pattern(const Context& context, std::string_view text, std::string_view source = "pattern");

}  // namespace tenon::compiler
