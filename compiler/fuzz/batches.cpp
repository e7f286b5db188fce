#include "compiler/fuzz/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "compiler/batch/units.h"
#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/fuzz/machine.h"
#include "compiler/ir/batching.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"
#include "runtime/dtype.h"
#include "support/random.h"

namespace tenon::compiler::fuzz {
namespace {

constexpr int64_t kMaxBatchedBytes = 1 << 20;
constexpr size_t kMaxInstances = 5;  // of a batch
constexpr int kNativePercent = 10;   // of modules, which run with native kernels

RunValue stacked_part(std::span<const RunValue> values, const std::vector<bool>& own, size_t& next) {
  if (!values[0].tensor()) {
    std::vector<RunValue> fields;
    for (size_t i = 0; i < values[0].fields().size(); ++i) {
      std::vector<RunValue> parts;
      for (const RunValue& value : values) parts.push_back(value.fields()[i]);
      fields.push_back(stacked_part(parts, own, next));
    }
    return RunValue::tuple(std::move(fields));
  }
  if (!own.empty() && !own[next++]) return values[0];
  const runtime::Tensor& first = values[0].tensor();
  runtime::Shape shape = first.shape();
  shape.insert(shape.begin(), static_cast<int64_t>(values.size()));
  auto all = runtime::Tensor::for_overwrite(first.dtype(), std::move(shape));
  const size_t bytes = first.bytes().size();
  for (size_t i = 0; i < values.size(); ++i)
    std::ranges::copy(values[i].tensor().bytes(), all.bytes().subspan(i * bytes).begin());
  return all;
}

// The shapes of the tensors of a value, as text.
std::string shapes_of(const RunValue& value) {
  if (value.tensor()) return runtime::to_string(value.tensor().shape());
  std::string text = "(";
  for (const RunValue& field : value.fields()) text += shapes_of(field) + ",";
  return text + ")";
}

using Calls = std::vector<std::vector<RunValue>>;  // the arguments of each

// The value with zeros as further steps of its sequences, up to this many; its type is in terms of the length.
RunValue with_steps(const RunValue& value, Type type, Dim length, int64_t steps) {
  if (const TupleType* tuple = type.tuple()) {
    std::vector<RunValue> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i)
      fields.push_back(with_steps(value.fields()[i], tuple->fields[i], length, steps));
    return RunValue::tuple(std::move(fields));
  }
  if (type.tensor()->rank() == 0 || type.tensor()->dims[0] != length) return value;
  runtime::Shape shape = value.tensor().shape();
  shape[0] = steps;
  runtime::Tensor all(value.tensor().dtype(), std::move(shape));
  std::ranges::copy(value.tensor().bytes(), all.bytes().begin());
  return all;
}

// How a batch of the unit's calls, of equal shapes but for the lengths of sequences, differs from them.
std::optional<std::string> batch_differs(Context& context, const Module& module, const batch::Unit& unit,
                                         std::span<const std::vector<RunValue>> calls) {
  const Function& function = *module.function(unit.name);
  const auto length = sequence_length(module, function);
  std::vector<RunValue> results, args;
  for (const std::vector<RunValue>& call : calls) {
    auto result = interpret(context, module, unit.name, call);
    if (!result) return std::nullopt;  // the run ends there
    results.push_back(std::move(*result));
  }
  for (size_t k = 0; k < unit.own.size(); ++k) {
    std::vector<RunValue> values;
    for (const std::vector<RunValue>& call : calls) values.push_back(call[k]);
    args.push_back(unit.own[k] && !length ? stacked(values) : values[0]);
  }
  if (length) {
    runtime::Tensor lengths(runtime::DType::kI64, {std::ssize(calls)});
    int64_t longest = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      for (size_t k = 0; k < unit.own.size(); ++k) {
        const TensorType* type = function.type(function.params[k]).tensor();
        if (type->rank() > 0 && type->dims[0] == *length) lengths.data<int64_t>()[i] = calls[i][k].tensor().shape()[0];
      }
      longest = std::max(longest, lengths.data<int64_t>()[i]);
    }
    for (size_t k = 0; k < unit.own.size(); ++k) {
      std::vector<RunValue> values;
      for (const std::vector<RunValue>& call : calls)
        values.push_back(with_steps(call[k], function.type(function.params[k]), *length, longest));
      if (unit.own[k]) args[k] = stacked(values);
    }
    for (RunValue& result : results) result = with_steps(result, function.result, *length, longest);
    args.emplace_back(std::move(lengths));
  }
  const auto name = context.name(*unit.batched);
  const auto all = interpret(context, module, *unit.batched, args);
  if (!all) return fmt::format("@{} fails, and the calls do not: {}", name, all.error().str());
  const RunValue expected = stacked(results, unit.own_results);
  if (equal_bits(*all, expected)) return std::nullopt;
  return fmt::format("@{} is {}, and the calls are {}", name, str(context, *all), str(context, expected));
}

