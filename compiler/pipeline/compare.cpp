#include "compiler/pipeline/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "support/try.h"

namespace tenon::compiler {

using runtime::Shape;
using runtime::Tensor;

Expected<std::vector<Tensor>> Comparison::reference(std::span<const Tensor> inputs) const {
  return interpret(*model_.context, compilation_.partitioned, model_.entry, inputs);
}

// The values of the region's layers. A layout transform at its boundary has the name of its value, which is compared in
// its plain layout; a name that two layers share identifies neither.
Expected<Comparison::Values> Comparison::region_values(const std::string& program, std::span<const Tensor> args) const {
  const Symbol region = model_.context->symbol(program);
  const Function* function = compilation_.partitioned.function(region);
  if (!function) return error("the module has no region of this name", program, {}, Fault::kInternal);
  std::set<VarId> layers;
  for (const Binding& binding : function->body.bindings) {
    if (std::holds_alternative<Call>(binding.value)) layers.insert(binding.var);
  }
  std::map<std::string, Tensor, std::less<>> values;
  const auto keep = [&](const Function& running, VarId var, const RunValue& value) {
    if (&running != function || !layers.contains(var) || !value.tensor()) return;
    values.insert_or_assign(std::string(model_.context->name(function->info(var).name)), value.tensor());
  };
  TENON_TRY(interpret(*model_.context, compilation_.partitioned, region, args, keep));
  return values;
}

runtime::Hook Comparison::hook() {
  return [this](const runtime::Step& step) -> Status {
    const auto* call = std::get_if<runtime::CallProgram>(&step.instruction->operation);
    if (call == nullptr) return kernels_(step);
    const runtime::AcceleratorProgram& program = compilation_.executable.programs[call->program];
    TENON_TRY_ASSIGN(values, region_values(program.name, step.args));
    const auto find = [&](const std::string& name) -> Expected<Tensor> {
      const auto found = values->find(name);
      if (found != values->end()) return found->second;
      return error("the reference has no value of this name", name, {}, Fault::kInternal);
    };
    for (const runtime::ProbeValue& probe : step.probes) {
      TENON_TRY_ASSIGN(expected, find(probe.probe->name));
      TENON_TRY(compare(*expected, probe.probe->name, probe.value, runtime::kBaseWorkspace, probe.probe->offset));
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const runtime::TensorSlot& output = program.outputs[i];
      TENON_TRY_ASSIGN(expected, find(output.name));
      TENON_TRY(compare(*expected, output.name, step.results[i], output.base, 0));
    }
    return {};
  };
}

// Whether a tensor of the device has matrices (..., w, c) as (..., c in blocks, w): those of a map are (c, h, w).
static bool are_matrices(const Shape& blocked, const Shape& plain) {
  if (plain.size() == 2) return plain[0] > 1;
  if (plain.size() < 3 || blocked.size() != plain.size() + 1) return false;
  const size_t images = plain.size() - 2;
  return std::equal(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(images), blocked.begin()) &&
         blocked[images] == (plain.back() + blocked.back() - 1) / blocked.back() &&
         blocked[images + 1] == plain[images];
}

bool for_each_element(Shape blocked, Shape plain, FunctionRef<void(const ElementPosition&)> visit) {
  const bool rows = are_matrices(blocked, plain);  // their rows are the positions of one map
  if (rows) {
    const int64_t images = std::accumulate(plain.begin(), plain.end() - 2, int64_t{1}, std::multiplies<>());
    const auto end = blocked.end();
    if (blocked.size() < 3) return false;
    blocked = {images, end[-3], 1, end[-2], end[-1]};
    plain = {images, plain.back(), 1, plain[plain.size() - 2]};
  } else if (blocked.size() == 3) {
    blocked.insert(blocked.begin() + 2, {1, 1});
  }
  plain.resize(4, 1);
  const int64_t lanes = blocked.back();
  if (blocked.size() != 5 || blocked[0] != plain[0] || blocked[1] != (plain[1] + lanes - 1) / lanes ||
      blocked[2] != plain[2] || blocked[3] != plain[3])
    return false;
  for (int64_t n = 0; n < plain[0]; ++n) {
    for (int64_t c = 0; c < plain[1]; ++c) {
      for (int64_t y = 0; y < plain[2]; ++y) {
        for (int64_t x = 0; x < plain[3]; ++x) {
          const int64_t at =
              rows ? (n * plain[3] + x) * plain[1] + c : ((n * plain[1] + c) * plain[2] + y) * plain[3] + x;
          const int64_t in_blocks = (((n * blocked[1] + c / lanes) * plain[2] + y) * plain[3] + x) * lanes + c % lanes;
          visit({static_cast<size_t>(at), static_cast<size_t>(in_blocks), n, c, y, x});
        }
      }
    }
  }
  return true;
}

Status Comparison::compare(const Tensor& reference, const std::string& name, const Tensor& value, int base,
                           uint64_t offset) {
  const auto found = value.data<int8_t>();
  const auto expected = reference.data<int8_t>();
  std::optional<Diagnostic> first;
  std::vector<std::byte> whole;  // the expected bytes; lanes beyond the last channel are arbitrary
  const bool fits = for_each_element(value.shape(), reference.shape(), [&](const ElementPosition& at) {
    if (found[at.blocked] == expected[at.plain]) return;
    if (!first) {
      whole.assign(value.bytes().begin(), value.bytes().end());
      first =
          Diagnostic{fmt::format("layer {}: image {}, channel {}, y {}, x {} is {} on the device, {} in the reference",
                                 name, at.n, at.c, at.y, at.x, found[at.blocked], expected[at.plain]),
                     compilation_.executable.name,
                     "this is a fault of the accelerator or its compiler: please report it", Fault::kInternal};
    }
    whole[at.blocked] = static_cast<std::byte>(expected[at.plain]);
  });
  if (!fits) {
    return error(fmt::format("the device holds {}, the reference {}", runtime::to_string(value.shape()),
                             runtime::to_string(reference.shape())),
                 name, {}, Fault::kInternal);
  }
  if (first) {
    mismatch_ = {name, base, offset, std::move(whole)};
    return std::unexpected(std::move(*first));
  }
  ++layers_;
  elements_ += reference.size();
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
    if (layers_ > 0) {
      ++differing_;
      return {};
    }
    return error(fmt::format("result {} differs from the reference", i), compilation_.executable.name,
                 "this is a fault of the compiler: please report it", Fault::kInternal);
  }
  return {};
}

}  // namespace tenon::compiler
