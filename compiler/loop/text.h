// The text form of loop functions.
//
//   loop @matmul[n](%a: Tensor[(n, 64), f32], %b: Tensor[(64, 32), f32]) -> (%c: Tensor[(n, 32), f32]) {
//     for i in (n) parallel {
//       for j in (32) {
//         for k in (64) {
//           stage dot(i in (n) at (i), j in (32) at (j), reduce k in (64) at (k)) {
//             init { %c[i, j] = f32(0); }
//             %c[i, j] = %c[i, j] + %a[i, k] * %b[k, j];
//           }
//         }
//       }
//     }
//   }
//
// Dims may have bounds, [n in 1..512], which hold inside. Axes are spatial, or `reduce`, `scan` or `given`. Sizes and
// indices are dims. A ragged axis names the index before it: Tensor[(b: n, lengths(b), 64), f32]. Other statements: `if
// (c) { } else { }`, `let t in (n) = i64(%x[i]) { }`, `alloc %t: Tensor[(8,), f32] { }`, `call fill(%a) -> (%b);`,
// whose name may have dots. A buffer lies `in stack` or `in registers` where that is said behind its type. Instructions
// are declared at the begin of the function, as `intrinsic @dot4(...) -> (...) { ...
// }`, and used in stages as `intrinsic dot4(%a[i, 4*k : 4], %b[k, 16*j : 16, 0 : 4]) -> (%c[i, 16*j : 16]);` on blocks
// of buffers. In expressions, f32(x) converts or is a literal, index(i + 1) is an index as an i64, select(c, a, b)
// evaluates one side, and (let t in (n) = x; y) is an index that was computed.
#pragma once

#include <string>
#include <string_view>

#include "compiler/loop/loop.h"

namespace tenon::compiler {
class Cursor;
}

namespace tenon::compiler::loop {

// parse(print(f)) is equal to f.
std::string print(const TypeContext& context, const Function& function);
std::string print(const TypeContext& context, const Function& function, const Expr& expr);

// One function, verified. Errors point at the place: "m.tn:3:7".
Expected<Function> parse(TypeContext& context, std::string_view text, std::string_view file);
// The same, of the function that begins at the cursor, which goes behind it.
Expected<Function> parse(TypeContext& context, Cursor& cursor);

}  // namespace tenon::compiler::loop
