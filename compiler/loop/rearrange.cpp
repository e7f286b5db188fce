#include "compiler/loop/rearrange.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

// The value of a dim over loops of constant sizes: a constant, and for each loop what each of its iterations adds.
struct Sum {
  int64_t constant = 0;
  std::vector<std::vector<int64_t>> tables;
};

class Copy {
 public:
  Copy(TypeContext& context, const Function& function) : context_(context), function_(function) {}

  // Whether the function copies its only parameter to its only result, each element of which it writes.
  bool recognized() {
    if (function_.params.size() != 1 || function_.results.size() != 1 || !read(function_.body)) return false;
    int64_t points = 1, elements = 1;
    for (const auto& [var, extent] : loops_) points *= extent;
    for (const int64_t size : shape(function_.results.front())) elements *= size;
    return points == elements && points > 0;
  }

  Tensor run(const Tensor& from) const {
    Tensor to(from.dtype(), shape(function_.results.front()));
    switch (runtime::bytes(from.dtype())) {
      case 1: copy<uint8_t>(from, to); break;
      case 2: copy<uint16_t>(from, to); break;
      case 4: copy<uint32_t>(from, to); break;
      default: copy<uint64_t>(from, to); break;
    }
    return to;
  }

 private:
  runtime::Shape shape(BufferId buffer) const {
    runtime::Shape shape;
    for (const BufferAxis& axis : function_.buffer(buffer).axes) shape.push_back(axis.extent.constant().value_or(0));
    return shape;
  }

  bool read(const Body& body) {
    if (body.size() != 1) return false;
    if (const auto* loop = std::get_if<For>(&body.front().form)) {
      const auto extent = loop->extent.constant();
      if (!extent || *extent < 1) return false;
      loops_.emplace_back(loop->var, *extent);
      return read(loop->body);
    }
    const auto* stage = std::get_if<Stage>(&body.front().form);
    const auto* store = stage && stage->init.empty() && stage->where.empty() && stage->body.size() == 1
                            ? std::get_if<Store>(&stage->body.front().form)
                            : nullptr;
    if (!store) return false;
    Expr value = store->value;
    if (const auto* select = std::get_if<Select>(&value->form)) {  // zeros past the end
      const auto* below = std::get_if<Binary>(&select->condition->form);
      const auto* fill = std::get_if<Literal>(&select->otherwise->form);
      const auto* left = below && below->op == BinaryOp::kLess ? std::get_if<IndexValue>(&below->left->form) : nullptr;
      const auto* right = left ? std::get_if<IndexValue>(&below->right->form) : nullptr;
      if (!right || !fill || fill->real != 0 || std::signbit(fill->real) || fill->integer != 0) return false;
      room_ = sum(*stage, {context_.subtract(right->value, left->value)}, {});
      if (!room_) return false;
      value = select->then;
    }
    const auto* load = std::get_if<Load>(&value->form);
    if (!load || load->buffer != function_.params.front()) return false;
    const auto from = sum(*stage, load->indices, shape(load->buffer)),
               to = sum(*stage, store->indices, shape(store->buffer));
    if (!from || !to) return false;
    from_ = *from, to_ = *to;
    return true;
  }

  // The offset of an element of a tensor of this shape; of a single dim, its value.
  std::optional<Sum> sum(const Stage& stage, const Dims& indices, const runtime::Shape& shape) const {
    Dim offset = context_.dim(0);
    const Dims over = over_loops(context_, stage, indices);
    for (size_t i = 0; i < over.size(); ++i)
      offset = context_.add(shape.empty() ? offset : context_.multiply(offset, context_.dim(shape[i])), over[i]);
    if (!offset.valid()) return std::nullopt;
    Sum result{.constant = 0, .tables = {}};
    for (const auto& [var, extent] : loops_) result.tables.emplace_back(static_cast<size_t>(extent));
    for (const DimTerm& term : offset.node->terms) {
      const Dim dim = context_.monomial(term.factors, term.coefficient);
      std::set<Symbol> variables;
      for_each_variable(dim, [&](Symbol var) { variables.insert(var); });
      if (variables.empty()) {
        result.constant += dim.constant().value_or(0);
        continue;
      }
      const auto loop = std::ranges::find(loops_, *variables.begin(), &std::pair<Symbol, int64_t>::first);
      if (variables.size() > 1 || loop == loops_.end()) return std::nullopt;
      auto& table = result.tables[static_cast<size_t>(loop - loops_.begin())];
      for (int64_t i = 0; i < loop->second; ++i) {
        const auto value = evaluate(dim, {{loop->first, i}});
        if (!value) return std::nullopt;
        table[static_cast<size_t>(i)] += *value;
      }
    }
    return result;
  }

  template <class T>
  void copy(const Tensor& from, Tensor& to) const {
    const std::span<const std::byte> source = from.bytes();
    const std::span<std::byte> target = to.bytes();
    const auto* elements = reinterpret_cast<const T*>(source.data());
    auto* results = reinterpret_cast<T*>(target.data());
    const std::function<void(size_t, int64_t, int64_t, int64_t)> visit = [&](size_t loop, int64_t read, int64_t write,
                                                                             int64_t room) {
      if (loop == loops_.size()) {
        results[write] = room > 0 ? elements[read] : T{};
        return;
      }
      const bool innermost = loop + 1 == loops_.size();
      const int64_t* reads = from_.tables[loop].data();
      const int64_t* writes = to_.tables[loop].data();
      const int64_t* rooms = room_ ? room_->tables[loop].data() : nullptr;
      for (int64_t i = 0; i < loops_[loop].second; ++i) {
        const int64_t left = room + (rooms ? rooms[i] : 0);
        if (!innermost) visit(loop + 1, read + reads[i], write + writes[i], left);
        else results[write + writes[i]] = left > 0 ? elements[read + reads[i]] : T{};
      }
    };
    visit(0, from_.constant, to_.constant, room_ ? room_->constant : 1);
  }

  TypeContext& context_;
  const Function& function_;
  std::vector<std::pair<Symbol, int64_t>> loops_;
  Sum from_, to_;
  std::optional<Sum> room_;  // the element is zero where it is not positive
};

}  // namespace

Expected<Tensor> rearranged(TypeContext& context, const Function& function, std::span<const Tensor> params) {
  Copy copy(context, function);
  if (copy.recognized()) return copy.run(params.front());
  TENON_TRY_ASSIGN(results, evaluate(context, function, params));
  return std::move(results->front());
}

}  // namespace tenon::compiler::loop
