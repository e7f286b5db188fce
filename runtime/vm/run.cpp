// Executes the entry function of a session's executable, instruction by instruction.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/vm/state.h"
#include "support/try.h"

namespace tenon::runtime {

class Session::State::Run {
 public:
  explicit Run(State& session)
      : session_(session),
        executable_(session.executable),
        stack_(session.executable, session.arenas, session.options.max_stack) {}

  Expected<std::vector<Tensor>> operator()(std::span<const Tensor> inputs) {
    TENON_TRY(stack_.enter(executable_.entry, inputs, nullptr));
    uint64_t steps = 0;
    const uint64_t limit = session_.options.max_steps;
    while (!finished_) {
      Frame& frame = stack_.top();
      function_ = &executable_.functions[frame.function];
      index_ = frame.next++;
      Status status = {};
      if (limit != 0 && ++steps > limit) status = error(fmt::format("the run takes more than {} instructions", limit));
      if (status)
        status = std::visit([&](const auto& operation) { return execute(operation); }, instruction().operation);
      if (!status) return std::unexpected(located(std::move(status.error())));
    }
    ++session_.profile.runs;
    session_.profile.memory = stack_.memory();
    return std::move(args_);
  }

 private:
  const Instruction& instruction() const { return function_->code[index_]; }

  Diagnostic located(Diagnostic diagnostic) const {
    std::string location = fmt::format("{}: function '{}', instruction {}", executable_.name, function_->name, index_);
    if (!instruction().layer.empty()) location += fmt::format(" ({})", instruction().layer);
    diagnostic.where = diagnostic.where.empty() ? location : fmt::format("{}: {}", location, diagnostic.where);
    return diagnostic;
  }

  // Reads the registers into args_.
  Status fetch(const Registers& registers) {
    args_.clear();
    for (const Register r : registers) {
      TENON_TRY_ASSIGN(value, stack_.top().read(r));
      args_.push_back(std::move(*value));
    }
    return {};
  }
  void store(const Registers& registers, std::vector<Tensor>& values) {
    for (size_t i = 0; i < registers.size(); ++i) stack_.write(registers[i], std::move(values[i]));
  }

  Status show(std::span<const Tensor> args, std::span<const Tensor> results, std::span<const ProbeValue> probes) const {
    if (!session_.options.hook) return {};
    return session_.options.hook({function_, index_, &instruction(), args, results, probes});
  }
  Status show_nothing() const { return show({}, {}, {}); }

  // Executes a call that computes: timed, recorded and shown to the hook.
  Status compute(const Registers& from, const Registers& to, std::string_view name, std::string_view device,
                 auto&& call) {
    TENON_TRY(fetch(from));
    probes_.clear();
    CallRecord record{std::string(name), instruction().layer, std::string(device), session_.now(), 0, -1};
    TENON_TRY_ASSIGN(results, call());
    record.end_ns = session_.now();
    auto& profile = session_.profile;
    if (device == "accel") record.launch = static_cast<int32_t>(profile.launches.size()) - 1;
    profile.calls.push_back(std::move(record));
    for (const Tensor& result : *results) stack_.count_result(result);
    TENON_TRY(show(args_, *results, probes_));
    args_.clear();
    store(to, *results);
    return {};
  }

  Status execute(const CallKernel& call) {
    return compute(call.args, call.results, call.kernel, "cpu", [&]() -> Expected<std::vector<Tensor>> {
      try {
        auto results = session_.kernels[stack_.top().function][index_](args_);
        if (!results || results->size() == call.results.size()) return results;
        return error(fmt::format("kernel '{}' has {} results, the executable expects {}", call.kernel, results->size(),
                                 call.results.size()));
      } catch (const std::bad_alloc&) {
        return error(fmt::format("not enough memory for the results of kernel '{}'", call.kernel));
      }
    });
  }

