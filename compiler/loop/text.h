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
// Dims may have bounds, [n in 1..512], which the body may rely on. Axes are spatial, or `reduce`, `scan` or `given`.
// Sizes and indices are dims. A ragged axis names the preceding index: Tensor[(b: n, lengths(b), 64), f32]. A table of
// such sizes is declared at the start of the function, by its kind: `offsets begin(b in (n), size (lengths(b)));`;
// a table may limit the sizes, and counts do: `counts active(b in (n), size (lengths(b)), limit (t));`.
// Other statements: `if (c) { } else { }`, `let t in (n) = i64(%x[i]) { }`, `alloc %t: Tensor[(8,), f32] { }`, `call
// fill(%a)
// -> (%b);` (the name may contain dots). `in stack`, `in registers` or `in shared` after a buffer's type stores it
// there. `stage s(...) async` copies in the background, until `commit;` and `wait(1);`. A loop's kind is parallel,
// vector, unroll, block_x .. block_z or thread_x .. thread_z; `barrier;` separates phases. Instructions are declared at
// the start of the function, as `intrinsic @dot4(...) -> (...) { ... }`, and used in stages on blocks of buffers, as
// `intrinsic dot4(%a[i, 4*k : 4], %b[k, 16*j : 16, 0 : 4]) -> (%c[i, 16*j : 16]);`. An inexact instruction has
// `inexact 3.8e-06`, its bound, after its results, and its uses end in `inexact;`. In expressions, f32(x) is a
// conversion or a literal, index(i + 1) is an index as an i64, select(c, a, b) evaluates one of a and b, and (let t in
// (n) = x; y) binds a computed index.
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

// Parses one function and verifies it. Errors point at the source location: "m.tn:3:7".
Expected<Function> parse(TypeContext& context, std::string_view text, std::string_view file);
// Parses and verifies the function that starts at the cursor, and moves the cursor past it.
Expected<Function> parse(TypeContext& context, Cursor& cursor);

}  // namespace tenon::compiler::loop
