// Programs, devices and sessions of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>

#include "runtime/c_api/handles.h"
#include "runtime/library/library.h"
#include "runtime/native/functions.h"
#include "support/try.h"

namespace tenon::runtime::c_api {
namespace {

std::vector<tenon_port> ports_of(const std::vector<Port>& ports) {
  std::vector<tenon_port> list;
  for (const Port& port : ports) list.push_back({&port, type_text(port)});
  return list;
}

tenon_program* new_program(Executable executable) {
  auto program = std::make_unique<tenon_program>();
  program->executable = std::make_shared<const Executable>(std::move(executable));
  program->inputs = ports_of(program->executable->main().params);
  program->outputs = ports_of(program->executable->main().results);
  program->configurations = configurations(*program->executable);
  return program.release();
}

Status load_program(const char* path, tenon_program** out) {
  TENON_TRY(require("tenon_program_load", {{"path", path}, {"out", out}}));
  TENON_TRY_ASSIGN(loaded, load(path));
  *out = new_program(std::move(*loaded));
  return {};
}

Status load_bytes(const void* bytes, size_t size, const char* name, tenon_program** out) {
  TENON_TRY(require("tenon_program_load_bytes", {{"bytes", bytes}, {"name", name}, {"out", out}}));
  TENON_TRY_ASSIGN(loaded, deserialize({static_cast<const std::byte*>(bytes), size}, name));
  *out = new_program(std::move(*loaded));
  return {};
}

// The options that the caller's version of the struct has; the defaults for later members.
Expected<tenon_session_options> complete(const tenon_session_options* given, const char* function) {
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  if (!given) return options;
  if (given->size < sizeof given->size || given->size > 4096) {
    return error(fmt::format("the options have size {}, must be sizeof(tenon_session_options)", given->size), function,
                 "initialize them with TENON_SESSION_OPTIONS_INIT", Fault::kUsage);
  }
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof options; i < given->size; ++i) {
    if (bytes[i] == 0) continue;
    return error("the options have members that this library does not know, and that are not 0", function,
                 "use a library of the header's version, or a later one", Fault::kUsage);
  }
  return options;
}

Expected<std::chrono::nanoseconds> duration(double seconds, const char* option, const char* function) {
  if (!(seconds >= 0 && seconds <= 1e9))
    return error(fmt::format("{} is {}, must be 0 to 1e9", option, seconds), function, {}, Fault::kUsage);
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

Status create_session(const tenon_program* program, const tenon_session_options* given, tenon_session** out) {
  constexpr char kFunction[] = "tenon_session_create";
  TENON_TRY(require(kFunction, {{"program", program}, {"out", out}}));
  TENON_TRY_ASSIGN(made, session_options(given, kFunction));
  auto session = std::make_unique<tenon_session>();
  session->executable = program->executable;
  session->accelerators = std::move(made->accelerators);
  made->options.cancel = &session->cancelled;
  TENON_TRY_ASSIGN(created, Session::create(*session->executable, std::move(made->options)));
  session->session = std::move(*created);
  *out = session.release();
  return {};
}

// The values of `count` handles, of which none may be NULL.
Expected<std::vector<Value>> input_values(const tenon_value* const* handles, size_t count, const char* function,
                                          const std::string& instance = {}) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    if (!handles[i]) return error(fmt::format("input {}{} is NULL", i, instance), function, {}, Fault::kUsage);
    values.push_back(handles[i]->value);
  }
  return values;
}

Status check_outputs(const Executable& executable, size_t output_count, const char* function) {
  const size_t results = executable.main().results.size();
  if (output_count == results) return {};
  return error(fmt::format("there is space for {} outputs, the program has {}", output_count, results), function, {},
               Fault::kUsage);
}

std::vector<std::unique_ptr<tenon_value>> handles_of(std::vector<Value> values) {
  std::vector<std::unique_ptr<tenon_value>> handles;
  for (Value& value : values) handles.push_back(std::make_unique<tenon_value>(std::move(value)));
  return handles;
}

