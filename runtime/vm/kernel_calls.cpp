#include "runtime/vm/kernel_calls.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "support/try.h"

namespace tenon::runtime {

Status KernelCalls::execute(const CallSite& site, const CallKernel& call) {
  return operands_.compute(call.args, call.results, [&] { return invoke(site, call); });
}

Status KernelCalls::invoke(const CallSite& site, const CallKernel& call) {
  const OperatorKernel& kernel = run_.session.kernels[site.words.index][site.instruction];
  return operands_.timed(site, call.kernel, "cpu", [&]() -> Status {
    operands_.memory.slots = {};
    // A function of the module, which is not an operator.
    if (call.kernel.starts_with('@')) operands_.memory.called_function = true;
    const OperatorCall how{.outputs = call.results.size(),
                           .constants = operands_.constants,
                           .pool = run_.session.pool,
                           .stop = &run_.stop};
    return run_.or_stopped(kernel.call(operands_.args, how, operands_.made, operands_.memory));
  });
}

Status KernelCalls::execute(const CallSite& site, const CallNative& call, const NativeLibrary& library) {
  RecordedCall* const recorded = recorded_call(site, call);
  if (recorded && recorded->is_recorded) {
    TENON_TRY_ASSIGN(replayed, replay(site, call, *recorded, library));
    if (*replayed) return {};
  }
  return operands_.compute(call.args, call.results, [&]() -> Status {
    TENON_TRY(invoke(site, call, library));
    if (recorded) record(site, call, *recorded, library.code().kernels[call.kernel].signature);
    return {};
  });
}

Status KernelCalls::invoke(const CallSite& site, const CallNative& call, const NativeLibrary& library) {
  return operands_.timed(site, library.code().kernels[call.kernel].name, "cpu", [&]() -> Status {
    operands_.memory.slots = call.slots;
    if (run_.session.options.observe_native) {
      TENON_TRY(bind_dims(library.code().kernels[call.kernel].signature, operands_.args, operands_.memory));
      run_.session.options.observe_native(library.code().kernels[call.kernel], operands_.memory.dims);
    }
    return run_.or_stopped(
        library.call(call.kernel, operands_.args, operands_.made, operands_.memory, *run_.session.pool, &run_.stop));
  });
}

// A hook is shown handles of arguments and results, which a replayed call does not make.
KernelCalls::RecordedCall* KernelCalls::recorded_call(const CallSite& site, const CallNative& call) {
  if (run_.session.options.hook) return nullptr;
  if (recorded_.empty()) recorded_.resize(run_.executable.functions.size());
  std::vector<RecordedCalls>& of_function = recorded_[site.words.index];
  if (of_function.empty()) of_function.resize(site.words.function->code.size());
  RecordedCalls& recorded = of_function[site.instruction];
  const int64_t leading = leading_size(call);
  for (RecordedCall& found : recorded.calls) {
    if (found.leading == leading) return &found;
  }
  const size_t most = run_.executable.units.empty() ? 1 : RecordedCalls::kMost;
  if (recorded.calls.size() < most) recorded.calls.emplace_back();
  RecordedCall& made = recorded.calls[recorded.next];  // whose memory is kept
  recorded.next = (recorded.next + 1) % most;
  made.is_recorded = false;
  made.leading = leading;
  return &made;
}

int64_t KernelCalls::leading_size(const CallNative& call) const {
  for (const Register r : call.args) {
    const Word& word = run_.frames.at(r);
    if (word.tag != Tag::kTensor) continue;
    const Shape& shape = static_cast<const TensorObject*>(word.object)->tensor.shape();
    if (!shape.empty()) return shape[0];
  }
  return 0;
}

void KernelCalls::record(const CallSite& site, const CallNative& call, RecordedCall& recorded,
                         const Signature& signature) const {
  // Sizes that depend on the elements of a parameter are not the same in each call.
  const auto is_ragged = [](const SignatureBuffer& buffer) {
    return std::ranges::any_of(buffer.axes, [](const Size& size) {
      return std::ranges::any_of(size, [](const SizeStep& step) {
        return step.op == SizeStep::Op::kElement || step.op == SizeStep::Op::kIndex;
      });
    });
  };
  if (!signature.tables.empty()) return;  // which are made for each call
  if (std::ranges::any_of(signature.params, is_ragged) || std::ranges::any_of(signature.results, is_ragged)) return;
  const auto describe_all = [](std::span<const Tensor> tensors, std::vector<RecordedCall::Buffer>& buffers) {
    buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      buffers[i].dtype = tensors[i].dtype();
      buffers[i].shape.assign(tensors[i].shape().begin(), tensors[i].shape().end());
      buffers[i].bytes = tensors[i].bytes().size();
    }
  };
  describe_all(operands_.args, recorded.params);
  describe_all(operands_.made, recorded.results);
  recorded.dims = operands_.memory.dims;
  recorded.in_place.clear();
  if (!run_.executable.states.empty())
    recorded.in_place = arguments_at_last_use(*site.words.function, site.instruction, call, signature);
  recorded.is_recorded = true;
}

// The memory of a replayed call: the addresses of its parameters and results; scalars are here.
struct KernelCalls::Buffers {
  static constexpr size_t kMost = 32, kMostScalars = 8, kAlignment = 64;
  std::array<void*, kMost> addresses;
  alignas(kAlignment) std::array<std::byte, kMostScalars * kAlignment> scalars;
  size_t count = 0, scalar_count = 0;

