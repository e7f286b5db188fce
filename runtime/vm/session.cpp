#include "runtime/vm/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "runtime/library/library.h"
#include "runtime/vm/accelerator_device.h"
#include "runtime/vm/function_kernel.h"
#include "runtime/vm/gpu_device.h"
#include "runtime/vm/launches.h"
#include "runtime/vm/request_queue.h"
#include "runtime/vm/run.h"
#include "runtime/vm/state.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

// Each size that varies, beside the first one of the same symbol.
std::vector<EqualSizes> equal_sizes_of(std::span<const Port> ports) {
  std::vector<EqualSizes> found;
  std::map<std::string_view, std::pair<size_t, size_t>> first;
  for (size_t i = 0; i < ports.size(); ++i) {
    for (size_t axis = 0; ports[i].is_tensor() && axis < ports[i].symbols.size(); ++axis) {
      const std::string& symbol = ports[i].symbols[axis];
      if (ports[i].shape[axis] != kAnySize || symbol.empty() || symbol == "?") continue;
      const auto [at, is_new] = first.try_emplace(symbol, i, axis);
      if (!is_new) found.push_back({at->second.first, at->second.second, i, axis});
    }
  }
  return found;
}

const Tensor& input_tensor(const Tensor& input) { return input; }
const Tensor& input_tensor(const Value& input) { return input.tensor(); }

}  // namespace

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype()), to_string(tensor.shape()));
}

Session::State::State(const Executable& program, SessionOptions how)
    : executable(program),
      options(std::move(how)),
      equal_sizes(equal_sizes_of(program.main().params)),
      states(program) {}
Session::State::~State() = default;

Status Session::State::resolve_kernels() {
  const auto lookup = [&](std::string_view name) -> CpuKernel {
    if (options.kernels) return options.kernels(name);
    const reference::Kernel kernel = reference::find(name);
    return kernel ? CpuKernel(kernel) : CpuKernel();
  };
  for (const Function& function : executable.functions) {
    auto& row = kernels.emplace_back(function.code.size());
    const auto where = [&](size_t i) { return fmt::format("{}: {}", executable.name, function.code[i].layer); };
    for (size_t i = 0; i < function.code.size(); ++i) {
      const auto* call = std::get_if<CallKernel>(&function.code[i].operation);
      if (!call) continue;
      if (CpuKernel kernel = lookup(call->kernel)) {
        row[i] = make_kernel(std::move(kernel), *call);
        continue;
      }
      if (options.kernels || call->kernel.find('.') == std::string::npos) {
        return error(fmt::format("no kernel is named '{}'", call->kernel), where(i),
                     "the executable is for another version of this runtime: compile the model again");
      }
      auto kernel = library_kernel(call->kernel, call->attrs);
      if (!kernel) {
        kernel.error().where = where(i);
        return std::unexpected(std::move(kernel.error()));
      }
      row[i] = std::move(*kernel);
      use_threads();
    }
  }
  return {};
}

Status Session::State::make_words() {
  TENON_TRY_ASSIGN(words, assemble(executable, !options.hook));
  code = std::move(*words);
  for (const Tensor& tensor : executable.constants) {
    Word word(Tag::kTensor);
    if (tensor.shape().empty()) {
      word = Word(Tag::kScalar, static_cast<uint8_t>(tensor.dtype()));
      std::ranges::copy(tensor.bytes(), reinterpret_cast<std::byte*>(&word.bits));
    } else {
      auto& object = constant_objects.emplace_back(std::make_unique<TensorObject>());
      object->count = Object::kImmortal;
      object->kind = Tag::kTensor;
      object->tensor = tensor;
      word.object = object.get();
    }
    constants.push_back(word);
  }
  return {};
}

