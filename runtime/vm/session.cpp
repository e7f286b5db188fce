#include "runtime/vm/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <optional>

#include "runtime/library/library.h"
#include "runtime/reference/kernels.h"
#include "runtime/vm/program_on_device.h"

namespace tenon::runtime {
namespace {

struct Frame {
  const Function* function;
  const Registers* results;  // of the caller's call; nullptr for the entry
  std::vector<Tensor> registers;
  Storage arena;  // where the function has one
  uint32_t next = 0;
};

// What a run's tensors take, but for what is the caller's or a constant.
class Memory {
 public:
  const MemoryRecord& record() const { return record_; }

  void arena(uint64_t bytes) {
    record_.arena_bytes += bytes;
    grow(bytes);
  }
  void arena_ends(uint64_t bytes) { live_ -= bytes; }
  // A call's result; one that lies in an arena or shares an argument's buffer is not alone.
  void made(const Tensor& result) {
    if (!result || !result.alone()) return;
    ++record_.allocations;
    grow(result.bytes().size());
  }
  // A register forgets what it holds.
  void drop(Tensor& value) {
    if (value && value.alone()) live_ -= std::min<uint64_t>(live_, value.bytes().size());
    value = {};
  }

 private:
  void grow(uint64_t bytes) { record_.peak_bytes = std::max(record_.peak_bytes, live_ += bytes); }

  MemoryRecord record_;
  uint64_t live_ = 0;
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype()), to_string(tensor.shape()));
}

std::string list(std::span<const Port> ports) {
  std::string text;
  for (const Port& port : ports) text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(port));
  return text.empty() ? "none" : text;
}

}  // namespace

struct Session::State {
  const Executable& executable;
  SessionOptions options;
  std::vector<std::vector<LibraryKernel>> kernels;  // by function and instruction; empty where it calls none
  std::vector<ProgramOnDevice> programs;
  std::vector<bool> launched;  // by program, since the profile was cleared
  std::vector<NativeLibrary> natives;
  std::optional<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;              // where there is native code
  std::vector<std::vector<Storage>> idle;  // arenas that no frame has, by function
  Profile profile;
  std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now();

  State(const Executable& program, SessionOptions how) : executable(program), options(std::move(how)) {}

  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - origin).count();
  }

  Status resolve_kernels();
  Expected<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  Status check_inputs(std::span<const Tensor> inputs) const;
  Expected<Storage> take_arena(const Function& function);
  void give_back(const Function& function, Storage arena);
  Expected<std::vector<Tensor>> call_kernel(const CallKernel& call, const LibraryKernel& kernel,
                                            std::span<const Tensor> args);
  Expected<std::vector<Tensor>> call_program(uint32_t program, std::span<const Tensor> args);
};

Status Session::State::resolve_kernels() {
  auto lookup = options.kernels ? options.kernels : KernelLookup(reference::find);
  for (const Function& function : executable.functions) {
    auto& row = kernels.emplace_back(function.code.size());
    for (size_t i = 0; i < function.code.size(); ++i) {
      const auto* call = std::get_if<CallKernel>(&function.code[i].operation);
      if (!call) continue;
      const std::string where = fmt::format("{}: {}", executable.name, function.code[i].layer);
      if (const Kernel kernel = lookup(call->kernel)) {
        row[i] = [kernel, call](std::span<const Tensor> args) { return kernel(call->attrs, args); };
        continue;
      }
      if (options.kernels || call->kernel.find('.') == std::string::npos) {
        return error(fmt::format("no kernel is named '{}'", call->kernel), where,
                     "the executable is for another version of this runtime: compile the model again");
      }
      auto kernel = library_kernel(call->kernel, call->attrs, options.threads);
      if (!kernel) {
        kernel.error().where = where;
        return forward_error(kernel);
      }
      row[i] = std::move(*kernel);
    }
  }
  return {};
}

Status Session::State::check_inputs(std::span<const Tensor> inputs) const {
  const auto& params = executable.main().params;
  if (inputs.size() != params.size()) {
    return error(
        fmt::format("{} inputs were given, the model takes {}: {}", inputs.size(), params.size(), list(params)),
        executable.name);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (inputs[i] && inputs[i].dtype() == params[i].dtype && inputs[i].shape() == params[i].shape) continue;
    return error(
        fmt::format("input '{}' is {}, the model takes {} {}", params[i].name,
                    inputs[i] ? describe(inputs[i]) : "missing", name(params[i].dtype), to_string(params[i].shape)),
        executable.name);
  }
  return {};
}

