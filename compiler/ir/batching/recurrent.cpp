// Batching rules of recurrent layers, with shared weights: the sequences of all instances are sequences of one call.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// x [T, N, I], states [D, N, H]: the instances' axis goes before that of the sequences, and the two become one.
Status sequences(BatchBuilder& b) {
  constexpr size_t kFirstState = 4;  // after x and the weights w, r, b
  for (size_t i = 1; i < kFirstState; ++i) b.expect_shared(i);
  if (!b.ok()) return b.status();
  Context& context = b.builder().context();
  std::vector<Term> args;
  for (size_t i = 0; i < b.num_args(); ++i) {
    if (i >= 1 && i < kFirstState) {
      args.push_back(b.arg(i));
      continue;
    }
    const Term moved = b.as_own(i).transpose({1, 0, 2, 3});
    if (!b.ok()) return b.status();
    const Dims dims = moved.dims();
    args.push_back(b.reshaped(moved, {dims[0], context.multiply(dims[1], dims[2]), dims[3]}));
  }
  const Term results = b.apply_to(args);
  if (!b.ok()) return b.status();
  const Dim count = b.as_own(0).dims()[2];  // of an instance's sequences
  // The axis of all sequences becomes two, of which the instances' goes to the front.
  const auto separate = [&](uint32_t index, int64_t axis) {
    const Term all = b.field(results, index);
    if (!b.ok()) return all;
    Dims dims = all.dims();
    dims[static_cast<size_t>(axis)] = count;
    dims.insert(dims.begin() + axis, b.batch());
    std::vector<int64_t> axes{axis};
    for (int64_t i = 0; i < std::ssize(dims); ++i) {
      if (i != axis) axes.push_back(i);
    }
    return b.reshaped(all, dims).transpose(std::move(axes));
  };
  Atoms fields{separate(0, 2).atom()};
  for (uint32_t i = kFirstState; i < b.num_args(); ++i) fields.push_back(separate(i - kFirstState + 1, 1).atom());
  if (!b.ok()) return b.status();
  return b.finish(b.term(b.builder().tuple(std::move(fields))));
}

constexpr BatchingRow kRecurrent[] = {
    {ops::kRnn, sequences},
    {ops::kGru, sequences},
    {ops::kLstm, sequences},
};

}  // namespace

std::span<const BatchingRow> recurrent_batching() { return kRecurrent; }

}  // namespace tenon::compiler::batching
