// Instructions that compute: kernels of the CPU and of GPUs, accelerator programs, with their arguments, results and
// records.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "runtime/vm/run.h"
#include "support/try.h"

namespace tenon::runtime {

Status Run::other(uint32_t index) {
  return std::visit([&](const auto& operation) { return execute(operation); },
                    frames_.back().words->function->code[index].operation);
}
template <class O>
Status Run::execute(const O&) {
  return error("the instruction has no words", {}, {}, Fault::kInternal);
}

Expected<Tensor> Run::tensor(Register from) {
  const Word& word = at(from);
  if (word.tag == Tag::kTensor) return heap_.share(static_cast<const TensorObject*>(word.object)->tensor);
  if (word.tag != Tag::kScalar || word.dtype == kUnknownSize) return wrong(from, "a tensor");
  Storage storage = session_.buffers.take(sizeof(word.bits));
  if (!storage.memory) return no_memory();
  Tensor scalar = Tensor::in(std::move(storage), static_cast<DType>(word.dtype), {});
  __builtin_memcpy(scalar.bytes().data(), &word.bits, scalar.bytes().size());
  return scalar;
}

// Executes a call that computes: timed, recorded and kept for the hook. `call` puts its results into made_.
Status Run::compute(const Registers& from, const Registers& to, std::string_view name, std::string_view device,
                    auto&& call) {
  TENON_TRY(load_args(from));
  probes_.clear();
  const bool records = session_.options.profile && profile_.calls.size() < kMaxCallRecords;
  CallRecord record;
  if (records) record = {.name = name, .layer = layer(), .device = device, .begin_ns = session_.now()};
  gpu_ns_ = 0;
  TENON_TRY(call());
  if (records) {
    record.end_ns = session_.now();
    record.gpu_ns = gpu_ns_;
    if (device == "accel") {  // which may have begun before this instruction
      record.launch = static_cast<int32_t>(profile_.launches.size()) - 1;
      record.begin_ns = profile_.launches.back().begin_ns;
      record.end_ns = profile_.launches.back().end_ns;
    }
    if (call_begin_) record.begin_ns = *call_begin_;
    call_begin_.reset();
    profile_.calls.push_back(std::move(record));
  }
  own_.clear();
  for (const Tensor& result : made_) own_.push_back(result && result.alone());
  if (session_.options.hook) results_ = made_;
  else release_args();
  for (size_t i = 0; i < to.size(); ++i) {
    if (!made_[i]) return error(fmt::format("result {} of '{}' is missing", i, name));
    const Word word = heap_.tensor(std::move(made_[i]), own_[i]);
    if (word.tag == Tag::kEmpty) return no_memory();
    write(to[i], word);
  }
  grow();
  return {};
}

uint64_t Run::constants_of(const Registers& args) const {
  constexpr size_t kBits = 64;
  uint64_t constants = 0;
  for (size_t i = 0; i < std::min(args.size(), kBits); ++i) {
    const Word& word = at(args[i]);
    if (word.is_object() && word.object->count == Object::kImmortal) constants |= uint64_t{1} << i;
  }
  return constants;
}

// A kernel that was told to end fails for the reason of the run.
Status Run::or_stopped(Status status) const {
  if (!status) TENON_TRY(check_stop());
  return status;
}

Status Run::load_args(const Registers& from) {
  release_args();
  for (const Register r : from) {
    TENON_TRY_ASSIGN(value, tensor(r));
    args_.push_back(std::move(*value));
  }
  return {};
}

void Run::release_args() {
  for (Tensor& arg : args_) heap_.drop(std::move(arg));
  args_.clear();
}

const std::string& Run::layer() const {
  const Words& words = *frames_.back().words;
  return words.function->code[words.origin[static_cast<size_t>(now_ - words.code.data())]].layer;
}
const BoundKernel& Run::kernel_of() const {
  const Words& words = *frames_.back().words;
  return session_.kernels[words.index][words.origin[static_cast<size_t>(now_ - words.code.data())]];
}

// Copies the second operand after the first one, in the memory of the first where that has room and no other owner,
// else in memory with room for more. False: the operands are not two tensors that are one after the other in memory.
Expected<bool> Run::grow_by_concat(const CallKernel& call) {
  constexpr uint64_t kMostRoom = uint64_t{1} << 30;  // of a file's promise, beyond the double of what is needed
  const Word first = at(call.args[0]), second = at(call.args[1]);
  const auto* axis_attr = call.attrs.contains("axis") ? std::get_if<int64_t>(&call.attrs.at("axis")) : nullptr;
  if (first.tag != Tag::kTensor || second.tag != Tag::kTensor || !axis_attr) return false;
  auto& grown = *static_cast<TensorObject*>(first.object);
  const Tensor& added = static_cast<const TensorObject*>(second.object)->tensor;
  const Shape &before = grown.tensor.shape(), &tail = added.shape();
  const auto rank = static_cast<int64_t>(before.size());
  const int64_t axis = *axis_attr < 0 ? *axis_attr + rank : *axis_attr;
  if (axis < 0 || axis >= rank || tail.size() != before.size() || added.dtype() != grown.tensor.dtype()) return false;
  for (int64_t i = 0; i < rank; ++i) {
    const auto k = static_cast<size_t>(i);
    if (i != axis && (before[k] != tail[k] || (i < axis && before[k] != 1))) return false;
  }
  Shape shape = heap_.shape();
  shape.assign(before.begin(), before.end());
  shape[static_cast<size_t>(axis)] += tail[static_cast<size_t>(axis)];
  const DType dtype = added.dtype();
  const auto bytes = checked_bytes(dtype, shape);
  if (!bytes) return false;
  const auto needed = static_cast<uint64_t>(*bytes);
  const std::span<const std::byte> old = std::as_const(grown.tensor).bytes(), new_bytes = added.bytes();
  const bool in_place = grown.count == 1 && grown.room.bytes >= needed && grown.room.memory.use_count() == 2;
  Storage room = grown.room;
  if (!in_place) {
    const auto* capacity = call.attrs.contains(kCapacity) ? std::get_if<int64_t>(&call.attrs.at(kCapacity)) : nullptr;
    const auto promised = static_cast<uint64_t>(capacity ? std::max<int64_t>(*capacity, 0) : 0);
    room = session_.buffers.take(promised >= needed ? std::min(promised, std::max(kMostRoom, 2 * needed)) : 2 * needed);
    if (!room.memory) return no_memory();
    std::copy(old.begin(), old.end(), room.memory.get());
  }
  std::copy(new_bytes.begin(), new_bytes.end(), room.memory.get() + old.size());
  Tensor result = Tensor::in(room, dtype, std::move(shape));
  Word word = first;
  if (in_place) {
    heap_.drop(std::exchange(grown.tensor, std::move(result)));
    words_[frames_.back().base + call.args[0]] = {};
  } else {
    word = heap_.tensor(std::move(result), std::move(room));
    if (word.tag == Tag::kEmpty) return no_memory();
    grow();
  }
  write(call.results[0], word);
  return true;
}

Status Run::execute(const CallKernel& call) {
  if (kernel_of().grows) {
    const int64_t begin = session_.now();
    TENON_TRY_ASSIGN(grown, grow_by_concat(call));
    if (*grown) {
      if (session_.options.profile && profile_.calls.size() < kMaxCallRecords)
        profile_.calls.push_back({call.kernel, layer(), "cpu", begin, session_.now(), -1});
      return {};
    }
  }
  return compute(call.args, call.results, call.kernel, "cpu", [&]() -> Status {
    result_memory_.slots = {};
    const OperatorCall how{
        .outputs = call.results.size(), .constants = constants_of(call.args), .pool = session_.pool, .stop = &stop_};
    return or_stopped(kernel_of().kernel.call(args_, how, made_, result_memory_));
  });
}

Status Run::execute(const CallProgram& call) {
  return compute(call.args, call.results, executable_.programs[call.program].name, "accel", [&]() -> Status {
    if (started_ && !started_->is(call.program, args_)) abandon_started();
    if (!started_) TENON_TRY(start(call.program, std::unique_lock(session_.device), std::launch::deferred));
    return finish_started();
  });
}

// A hook is shown one instruction after another. While another run has the device, the program waits for it at its
// call.
Status Run::execute(const StartProgram& start) {
  if (session_.options.hook || started_) return {};
  std::unique_lock device(session_.device, std::try_to_lock);
  if (!device) return {};
  TENON_TRY(load_args(start.args));
  TENON_TRY(this->start(start.program, std::move(device), std::launch::async));
  release_args();
  return {};
}

Status Run::execute(const StartNative& start) {
  auto* gpu = std::get_if<cuda::GpuLibrary>(&session_.natives[start.code]);
  if (!gpu || session_.options.hook || started_on_gpu_) return {};
  TENON_TRY(load_args(start.args));
  gpu_begin_ = session_.now();
  TENON_TRY_ASSIGN(started, gpu->try_start(start.kernel, args_));
  started_on_gpu_ = std::move(*started);
  release_args();
  return {};
}

Status Run::start(uint32_t program, std::unique_lock<std::mutex> device, std::launch how) {
  const bool first = !session_.launched[program];
  session_.launched[program] = true;
  StartedProgram started{.device = std::move(device)};
  started.record.program = program;
  started.record.begin_ns = session_.now();
  for (const Tensor& input : args_) started.addresses.push_back(input.bytes().data());
  if (session_.options.timeline && first) started.recorded = session_.options.accelerator->simulator();
  if (started.recorded) started.recorded->record_timeline(true);
  ProgramOnDevice& launched = session_.programs[program];
  session_.copies.begin(number_);
  if (Status status = launched.start(args_, session_.copies); !status) {
    if (started.recorded) started.recorded->record_timeline(false);
    return status;
  }
  started.end = std::async(how, [this, &launched] {
    Status status = launched.finish(session_.options.launch_limit);
    return StartedProgram::End{std::move(status), session_.now()};
  });
  started_.emplace(std::move(started));
  return {};
}

// Waits for a launch whose results nothing wants: the run failed before it came to the call.
void Run::abandon_started() {
  started_on_gpu_.reset();
  call_begin_.reset();
  if (!started_) return;
  started_->end.wait();
  if (started_->recorded) started_->recorded->record_timeline(false);
  started_.reset();
}

Status Run::finish_started() {
  StartedProgram started = std::move(*started_);
  started_.reset();
  auto [status, end_ns] = started.end.get();
  LaunchRecord& record = started.record;
  record.end_ns = end_ns;
  if (started.recorded) {
    const auto timeline = started.recorded->timeline();
    record.timeline.assign(timeline.begin(), timeline.end());
    started.recorded->record_timeline(false);
  }
  if (!status) return status;
  ProgramOnDevice& program = session_.programs[record.program];
  TENON_TRY_ASSIGN(results, program.outputs(session_.copies));
  made_ = std::move(*results);
  TENON_TRY_ASSIGN(counters, driver::read_counters(*session_.options.accelerator));
  record.counters = *counters;
  if (session_.options.hook) {
    for (const Probe& probe : executable_.programs[record.program].probes) {
      TENON_TRY_ASSIGN(value, program.read(probe));
      probes_.push_back({&probe, std::move(*value)});
    }
  }
  profile_.launches.push_back(std::move(record));
  return {};
}

Status Run::execute(const CallNative& call) {
  const std::string& name = executable_.natives[call.code].kernels[call.kernel].name;
  auto& library = session_.natives[call.code];
  if (auto* gpu = std::get_if<cuda::GpuLibrary>(&library)) {
    return compute(call.args, call.results, name, "cuda", [&]() -> Status {
      result_memory_.slots = call.slots;
      auto started = std::move(started_on_gpu_);
      if (started && !started->is(*gpu, call.kernel, args_)) started.reset();
      if (started) call_begin_ = gpu_begin_;
      TENON_TRY_ASSIGN(seconds, started ? gpu->finish(*started, args_, made_, result_memory_)
                                        : gpu->call(call.kernel, args_, made_, result_memory_));
      gpu_ns_ = std::llround(1e9 * *seconds);
      return {};
    });
  }
  const auto& native = std::get<NativeLibrary>(library);
  RecordedCall* const recorded = recorded_call();
  if (recorded && recorded->is_recorded) {
    TENON_TRY_ASSIGN(replayed, replay(call, *recorded, native));
    if (*replayed) return {};
  }
  return compute(call.args, call.results, name, "cpu", [&]() -> Status {
    result_memory_.slots = call.slots;
    TENON_TRY(or_stopped(native.call(call.kernel, args_, made_, result_memory_, *session_.pool, &stop_)));
    if (recorded) record(*recorded, native.code().kernels[call.kernel].signature);
    return {};
  });
}

// A hook is shown handles of arguments and results, which a replayed call does not make.
Run::RecordedCall* Run::recorded_call() {
  if (session_.options.hook) return nullptr;
  const Words& words = *frames_.back().words;
  if (recorded_.empty()) recorded_.resize(executable_.functions.size());
  std::vector<RecordedCall>& calls = recorded_[words.index];
  if (calls.empty()) calls.resize(words.function->code.size());
  return &calls[words.origin[static_cast<size_t>(now_ - words.code.data())]];
}

void Run::record(RecordedCall& recorded, const Signature& signature) const {
  // Sizes that depend on the elements of a parameter are not the same in each call.
  const auto is_ragged = [](const SignatureBuffer& buffer) {
    return std::ranges::any_of(buffer.axes, [](const Size& size) {
      return std::ranges::any_of(size, [](const SizeStep& step) {
        return step.op == SizeStep::Op::kElement || step.op == SizeStep::Op::kIndex;
      });
    });
  };
  if (std::ranges::any_of(signature.params, is_ragged) || std::ranges::any_of(signature.results, is_ragged)) return;
  const auto describe_all = [](std::span<const Tensor> tensors, std::vector<RecordedCall::Buffer>& buffers) {
    buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      buffers[i].dtype = tensors[i].dtype();
      buffers[i].shape.assign(tensors[i].shape().begin(), tensors[i].shape().end());
      buffers[i].bytes = tensors[i].bytes().size();
    }
  };
  describe_all(args_, recorded.params);
  describe_all(made_, recorded.results);
  recorded.dims = result_memory_.dims;
  recorded.is_recorded = true;
}