Status run(tenon_session* session, const tenon_value* const* inputs, size_t input_count, tenon_value** outputs,
           size_t output_count) {
  constexpr char kFunction[] = "tenon_session_run";
  TENON_TRY(require(kFunction, {{"session", session}}));
  TENON_TRY(check_outputs(*session->executable, output_count, kFunction));
  if (input_count > 0) TENON_TRY(require(kFunction, {{"inputs", inputs}}));
  if (output_count > 0) TENON_TRY(require(kFunction, {{"outputs", outputs}}));
  TENON_TRY_ASSIGN(values, input_values(inputs, input_count, kFunction));
  TENON_TRY_ASSIGN(made, session->session->run_values(*values));
  auto handles = handles_of(std::move(*made));
  for (size_t i = 0; i < handles.size(); ++i) outputs[i] = handles[i].release();
  return {};
}

Status run_many(tenon_session* session, size_t instance_count, const tenon_value* const* inputs, size_t input_count,
                tenon_value** outputs, size_t output_count, tenon_error** errors) {
  constexpr char kFunction[] = "tenon_session_run_many";
  TENON_TRY(require(kFunction, {{"session", session}}));
  TENON_TRY(check_outputs(*session->executable, output_count, kFunction));
  if (instance_count == 0) return {};
  TENON_TRY(require(kFunction, {{"errors", errors}}));
  if (input_count > 0) TENON_TRY(require(kFunction, {{"inputs", inputs}}));
  if (output_count > 0) TENON_TRY(require(kFunction, {{"outputs", outputs}}));
  std::vector<std::vector<Value>> instances;
  for (size_t i = 0; i < instance_count; ++i) {
    TENON_TRY_ASSIGN(values,
                     input_values(inputs + i * input_count, input_count, kFunction, fmt::format(" of instance {}", i)));
    instances.push_back(std::move(*values));
  }
  auto results = session->session->run_many(instances);
  // Nothing is written until everything exists.
  std::vector<std::vector<std::unique_ptr<tenon_value>>> handles(instance_count);
  struct FreeError {
    void operator()(tenon_error* error) const { tenon_error_free(error); }
  };
  std::vector<std::unique_ptr<tenon_error, FreeError>> failures(instance_count);
  for (size_t i = 0; i < instance_count; ++i) {
    if (results[i]) handles[i] = handles_of(std::move(*results[i]));
    else failures[i].reset(make_error(std::move(results[i].error())));
  }
  for (size_t i = 0; i < instance_count; ++i) {
    for (size_t k = 0; k < output_count; ++k)
      outputs[i * output_count + k] = failures[i] ? nullptr : handles[i][k].release();
    errors[i] = failures[i].release();
  }
  return {};
}

Status submit(tenon_session* session, const tenon_value* const* inputs, size_t input_count, tenon_ticket** out) {
  constexpr char kFunction[] = "tenon_session_submit";
  TENON_TRY(require(kFunction, {{"session", session}, {"out", out}}));
  if (input_count > 0) TENON_TRY(require(kFunction, {{"inputs", inputs}}));
  TENON_TRY_ASSIGN(values, input_values(inputs, input_count, kFunction));
  TENON_TRY_ASSIGN(ticket, session->session->submit(std::move(*values)));
  *out = new tenon_ticket{session->executable, std::move(*ticket)};
  return {};
}

Status wait(const tenon_ticket* ticket, tenon_value** outputs, size_t output_count) {
  constexpr char kFunction[] = "tenon_ticket_wait";
  TENON_TRY(require(kFunction, {{"ticket", ticket}}));
  TENON_TRY(check_outputs(*ticket->executable, output_count, kFunction));
  if (output_count > 0) TENON_TRY(require(kFunction, {{"outputs", outputs}}));
  TENON_TRY_ASSIGN(made, ticket->ticket.wait());
  auto handles = handles_of(std::move(*made));
  for (size_t i = 0; i < handles.size(); ++i) outputs[i] = handles[i].release();
  return {};
}

