#include "compiler/pipeline/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/try.h"

namespace tenon::compiler {

using runtime::Shape;
using runtime::Tensor;

Expected<std::vector<Tensor>> Comparison::reference(std::span<const Tensor> inputs) {
  values_.clear();
  const auto keep = [&](const Function& function, const Binding& binding, const RunValue& value) {
    const bool in_region = !function.target.empty() && function.composite.empty();
    // A layout transform at the region boundary has the name of its value, which is compared in its plain layout.
    const auto* apply = std::get_if<Apply>(&binding.value);
    const bool transformed = apply != nullptr && apply->op->is(ops::kLayoutTransform);
    if (in_region && !transformed && value.tensor())
      values_[std::string(model_.context->name(function.info(binding.var).name))] = value.tensor();
  };
  return interpret(*model_.context, compilation_.partitioned, model_.entry, inputs, keep);
}

runtime::Hook Comparison::hook() {
  return [this](const runtime::Step& step) -> Status {
    for (const runtime::ProbeValue& probe : step.probes) {
      TENON_TRY(compare(probe.probe->name, probe.value, runtime::kBaseWorkspace, probe.probe->offset));
    }
    const auto* call = std::get_if<runtime::CallProgram>(&step.instruction->operation);
    if (call == nullptr || step.probes.empty()) return {};
    const auto& outputs = compilation_.executable.programs[call->program].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (values_.contains(outputs[i].name)) TENON_TRY(compare(outputs[i].name, step.results[i], outputs[i].base, 0));
    }
    return {};
  };
}

// The device's value is blocked, [n][ceil(c / B)][h][w][B] or [n][ceil(c / B)][B], the reference's value plain,
// [n][c][h][w] or [n][c].
Status Comparison::compare(const std::string& name, const Tensor& value, int base, uint64_t offset) {
  const auto it = values_.find(name);
  if (it == values_.end()) return error("the reference has no value of this name", name, {}, Fault::kInternal);
  Shape blocked = value.shape();
  if (blocked.size() == 3) blocked.insert(blocked.begin() + 2, {1, 1});
  Shape plain = it->second.shape();
  plain.resize(4, 1);
  const int64_t lanes = blocked.back();
  if (blocked.size() != 5 || blocked[0] != plain[0] || blocked[1] != (plain[1] + lanes - 1) / lanes ||
      blocked[2] != plain[2] || blocked[3] != plain[3]) {
    return error(fmt::format("the device holds {}, the reference {}", runtime::to_string(value.shape()),
                             runtime::to_string(it->second.shape())),
                 name, {}, Fault::kInternal);
  }
  const auto found = value.data<int8_t>();
  const auto expected = it->second.data<int8_t>();
  size_t at = 0;
  std::optional<Diagnostic> first;
  std::vector<std::byte> whole;  // the expected bytes; lanes beyond the last channel are arbitrary
  for (int64_t n = 0; n < plain[0]; ++n) {
    for (int64_t c = 0; c < plain[1]; ++c) {
      for (int64_t y = 0; y < plain[2]; ++y) {
        for (int64_t x = 0; x < plain[3]; ++x, ++at) {
          const auto offset_in_block =
              static_cast<size_t>((((n * blocked[1] + c / lanes) * plain[2] + y) * plain[3] + x) * lanes + c % lanes);
          if (found[offset_in_block] == expected[at]) continue;
          if (!first) {
            whole.assign(value.bytes().begin(), value.bytes().end());
            first = Diagnostic{
                fmt::format("layer {}: image {}, channel {}, y {}, x {} is {} on the device, {} in the reference", name,
                            n, c, y, x, found[offset_in_block], expected[at]),
                compilation_.executable.name, "this is a fault of the accelerator or its compiler: please report it",
                Fault::kInternal};
          }
          whole[offset_in_block] = static_cast<std::byte>(expected[at]);
        }
      }
    }
  }
  if (first) {
    mismatch_ = {name, base, offset, std::move(whole)};
    return std::unexpected(std::move(*first));
  }
  ++layers_;
  elements_ += static_cast<int64_t>(at);
  return {};
}

namespace {

// Whether floats are equal up to the order of sums and the rounding of functions: within kTolerance of their magnitude.
template <class T>
bool near(std::span<const T> a, std::span<const T> b) {
  return std::ranges::equal(a, b, [](T x, T y) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           std::abs(x - y) <= T(Comparison::kTolerance) * (1 + std::abs(x));
  });
}
bool near(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == runtime::DType::kF32) return near(a.data<float>(), b.data<float>());
  return a.dtype() == runtime::DType::kF64 && near(a.data<double>(), b.data<double>());
}

}  // namespace

Status Comparison::results(std::span<const Tensor> expected, std::span<const Tensor> found) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == found[i]) continue;
    exact_ = false;
    if (near(expected[i], found[i])) continue;
    return error(fmt::format("result {} differs between device and reference", i), compilation_.executable.name,
                 "this is a fault of the accelerator or its compiler: please report it", Fault::kInternal);
  }
  return {};
}

}  // namespace tenon::compiler
