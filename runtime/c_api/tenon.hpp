// The C interface of Tenon's runtime (tenon.h) for C++17: objects that free themselves, and exceptions for errors.
//
// Semantics are those of tenon.h. Every object is moved, not copied, but for Value, whose copies share one immutable
// value.
#pragma once

#include <tenon.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::api {

// what() is the whole text, as the commands print it.
class Error : public std::runtime_error {
 public:
  explicit Error(const tenon_error* error)
      : std::runtime_error(tenon_error_text(error)),
        fault_(tenon_error_fault(error)),
        finding_(tenon_error_what(error)),
        where_(tenon_error_where(error)),
        help_(tenon_error_help(error)) {}
  tenon_fault fault() const { return fault_; }
  const std::string& finding() const { return finding_; }
  const std::string& where() const { return where_; }
  const std::string& help() const { return help_; }

 private:
  tenon_fault fault_;
  std::string finding_, where_, help_;
};

inline void check(tenon_error* error) {
  if (!error) return;
  const std::unique_ptr<tenon_error, void (*)(tenon_error*)> owner(error, tenon_error_free);
  throw Error(error);
}

template <class T>
constexpr tenon_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return TENON_BOOL;
  else if constexpr (std::is_same_v<T, float>) return TENON_F32;
  else if constexpr (std::is_same_v<T, double>) return TENON_F64;
  else {
    static_assert(std::is_integral_v<T>, "no dtype has elements of this C++ type");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? TENON_I8 : TENON_U8;
    else if constexpr (sizeof(T) == 2) return is_signed ? TENON_I16 : TENON_U16;
    else if constexpr (sizeof(T) == 4) return is_signed ? TENON_I32 : TENON_U32;
    else return is_signed ? TENON_I64 : TENON_U64;
  }
}

class Program;

class Value {
 public:
  explicit Value(tenon_value* owned) : value_(owned, tenon_value_free) {}

  static Value tensor(tenon_dtype dtype, const std::vector<int64_t>& sizes, const void* data = nullptr) {
    tenon_value* made = nullptr;
    check(tenon_tensor_create(dtype, static_cast<uint32_t>(sizes.size()), sizes.data(), data, &made));
    return Value(made);
  }
  // A copy of `elements`, which are as many as the sizes say.
  template <class T>
  static Value tensor(const std::vector<int64_t>& sizes, const std::vector<T>& elements) {
    static_assert(!std::is_same_v<T, bool>, "a vector of bool has no bytes; use uint8_t and TENON_BOOL");
    size_t count = 1;
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    if (count != elements.size()) throw std::invalid_argument("the sizes and the number of elements differ");
    return tensor(dtype_of<T>(), sizes, elements.data());
  }
  static Value tuple(const std::vector<Value>& fields) {
    tenon_value* made = nullptr;
    const auto raw = handles(fields);
    check(tenon_tuple_create(raw.data(), raw.size(), &made));
    return Value(made);
  }
  static Value data(const Program& program, const std::string& constructor, const std::vector<Value>& fields = {});
  // The tensors, which differ in the size of `axis` alone, as one whose rows follow one another.
  static Value pack(const std::vector<Value>& parts, uint32_t axis = 0) {
    tenon_value* made = nullptr;
    const auto raw = handles(parts);
    check(tenon_tensor_pack(raw.data(), raw.size(), axis, &made));
    return Value(made);
  }
  // The inverse: a tensor of each instance, with as many rows as its length.
  std::vector<Value> unpack(const std::vector<int64_t>& lengths, uint32_t axis = 0) const {
    std::vector<tenon_value*> parts(lengths.size(), nullptr);
    check(tenon_tensor_unpack(get(), axis, lengths.data(), lengths.size(), parts.data()));
    return std::vector<Value>(parts.begin(), parts.end());
  }
  // The same by offsets, one more than there are instances.
  std::vector<Value> unpack_offsets(const std::vector<int64_t>& offsets, uint32_t axis = 0) const {
    if (offsets.empty()) throw std::invalid_argument("the offsets must be one more than the instances");
    std::vector<tenon_value*> parts(offsets.size() - 1, nullptr);
    check(tenon_tensor_unpack_offsets(get(), axis, offsets.data(), parts.size(), parts.data()));
    return std::vector<Value>(parts.begin(), parts.end());
  }

