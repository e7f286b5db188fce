// The text form of modules.
//
// Semantics: parse(print(m)) equals m (`equal`): attributes, constants, types and dims included; spans become places in
// the text. Small constants stand in the text, the others in a side file, an .npz as NumPy writes it, whose members
// have the constants' names. The reader takes nested expressions and binds each inner one, operands from left to right
// and inner ones first, which is the order of evaluation; types of bindings, of lambdas' parameters and of their
// results may be left out where they can be inferred, and are checked where they are given. Attributes at their
// defaults are not printed, nor need the result of a function be declared that does not call itself. In brackets stand
// dim and type variables; their use says which is which. Sizes are expressions of integers and dims, with + - * // %
// min max and parentheses; `?` is some size: in a parameter a dim without a name, elsewhere one that is forgotten, and
// opened where the value is used. Where it is not proved that sizes are equal as they must be, a match_cast checks it
// (InferOptions).
//
//   #[version = "1", side = "model.npz"]   // beside this file
//   const $w: Tensor[(16, 1, 3, 3), f32] = side;
//   const $1: Tensor[(3,), f32] = [0.5, -1.25, inf];
//   type List[A] { Cons(A, List[A]), Nil }
//   extern @sort[n](Tensor[(n,), f32]) -> Tensor[(n,), f32] = "library.sort";
//   loop @double[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) { ... }   // as compiler/loop/text.h has it
//   #[target = "accel", composite = "accel.conv2d"]
//   def @f[N](%x: Tensor[(N, 1, 28, 28), f32]) -> Tensor[(N, 16, 26, 26), f32] {
//     let %y: Tensor[(N, 16, 26, 26), f32] = conv2d(%x, $w, strides=[1, 1]);
//     relu(%y * 0.5f32)
//   }
//   def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
//     match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
//   }
//
// Expressions: %local, $constant, @global, 3i64 and 0.5f32 and true (scalar constants), operator(a, b, attribute=1),
// a + b and what else infix.h names, f(a) for any function value f, @f[T](a) where only the result of @f has a type
// variable (it may be left out where the use decides it), (a, b), a.0, Constructor(a), fn(%x: T) -> T { ... } (which
// may call itself by the name that a let gives it), if (c) { ... } else { ... }, match e { Cons(%x, _) => ..., _ => ...
// }, match_cast[k](e, Tensor[(k,), f32]), ref(e), read(r), write(r, e). A block is { let %x = e; e; e }.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/ir/infer.h"

namespace tenon::compiler {

struct Text {
  std::string text;
  std::vector<std::byte> side;  // an .npz; empty where every constant is small
};

struct PrintOptions {
  bool spans = false;             // "// model.onnx: Conv 'x'" behind each statement
  bool constants = true;          // false: no constants, only for people to read
  std::string side = "side.npz";  // how the text calls its side file
};

Text print(const Context& context, const Module& module, const PrintOptions& options = {});
// One function, without the module's constants: for people.
std::string print(const Context& context, const Module& module, Symbol name, const Function& function,
                  const PrintOptions& options = {});
// The value, as "conv2d(%x, $0, strides=[2, 2])".
std::string print(const Context& context, const Function& function, const Value& value);

// Errors have FILE:LINE:COLUMN and the line with a caret below the place. Of several mistakes each function's first is
// reported, in one Diagnostic.
Expected<Module> parse(Context& context, std::string_view text, std::span<const std::byte> side = {},
                       std::string_view file = "text", const InferOptions& options = {});

// The binary form: text and constants in one deflated archive, which is an .npz too. The bytes are taken as hostile.
std::vector<std::byte> to_binary(const Context& context, const Module& module);
Expected<Module> from_binary(Context& context, std::span<const std::byte> bytes, std::string_view file = "module");

// By the file's ending: .tnb is the binary form. Else PATH, and PATH with .npz in place of its ending for the side file
// where there is one.
Status save(const Context& context, const Module& module, const std::filesystem::path& path,
            const PrintOptions& options = {});
Expected<Module> load(Context& context, const std::filesystem::path& path, const InferOptions& options = {});

}  // namespace tenon::compiler
