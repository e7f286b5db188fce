// Integer expressions over symbolic variables: sizes of tensors, and the index language of loops. Knows nothing of the
// rest of the IR.
//
// Semantics: a Dim is a polynomial with integer coefficients over atoms: variables, a // b (rounded down), min, max,
// and f(a, ...), an application of a function that is not interpreted. a % b is a - (a // b) * b. Variables and
// applications stand for integers >= 0. Dims are kept in a normal form: equal nodes have equal values wherever they
// have one, whatever the variables; what is not one node may still be equal, and the prover (dim_prover.h) may see it.
// Two dims are no expressions: the erased one, `?`, which means "some size" and is equal to itself alone as a type is,
// not as a number; and the invalid one, which has no value: a division by 0, a coefficient beyond 64 bits, or an
// expression too large to be worked with. Every operation on one of them gives it again, the invalid one before the
// other. Nodes are interned in a DimPool, live as long as it and compare by address.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tenon::compiler {

enum class Symbol : uint32_t {};  // an interned name

struct DimNode;
struct DimAtom;

struct Dim {
  const DimNode* node = nullptr;
  bool operator==(const Dim&) const = default;
  auto operator<=>(const Dim&) const = default;

  // The value, where it has no atom.
  std::optional<int64_t> constant() const;
  // The atom, where it is nothing else.
  const DimAtom* atom() const;
  // The variable, where it is nothing else.
  std::optional<Symbol> variable() const;
  bool erased() const;
  bool valid() const;  // has a value for some variables: not invalid, not erased
};
using Dims = std::vector<Dim>;

struct DimAtom {
  enum class Kind : uint8_t { kVariable, kFloorDivide, kMin, kMax, kApply, kErased, kInvalid };

  Kind kind = Kind::kVariable;
  Symbol name{};          // kVariable, kApply
  std::vector<Dim> args;  // kFloorDivide: two; kMin, kMax: at least two, as a set; kApply: any
  uint32_t id = 0;        // in the order of creation
  uint32_t size = 1;      // nodes when written as a tree
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

// What is known of a value; nothing: no bound.
struct DimRange {
  std::optional<int64_t> lo, hi;
  bool operator==(const DimRange&) const = default;
  bool contains(int64_t value) const { return (!lo || value >= *lo) && (!hi || value <= *hi); }
};
// "1..512", "1.."
std::string str(const DimRange& range);
using DimBounds = std::map<Symbol, DimRange>;  // of variables and functions; others are >= 0
using DimValues = std::map<Symbol, int64_t>;   // of variables

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
  // The dim that times b is a, where there is one: then a // b is it for every b other than 0.
  std::optional<Dim> divide(Dim a, Dim b);

  // Of atoms of this pool.
  Dim monomial(const Monomial& factors, int64_t coefficient = 1);
  // {a, b} with dim = a*variable + b, the variable in neither; nothing where it is not of that form.
  std::optional<std::pair<Dim, Dim>> linear_in(Symbol variable, Dim dim);
  // Each variable of `dim` that `values` has, replaced.
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
  // The one of both that is no expression, if one is.
  std::optional<Dim> absorbing(Dim a, Dim b) const;

  std::unordered_set<DimNode, Hash> nodes_;
  std::unordered_set<DimAtom, Hash, SameAtom> atoms_;
  Dim erased_, invalid_;
};

// The value; nothing where a variable has none, for an application, a division by 0, or beyond 64 bits.
std::optional<int64_t> evaluate(Dim dim, const DimValues& values);
// Bounds of the value, by interval arithmetic.
DimRange range(Dim dim, const DimBounds& bounds = {});
// Every variable in `dim`, as often as it stands there.
void for_each_variable(Dim dim, const std::function<void(Symbol)>& visit);
// Takes the value of the one variable of `dim` that has none yet, where it appears alone, once, and `dim` = `value` has
// an integer solution. Says whether it took one.
bool solve_for_variable(Dim dim, int64_t value, DimValues& values);
// As the text form writes it: "4*n + 1", "(h + 1) // 2", "n % 16", "min(n, 512)", "?". The order of its parts depends
// on names only. Read back, it is the same node.
std::string str(Dim dim, const std::function<std::string_view(Symbol)>& name);

}  // namespace tenon::compiler
