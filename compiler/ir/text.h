// The text form of modules.
//
// Semantics: parse(print(m)) equals m (`equal`), including attributes, constants, types and dims; spans become
// locations in the text. Small constants are part of the text; larger constants are members of a side file, an .npz in
// NumPy's format, under the constants' names. The parser accepts nested expressions and binds each inner expression,
// operands from left to right and inner expressions first, which is the order of evaluation. Types of bindings, of
// lambdas' parameters and of their results are optional where they can be inferred, and are checked where they are
// stated. Attributes with their default values are not printed, and a function that does not call itself need not
// declare its result. Brackets declare dim and type variables; the use of a name determines its kind. Sizes are
// expressions of integers and dims, with + - * // % min max and parentheses. `?` is some size: in a parameter a dim
// without a name, elsewhere an erased size, which gets a name where the value is used. Where sizes must be equal and
// the equality is not proved, the parser inserts a match_cast (InferOptions).
//
//   #[version = "1", side = "model.npz"]   // beside this file
//   import "layers.tn";                    // the types and functions of another module, beside this file
//   const $w: Tensor[(16, 1, 3, 3), f32] = side;
//   const $1: Tensor[(3,), f32] = [0.5, -1.25, inf];
//   type List[A] { Cons(A, List[A]), Nil }
//   extern @sort[n](Tensor[(n,), f32]) -> Tensor[(n,), f32] = "library.sort";
//   loop @double[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) { ... }   // the syntax of compiler/loop/text.h
//   #[target = "accel", composite = "accel.conv2d"]
//   def @f[N](%x: Tensor[(N, 1, 28, 28), f32]) -> Tensor[(N, 16, 26, 26), f32] {
//     let %y: Tensor[(N, 16, 26, 26), f32] = conv2d(%x, $w, strides=[1, 1]);
//     relu(%y * 0.5f32)
//   }
//   def @fold[A, B](%f: fn(B, A) -> B, %start: B, %xs: List[A]) -> B {
//     match %xs { Nil => %start, Cons(%x, %rest) => @fold(%f, %f(%start, %x), %rest) }
//   }
//
// Expressions: %local, $constant, @global, 3i64 and 0.5f32 and -inff32 and nanf32 and true (scalar constants),
// operator(a, b, attribute=1), a + b and the other operators of infix.h, f(a) for any function value f, @f[T](a) where
// only the result of @f has a type variable (T is optional where the use determines it), (a, b), a.0, Constructor(a),
// fn(%x: T) -> T { ... } (which may call itself by the name of its let), if (c) { ... } else { ... }, match e {
// Cons(%x, _) => ..., _ => ...
// }, match_cast[k](e, Tensor[(k,), f32]), ref(e), read(r), write(r, e). A block is { let %x = e; e; e }.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/infer.h"

namespace tenon::compiler {

struct Text {
  std::string text;
  std::vector<std::byte> side;  // an .npz; empty where every constant is small
};

struct PrintOptions {
  bool spans = false;             // "// model.onnx: Conv 'x'" after each statement
  bool constants = true;          // false: without constants, for readers only
  std::string side = "side.npz";  // the name of the side file in the text
};

Text print(const Context& context, const Module& module, const PrintOptions& options = {});
// One function without the module's constants, for readers only: the text cannot be parsed.
std::string print(const Context& context, const Module& module, Symbol name, const Function& function,
                  const PrintOptions& options = {});
// The value, as "conv2d(%x, $0, strides=[2, 2])".
std::string print(const Context& context, const Function& function, const Value& value);

// Errors have FILE:LINE:COLUMN and the line with a caret below the location. The Diagnostic contains the first error of
// each function.
//
// The types and globals of an imported module, which are those that it imports too, become part of the module; a
// definition that is the same in two imported modules is one. Without `importer` a text with imports is an error.
using Importer = std::function<Expected<const Module*>(const std::string& name)>;
Expected<Module> parse(Context& context, std::string_view text, std::span<const std::byte> side = {},
                       std::string_view file = "text", const InferOptions& options = {}, const Importer& importer = {});

// The binary form: text and constants in a single deflated archive, which is an .npz too. The reader treats the bytes
// as untrusted input.
std::vector<std::byte> to_binary(const Context& context, const Module& module);
Expected<Module> from_binary(Context& context, std::span<const std::byte> bytes, std::string_view file = "module");

// The extension .tnb selects the binary form. Otherwise the text is in PATH, and the side file, if there is one, in
// PATH with the extension .npz. The text has no imports: it is the whole module.
Status save(const Context& context, const Module& module, const std::filesystem::path& path,
            const PrintOptions& options = {});
Expected<Module> load(Context& context, const std::filesystem::path& path, const InferOptions& options = {});

}  // namespace tenon::compiler
