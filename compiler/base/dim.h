// Integer expressions over symbolic variables: sizes of tensors, and the index language of loops. This file does not
// depend on any other part of the IR.
//
// Semantics: a Dim is a polynomial with integer coefficients over atoms: variables, a // b (rounded down), min, max,
// and f(a, ...), the application of an uninterpreted function. a % b is a - (a // b) * b. Variables and applications
// are integers >= 0. Dims are kept in a normal form: identical nodes have equal values for all values of the variables
// for which they have a value; different nodes may still be equal, and the prover (dim_prover.h) may find a proof.
// Two dims are not expressions: the erased dim, `?`, which means "some size" and equals itself as a type only, not as a
// value; and the invalid dim, which has no value: a division by 0, a coefficient beyond 64 bits, or an expression that
// exceeds the size limits. Every operation on one of them returns it, and the invalid dim takes precedence over the
// erased dim. Nodes are interned in a DimPool, which owns them, and compare by address.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "support/function_ref.h"

namespace tenon::compiler {

enum class Symbol : uint32_t {};  // an interned name

struct DimNode;
struct DimAtom;

struct Dim {
  const DimNode* node = nullptr;
  bool operator==(const Dim&) const = default;
  auto operator<=>(const Dim&) const = default;

  // The value of a dim without atoms.
  std::optional<int64_t> constant() const;
  // The atom of a dim that consists of this atom alone; otherwise nullptr.
  const DimAtom* atom() const;
  // The variable of a dim that consists of this variable alone.
  std::optional<Symbol> variable() const;
  bool erased() const;
  bool valid() const;  // neither invalid nor erased: the dim has a value for some values of its variables
};
using Dims = std::vector<Dim>;

struct DimAtom {
  enum class Kind : uint8_t { kVariable, kFloorDivide, kMin, kMax, kApply, kErased, kInvalid };

  Kind kind = Kind::kVariable;
  Symbol name{};          // kVariable, kApply
  std::vector<Dim> args;  // kFloorDivide: two; kMin, kMax: at least two, as a set; kApply: any count
  uint32_t id = 0;        // in the order of creation
  uint32_t size = 1;      // the number of nodes of the expression as a tree
};

using Monomial = std::vector<const DimAtom*>;  // a product of atoms, sorted by id; empty: 1
struct DimTerm {
  Monomial factors;
  int64_t coefficient = 0;  // not 0
  bool operator==(const DimTerm&) const = default;
};
struct DimNode {
  std::vector<DimTerm> terms;  // by degree, then by the factors: the constant comes first
  uint32_t id = 0;

  bool operator==(const DimNode& other) const { return terms == other.terms; }
};

// The inclusive bounds of a value; std::nullopt is an unbounded side.
struct DimRange {
  std::optional<int64_t> lo, hi;
  bool operator==(const DimRange&) const = default;
  bool contains(int64_t value) const { return (!lo || value >= *lo) && (!hi || value <= *hi); }
};
// "1..512", "1.."
std::string str(const DimRange& range);
using DimBounds = std::map<Symbol, DimRange>;  // bounds of variables and functions; all others are >= 0
using DimValues = std::map<Symbol, int64_t>;   // values of variables

class DimPool {
 public:
  DimPool();
  DimPool(const DimPool&) = delete;
  DimPool& operator=(const DimPool&) = delete;

  Dim dim(int64_t value);
  Dim dim(Symbol variable);
  Dim erased() const { return erased_; }
  Dim invalid() const { return invalid_; }
  Dim apply(Symbol function, std::vector<Dim> args);

  Dim add(Dim a, Dim b);
  Dim subtract(Dim a, Dim b);
  Dim multiply(Dim a, Dim b);
  Dim product(std::span<const Dim> dims);
  Dim floor_divide(Dim a, Dim b);
  Dim modulo(Dim a, Dim b);
  Dim ceil_divide(Dim a, int64_t b);  // b > 0
  Dim minimum(std::vector<Dim> dims);
  Dim maximum(std::vector<Dim> dims);
  // The dim q with q * b = a, where it exists; then a // b is q for every b other than 0.
  std::optional<Dim> divide(Dim a, Dim b);

  // The factors must be atoms of this pool.
  Dim monomial(const Monomial& factors, int64_t coefficient = 1);
  // {a, b} with dim = a*variable + b, where neither a nor b contains the variable; std::nullopt where the dim does not
  // have this form.
  std::optional<std::pair<Dim, Dim>> linear_in(Symbol variable, Dim dim);
  // `dim` with every variable that `values` contains replaced by its value.
  Dim substitute(Dim dim, const std::map<Symbol, Dim>& values);

 private:
  struct Hash {
    size_t operator()(const DimNode& node) const;
    size_t operator()(const DimAtom& atom) const;
  };
  struct SameAtom {
    bool operator()(const DimAtom& a, const DimAtom& b) const {
      return a.kind == b.kind && a.name == b.name && a.args == b.args;
    }
  };
  class Sum;

  Dim intern(std::vector<DimTerm> terms);
  Dim atom(DimAtom::Kind kind, Symbol name, std::vector<Dim> args);
  Dim extreme(DimAtom::Kind kind, std::vector<Dim> args);
  bool open_extreme(DimAtom::Kind kind, std::vector<Dim>& args);
  Dim take_common(DimAtom::Kind kind, std::vector<Dim>& args);
  // The operand that is not an expression (invalid before erased), if there is one: it is the result of the operation.
  std::optional<Dim> absorbing(Dim a, Dim b) const;

  std::unordered_set<DimNode, Hash> nodes_;
  std::unordered_set<DimAtom, Hash, SameAtom> atoms_;
  Dim erased_, invalid_;
};

// The value of `dim`; std::nullopt where a variable has no value, for an application, for a division by 0, and beyond
// 64 bits.
std::optional<int64_t> evaluate(Dim dim, const DimValues& values);
// Bounds of the value, by interval arithmetic.
DimRange range(Dim dim, const DimBounds& bounds = {});
// Visits every occurrence of a variable in `dim`.
void for_each_variable(Dim dim, FunctionRef<void(Symbol)> visit);
// Adds the value of the only variable of `dim` that has no value yet, where the variable occurs once and linearly and
// `dim` = `value` has an integer solution. Returns whether a value was added.
bool solve_for_variable(Dim dim, int64_t value, DimValues& values);
// The dim in the syntax of the text form: "4*n + 1", "(h + 1) // 2", "n % 16", "min(n, 512)", "?". The order of the
// terms depends on names only. The parser reads the text as the same node.
std::string str(Dim dim, FunctionRef<std::string_view(Symbol)> name);

}  // namespace tenon::compiler