// Code for another processor is left alone: the instructions are here too.
Status Session::State::load_compiled() {
  if (!executable.compiled || !options.native || !options.compiled || options.hook) return {};
  const CompiledCode& code = *executable.compiled;
  if (code.triple.substr(0, code.triple.find('-')) != host_architecture()) return {};
  const std::string where = fmt::format("{}: functions that were compiled ahead of time", executable.name);
  auto object = SharedObject::load(code.object);
  if (!object) {
    object.error().where = where;
    return std::unexpected(std::move(object.error()));
  }
  const auto get = reinterpret_cast<decltype(&tn_compiled_get)>(object->symbol("tn_compiled_get"));
  if (!get) return error("the code has no tn_compiled_get", where);
  const tn_compiled& table = *get();
  if (table.abi != TN_COMPILED_ABI)
    return error(fmt::format("the code has interface {}, this runtime has {}", table.abi, int{TN_COMPILED_ABI}), where,
                 "compile the model again with this version's tenon compile");
  if (table.count != this->code.size())
    return error(fmt::format("the code has {} functions, the executable {}", table.count, this->code.size()), where);
  compiled = std::move(*object);
  for (uint32_t i = 0; i < table.count; ++i) this->code[i].compiled = table.functions[i];
  return {};
}

Status Session::State::check_input_count(size_t count) const {
  const auto& params = executable.main().params;
  if (count == params.size()) return {};
  return error(fmt::format("{} inputs were given, the model takes {}: {}", count, params.size(), to_string(params)),
               executable.name);
}