// A member of the options that is an array, none of whose elements may be NULL; `size` is the name of its size.
template <class T>
Expected<std::span<T* const>> elements(T* const* array, size_t count, const char* name, const char* size,
                                       const char* function) {
  if (!array && count > 0)
    return error(fmt::format("{} is NULL, and {} is {}", name, size, count), function, {}, Fault::kUsage);
  const std::span<T* const> all(array, count);
  const auto null = std::ranges::find(all, nullptr);
  if (null == all.end()) return all;
  return error(fmt::format("{}[{}] is NULL", name, null - all.begin()), function, {}, Fault::kUsage);
}

// The devices of the options: `devices`, or `device`.
Expected<std::vector<std::shared_ptr<driver::Accelerator>>> devices_of(const tenon_session_options& options,
                                                                       const char* function) {
  if (options.device && options.device_count > 0)
    return error("device and devices are both given", function, "put the device among the others", Fault::kUsage);
  TENON_TRY_ASSIGN(devices, elements(options.devices, options.device_count, "devices", "device_count", function));
  std::vector<std::shared_ptr<driver::Accelerator>> accelerators;
  if (options.device) accelerators.push_back(options.device->accelerator);
  for (const tenon_device* device : *devices) accelerators.push_back(device->accelerator);
  return accelerators;
}

// The code outside of the program that it calls.
Status open_files(const tenon_session_options& options, const char* function) {
  TENON_TRY_ASSIGN(libraries,
                   elements(options.libraries, options.library_count, "libraries", "library_count", function));
  for (const char* file : *libraries) {
    TENON_TRY(open_functions(file));
  }
  TENON_TRY_ASSIGN(plugins, elements(options.plugins, options.plugin_count, "plugins", "plugin_count", function));
  for (const char* file : *plugins) {
    TENON_TRY(use_library(file));
  }
  return {};
}

const tenon_port* at(const std::vector<tenon_port>& ports, size_t index) {
  return index < ports.size() ? &ports[index] : nullptr;
}

}  // namespace

Expected<DevicesAndOptions> session_options(const tenon_session_options* given, const char* function) {
  TENON_TRY_ASSIGN(options, complete(given, function));
  DevicesAndOptions made;
  TENON_TRY_ASSIGN(devices, devices_of(*options, function));
  made.accelerators = std::move(*devices);
  SessionOptions& native = made.options;
  for (const auto& accelerator : made.accelerators) native.accelerators.push_back(accelerator.get());
  native.profile = false;
  native.native = options->refuse_native == 0;
  native.threads = options->threads;
  if (options->native_level) native.native_level = options->native_level;
  native.max_bytes = options->max_bytes;
  native.budget = options->budget;
  native.max_steps = options->max_steps;
  constexpr uint64_t kMostWaitUs = 1'000'000'000'000;
  if (options->max_wait_us > kMostWaitUs) {
    return error(fmt::format("max_wait_us is {}, must be 0 to {}", options->max_wait_us, kMostWaitUs), function, {},
                 Fault::kUsage);
  }
  native.max_wait = std::chrono::microseconds(options->max_wait_us);
  if (options->max_batch > 0) native.max_batch = options->max_batch;
  if (options->max_queue > 0) native.max_queue = options->max_queue;
  if (options->max_stack > 0) native.max_stack = options->max_stack;
  TENON_TRY_ASSIGN(max_time, duration(options->max_seconds, "max_seconds", function));
  native.max_time = *max_time;
  TENON_TRY_ASSIGN(launch_limit, duration(options->launch_seconds, "launch_seconds", function));
  if (options->launch_seconds > 0) native.launch_limit = *launch_limit;
  // Last: names of plugins stay bound to their files.
  TENON_TRY(open_files(*options, function));
  return made;
}

}  // namespace tenon::runtime::c_api

using namespace tenon;           // NOLINT: the definitions below are the C interface of what these namespaces hold
using namespace tenon::runtime;  // NOLINT
using c_api::guarded;
using c_api::require;

