#include "runtime/vm/call_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/vm/rematerializer.h"
#include "support/try.h"

namespace tenon::runtime {

Expected<Tensor> CallOperands::tensor(Register from) {
  const Word& word = run_.frames.at(from);
  if (word.tag != Tag::kTensor && (word.tag != Tag::kScalar || word.dtype == kUnknownSize))
    return run_.frames.is_not(from, "a tensor");
  return tensor(word);
}

Expected<Tensor> CallOperands::tensor(const Word& word) {
  if (word.tag == Tag::kTensor) {
    auto& object = *static_cast<TensorObject*>(word.object);
    if (run_.rematerializer) TENON_TRY(run_.rematerializer->define(object));
    return run_.heap.share(object.tensor);
  }
  Storage storage = run_.session.buffers.take(sizeof(word.bits));
  if (!storage.memory) return run_.no_memory();
  Tensor scalar = Tensor::in(std::move(storage), static_cast<DType>(word.dtype), {});
  __builtin_memcpy(scalar.bytes().data(), &word.bits, scalar.bytes().size());
  return scalar;
}

Status CallOperands::load(const Registers& from) {
  release();
  for (const Register r : from) {
    TENON_TRY_ASSIGN(value, tensor(r));
    add(run_.frames.at(r), std::move(*value));
  }
  return {};
}

Status CallOperands::load(const Word& word) {
  TENON_TRY_ASSIGN(value, tensor(word));
  add(word, std::move(*value));
  return {};
}

void CallOperands::add(const Word& word, Tensor value) {
  constexpr size_t kBits = 64;
  if (args.size() < kBits && word.is_object() && word.object->count == Object::kImmortal)
    constants |= uint64_t{1} << args.size();
  args.push_back(std::move(value));
}

void CallOperands::release() {
  for (Tensor& arg : args) run_.heap.drop(std::move(arg));
  args.clear();
  constants = 0;
}

Status CallOperands::store(Register to, Tensor tensor, bool own) {
  const Word word = run_.heap.tensor(std::move(tensor), own);
  if (word.tag == Tag::kEmpty) return run_.no_memory();
  run_.frames.write(to, word);
  return {};
}

Status CallOperands::compute(const Registers& from, const Registers& to, FunctionRef<Status()> invoke) {
  TENON_TRY(load(from));
  TENON_TRY(invoke());
  own_.clear();
  for (const Tensor& result : made) own_.push_back(result && result.alone());
  if (run_.session.options.hook) results = made;
  else release();
  for (size_t i = 0; i < to.size(); ++i) TENON_TRY(store(to[i], std::move(made[i]), own_[i]));
  run_.frames.record_peak();
  return {};
}

Status CallOperands::timed(const CallSite& site, std::string_view name, std::string_view device,
                           FunctionRef<Status()> call) {
  probes.clear();
  Profile& profile = run_.profile;
  const bool records = run_.records_calls();
  CallRecord record;
  if (records) record = {.name = name, .layer = site.layer(), .device = device, .begin_ns = run_.session.now()};
  gpu_ns = 0;
  launch = -1;
  TENON_TRY(call());
  if (records) {
    record.end_ns = run_.session.now();
    record.gpu_ns = gpu_ns;
    if (launch != -1) {  // which may have begun before this instruction
      record.launch = launch;
      record.begin_ns = profile.launches.back().begin_ns;
      record.end_ns = profile.launches.back().end_ns;
    }
    if (call_begin_ns) record.begin_ns = *call_begin_ns;
    call_begin_ns.reset();
    profile.calls.push_back(std::move(record));
  }
  const auto missing = std::ranges::find_if(made, [](const Tensor& result) { return !result; });
  if (missing != made.end()) return error(fmt::format("result {} of '{}' is missing", missing - made.begin(), name));
  return {};
}

void CallOperands::record(const CallSite& site, std::string_view name, int64_t begin_ns) {
  if (run_.records_calls()) run_.profile.calls.push_back({name, site.layer(), "cpu", begin_ns, run_.session.now()});
}

Storage CallOperands::ResultMemory::storage(size_t result, size_t bytes) {
  if (operands_.run_.rematerializer) return operands_.run_.rematerializer->result_memory(result, bytes);
  const ArenaSlot slot = slots.empty() ? ArenaSlot() : slots[result];
  RunState& run = operands_.run_;
  if (slot.bytes != 0 && slot.bytes >= bytes) {
    Storage planned = run.frames.arena_slot(slot);
    // A hook sees the arguments after the call, so no result is in place of one.
    const auto is_argument = [&](const Tensor& arg) { return arg.bytes().data() == planned.memory.get(); };
    if (!run.session.options.hook || std::ranges::none_of(operands_.args, is_argument)) return planned;
  }
  return run.session.buffers.take(bytes);
}

}  // namespace tenon::runtime