  tenon_kind kind() const { return tenon_value_kind(get()); }
  tenon_dtype dtype() const { return tenon_tensor_dtype(get()); }
  std::vector<int64_t> sizes() const {
    const int64_t* first = tenon_tensor_sizes(get());
    return first ? std::vector<int64_t>(first, first + tenon_tensor_rank(get())) : std::vector<int64_t>();
  }
  // The elements of a tensor of this type; an exception for other values.
  template <class T>
  std::vector<T> elements() const {
    if (kind() != TENON_TENSOR || dtype() != dtype_of<T>()) {
      throw std::invalid_argument("the value is not a tensor of this type");
    }
    const T* first = static_cast<const T*>(tenon_tensor_data(get()));
    return std::vector<T>(first, first + tenon_tensor_bytes(get()) / sizeof(T));
  }
  std::vector<Value> fields() const {
    std::vector<Value> list;
    for (size_t i = 0; i < tenon_value_field_count(get()); ++i) {
      tenon_value* field = nullptr;
      check(tenon_value_field(get(), i, &field));
      list.emplace_back(field);
    }
    return list;
  }
  std::string constructor(const Program& program) const;  // of data; otherwise empty

  tenon_value* get() const { return value_.get(); }
  static std::vector<const tenon_value*> handles(const std::vector<Value>& values) {
    std::vector<const tenon_value*> list;
    for (const Value& value : values) list.push_back(value.get());
    return list;
  }

 private:
  std::shared_ptr<tenon_value> value_;
};

struct Port {
  std::string name, type;
  bool is_tensor;
  tenon_dtype dtype;           // of a tensor
  std::vector<int64_t> sizes;  // of a tensor; -1: a size that varies
};

class Program {
 public:
  explicit Program(const std::string& path) : program_(nullptr, tenon_program_free) {
    tenon_program* loaded = nullptr;
    check(tenon_program_load(path.c_str(), &loaded));
    program_.reset(loaded);
  }
  std::string name() const { return tenon_program_name(get()); }
  std::string configuration() const {  // empty: no device is required
    const char* name = tenon_program_configuration(get());
    return name ? name : "";
  }
  std::vector<std::string> configurations() const {  // one device of each is required
    std::vector<std::string> names;
    for (size_t i = 0; i < tenon_program_configuration_count(get()); ++i)
      names.emplace_back(tenon_program_configuration_at(get(), i));
    return names;
  }
  std::vector<Port> inputs() const { return ports(tenon_program_input); }
  std::vector<Port> outputs() const { return ports(tenon_program_output); }
  const tenon_program* get() const { return program_.get(); }

 private:
  template <class At>
  std::vector<Port> ports(At at) const {
    std::vector<Port> list;
    while (const tenon_port* port = at(get(), list.size())) {
      const int64_t* first = tenon_port_sizes(port);
      list.push_back({tenon_port_name(port),
                      tenon_port_type(port),
                      tenon_port_is_tensor(port) != 0,
                      tenon_port_dtype(port),
                      {first, first + tenon_port_rank(port)}});
    }
    return list;
  }
  std::unique_ptr<tenon_program, void (*)(tenon_program*)> program_;
};

inline Value Value::data(const Program& program, const std::string& constructor, const std::vector<Value>& fields) {
  tenon_value* made = nullptr;
  const auto raw = handles(fields);
  check(tenon_data_create(program.get(), constructor.c_str(), raw.data(), raw.size(), &made));
  return Value(made);
}

inline std::string Value::constructor(const Program& program) const {
  const char* name = tenon_value_constructor(program.get(), get());
  return name ? name : "";
}

class Device {
 public:
  explicit Device(const std::string& uri) : device_(nullptr, tenon_device_free) {
    tenon_device* opened = nullptr;
    check(tenon_device_open(uri.c_str(), &opened));
    device_.reset(opened);
  }
  tenon_device* get() const { return device_.get(); }

 private:
  std::unique_ptr<tenon_device, void (*)(tenon_device*)> device_;
};

// A request of a session; its end cancels the request.
class Ticket {
 public:
  Ticket(tenon_ticket* owned, size_t outputs) : ticket_(owned, tenon_ticket_free), outputs_(outputs) {}
  tenon_ticket* get() const { return ticket_.get(); }
  std::vector<Value> wait() const {
    std::vector<tenon_value*> made(outputs_, nullptr);
    check(tenon_ticket_wait(ticket_.get(), made.data(), made.size()));
    return std::vector<Value>(made.begin(), made.end());
  }
  bool is_done() const { return tenon_ticket_is_done(ticket_.get()) != 0; }
  void cancel() const { check(tenon_ticket_cancel(ticket_.get())); }

 private:
  std::unique_ptr<tenon_ticket, void (*)(tenon_ticket*)> ticket_;
  size_t outputs_;
};