Status Session::State::check_inputs(std::span<const Value> inputs) const {
  const auto& params = executable.main().params;
  TENON_TRY(check_input_count(inputs.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    const bool is_data = inputs[i] && inputs[i].object->kind == ValueObject::Kind::kData;
    if (params[i].is_tensor() ? params[i].accepts(inputs[i].tensor()) : is_data) continue;
    return error(fmt::format("input '{}' is {}, the model takes {}", params[i].name,
                             runtime::describe(executable, inputs[i]), type_text(params[i])),
                 executable.name);
  }
  return check_equal_sizes(inputs);
}

// Before any kernel runs; kernels check what this cannot, as sizes that are expressions.
template <class Input>
Status Session::State::check_equal_sizes(std::span<const Input> inputs) const {
  const auto& params = executable.main().params;
  for (const EqualSizes& sizes : equal_sizes) {
    const int64_t one = input_tensor(inputs[sizes.input]).shape()[sizes.axis],
                  other = input_tensor(inputs[sizes.other]).shape()[sizes.other_axis];
    if (one == other) continue;
    return error(
        fmt::format("axis {} of input '{}' has {} elements, axis {} of input '{}' has {}: both must have the size {}",
                    sizes.axis, params[sizes.input].name, one, sizes.other_axis, params[sizes.other].name, other,
                    params[sizes.input].symbols[sizes.axis]),
        executable.name, "give inputs whose sizes agree");
  }
  return {};
}

Status Session::State::check_inputs(std::span<const Tensor> inputs) const {
  const auto& params = executable.main().params;
  TENON_TRY(check_input_count(inputs.size()));
  const auto accepts = [](const Port& port, const Tensor& tensor) { return port.accepts(tensor); };
  if (std::ranges::equal(params, inputs, accepts)) return check_equal_sizes(inputs);
  return check_inputs(std::vector<Value>(inputs.begin(), inputs.end()));  // for the message
}

// Each configuration of the programs has one device, and each device programs. Without programs, devices are legal.
Status Session::State::check_devices() const {
  const std::vector<AcceleratorProgram>& all = executable.programs;
  if (all.empty()) return {};
  const auto& given = options.accelerators;
  if (given.empty()) {
    std::string devices;
    for (const spec::Config* config : configurations(executable))
      devices += fmt::format("{}--device behavioral:{}", devices.empty() ? "" : " ", config->name);
    return error(fmt::format("the executable has {} accelerator programs, and no device was given", all.size()),
                 executable.name, fmt::format("name one: {}", devices));
  }
  std::map<uint64_t, const driver::Info*> known;
  for (const driver::Accelerator* device : given) {
    const driver::Info& info = device->info();
    const auto [first, is_new] = known.emplace(spec::hash(info.config), &info);
    if (is_new) continue;
    return error(
        fmt::format("{} and {} have the same configuration '{}'", first->second->uri, info.uri, info.config.name),
        executable.name, "give one device of each configuration");
  }
  const auto unneeded =
      std::ranges::find_if(given, [&](const driver::Accelerator* device) { return !is_used(all, *device); });
  for (const AcceleratorProgram& program : all) {
    if (find_accelerator(given, program)) continue;
    if (unneeded != given.end()) TENON_TRY(check_configuration(program, **unneeded));
    return error(fmt::format("program '{}' is for configuration '{}', and no device of it was given", program.name,
                             program.config.name),
                 executable.name, fmt::format("add one: --device behavioral:{}", program.config.name));
  }
  if (unneeded == given.end()) return {};
  std::vector<std::string_view> names;
  for (const spec::Config* config : configurations(executable)) names.push_back(config->name);
  return error(fmt::format("no program is for configuration '{}' of this device; there are programs for {}",
                           (*unneeded)->info().config.name, fmt::join(names, ", ")),
               (*unneeded)->info().uri, "leave it out");
}

Status Session::State::upload_programs() {
  TENON_TRY(check_devices());
  std::vector<AcceleratorDevice*> accelerators;
  for (driver::Accelerator* accelerator : options.accelerators) {
    auto device = std::make_unique<AcceleratorDevice>(*accelerator);
    accelerators.push_back(device.get());
    devices.push_back(std::move(device));
  }
  for (uint32_t i = 0; i < executable.programs.size(); ++i) {
    const AcceleratorProgram& program = executable.programs[i];
    driver::Accelerator* accelerator = find_accelerator(options.accelerators, program);
    const auto device = std::ranges::find(options.accelerators, accelerator) - options.accelerators.begin();
    TENON_TRY(accelerators[static_cast<size_t>(device)]->upload(i, program));
    device_of_program.push_back(static_cast<uint32_t>(device));
  }
  launching = launching_functions(executable);
  return {};
}

Status Session::State::load_natives() {
  if (executable.natives.empty()) return {};
  if (!options.native) {
    return error("the executable has native code, which was forbidden", executable.name,
                 "run it without --no-native if you trust its maker");
  }
  OpenGpu gpu;
  for (const NativeCode& native : executable.natives) {
    if (native.is_for_gpu()) {
      TENON_TRY_ASSIGN(library, load_gpu_code(native, gpu));
      natives.emplace_back(std::move(*library));
      device_of_native.emplace_back(gpu.device);
      continue;
    }
    device_of_native.emplace_back();
    auto library = NativeLibrary::load(native, options.native_level);
    if (!library) {
      std::string& where = library.error().where;  // a kernel, or the code as a whole
      where = where.starts_with('@') ? fmt::format("{}: {}", executable.name, where) : executable.name;
      return std::unexpected(std::move(library.error()));
    }
    natives.emplace_back(std::move(*library));
  }
  use_threads();
  return {};
}

void Session::State::use_threads() {
  if (pool) return;
  // The memory of a pool's threads is a part of the budget.
  if (options.threads > 0 || options.budget > 0) own_pool.emplace(options.threads);
  pool = own_pool ? &*own_pool : &ThreadPool::of_process();
}

Expected<cuda::GpuLibrary> Session::State::load_gpu_code(const NativeCode& code, OpenGpu& open) {
  if (!open.gpu) {
    auto opened =
        cuda::Gpu::open(options.gpu, options.gpu_driver.empty() ? cuda::default_driver() : options.gpu_driver);
    if (!opened) {
      Diagnostic& failure = opened.error();
      failure.what = fmt::format("the executable has {} kernels for a GPU: {}", code.kernels.size(), failure.what);
      failure.where = executable.name;
      return std::unexpected(std::move(failure));
    }
    open.gpu = std::make_shared<cuda::SharedGpu>(std::move(*opened));
    open.device = static_cast<uint32_t>(devices.size());
    devices.push_back(std::make_unique<GpuDevice>());
  }
  return cuda::GpuLibrary::load(code, open.gpu, executable.constants);
}

bool Session::State::runs_together() const {
  const bool watches_runs = options.hook || options.budget != 0 || options.max_bytes != 0;
  return !executable.units.empty() && !watches_runs;
}

int64_t Session::State::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - origin).count();
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Expected<Session> Session::create(const Executable& executable, SessionOptions options) {
  auto state = std::make_unique<State>(executable, std::move(options));
  TENON_TRY(state->make_words());
  TENON_TRY(state->resolve_kernels());
  TENON_TRY(state->upload_programs());
  TENON_TRY(state->load_natives());
  TENON_TRY(state->load_compiled());
  return Session(std::move(state));
}