Expected<Storage> Session::State::take_arena(const Function& function) {
  if (function.arena_bytes == 0) return Storage();
  auto& free = idle[static_cast<size_t>(&function - executable.functions.data())];
  Storage arena = free.empty() ? Storage::allocate(function.arena_bytes) : std::move(free.back());
  if (!free.empty()) free.pop_back();
  if (!arena.memory)
    return error(fmt::format("not enough memory for an arena of {} bytes", function.arena_bytes), executable.name);
  return arena;
}

// One that somebody still has a tensor in is left to him.
void Session::State::give_back(const Function& function, Storage arena) {
  if (arena.memory.use_count() == 1)
    idle[static_cast<size_t>(&function - executable.functions.data())].push_back(std::move(arena));
}

Expected<std::vector<Tensor>> Session::State::call_kernel(const CallKernel& call, const LibraryKernel& kernel,
                                                          std::span<const Tensor> args) {
  try {
    auto results = kernel(args);
    if (results && results->size() != call.results.size()) {
      return error(fmt::format("kernel '{}' has {} results, the executable expects {}", call.kernel, results->size(),
                               call.results.size()));
    }
    return results;
  } catch (const std::bad_alloc&) {
    return error(fmt::format("not enough memory for the results of kernel '{}'", call.kernel));
  }
}

Expected<std::vector<Tensor>> Session::State::call_program(uint32_t program, std::span<const Tensor> args) {
  driver::Accelerator& accelerator = *options.accelerator;
  sim::Simulator* simulator = options.timeline && !launched[program] ? accelerator.simulator() : nullptr;
  launched[program] = true;
  LaunchRecord record;
  record.program = program;
  record.begin_ns = now();
  if (simulator) simulator->record_timeline(true);
  auto results = programs[program].run(args, options.launch_limit);
  if (simulator) {
    auto timeline = simulator->timeline();
    record.timeline.assign(timeline.begin(), timeline.end());
    simulator->record_timeline(false);
  }
  record.end_ns = now();
  if (!results) return results;
  auto counters = driver::read_counters(accelerator);
  if (!counters) return forward_error(counters);
  record.counters = *counters;
  profile.launches.push_back(std::move(record));
  return results;
}

