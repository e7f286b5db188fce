// The types of values.
//
// Semantics: nodes are interned in a TypeContext, which owns them, and compare by address. The sizes of a tensor are
// dims (dim.h); the size `?` means some size, and Tensor[(?,), f32] is the type of all vectors. Types are invariant:
// two types are compatible when they are equal, except for `?` (accepts()). A TypeVariable is any type, the same type
// throughout its global function or type definition. An UnknownType, and a dim variable whose name starts with '?',
// exists only during the inference of a function; a finished module contains none.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/base/dim.h"
#include "runtime/tensor.h"
#include "support/function_ref.h"

namespace tenon::compiler {

using runtime::DType;

struct Type {
  const struct TypeNode* node = nullptr;
  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Type&) const = default;
  auto operator<=>(const Type&) const = default;

  // The type as this alternative, or nullptr.
  const struct TensorType* tensor() const;
  const struct TupleType* tuple() const;
  const struct FunctionType* function() const;
  const struct AdtType* adt() const;
  const struct ReferenceType* reference() const;
  const struct TypeVariable* variable() const;
  const struct UnknownType* unknown() const;
  // The types of the results of a binding: the fields of a tuple, or the type itself.
  std::vector<Type> parts() const;
};

struct TensorType {
  Dims dims;
  DType dtype = DType::kF32;
  auto operator<=>(const TensorType&) const = default;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  // The shape, where every dim is a constant.
  std::optional<runtime::Shape> shape() const;
};

struct TupleType {
  std::vector<Type> fields;
  auto operator<=>(const TupleType&) const = default;
};

// fn(T, ...) -> T
struct FunctionType {
  std::vector<Type> params;
  Type result;
  auto operator<=>(const FunctionType&) const = default;
};

// A defined type with its type arguments, as List[Tensor[(n,), f32]].
struct AdtType {
  Symbol name{};
  std::vector<Type> args;
  auto operator<=>(const AdtType&) const = default;
};

// Ref[T]: a cell that can be read and written.
struct ReferenceType {
  Type value;
  auto operator<=>(const ReferenceType&) const = default;
};

struct TypeVariable {
  Symbol name{};
  auto operator<=>(const TypeVariable&) const = default;
};

struct UnknownType {
  uint32_t id = 0;
  auto operator<=>(const UnknownType&) const = default;
};

using TypeAlternatives =
    std::variant<TensorType, TupleType, FunctionType, AdtType, ReferenceType, TypeVariable, UnknownType>;
struct TypeNode : TypeAlternatives {
  using variant::variant;
  const TypeAlternatives& alternatives() const { return *this; }

  // Facts about the whole type, which TypeContext computes once, so that nothing visits a type to learn them. A type
  // may share parts, so its tree can be exponentially larger than the number of its nodes.
  bool unknowns = false;   // an UnknownType, or a dim variable whose name starts with '?'
  bool variables = false;  // a TypeVariable, or a dim that is not a constant
  bool erased = false;     // a visible `?` (has_erased)
  uint32_t size = 1;       // nodes of the tree, at most kMaxSize
  uint32_t depth = 1;      // of the tree
  static constexpr uint32_t kMaxSize = uint32_t{1} << 30;
  // The limits of the parts that str() writes, and of the depth of types that the typing rules make.
  static constexpr uint32_t kMaxWritten = 10000, kMaxDepth = 2000;
};

// A cache of the results of a function of types, or of pairs of types, by their nodes.
template <class T>
using TypeMap = std::unordered_map<const TypeNode*, T>;
struct TypePairHash {
  size_t operator()(const std::pair<Type, Type>& pair) const {
    return std::hash<const void*>()(pair.first.node) * 31 + std::hash<const void*>()(pair.second.node);
  }
};
template <class T>
using TypePairMap = std::unordered_map<std::pair<Type, Type>, T, TypePairHash>;
using TypePairs = std::unordered_set<std::pair<Type, Type>, TypePairHash>;

inline const TensorType* Type::tensor() const { return node ? std::get_if<TensorType>(node) : nullptr; }
inline const TupleType* Type::tuple() const { return node ? std::get_if<TupleType>(node) : nullptr; }
inline const FunctionType* Type::function() const { return node ? std::get_if<FunctionType>(node) : nullptr; }
inline const AdtType* Type::adt() const { return node ? std::get_if<AdtType>(node) : nullptr; }
inline const ReferenceType* Type::reference() const { return node ? std::get_if<ReferenceType>(node) : nullptr; }
inline const TypeVariable* Type::variable() const { return node ? std::get_if<TypeVariable>(node) : nullptr; }
inline const UnknownType* Type::unknown() const { return node ? std::get_if<UnknownType>(node) : nullptr; }

inline std::vector<Type> Type::parts() const {
  const TupleType* fields = tuple();
  return fields ? fields->fields : std::vector{*this};
}

// Visits the type and each type that is a part of it, at any depth, once.
void for_each_part(Type type, FunctionRef<void(Type)> visit);
// The same without the types in `seen`, which receives each visited type.
void for_each_part(Type type, FunctionRef<void(Type)> visit, std::unordered_set<const TypeNode*>& seen);

// Whether the type has a visible `?`: in a tensor, or in a field of a tuple. The `?` inside other types is not visible.
bool has_erased(Type type);
// Whether a value of type `found` may be used where the type `wanted` is required: the types are equal except that
// `wanted` has a `?` in place of visible sizes of `found`.
bool accepts(Type wanted, Type found);

// The suggestion of suggest() (support/suggest.h) among the names of dtypes.
std::string suggest_dtype(std::string_view wrong);

}  // namespace tenon::compiler