// How the rows of the unit's calls, in one call, differ from them.
std::optional<std::string> rows_differ(Context& context, const Module& module, Symbol name, const Calls& calls,
                                       const std::vector<bool>& own) {
  const size_t axes = module.function(name)->joined_axes;
  std::vector<RunValue> results, args;
  for (const std::vector<RunValue>& call : calls) {
    auto result = interpret(context, module, name, call);
    if (!result) return std::nullopt;  // the run ends there
    results.push_back(std::move(*result));
  }
  for (size_t k = 0; k < own.size(); ++k) {
    std::vector<RunValue> values;
    for (const std::vector<RunValue>& call : calls) values.push_back(call[k]);
    args.push_back(own[k] ? joined_rows(values, axes) : values[0]);
  }
  const auto all = interpret(context, module, name, args);
  if (!all)
    return fmt::format("@{} fails on all rows, and the calls do not: {}", context.name(name), all.error().str());
  const RunValue expected = joined_rows(results, axes);
  if (equal_bits(*all, expected)) return std::nullopt;
  return fmt::format("@{} of all rows is {}, and the calls are {}", context.name(name), str(context, *all),
                     str(context, expected));
}

// The shapes of the arguments that are own, after the axes of rows; `first`: of each the axes of a sequence's steps.
std::string key_of(const std::vector<RunValue>& args, const std::vector<bool>& own, std::vector<size_t> first) {
  std::string key;
  for (size_t k = 0; k < args.size(); ++k) {
    // What is said to be shared is the same in all calls, which may have other shapes.
    if (!own[k]) continue;
    const size_t axes = first[k];
    if (axes == 0) key += shapes_of(args[k]);
    else
      key += runtime::to_string(runtime::Shape(args[k].tensor().shape().begin() + static_cast<ptrdiff_t>(axes),
                                               args[k].tensor().shape().end()));
  }
  return key;
}

// How instances that run together differ from each of them alone: with these inputs, and others where they are own.
std::optional<std::string> machine_differs(Context& context, batch::Units& units, std::span<const RunValue> inputs,
                                           const std::vector<bool>& own, const Libraries& libraries, Random& random,
                                           int64_t steps, Counts& counts) {
  const Function& main = *units.module.function(context.symbol("main"));
  std::vector<std::vector<RunValue>> instances{{inputs.begin(), inputs.end()}};
  while (instances.size() < kMaxInstances) {
    auto drawn = random_inputs(context, units.module, main, random);
    if (!drawn) break;
    for (size_t k = 0; k < own.size(); ++k) {
      if (!own[k]) (*drawn)[k] = inputs[k];
    }
    instances.push_back(random.chance(30) ? instances[0] : std::move(*drawn));
  }
  const std::vector<Symbol> names = batch::release(units);
  runtime::BatchCounts batches;
  // Kernels take long to compile.
  const bool is_native = random.chance(kNativePercent);
  if (is_native) {
    auto kernels = run_passes(context, std::move(units.module), kernel_passes());
    if (!kernels) return "the module of units has no kernels: " + kernels.error().str();
    units.module = std::move(*kernels);
  }
  const auto policy = static_cast<runtime::BatchPolicy>(random.between(0, std::ssize(runtime::kBatchPolicies) - 1));
  auto difference = together_differs(context, units.module, names, instances, libraries,
                                     {.steps = 4 * steps, .bytes = kMaxBatchedBytes},
                                     is_native ? NativeCode::kKernels : NativeCode::kNone, policy, batches);
  counts.put_off += static_cast<int64_t>(batches.nodes);
  counts.joined += static_cast<int64_t>(batches.nodes - batches.calls);
  return difference;
}

}  // namespace

RunValue stacked(std::span<const RunValue> values, std::vector<bool> own) {
  size_t next = 0;
  return stacked_part(values, own, next);
}

