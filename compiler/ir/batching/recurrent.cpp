// Batching rules of recurrent layers, with shared weights: the sequences of all instances are sequences of one call,
// which end at different steps where the instances' lengths differ.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

// x [T, N, I], states [D, N, H] and, of a ragged layer, lengths [N]: the instances' axis goes before that of the
// sequences, and the two become one. `ragged`: the layer of sequences that end at different steps.
template <OperatorId ragged>
Status sequences(BatchBuilder& b) {
  constexpr size_t kFirstState = 4;  // after x and the weights w, r, b
  for (size_t i = 1; i < kFirstState; ++i) b.expect_shared(i);
  if (!b.ok()) return b.status();
  Context& context = b.builder().context();
  std::vector<Term> args;
  const size_t num_states_end = b.num_args() - (b.op().is(ragged) ? 1 : 0);
  for (size_t i = 0; i < num_states_end; ++i) {
    if (i >= 1 && i < kFirstState) {
      args.push_back(b.arg(i));
      continue;
    }
    const Term moved = b.as_own(i).transpose({1, 0, 2, 3});
    if (!b.ok()) return b.status();
    const Dims dims = moved.dims();
    args.push_back(b.reshaped(moved, {dims[0], context.multiply(dims[1], dims[2]), dims[3]}));
  }
  const Dim count = b.as_own(0).dims()[2], all_sequences = context.multiply(b.batch(), count);
  if (b.op().is(ragged)) args.push_back(b.reshaped(b.as_own(num_states_end), {all_sequences}));
  if (b.lengths()) {
    const Term of_each = b.lengths()->expand_dims({1}).broadcast_to({b.batch(), count});
    args.push_back(b.reshaped(of_each, {all_sequences}));
  }
  if (!b.ok()) return b.status();
  const Term results = b.lengths() ? b.apply(ragged, args, b.attrs(), b.computed()) : b.apply_to(args);
  if (!b.ok()) return b.status();
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
  for (uint32_t i = kFirstState; i < num_states_end; ++i) fields.push_back(separate(i - kFirstState + 1, 1).atom());
  if (!b.ok()) return b.status();
  return b.finish(b.term(b.builder().tuple(std::move(fields))));
}

constexpr BatchingRow kRecurrent[] = {
    {ops::kRnn, Batching::of_sequences(sequences<ops::kRnnRagged>)},
    {ops::kGru, Batching::of_sequences(sequences<ops::kGruRagged>)},
    {ops::kLstm, Batching::of_sequences(sequences<ops::kLstmRagged>)},
    {ops::kRnnRagged, sequences<ops::kRnnRagged>},
    {ops::kGruRagged, sequences<ops::kGruRagged>},
    {ops::kLstmRagged, sequences<ops::kLstmRagged>},
};

}  // namespace

std::span<const BatchingRow> recurrent_batching() { return kRecurrent; }

}  // namespace tenon::compiler::batching
