#include "runtime/native/operator_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "runtime/native/call.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr tn_library kNoLibrary{};

// The types and sizes of a call's inputs, in the form of the interface.
class Operands {
 public:
  explicit Operands(std::span<const Tensor> inputs) {
    size_t axes = 0;
    for (const Tensor& input : inputs) axes += input.shape().size();
    const bool fits = inputs.size() <= kFew && axes <= kFew;
    if (!fits) many_ = std::make_unique<Many>(inputs.size(), axes);
    buffers_ = fits ? few_.buffers.data() : many_->buffers.data();
    operands_ = fits ? few_.operands.data() : many_->operands.data();
    dims_ = fits ? few_.dims.data() : many_->dims.data();
    int64_t* next = dims_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      buffers_[i] = const_cast<std::byte*>(inputs[i].bytes().data());
      operands_[i] = {static_cast<uint32_t>(inputs[i].dtype()), static_cast<uint32_t>(inputs[i].shape().size())};
      next = std::ranges::copy(inputs[i].shape(), next).out;
    }
  }
  void* const* buffers() const { return buffers_; }
  const tn_operand* operands() const { return operands_; }
  const int64_t* dims() const { return dims_; }

 private:
  static constexpr size_t kFew = 32;  // of most kernels
  struct Few {
    std::array<void*, kFew> buffers;
    std::array<tn_operand, kFew> operands;
    std::array<int64_t, kFew> dims;
  };
  struct Many {
    Many(size_t inputs, size_t axes) : buffers(inputs), operands(inputs), dims(axes) {}
    std::vector<void*> buffers;
    std::vector<tn_operand> operands;
    std::vector<int64_t> dims;
  };
  Few few_;
  std::unique_ptr<Many> many_;
  void** buffers_ = nullptr;
  tn_operand* operands_ = nullptr;
  int64_t* dims_ = nullptr;
};

}  // namespace

tn_attribute describe_attribute(const std::string& name, const Attr& attr) {
  tn_attribute described{.name = name.c_str(), .kind = TN_INTEGER, .count = 1, .value = nullptr};
  const auto list = [&](tn_attribute_kind kind, const auto& values) {
    described.kind = kind;
    described.count = static_cast<uint32_t>(values.size());
    described.value = values.data();
  };
  if (const auto* integer = std::get_if<int64_t>(&attr)) described.value = integer;
  else if (const auto* real = std::get_if<double>(&attr)) described.kind = TN_REAL, described.value = real;
  else if (const auto* text = std::get_if<std::string>(&attr)) list(TN_TEXT, *text);
  else if (const auto* integers = std::get_if<std::vector<int64_t>>(&attr)) list(TN_INTEGERS, *integers);
  else list(TN_REALS, std::get<std::vector<double>>(attr));
  return described;
}

OperatorKernel::OperatorKernel(tn_kernel kernel, std::shared_ptr<void> state)
    : kernel_(kernel), state_(std::move(state)) {}

Expected<OperatorKernel> OperatorKernel::open(const tn_library& library, std::string_view library_name,
                                              std::string_view name, const Attrs& attrs) {
  const std::span names(library.names, library.count);
  const auto found = std::ranges::find(names, name, [](const char* text) { return std::string_view(text); });
  if (found == names.end())
    return error(fmt::format("the library {} has no kernel '{}'", library_name, name), {},
                 "the executable is for another version: compile the model again");
  const auto index = static_cast<uint32_t>(found - names.begin());
  TENON_TRY_ASSIGN(variant, best_variant(library, {}));
  OperatorKernel kernel((*variant)->kernels[index], nullptr);
  kernel.library_ = &library;
  if (library.abi < 3 || !library.open) return kernel;
  std::vector<tn_attribute> attributes;
  for (const auto& [attribute, value] : attrs) attributes.push_back(describe_attribute(attribute, value));
  std::array<char, 512> message{};
  void* state = nullptr;
  if (library.open(index, attributes.data(), static_cast<uint32_t>(attributes.size()), &state, message.data(),
                   static_cast<uint32_t>(message.size())) != 0) {
    message.back() = 0;
    return error(message[0] ? message.data() : fmt::format("{}.{} refuses its attributes", library_name, name));
  }
  kernel.state_ = {state, [close = library.close](void* opened) {
                     if (close) close(opened);
                   }};
  return kernel;
}

Status OperatorKernel::call(std::span<const Tensor> inputs, const OperatorCall& how, std::vector<Tensor>& results,
                            CallMemory& memory) const {
  results.clear();
  results.resize(how.outputs);
  const Operands operands(inputs);
  Call call = make_call(operands.buffers(), operands.dims(), how.pool);
  call.operands = operands.operands();
  call.inputs = static_cast<uint32_t>(inputs.size());
  call.outputs = static_cast<uint32_t>(how.outputs);
  call.state = state_.get();
  call.constants = how.constants;
  call.stop = how.stop;
  call.tensors = inputs;
  call.results = &results;
  call.result_memory = &memory;
  int32_t failed = 0;
  const auto run = [&](Arena& arena) {
    call.arena = &arena;
    failed = kernel_(&call);
  };
  if (how.pool) how.pool->with_arena(std::ref(run));
  else failed = kernel_(&call);
  if (failed != 0) return std::unexpected(explain(call, library_ ? *library_ : kNoLibrary, {}));
  const auto missing = std::ranges::find_if(results, [](const Tensor& result) { return !result; });
  if (missing == results.end()) return {};
  return error(fmt::format("the kernel has not made result {}", missing - results.begin()));
}

}  // namespace tenon::runtime