class Session {
 public:
  explicit Session(const Program& program, const tenon_session_options& options = TENON_SESSION_OPTIONS_INIT)
      : session_(nullptr, tenon_session_free), outputs_(tenon_program_output_count(program.get())) {
    tenon_session* created = nullptr;
    check(tenon_session_create(program.get(), &options, &created));
    session_.reset(created);
  }
  tenon_session* get() const { return session_.get(); }
  std::vector<Value> run(const std::vector<Value>& inputs) const {
    const auto raw = Value::handles(inputs);
    std::vector<tenon_value*> made(outputs_, nullptr);
    check(tenon_session_run(session_.get(), raw.data(), raw.size(), made.data(), made.size()));
    return std::vector<Value>(made.begin(), made.end());
  }
  // The outputs of an instance, or its error.
  struct Result {
    std::vector<Value> outputs;
    std::optional<Error> error;
  };
  // Every instance has a value for each input of the program.
  std::vector<Result> run_many(const std::vector<std::vector<Value>>& instances) const {
    const size_t inputs = instances.empty() ? 0 : instances[0].size();
    std::vector<const tenon_value*> raw;
    for (const std::vector<Value>& instance : instances) {
      if (instance.size() != inputs) throw std::invalid_argument("the instances must have equal numbers of inputs");
      for (const Value& value : instance) raw.push_back(value.get());
    }
    std::vector<tenon_value*> made(instances.size() * outputs_, nullptr);
    std::vector<tenon_error*> errors(instances.size(), nullptr);
    check(tenon_session_run_many(session_.get(), instances.size(), raw.data(), inputs, made.data(), outputs_,
                                 errors.data()));
    std::vector<Result> results(instances.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const std::unique_ptr<tenon_error, void (*)(tenon_error*)> owner(errors[i], tenon_error_free);
      if (owner) results[i].error.emplace(owner.get());
      for (size_t k = 0; k < outputs_ && !owner; ++k) results[i].outputs.push_back(Value(made[i * outputs_ + k]));
    }
    return results;
  }
  Ticket submit(const std::vector<Value>& inputs) const {
    const auto raw = Value::handles(inputs);
    tenon_ticket* submitted = nullptr;
    check(tenon_session_submit(session_.get(), raw.data(), raw.size(), &submitted));
    return Ticket(submitted, outputs_);
  }
  void cancel(bool cancelled = true) const { check(tenon_session_cancel(session_.get(), cancelled ? 1 : 0)); }

 private:
  std::unique_ptr<tenon_session, void (*)(tenon_session*)> session_;
  size_t outputs_;
};

// The samples of a training: a tensor for each input of the model, and the labels.
struct Samples {
  std::vector<Value> inputs;
  Value labels;
};

class Trainer {
 public:
  explicit Trainer(const Program& step, const tenon_session_options& options = TENON_SESSION_OPTIONS_INIT)
      : trainer_(nullptr, tenon_trainer_free) {
    tenon_trainer* created = nullptr;
    check(tenon_trainer_create(step.get(), &options, &created));
    trainer_.reset(created);
  }
  tenon_trainer* get() const { return trainer_.get(); }
  int64_t batch() const { return tenon_trainer_batch(trainer_.get()); }
  int64_t steps() const { return tenon_trainer_steps(trainer_.get()); }
  // The loss before the step.
  double step(const Samples& samples, size_t first, double rate) {
    double loss = 0;
    const auto raw = Value::handles(samples.inputs);
    check(tenon_trainer_step(trainer_.get(), raw.data(), raw.size(), samples.labels.get(), first, rate, &loss));
    return loss;
  }
  // The mean loss of the steps.
  double epoch(const Samples& samples, uint64_t seed, int64_t number, double rate) {
    double loss = 0;
    const auto raw = Value::handles(samples.inputs);
    check(tenon_trainer_epoch(trainer_.get(), raw.data(), raw.size(), samples.labels.get(), seed, number, rate, &loss));
    return loss;
  }
  double loss(const Samples& samples, size_t first) const {
    double loss = 0;
    const auto raw = Value::handles(samples.inputs);
    check(tenon_trainer_loss(trainer_.get(), raw.data(), raw.size(), samples.labels.get(), first, &loss));
    return loss;
  }
  std::vector<std::string> weight_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < tenon_trainer_weight_count(trainer_.get()); ++i)
      names.emplace_back(tenon_trainer_weight_name(trainer_.get(), i));
    return names;
  }
  Value weight(const std::string& name) const {
    tenon_value* value = nullptr;
    check(tenon_trainer_weight(trainer_.get(), name.c_str(), &value));
    return Value(value);
  }
  void set_weight(const std::string& name, const Value& weight) {
    check(tenon_trainer_set_weight(trainer_.get(), name.c_str(), weight.get()));
  }
  void save(const std::string& path) const { check(tenon_trainer_save(trainer_.get(), path.c_str())); }
  void load(const std::string& path) { check(tenon_trainer_load(trainer_.get(), path.c_str())); }

 private:
  std::unique_ptr<tenon_trainer, void (*)(tenon_trainer*)> trainer_;
};

}  // namespace tenon::api