  void push(void* address) { addresses[count++] = address; }
  // Memory for a scalar; nullptr where there is no more.
  std::byte* push_scalar() {
    if (scalar_count == kMostScalars) return nullptr;
    std::byte* const scalar = scalars.data() + kAlignment * scalar_count++;
    push(scalar);
    return scalar;
  }
};

bool KernelCalls::collect_params(const CallNative& call, const RecordedCall& recorded, Buffers& buffers) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Word& word = run_.frames.at(call.args[i]);
    const RecordedCall::Buffer& param = recorded.params[i];
    if (word.tag == Tag::kTensor) {
      const Tensor& tensor = static_cast<const TensorObject*>(word.object)->tensor;
      if (tensor.dtype() != param.dtype || tensor.shape() != param.shape) return false;
      buffers.push(const_cast<std::byte*>(tensor.bytes().data()));
    } else if (word.is_scalar(param.dtype) && param.shape.empty()) {
      std::byte* const scalar = buffers.push_scalar();
      if (!scalar) return false;
      __builtin_memcpy(scalar, &word.bits, sizeof(word.bits));
    } else {
      return false;
    }
  }
  return true;
}

bool KernelCalls::may_write_states(const CallSite& site) {
  StateUpdate& update = *run_.update;
  if (update.accepted) return *update.accepted;
  const auto& first = run_.session.states.first_result;
  const bool is_made = first && run_.frames.depth() == 1 && site.instruction > first->made &&
                       site.instruction < first->returned && site.words.index == run_.executable.entry;
  if (!is_made) return false;
  const auto result = operands_.tensor(first->in);
  if (!result) return false;  // the end of the run says why
  update.accepted = update.accept(*result);
  return *update.accepted;
}

void KernelCalls::find_states(const CallSite& site, const CallNative& call, const RecordedCall& recorded) {
  constexpr long kHandles = 2;  // that of the session, and that of the object
  written_.assign(call.results.size(), Word());
  for (const auto& [result, param] : recorded.in_place) {
    const Word& word = run_.frames.at(call.args[param]);
    if (word.tag != Tag::kTensor) continue;
    const auto& object = *static_cast<TensorObject*>(word.object);
    if (!object.is_state || object.count != 1 || object.tensor.memory().use_count() != kHandles) continue;
    if (!may_write_states(site)) return;
    written_[result] = word;
  }
  const auto is_state = [](const Word& word) { return word.tag == Tag::kTensor; };
  if (!run_.has_written_states() && std::ranges::any_of(written_, is_state)) run_.begin_writing_states();
}

bool KernelCalls::collect_results(const CallNative& call, const RecordedCall& recorded, Buffers& buffers) {
  operands_.memory.slots = call.slots;
  operands_.made.clear();
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (!written_.empty() && written_[i].tag == Tag::kTensor) {
      buffers.push(static_cast<TensorObject*>(written_[i].object)->tensor.bytes().data());
      operands_.made.emplace_back();
      continue;
    }
    if (result.shape.empty()) {
      if (!buffers.push_scalar()) return false;
      operands_.made.emplace_back();
      continue;
    }
    Storage storage = operands_.memory.storage(i, result.bytes);
    if (!storage.memory) return false;  // for the message
    Shape shape = run_.heap.shape();
    shape.assign(result.shape.begin(), result.shape.end());
    operands_.made.push_back(Tensor::in(std::move(storage), result.dtype, std::move(shape)));
    buffers.push(operands_.made.back().bytes().data());
  }
  return true;
}

Expected<bool> KernelCalls::replay(const CallSite& site, const CallNative& call, const RecordedCall& recorded,
                                   const NativeLibrary& library) {
  Buffers buffers;
  if (call.args.size() + call.results.size() > Buffers::kMost) return false;
  if (!collect_params(call, recorded, buffers)) return false;
  written_.clear();
  if (run_.update && !recorded.in_place.empty()) find_states(site, call, recorded);
  if (!collect_results(call, recorded, buffers)) return false;
  if (run_.session.options.observe_native)
    run_.session.options.observe_native(library.code().kernels[call.kernel], recorded.dims);
  const bool records = run_.records_calls();
  const int64_t begin = records ? run_.session.now() : 0;
  TENON_TRY(run_.or_stopped(
      library.call_buffers(call.kernel, buffers.addresses.data(), recorded.dims, *run_.session.pool, &run_.stop)));
  if (records) operands_.record(site, library.code().kernels[call.kernel].name, begin);
  for (const Word& state : written_) Heap::retain(state);
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (!written_.empty() && written_[i].tag == Tag::kTensor) {
      run_.frames.write(call.results[i], written_[i]);
      continue;
    }
    if (result.shape.empty()) {
      Word word(Tag::kScalar, static_cast<uint8_t>(result.dtype));
      __builtin_memcpy(&word.bits, buffers.addresses[call.args.size() + i], result.bytes);
      run_.frames.write(call.results[i], word);
      continue;
    }
    Tensor& made = operands_.made[i];
    const bool own = made.alone();
    TENON_TRY(operands_.store(call.results[i], std::move(made), own));
  }
  run_.frames.record_peak();
  return true;
}

}  // namespace tenon::runtime