Expected<bool> Run::replay(const CallNative& call, const RecordedCall& recorded, const NativeLibrary& library) {
  constexpr size_t kMostBuffers = 32, kMostScalars = 8, kAlignment = 64;
  if (call.args.size() + call.results.size() > kMostBuffers) return false;
  std::array<void*, kMostBuffers> buffers;
  alignas(kAlignment) std::array<std::byte, kMostScalars * kAlignment> scalars;
  size_t scalar_count = 0;
  const auto next_scalar = [&] { return scalars.data() + kAlignment * scalar_count++; };
  void** next = buffers.data();
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Word& word = at(call.args[i]);
    const RecordedCall::Buffer& param = recorded.params[i];
    if (word.tag == Tag::kTensor) {
      const Tensor& tensor = static_cast<const TensorObject*>(word.object)->tensor;
      if (tensor.dtype() != param.dtype || tensor.shape() != param.shape) return false;
      *next++ = const_cast<std::byte*>(tensor.bytes().data());
    } else if (word.tag == Tag::kScalar && word.is_scalar(param.dtype) && param.shape.empty() &&
               scalar_count < kMostScalars) {
      std::byte* const scalar = next_scalar();
      __builtin_memcpy(scalar, &word.bits, sizeof(word.bits));
      *next++ = scalar;
    } else {
      return false;
    }
  }
  result_memory_.slots = call.slots;
  made_.clear();
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (result.shape.empty()) {
      if (scalar_count == kMostScalars) return false;
      *next++ = next_scalar();
      made_.emplace_back();
      continue;
    }
    Storage storage = result_memory_.storage(i, result.bytes);
    if (!storage.memory) return false;  // for the message
    Shape shape = heap_.shape();
    shape.assign(result.shape.begin(), result.shape.end());
    made_.push_back(Tensor::in(std::move(storage), result.dtype, std::move(shape)));
    *next++ = made_.back().bytes().data();
  }
  const bool records = session_.options.profile && profile_.calls.size() < kMaxCallRecords;
  const int64_t begin = records ? session_.now() : 0;
  TENON_TRY(or_stopped(library.call_buffers(call.kernel, buffers.data(), recorded.dims, *session_.pool, &stop_)));
  if (records) {
    const std::string& name = executable_.natives[call.code].kernels[call.kernel].name;
    profile_.calls.push_back({name, layer(), "cpu", begin, session_.now(), -1});
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    const RecordedCall::Buffer& result = recorded.results[i];
    if (result.shape.empty()) {
      Word word(Tag::kScalar, static_cast<uint8_t>(result.dtype));
      __builtin_memcpy(&word.bits, buffers[call.args.size() + i], result.bytes);
      write(call.results[i], word);
      continue;
    }
    const bool own = made_[i].alone();
    const Word word = heap_.tensor(std::move(made_[i]), own);
    if (word.tag == Tag::kEmpty) return no_memory();
    write(call.results[i], word);
  }
  grow();
  return true;
}

Storage Run::ResultMemory::storage(size_t result, size_t bytes) {
  const ArenaSlot slot = slots.empty() ? ArenaSlot() : slots[result];
  if (slot.bytes != 0 && slot.bytes >= bytes) {
    Storage planned = run_.frame_arenas_.back().part(slot.offset, slot.bytes);
    // A hook sees the arguments after the call, so no result is in place of one.
    const auto is_argument = [&](const Tensor& arg) { return arg.bytes().data() == planned.memory.get(); };
    if (!run_.session_.options.hook || std::ranges::none_of(run_.args_, is_argument)) return planned;
  }
  return run_.session_.buffers.take(bytes);
}

}  // namespace tenon::runtime
