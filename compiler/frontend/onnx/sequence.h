// Sequences and optional values while a model is imported. A sequence whose length is known is a tuple; any other is a
// list, a value of the type Sequence[T]. An optional value that is present is that value; one that may be absent has
// the type Optional[T]. The operations on both types are functions of the module (list.cpp).
#pragma once

#include <functional>

#include "compiler/frontend/onnx/node.h"

namespace tenon::compiler::onnx {

// Sequence[T] of the element's rank and dtype. All sizes of T are erased, since elements may differ in them.
Expected<Type> list_type(NodeImport& node, Type element);
// The type of the elements of a list; nothing where `type` is another one.
std::optional<Type> list_element(const Context& context, Type type);
// The type of a list that holds the elements of two sequences, tuples or lists; nothing where one is no sequence, or
// where ranks or dtypes of the elements differ.
std::optional<Type> joined_list(NodeImport& node, Type a, Type b);

// Appends the binding of a value, whose type is given, to a block that is open or closed.
using BindValue = std::function<Expected<Atom>(Value value, Type type)>;
// A value of the type `from` as the type `to`: a tensor with other sizes erased, or a sequence or optional value of a
// type that joined_list(), list_type() or joined_optional() made of it.
Expected<Atom> as_type(NodeImport& node, Atom value, Type from, Type to, const BindValue& bind);
// The same in the block that is open.
Expected<Atom> as_type(NodeImport& node, Atom value, Type to);

// T of Optional[T]; nothing where `type` is another one.
std::optional<Type> optional_element(const Context& context, Type type);
// The type of a value that is one of two, of which at least one may be absent; nothing where none may be, or where the
// elements differ in more than their sizes.
std::optional<Type> joined_optional(NodeImport& node, Type a, Type b);
// The value that is absent, of the type that it would have.
Expected<Atom> optional_absent(NodeImport& node, const ValueType& type);
Expected<Atom> optional_has_element(NodeImport& node, Atom optional);
// The value; an absent one is an error when the model runs.
Expected<Atom> optional_get_element(NodeImport& node, Atom optional);

// A list with one more element at its end, whose sizes are erased.
Expected<Atom> list_append(NodeImport& node, Atom list, Atom element);
Expected<Atom> list_empty(NodeImport& node, Type list);
Expected<Atom> list_length(NodeImport& node, Atom list);
// Positions are scalars i64, which count from the end where they are negative; one outside of the list is an error when
// the model runs.
Expected<Atom> list_at(NodeImport& node, Atom list, Atom position);
Expected<Atom> list_erase(NodeImport& node, Atom list, Atom position);
Expected<Atom> list_insert(NodeImport& node, Atom list, Atom element, Atom position);
// The elements one after the other along an axis, or along a new one; an empty list is an error when the model runs.
Expected<Atom> list_concat(NodeImport& node, Atom list, int64_t axis, bool is_new);
// The parts of x along an axis, of sizes in a vector of i64; without `keep`, each is 1 and left out.
Expected<Atom> list_split(NodeImport& node, Atom x, Atom sizes, int64_t axis, bool keep);

// The outputs of a graph for each position 0 .. length - 1 as lists.
using ListInputs = std::function<Expected<Atoms>(Atom position)>;
Expected<Atoms> list_map(NodeImport& node, const Graph& body, Atom length, const ListInputs& inputs);

}  // namespace tenon::compiler::onnx