RunValue joined_rows(std::span<const RunValue> values, size_t axes) {
  if (!values[0].tensor()) {
    std::vector<RunValue> fields;
    for (size_t i = 0; i < values[0].fields().size(); ++i) {
      std::vector<RunValue> parts;
      for (const RunValue& value : values) parts.push_back(value.fields()[i]);
      fields.push_back(joined_rows(parts, axes));
    }
    return RunValue::tuple(std::move(fields));
  }
  const runtime::Shape& first = values[0].tensor().shape();
  int64_t rows = 0;
  for (const RunValue& value : values) rows += runtime::element_count(std::span(value.tensor().shape()).first(axes));
  runtime::Shape shape(axes - 1, 1);
  shape.push_back(rows);
  shape.insert(shape.end(), first.begin() + static_cast<ptrdiff_t>(axes), first.end());
  auto all = runtime::Tensor::for_overwrite(values[0].tensor().dtype(), std::move(shape));
  auto to = all.bytes().begin();
  for (const RunValue& value : values) to = std::ranges::copy(value.tensor().bytes(), to).out;
  return all;
}

bool equal_bits(const RunValue& a, const RunValue& b) {
  if (!a.tensor() || !b.tensor()) return std::ranges::equal(a.fields(), b.fields(), equal_bits);
  const runtime::Tensor &x = a.tensor(), &y = b.tensor();
  if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
  if (x == y) return true;
  bool equal = true;
  runtime::with_dtype<runtime::kAnyDType>(x.dtype(), [&]<class T>(T) {
    if constexpr (runtime::is_real<T>) {
      const auto is_nan = [](T value) { return static_cast<double>(value) != static_cast<double>(value); };
      equal = std::ranges::equal(x.data<T>(), y.data<T>(), [&](T one, T other) {
        return std::memcmp(&one, &other, sizeof(T)) == 0 || (is_nan(one) && is_nan(other));
      });
    } else {
      equal = false;
    }
  });
  return equal;
}

std::optional<std::string> batches_differ(Context& context, const Module& module, std::span<const RunValue> inputs,
                                          uint64_t seed, int64_t steps, Counts& counts) {
  const Symbol main = context.symbol("main");
  Random random(seed ^ 0xba7c);
  std::vector<bool> own;
  for (size_t i = 0; i < inputs.size(); ++i) own.push_back(random.chance(70));
  Libraries libraries;
  for (const char* name : kLibraries) libraries[name] = [](std::span<const RunValue> args) { return args[0]; };
  // The calls of units, and the fields of their results, are more steps.
  const auto run = [&](const Module& which, int64_t limit, const Observer& observe) {
    return interpret(context, which, main, inputs, observe, libraries, {.steps = limit, .bytes = kMaxBatchedBytes});
  };
  batch::Units units = batch::make_units(context, clone(module), main, own);
  if (const Status verified = verify(context, units.module); !verified)
    return "the module of units is not well formed: " + verified.error().str();
  const auto before = run(module, steps, {});
  std::map<const Function*, Calls> calls;
  const auto after = run(units.module, 4 * steps, [&](const Function& function, VarId var, const RunValue& value) {
    if (function.composite != "unit" || index(var) >= function.params.size()) return;
    if (index(var) == 0) calls[&function].emplace_back();
    calls[&function].back().push_back(value);
  });
  if (!before) return std::nullopt;  // the units may fail in another order, or take more steps
  if (!after) return "the module of units fails: " + after.error().str();
  if (str(context, *before) != str(context, *after)) {
    return fmt::format("the module of units computes {}, and not {}", str(context, *after), str(context, *before));
  }
  for (const batch::Unit& unit : units.units) {
    ++counts.units;
    const size_t axes = units.module.function(unit.name)->joined_axes;
    if (!unit.batched && axes == 0) {
      const std::string& what = unit.why->what;
      ++counts.unbatched[what.substr(0, what.find(' '))];
      continue;
    }
    const Function& function = *units.module.function(unit.name);
    const auto length = sequence_length(units.module, function);
    std::vector<size_t> joined(unit.own.size(), axes);
    for (size_t k = 0; length && k < joined.size(); ++k) {
      const TensorType* type = function.type(function.params[k]).tensor();
      joined[k] = type && type->rank() > 0 && type->dims[0] == *length ? 1 : 0;
    }
    std::map<std::string, Calls> by_shapes;
    for (const std::vector<RunValue>& args : calls[units.module.function(unit.name)]) {
      by_shapes[key_of(args, unit.own, joined)].push_back(args);
    }
    for (auto& [key, instances] : by_shapes) {
      if (instances.size() > kMaxInstances) instances.resize(kMaxInstances);
      counts.batches += instances.size() > 1;
      auto difference = axes > 0 ? rows_differ(context, units.module, unit.name, instances, unit.own)
                                 : batch_differs(context, units.module, unit, instances);
      if (difference) return difference;
    }
  }
  return machine_differs(context, units, inputs, own, libraries, random, steps, counts);
}

}  // namespace tenon::compiler::fuzz
