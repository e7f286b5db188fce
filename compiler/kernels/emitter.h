// Writes the loop function of a group of operators. A tensor in the making is a function from indices to an expression:
// what operators compute element by element is written where it is used, and only what is read many times, or summed
// up, is a stage with a buffer. So fusion needs no step of its own: a group without a sum is one stage.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/arithmetic.h"
#include "compiler/kernels/choice.h"
#include "compiler/kernels/tiles.h"
#include "compiler/loop/builder.h"

namespace tenon::compiler::kernels {

using loop::BufferId;
using runtime::Tensor;

// Whether one of these sizes is known to be 0.
inline bool is_empty(const Dims& dims) {
  return std::ranges::any_of(dims, [](Dim size) { return size.constant() == 0; });
}

// The element at as many indices as there are dims.
using Element = std::function<Expr(const Dims& at)>;

struct Value {
  Dims dims;
  DType dtype{};
  Element at;
  std::optional<BufferId> buffer = std::nullopt;  // where its elements lie, if they do
  std::shared_ptr<const Tensor> constant = nullptr;

  size_t rank() const { return dims.size(); }
};

// What a kernel's parameter is given: an argument of the group, by its number, or a constant.
using Operand = std::variant<size_t, Tensor>;

struct Kernel {
  loop::Function function;
  std::vector<Operand> operands;
  std::vector<Decided> decided = {};  // of operators that left something open
};

class Emitter {
 public:
  Emitter(Context& context, std::string_view name, const std::vector<Symbol>& dims);

  Context& context() const { return context_; }
  loop::Builder& builder() { return builder_; }

  // The group's next argument. Its name need not be one that the text form can write.
  Value argument(std::string_view name, const TensorType& type);
  // A number is written into the expression, a larger tensor becomes a parameter where it is read.
  Value constant(const Tensor& tensor);
  // Computed where it is read.
  Value expression(Dims dims, DType dtype, Element at);
  // Computed once; itself where it is stored already.
  Value stored(std::string_view name, const Value& value);
  Value from_buffer(BufferId buffer, Dims dims, DType dtype);
  // A buffer of one value, parts of which are then overwritten: at() gives a place in it, and what comes there.
  Value overwritten(std::string_view name, Dims dims, const Expr& value);
  void overwrite(std::string_view name, const Value& buffer, const Dims& part,
                 const std::function<std::pair<Dims, Expr>(const Dims& at)>& at);
  // A stored value of which some elements change, at places that are computed: of each point in turn, which are those
  // of `apart`, whose points change different elements, and then those of `ordered`.
  struct Update {
    std::vector<std::pair<Expr, Dim>> computed;  // indices, as at_index() has them, each with its extent
    std::function<Dims(const Dims& computed)> place;
    std::function<Expr(const Expr& there)> value;
  };
  void update(std::string_view name, const Value& buffer, const Dims& apart, const Dims& ordered,
              const std::function<Update(const Dims& at)>& point);
  // op over `over` of term(indices of the result, then of the sum), from `init`; 0 elements give `init`.
  struct Sum {
    Dims dims, over;
    BinaryOp op = BinaryOp::kAdd;
    Element term;
    std::optional<Expr> init = std::nullopt;  // none: what leaves the other operand as it is
    bool ordered = false;  // kMax as std::max has it, which keeps the old one beside what is no number
    bool across = false;   // vectors are of neighbouring results, though terms lie side by side as well
  };
  Value reduce(std::string_view name, Sum sum);
  // A contraction in tiles, which takes in what follows element by element, if only that reads it.
  Value contract(std::string_view name, Dims dims, DType dtype, Tiles tiles);
  // The same of loops that are written otherwise: with the values that they store, made of the sums.
  using Nests = std::function<loop::Body(const std::vector<TileResult>& results)>;
  Value contract(std::string_view name, Dims dims, DType dtype, Nests nests);
  // Along the axis, in order: step(indices, the element before it, or nullptr where it is the first).
  Value scan(std::string_view name, Dims dims, size_t axis, DType dtype,
             const std::function<Expr(const Dims& at, const Expr& before)>& step);

  // From here on decisions are about the operator of that key.
  void decide_about(std::string key, Choice choice);
  // The number of the option that is taken (choice.h); there is one.
  size_t decide(std::string_view decision, std::vector<Option> options);

  // Writes the loops of a contraction that nothing was fused with yet, in front of statements for the builder itself.
  void flush();

  // Statements as they are, which fill buffers of these sizes and types, and make others by local().
  std::vector<Value> nest(std::string_view name, const std::vector<std::pair<Dims, DType>>& results,
                          const std::function<loop::Body(std::span<const BufferId> results)>& make);
  BufferId local(std::string_view name, const Dims& dims, DType dtype) {
    return builder_.local(unique(name), dims, dtype);
  }

  Dim dim(int64_t value) const { return context_.dim(value); }
  // An index whose value is computed: `use` reads at it. Negative ones count from the end; others outside are an error.
  Expr at_index(const Expr& index, Dim extent, const std::function<Expr(Dim)>& use);
  // A name that no buffer has.
  std::string unique(std::string_view name);
  Symbol fresh_index() { return context_.symbol(unique("p")); }
  // lo <= index < hi.
  Expr inside(Dim index, Dim lo, Dim hi) const;

  Expected<Kernel> finish(const std::vector<Value>& results);

 private:
  struct Pending {  // a contraction that no stage has been made for yet
    BufferId buffer{};
    Dims dims;
    Nests nests;
  };
  static Expr counted(const Expr& index, Dim extent);
  BufferId temporary(std::string_view name, const Dims& dims, DType dtype);
  BufferId parameter(const std::shared_ptr<const Tensor>& tensor);
  bool runs_along(const Sum& sum);
  Value reduce_in_lanes(std::string_view name, const Sum& sum, int64_t lanes);
  bool reads_in_place(const std::vector<Value>& results);

  Context& context_;
  loop::Builder builder_;
  std::vector<Operand> operands_;
  size_t arguments_ = 0;
  std::set<std::string> names_;
  std::set<BufferId> temporaries_;
  std::map<std::shared_ptr<const Tensor>, BufferId> constants_;
  std::optional<Pending> pending_;
  Choice choice_;  // what is known about the operator that is being written
  std::vector<Decided> decided_;
};

}  // namespace tenon::compiler::kernels
