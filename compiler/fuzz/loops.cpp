#include "compiler/fuzz/loops.h"

#include <array>
#include <cassert>

#include "compiler/loop/builder.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::fuzz {
namespace {

using loop::BinaryOp;
using loop::BufferId;
using loop::Expr;
using loop::UnaryOp;

class LoopMaker {
 public:
  LoopMaker(Context& context, Types& types, Random& random, std::string_view name)
      : context_(context), random_(random), builder_(context, name), dtype_(types.dtype()) {
    while (dtype_ == DType::kBool) dtype_ = types.dtype();
    const bool symbolic = random_.chance(60);
    for (const char* dim : {"n", "m"}) dims_.push_back(symbolic ? builder_.dim(dim) : context.dim(types.size()));
  }

  loop::Function run() {
    param("a", dims_), param("b", dims_);
    if (random_.chance(40)) param("row", {dims_[1]});
    switch (random_.between(0, 7)) {
      case 0: elements("y", dims_, [](const Dims& at) { return at; }); break;
      case 1:  // transposed
        elements("y", {dims_[1], dims_[0]}, [](const Dims& at) { return Dims{at[1], at[0]}; });
        break;
      case 2: shifted(); break;
      case 3: sum(); break;
      case 4: product(); break;
      case 5: scan(); break;
      case 6: gather(); break;
      default:  // two results, the second by way of a buffer
        elements("y", dims_, [](const Dims& at) { return at; });
        elements(
            "z", {dims_[0]},
            [&](const Dims& at) {
              return Dims{at[0], context_.dim(0)};
            },
            true);
    }
    auto function = builder_.build();
    assert(function);
    return std::move(*function);
  }

 private:
  void param(std::string_view name, const Dims& dims) { params_.push_back(builder_.param(name, dims, dtype_)); }
  Expr constant(int64_t value) {
    return loop::is_float(dtype_) ? loop::literal(dtype_, static_cast<double>(value))
                                  : loop::integer_literal(dtype_, value);
  }

  // A continuous function of the elements at one index: floats may be rounded differently.
  Expr expression(const Dims& at, int depth) {
    constexpr std::array kBinary{BinaryOp::kAdd, BinaryOp::kSubtract, BinaryOp::kMultiply, BinaryOp::kMin,
                                 BinaryOp::kMax};
    if (depth == 0 || random_.chance(20)) {
      if (random_.chance(25)) return constant(random_.between(0, 3));
      const BufferId from = params_[static_cast<size_t>(random_.between(0, static_cast<int64_t>(params_.size()) - 1))];
      const size_t rank = builder_.function().buffer(from).rank();
      return builder_.load(from, {at.end() - static_cast<ptrdiff_t>(rank), at.end()});
    }
    if (random_.chance(15)) return loop::unary(UnaryOp::kNegate, expression(at, depth - 1));
    const BinaryOp op = kBinary[static_cast<size_t>(random_.between(0, kBinary.size() - 1))];
    const Expr left = expression(at, depth - 1);
    return loop::binary(op, left, expression(at, depth - 1));
  }