tenon_error* tenon_program_load(const char* path, tenon_program** out) {
  return guarded([&] { return c_api::load_program(path, out); });
}
tenon_error* tenon_program_load_bytes(const void* bytes, size_t size, const char* name, tenon_program** out) {
  return guarded([&] { return c_api::load_bytes(bytes, size, name, out); });
}
tenon_error* tenon_program_save(const tenon_program* program, const char* path) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_program_save", {{"program", program}, {"path", path}}));
    return save(*program->executable, path);
  });
}
void tenon_program_free(tenon_program* program) { delete program; }
const char* tenon_program_name(const tenon_program* program) { return program->executable->name.c_str(); }
const char* tenon_program_configuration(const tenon_program* program) {
  return tenon_program_configuration_at(program, 0);
}
size_t tenon_program_configuration_count(const tenon_program* program) { return program->configurations.size(); }
const char* tenon_program_configuration_at(const tenon_program* program, size_t index) {
  return index < program->configurations.size() ? program->configurations[index]->name.c_str() : nullptr;
}
size_t tenon_program_input_count(const tenon_program* program) { return program->inputs.size(); }
size_t tenon_program_output_count(const tenon_program* program) { return program->outputs.size(); }
const tenon_port* tenon_program_input(const tenon_program* program, size_t index) {
  return c_api::at(program->inputs, index);
}
const tenon_port* tenon_program_output(const tenon_program* program, size_t index) {
  return c_api::at(program->outputs, index);
}

const char* tenon_port_name(const tenon_port* port) { return port->port->name.c_str(); }
int tenon_port_is_tensor(const tenon_port* port) { return port->port->is_tensor() ? 1 : 0; }
const char* tenon_port_type(const tenon_port* port) { return port->type.c_str(); }
tenon_dtype tenon_port_dtype(const tenon_port* port) { return static_cast<tenon_dtype>(port->port->dtype); }
uint32_t tenon_port_rank(const tenon_port* port) { return static_cast<uint32_t>(port->port->shape.size()); }
const int64_t* tenon_port_sizes(const tenon_port* port) { return port->port->shape.data(); }

tenon_error* tenon_device_open(const char* uri, tenon_device** out) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_device_open", {{"uri", uri}, {"out", out}}));
    TENON_TRY_ASSIGN(opened, driver::open(uri));
    *out = new tenon_device{std::move(*opened)};
    return {};
  });
}
void tenon_device_free(tenon_device* device) { delete device; }

tenon_error* tenon_session_create(const tenon_program* program, const tenon_session_options* options,
                                  tenon_session** out) {
  return guarded([&] { return c_api::create_session(program, options, out); });
}
void tenon_session_free(tenon_session* session) { delete session; }

tenon_error* tenon_session_run(tenon_session* session, const tenon_value* const* inputs, size_t input_count,
                               tenon_value** outputs, size_t output_count) {
  return guarded([&] { return c_api::run(session, inputs, input_count, outputs, output_count); });
}

tenon_error* tenon_session_run_many(tenon_session* session, size_t instance_count, const tenon_value* const* inputs,
                                    size_t input_count, tenon_value** outputs, size_t output_count,
                                    tenon_error** errors) {
  return guarded(
      [&] { return c_api::run_many(session, instance_count, inputs, input_count, outputs, output_count, errors); });
}

tenon_error* tenon_session_submit(tenon_session* session, const tenon_value* const* inputs, size_t input_count,
                                  tenon_ticket** out) {
  return guarded([&] { return c_api::submit(session, inputs, input_count, out); });
}
tenon_error* tenon_ticket_wait(const tenon_ticket* ticket, tenon_value** outputs, size_t output_count) {
  return guarded([&] { return c_api::wait(ticket, outputs, output_count); });
}
int tenon_ticket_is_done(const tenon_ticket* ticket) { return ticket->ticket.is_done() ? 1 : 0; }
tenon_error* tenon_ticket_cancel(const tenon_ticket* ticket) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_ticket_cancel", {{"ticket", ticket}}));
    ticket->ticket.cancel();
    return {};
  });
}
void tenon_ticket_free(tenon_ticket* ticket) {
  if (!ticket) return;
  const std::unique_ptr<tenon_ticket> owned(ticket);
  tenon_error_free(guarded([&]() -> Status {
    ticket->ticket.cancel();
    return {};
  }));
}

tenon_error* tenon_session_cancel(tenon_session* session, int cancelled) {
  return guarded([&]() -> Status {
    TENON_TRY(require("tenon_session_cancel", {{"session", session}}));
    session->cancelled = cancelled != 0;
    return {};
  });
}