Expected<std::vector<Tensor>> Session::State::run(std::span<const Tensor> inputs) {
  if (auto status = check_inputs(inputs); !status) return forward_error(status);
  std::vector<Frame> frames;
  uint64_t stack = 0, steps = 0;
  std::vector<Tensor> args, results;  // of the call under way; reused to save allocations
  std::vector<Storage> places;
  Memory memory;

  auto enter = [&](const Function& function, std::span<const Tensor> values, const Registers* into) -> Status {
    stack += function.registers + 1;
    if (stack > options.max_stack) {
      if (!into) return error("the entry needs more registers than the limit", executable.name);
      return error(fmt::format("the calls nest too deep: {} frames with {} registers", frames.size(), stack), {},
                   "a recursion without end, or a larger max_stack is needed");
    }
    auto arena = take_arena(function);
    if (!arena) return forward_error(arena);
    memory.arena(function.arena_bytes);
    frames.push_back({&function, into, std::vector<Tensor>(function.registers), std::move(*arena), 0});
    std::ranges::copy(values, frames.back().registers.begin());
    return {};
  };
  auto leave = [&] {
    Frame& frame = frames.back();
    for (Tensor& value : frame.registers) memory.drop(value);
    memory.arena_ends(frame.function->arena_bytes);
    stack -= frame.function->registers + 1;
    give_back(*frame.function, std::move(frame.arena));
    frames.pop_back();
  };
  if (auto status = enter(executable.main(), inputs, nullptr); !status) return forward_error(status);

  for (;;) {
    Frame& frame = frames.back();
    const Function& function = *frame.function;
    const uint32_t at = frame.next++;
    const Instruction& instruction = function.code[at];
    auto fail = [&](Diagnostic diagnostic) {
      std::string here = fmt::format("{}: function '{}', instruction {}", executable.name, function.name, at);
      if (!instruction.layer.empty()) here += fmt::format(" ({})", instruction.layer);
      diagnostic.where = diagnostic.where.empty() ? here : fmt::format("{}: {}", here, diagnostic.where);
      return std::unexpected(std::move(diagnostic));
    };
    if (options.max_steps != 0 && ++steps > options.max_steps) {
      return fail({fmt::format("the run takes more than {} instructions", options.max_steps), {}, {}});
    }
    // Fetches registers; an empty one is the executable's fault.
    auto fetch = [&](const Registers& registers) -> Status {
      args.clear();
      for (Register r : registers) {
        if (!frame.registers[r]) return error(fmt::format("register {} is empty", r));
        args.push_back(frame.registers[r]);
      }
      return {};
    };
    auto store = [&](Frame& to, const Registers& registers, std::vector<Tensor>& values) {
      for (size_t i = 0; i < registers.size(); ++i) {
        memory.drop(to.registers[registers[i]]);
        to.registers[registers[i]] = std::move(values[i]);
      }
    };

    // Calls that compute: timed, recorded and shown to the hook.
    std::vector<TapValue> taps;
    auto compute = [&](const Registers& from, const Registers& to, std::string_view what, std::string_view device,
                       auto&& call) -> Status {
      if (auto status = fetch(from); !status) return status;
      CallRecord record{std::string(what), instruction.layer, std::string(device), now(), 0, -1};
      auto values = call();
      record.end_ns = now();
      if (!values) return forward_error(values);
      if (device == "accel") record.launch = static_cast<int32_t>(profile.launches.size()) - 1;
      profile.calls.push_back(std::move(record));
      results = std::move(*values);
      for (const Tensor& value : results) memory.made(value);
      if (options.hook) {
        if (auto status = options.hook({&function, at, &instruction, args, results, taps}); !status) return status;
      }
      args.clear();
      store(frame, to, results);
      return {};
    };

    std::optional<std::vector<Tensor>> finished;
    Status status = std::visit(
        Overloaded{
            [&](const CallKernel& call) -> Status {
              const LibraryKernel& kernel = kernels[static_cast<size_t>(&function - executable.functions.data())][at];
              return compute(call.args, call.results, call.kernel, "cpu",
                             [&] { return call_kernel(call, kernel, args); });
            },
            [&](const CallProgram& call) -> Status {
              return compute(call.args, call.results, executable.programs[call.program].name, "accel",
                             [&]() -> Expected<std::vector<Tensor>> {
                               auto values = call_program(call.program, args);
                               if (!values || !options.hook) return values;
                               for (const Tap& tap : executable.programs[call.program].taps) {
                                 auto value = programs[call.program].read(tap);
                                 if (!value) return forward_error(value);
                                 taps.push_back({&tap, std::move(*value)});
                               }
                               return values;
                             });
            },
            [&](const CallNative& call) -> Status {
              return compute(
                  call.args, call.results, executable.natives[call.code].kernels[call.kernel].name, "cpu", [&] {
                    places.clear();
                    for (const Place& place : call.places)
                      places.push_back(place.bytes == 0 ? Storage() : frame.arena.part(place.offset, place.bytes));
                    return natives[call.code].call(call.kernel, args, *pool, places);
                  });
            },
            [&](const CallFunction& call) -> Status {
              if (auto fetched = fetch(call.args); !fetched) return fetched;
              // `frame` is invalid once the new one is there.
              return enter(executable.functions[call.function], args, &call.results);
            },
            [&](const Move& move) -> Status {
              if (!frame.registers[move.from]) return error(fmt::format("register {} is empty", move.from));
              Tensor value = frame.registers[move.from];
              memory.drop(frame.registers[move.to]);
              frame.registers[move.to] = std::move(value);
              return {};
            },
            [&](const LoadConstant& load) -> Status {
              memory.drop(frame.registers[load.to]);
              frame.registers[load.to] = executable.constants[load.constant];
              return {};
            },
            [&](const Jump& jump) -> Status {
              frame.next = jump.target;
              return {};
            },
            [&](const Branch& branch) -> Status {
              const Tensor& condition = frame.registers[branch.condition];
              if (!condition) return error(fmt::format("register {} is empty", branch.condition));
              if (condition.dtype() != DType::kBool || condition.size() != 1) {
                return error(fmt::format("a branch on {}, must be bool with one element", describe(condition)));
              }
              if (condition.bytes()[0] == std::byte{0}) frame.next = branch.otherwise;
              return {};
            },
            [&](const Kill& kill) -> Status {
              for (Register r : kill.registers) memory.drop(frame.registers[r]);
              return {};
            },
            [&](const Return& ret) -> Status {
              if (auto fetched = fetch(ret.values); !fetched) return fetched;
              if (!frame.results) {
                for (size_t i = 0; i < args.size(); ++i) {
                  const Port& port = function.results[i];
                  if (args[i].dtype() == port.dtype && args[i].shape() == port.shape) continue;
                  return error(fmt::format("result {} became {}", to_string(port), describe(args[i])));
                }
                finished = std::move(args);
                leave();
                return {};
              }
              const Registers& into = *frame.results;
              leave();
              store(frames.back(), into, args);
              return {};
            }},
        instruction.operation);
    if (!status) return fail(std::move(status.error()));
    if (finished) {
      ++profile.runs;
      profile.memory = memory.record();
      return std::move(*finished);
    }
    if (options.hook && !std::holds_alternative<CallKernel>(instruction.operation) &&
        !std::holds_alternative<CallProgram>(instruction.operation) &&
        !std::holds_alternative<CallNative>(instruction.operation)) {
      if (auto status = options.hook({&function, at, &instruction, {}, {}, {}}); !status)
        return fail(std::move(status.error()));
    }
  }
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Expected<Session> Session::create(const Executable& executable, SessionOptions options) {
  auto state = std::make_unique<State>(executable, std::move(options));
  state->idle.resize(executable.functions.size());
  if (auto status = state->resolve_kernels(); !status) return forward_error(status);
  if (!executable.programs.empty() && !state->options.accelerator) {
    return error(
        fmt::format("the executable has {} accelerator programs, and no device was given", executable.programs.size()),
        executable.name, fmt::format("name one: --device behavioral:{}", executable.programs[0].config.name));
  }
  state->programs.reserve(executable.programs.size());
  for (const AcceleratorProgram& program : executable.programs) {
    auto loaded = ProgramOnDevice::upload(*state->options.accelerator, program);
    if (!loaded) return forward_error(loaded);
    state->programs.push_back(std::move(*loaded));
  }
  state->launched.assign(executable.programs.size(), false);
  if (!executable.natives.empty() && !state->options.native) {
    return error("the executable has native code, which was forbidden", executable.name,
                 "run it without --no-native if you trust its maker");
  }
  for (const NativeCode& native : executable.natives) {
    auto library = NativeLibrary::load(native, state->options.native_level);
    if (!library) {
      library.error().where = executable.name;
      return forward_error(library);
    }
    state->natives.push_back(std::move(*library));
  }
  if (!state->natives.empty()) {
    if (state->options.threads > 0) state->own_pool.emplace(state->options.threads);
    state->pool = state->own_pool ? &*state->own_pool : &ThreadPool::of_process();
  }
  return Session(std::move(state));
}

Expected<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs) { return state_->run(inputs); }

Expected<NamedTensors> Session::run(const NamedTensors& inputs) {
  const Function& main = state_->executable.main();
  for (const auto& [name, tensor] : inputs) {
    if (std::ranges::find(main.params, name, &Port::name) != main.params.end()) continue;
    return error(fmt::format("no input is named '{}'", name), state_->executable.name,
                 fmt::format("the inputs are {}", list(main.params)));
  }
  std::vector<Tensor> ordered;
  for (const Port& port : main.params) {
    auto found = inputs.find(port.name);
    ordered.push_back(found == inputs.end() ? Tensor() : found->second);
  }
  auto results = run(ordered);
  if (!results) return forward_error(results);
  NamedTensors named;
  for (size_t i = 0; i < results->size(); ++i) named.emplace(main.results[i].name, std::move((*results)[i]));
  return named;
}

const Profile& Session::profile() const { return state_->profile; }

void Session::clear_profile() {
  state_->profile = {};
  state_->launched.assign(state_->launched.size(), false);
  state_->origin = std::chrono::steady_clock::now();
}

}  // namespace tenon::runtime