Expected<std::vector<Value>> Session::run_values(std::span<const Value> inputs) {
  TENON_TRY(state_->check_inputs(inputs));
  return state_->run(inputs);
}

std::vector<Expected<std::vector<Value>>> Session::run_many(std::span<const std::vector<Value>> instances) {
  std::vector<Expected<std::vector<Value>>> results;
  results.reserve(instances.size());
  if (!state_->runs_together()) {
    for (const std::vector<Value>& inputs : instances) results.push_back(run_values(inputs));
    return results;
  }
  std::vector<const std::vector<Value>*> checked;
  for (const std::vector<Value>& inputs : instances) {
    Status fits = state_->check_inputs(inputs);
    if (fits) checked.push_back(&inputs);
    results.emplace_back(fits ? Expected<std::vector<Value>>() : std::unexpected(std::move(fits.error())));
  }
  auto made = state_->run_many(checked);
  auto next = made.begin();
  for (auto& result : results) {
    if (result) result = std::move(*next++);
  }
  return results;
}

Expected<Ticket> Session::submit(std::vector<Value> inputs, Ticket::OnAnswer on_answer) {
  TENON_TRY(state_->check_inputs(inputs));
  std::call_once(state_->has_requests, [&] { state_->requests = std::make_unique<RequestQueue>(*state_); });
  return state_->requests->submit(std::move(inputs), std::move(on_answer));
}

Expected<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs) {
  std::vector<Tensor> results;
  TENON_TRY(run_into(inputs, results));
  return results;
}

Status Session::run_into(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  TENON_TRY(state_->check_inputs(inputs));
  return state_->run(inputs, results);
}

Status Session::update(std::span<const Tensor> inputs, std::vector<Tensor>& results,
                       FunctionRef<bool(const Tensor&)> accept) {
  const States& states = state_->states;
  const Executable& executable = state_->executable;
  if (executable.states.empty()) return error("no run of the executable updates a tensor", executable.name);
  if (states.is_lost())
    return error("a run that failed has lost the states", executable.name,
                 "set them again, as to those that were saved last");
  if (inputs.size() != states.other_inputs.size())
    return error(fmt::format("{} inputs were given, beside the states the model takes {}", inputs.size(),
                             states.other_inputs.size()),
                 executable.name);
  return state_->update(inputs, results, accept);
}

const Tensor& Session::state(size_t index) const {
  return state_->states.inputs[state_->executable.states[index].param];
}

bool Session::has_lost_states() const { return state_->states.is_lost(); }

Status Session::set_state(size_t index, Tensor value) {
  const size_t count = state_->executable.states.size();
  if (index >= count)
    return error(fmt::format("there is no state {}", index), state_->executable.name,
                 fmt::format("the executable has {}", count));
  const uint32_t param = state_->executable.states[index].param;
  const Port& port = state_->executable.main().params[param];
  if (!port.accepts(value))
    return error(
        fmt::format("the state '{}' is {}, the model takes {}", port.name, runtime::describe(value), type_text(port)),
        state_->executable.name);
  state_->states.inputs[param] = std::move(value);
  return {};
}

Expected<NamedTensors> Session::run(const NamedTensors& inputs) {
  const Function& main = state_->executable.main();
  for (const auto& [name, tensor] : inputs) {
    if (std::ranges::find(main.params, name, &Port::name) != main.params.end()) continue;
    return error(fmt::format("no input is named '{}'", name), state_->executable.name,
                 fmt::format("the inputs are {}", to_string(main.params)));
  }
  std::vector<Tensor> ordered;
  for (const Port& port : main.params) {
    auto found = inputs.find(port.name);
    ordered.push_back(found == inputs.end() ? Tensor() : found->second);
  }
  TENON_TRY_ASSIGN(results, run(ordered));
  NamedTensors named;
  for (size_t i = 0; i < results->size(); ++i) named.emplace(main.results[i].name, std::move((*results)[i]));
  return named;
}

const BatchCounts& Session::batches() const { return state_->profile.batches; }
const MemoryRecord& Session::memory() const { return state_->profile.memory; }
const Profile& Session::profile() const { return state_->profile; }

void Session::clear_profile() {
  state_->profile = {};
  for (const auto& device : state_->devices) device->clear_profile();
  state_->origin = std::chrono::steady_clock::now();
}

}  // namespace tenon::runtime