  void elements(std::string_view name, const Dims& dims, FunctionRef<Dims(const Dims&)> source_index,
                bool always_inside = false) {
    const BufferId to = builder_.result(name, dims, dtype_);
    if (always_inside && random_.chance(50)) {
      loop::Ranges whole;
      for (Dim dim : dims) whole.push_back({"", dim});
      const BufferId between = builder_.compute(std::string(name) + "_part", whole, [&](const Dims& at) {
        return guarded(source_index(at), [&](const Dims& from) { return expression(from, 2); });
      });
      builder_.compute(
          to, [&](const Dims& at) { return loop::binary(BinaryOp::kAdd, builder_.load(between, at), constant(1)); });
      return;
    }
    builder_.compute(to, [&](const Dims& at) {
      const Dims from = source_index(at);
      if (always_inside) return guarded(from, [&](const Dims& there) { return expression(there, 2); });
      return expression(from, 3);
    });
  }
  // The value where all indices are in bounds, else 0.
  Expr guarded(const Dims& at, FunctionRef<Expr(const Dims&)> value) {
    Expr inside;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const Expr index = loop::index_value(at[axis]);
      const Expr both =
          loop::binary(BinaryOp::kAnd, loop::binary(BinaryOp::kLessEqual, loop::integer_literal(DType::kI64, 0), index),
                       loop::binary(BinaryOp::kLess, index, loop::index_value(dims_[axis])));
      inside = inside ? loop::binary(BinaryOp::kAnd, inside, both) : both;
    }
    return loop::select(inside, value(at), constant(0));
  }
  void shifted() {
    const Dim by = context_.dim(random_.between(1, 2));
    elements(
        "y", dims_,
        [&](const Dims& at) {
          return Dims{context_.subtract(at[0], by), at[1]};
        },
        true);
  }
  void sum() {
    const BufferId to = builder_.result("y", {dims_[0]}, dtype_);
    constexpr std::array kOps{BinaryOp::kAdd, BinaryOp::kMin, BinaryOp::kMax};
    const BinaryOp op = kOps[static_cast<size_t>(random_.between(0, 2))];
    // A sum of nothing is never begun: the last axis is one longer.
    builder_.reduce(to, {{"", context_.add(dims_[1], context_.dim(1))}}, op, [&](const Dims& at) {
      return guarded({at[0], at[1]}, [&](const Dims& from) { return expression(from, 2); });
    });
  }
  void product() {
    const BufferId w = builder_.param("w", {dims_[1], context_.dim(3)}, dtype_);
    const BufferId to = builder_.result("y", {dims_[0], context_.dim(3)}, dtype_);
    builder_.compute(to, [&](const Dims&) { return constant(0); });
    builder_.stage("dot", {{"", dims_[0]}, {"", context_.dim(3)}}, {{"", dims_[1]}}, [&](const Dims& at) {
      const Dims written{at[0], at[1]};
      const Expr term = loop::binary(BinaryOp::kMultiply, builder_.load(params_[0], {at[0], at[2]}),
                                     builder_.load(w, {at[2], at[1]}));
      return loop::Builder::Assignment{to, written, loop::binary(BinaryOp::kAdd, builder_.load(to, written), term)};
    });
  }
  void scan() {
    const BufferId to = builder_.result("y", dims_, dtype_);
    builder_.scan({"t", dims_[0]}, {to}, [&](Dim t) {
      builder_.stage("step", {{"", dims_[1]}}, {}, [&](const Dims& others) {
        const Dims at{t, others[0]}, before{context_.subtract(t, context_.dim(1)), others[0]};
        const Expr later = loop::binary(BinaryOp::kLess, loop::integer_literal(DType::kI64, 0), loop::index_value(t));
        const Expr element = expression(at, 2);
        const Expr next = loop::binary(BinaryOp::kMax, builder_.load(to, before), element);
        return loop::Builder::Assignment{to, at, loop::select(later, next, element)};
      });
    });
  }
  void gather() {
    const BufferId which = builder_.param("which", {dims_[0]}, DType::kI32);
    const BufferId to = builder_.result("y", dims_, dtype_);
    builder_.compute(to, [&](const Dims& at) {
      const Symbol p = context_.symbol("p");
      return loop::let_index(p, dims_[0], loop::convert(DType::kI64, builder_.load(which, {at[0]})),
                             builder_.load(params_[0], {context_.dim(p), at[1]}));
    });
  }

  Context& context_;
  Random& random_;
  loop::Builder builder_;
  DType dtype_;
  Dims dims_;
  std::vector<BufferId> params_;
};

}  // namespace

loop::Function random_loop_function(Context& context, Types& types, Random& random, std::string_view name) {
  return LoopMaker(context, types, random, name).run();
}

}  // namespace tenon::compiler::fuzz