  Status execute(const CallProgram& call) {
    const AcceleratorProgram& program = executable_.programs[call.program];
    return compute(call.args, call.results, program.name, "accel", [&]() -> Expected<std::vector<Tensor>> {
      auto results = launch(call.program);
      if (!results || !session_.options.hook) return results;
      for (const Probe& probe : program.probes) {
        TENON_TRY_ASSIGN(value, session_.programs[call.program].read(probe));
        probes_.push_back({&probe, std::move(*value)});
      }
      return results;
    });
  }

  Expected<std::vector<Tensor>> launch(uint32_t program) {
    driver::Accelerator& accelerator = *session_.options.accelerator;
    const bool first = !session_.launched[program];
    session_.launched[program] = true;
    sim::Simulator* simulator = session_.options.timeline && first ? accelerator.simulator() : nullptr;
    LaunchRecord record;
    record.program = program;
    record.begin_ns = session_.now();
    if (simulator) simulator->record_timeline(true);
    auto results = session_.programs[program].run(args_, session_.options.launch_limit);
    if (simulator) {
      const auto timeline = simulator->timeline();
      record.timeline.assign(timeline.begin(), timeline.end());
      simulator->record_timeline(false);
    }
    record.end_ns = session_.now();
    if (!results) return results;
    TENON_TRY_ASSIGN(counters, driver::read_counters(accelerator));
    record.counters = *counters;
    session_.profile.launches.push_back(std::move(record));
    return results;
  }

  Status execute(const CallNative& call) {
    const std::string& name = executable_.natives[call.code].kernels[call.kernel].name;
    return compute(call.args, call.results, name, "cpu", [&] {
      storage_.clear();
      for (const ArenaSlot& slot : call.slots) {
        storage_.push_back(slot.bytes == 0 ? Storage() : stack_.top().arena.part(slot.offset, slot.bytes));
      }
      return session_.natives[call.code].call(call.kernel, args_, *session_.pool, storage_);
    });
  }

  Status execute(const CallFunction& call) {
    TENON_TRY(fetch(call.args));
    TENON_TRY(stack_.enter(call.function, args_, &call.results));
    return show_nothing();
  }

  Status execute(const Move& move) {
    TENON_TRY_ASSIGN(value, stack_.top().read(move.from));
    stack_.write(move.to, std::move(*value));
    return show_nothing();
  }

  Status execute(const LoadConstant& load) {
    stack_.write(load.to, executable_.constants[load.constant]);
    return show_nothing();
  }

  Status execute(const Jump& jump) {
    stack_.top().next = jump.target;
    return show_nothing();
  }

  Status execute(const Branch& branch) {
    TENON_TRY_ASSIGN(condition, stack_.top().read(branch.condition));
    if (condition->dtype() != DType::kBool || condition->size() != 1) {
      return error(fmt::format("a branch on {}, must be bool with one element", describe(*condition)));
    }
    if (condition->bytes()[0] == std::byte{0}) stack_.top().next = branch.otherwise;
    return show_nothing();
  }

  Status execute(const Kill& kill) {
    for (const Register r : kill.registers) stack_.write(r, {});
    return show_nothing();
  }

  Status execute(const Return& ret) {
    TENON_TRY(fetch(ret.values));
    if (const Registers* results = stack_.top().results) {
      stack_.leave();
      store(*results, args_);
      return show_nothing();
    }
    for (size_t i = 0; i < args_.size(); ++i) {
      const Port& port = function_->results[i];
      if (args_[i].dtype() == port.dtype && args_[i].shape() == port.shape) continue;
      return error(fmt::format("result {} became {}", to_string(port), describe(args_[i])));
    }
    stack_.leave();
    finished_ = true;
    return {};
  }

  State& session_;
  const Executable& executable_;
  Stack stack_;
  const Function* function_ = nullptr;  // of the current instruction
  uint32_t index_ = 0;                  // of the current instruction
  bool finished_ = false;               // args_ are the results
  std::vector<Tensor> args_;            // of the current call; a member to save allocations, like the next two
  std::vector<Storage> storage_;
  std::vector<ProbeValue> probes_;
};

Expected<std::vector<Tensor>> Session::State::run(std::span<const Tensor> inputs) { return Run(*this)(inputs); }

}  // namespace tenon::runtime
