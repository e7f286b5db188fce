#include "compiler/ir/batching.h"

#include <algorithm>
#include <iterator>

namespace tenon::compiler {
namespace {

// Each element of the result depends on the elements at its own index: instances are more elements.
Status batch_elementwise(BatchBuilder& b) { return b.finish(b.apply_to({b.arg(0)})); }

// Arguments broadcast with each other. The instances' axis of an argument of its own stays the first one, before the
// axes that the argument lacks in one instance.
Status batch_broadcast(BatchBuilder& b) {
  int64_t rank = 0;
  for (size_t i = 0; i < b.num_args(); ++i) rank = std::max(rank, b.rank(i));
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) {
    Term arg = b.arg(i);
    if (b.own(i) && b.rank(i) < rank) {
      std::vector<int64_t> axes;
      for (int64_t axis = 1; axis <= rank - b.rank(i); ++axis) axes.push_back(axis);
      arg = arg.expand_dims(std::move(axes));
    }
    args.push_back(arg);
  }
  return b.finish(b.apply_to(args));
}

// Shared weights multiply the rows of all instances at once; weights of each instance are a product an instance.
Status batch_dense(BatchBuilder& b) {
  const Term x = b.arg(0), w = b.arg(1);
  if (b.own(1)) return b.finish(matmul(x, w.swap_last_axes()));
  const Dims dims = x.dims();
  if (!b.ok() || dims.size() != 3) return b.status();
  Context& context = b.builder().context();
  const Term rows = x.reshape_to({context.multiply(dims[0], dims[1]), dims[2]});
  return b.finish(b.apply_to({rows, w}).reshape_to({dims[0], dims[1], w.dims()[0]}));
}

struct BatchingRow {
  OperatorId op;
  BatchingRule rule;
};

constexpr BatchingRow kBatching[] = {
    {ops::kDense, batch_dense},
    {ops::kMultiply, batch_broadcast},
    {ops::kTanh, batch_elementwise},
};

}  // namespace

BatchingRule find_batching(OperatorId op) {
  const auto* row = std::ranges::find(kBatching, op, &BatchingRow::op);
  return row == std::end(kBatching) ? nullptr : row->rule;
}

}  // namespace tenon::compiler
