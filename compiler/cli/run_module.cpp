// Inputs from files and numbers, the interpreter, and results as text, files or a comparison.
#include "compiler/cli/run_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "compiler/cli/data.h"
#include "compiler/cli/json.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "runtime/npy.h"
#include "runtime/reference/dtypes.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Context;
using compiler::Function;
using compiler::RunValue;
using runtime::DType;
using runtime::Tensor;

// A scalar of this dtype; nothing where the text is no such number.
std::optional<Tensor> number(const std::string& text, DType dtype) {
  auto parse = [&]<class T>(T) -> std::optional<Tensor> {
    T value{};
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return Tensor::of<T>({}, std::array{value});
  };
  switch (dtype) {
    case DType::kBool:
      if (text != "true" && text != "false") return std::nullopt;
      return Tensor::of<bool>({}, std::array{text == "true"});
    case DType::kI8: return parse(int8_t{});
    case DType::kU8: return parse(uint8_t{});
    case DType::kI16: return parse(int16_t{});
    case DType::kU16: return parse(uint16_t{});
    case DType::kI32: return parse(int32_t{});
    case DType::kI64: return parse(int64_t{});
    case DType::kF32: return parse(float{});
    case DType::kF64: return parse(double{});
  }
  return std::nullopt;
}

// "%x: Tensor[(n,), f32], %steps: Tensor[(), i64]"
std::string signature(const Context& context, const Function& function) {
  std::vector<std::string> params;
  for (compiler::VarId param : function.params) {
    const compiler::VarInfo& info = function.info(param);
    params.push_back(fmt::format("%{}: {}", context.name(info.name), context.str(info.type)));
  }
  return params.empty() ? "no inputs" : fmt::format("{}", fmt::join(params, ", "));
}

// The inputs in the order of the parameters: first those with a name, then the others in the order given.
Expected<std::vector<RunValue>> read_inputs(const Context& context, const Function& function, const ModuleRun& run) {
  const std::string takes = fmt::format("{} takes {}", run.entry, signature(context, function));
  std::vector<std::string> given(function.params.size());
  std::vector<std::string> unnamed;
  for (const std::string& input : run.inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos) {
      unnamed.push_back(input);
      continue;
    }
    std::string name = input.substr(0, equals);
    if (name.starts_with('%')) name.erase(0, 1);
    size_t place = 0;
    while (place < given.size() && context.name(function.info(function.params[place]).name) != name) ++place;
    if (place == given.size())
      return error(fmt::format("there is no input '{}'", name), run.model, takes, Fault::kUsage);
    if (!given[place].empty())
      return error(fmt::format("input '{}' is given twice", name), run.model, {}, Fault::kUsage);
    given[place] = input.substr(equals + 1);
    if (given[place].empty()) return error(fmt::format("input '{}' is empty", name), run.model, {}, Fault::kUsage);
  }
  size_t next = 0;
  std::vector<RunValue> values;
  for (size_t i = 0; i < given.size(); ++i) {
    const compiler::VarInfo& info = function.info(function.params[i]);
    if (given[i].empty()) {
      if (next == unnamed.size()) {
        return error(fmt::format("input '{}' is missing", context.name(info.name)), run.model, takes, Fault::kUsage);
      }
      given[i] = unnamed[next++];
    }
    const compiler::TensorType* type = info.type.tensor();
    if (!type) {
      return error(
          fmt::format("input '{}' is {}: only tensors can be given", context.name(info.name), context.str(info.type)),
          run.model, "write a function that makes it of tensors, and name it with --entry");
    }
    if (type->rank() == 0) {
      if (auto scalar = number(given[i], type->dtype)) {
        values.push_back(std::move(*scalar));
        continue;
      }
    }
    TENON_TRY_ASSIGN(tensor, load_tensor(given[i]));
    values.push_back(std::move(*tensor));
  }
  if (next < unnamed.size()) return error("there are more inputs than parameters", run.model, takes, Fault::kUsage);
  return values;
}

// A tensor, or a tuple's fields by their numbers: 0, 1.0, 1.1.
Status flatten(const Context& context, const RunValue& value, const std::string& name, runtime::NamedTensors& out) {
  if (value.tensor()) {
    out.emplace(name.empty() ? "0" : name, value.tensor());
    return {};
  }
  if (value.object->kind != compiler::RunObject::Kind::kTuple) {
    return error(fmt::format("the result {} is {}: files hold tensors and tuples of them", name,
                             compiler::describe(context, value)));
  }
  for (size_t i = 0; i < value.fields().size(); ++i) {
    TENON_TRY(flatten(context, value.fields()[i], fmt::format("{}{}{}", name, name.empty() ? "" : ".", i), out));
  }
  return {};
}

Status write(const RunValue& result, const runtime::NamedTensors& tensors, const std::string& path) {
  if (path.ends_with(".npz")) return runtime::save_npz(path, tensors);
  if (!path.ends_with(".npy")) return error("--output of a module ends in .npy or .npz", path, {}, Fault::kUsage);
  if (!result.tensor()) {
    return error("the result is a tuple", path, "write it into an .npz, whose members are 0, 1, ...", Fault::kUsage);
  }
  return runtime::save_npy(path, result.tensor());
}

double element(const Tensor& tensor, size_t i) {
  switch (tensor.dtype()) {
    case DType::kBool: return tensor.data<bool>()[i] ? 1 : 0;
    case DType::kI8: return tensor.data<int8_t>()[i];
    case DType::kU8: return tensor.data<uint8_t>()[i];
    case DType::kI16: return tensor.data<int16_t>()[i];
    case DType::kU16: return tensor.data<uint16_t>()[i];
    case DType::kI32: return tensor.data<int32_t>()[i];
    case DType::kI64: return static_cast<double>(tensor.data<int64_t>()[i]);
    case DType::kF32: return tensor.data<float>()[i];
    case DType::kF64: return tensor.data<double>()[i];
  }
  return 0;
}

// Integers exactly, floats within the tolerance.
Status compare(const std::string& name, const Tensor& found, const Tensor& expected, const ModuleRun& run) {
  auto type = [](const Tensor& x) {
    return fmt::format("Tensor[{}, {}]", runtime::to_string(x.shape()), runtime::name(x.dtype()));
  };
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    return error(fmt::format("result {} is {}, expected is {}", name, type(found), type(expected)), run.expect);
  }
  const bool real = found.dtype() == DType::kF32 || found.dtype() == DType::kF64;
  if (!real && found == expected) return {};
  double largest = 1, worst = -1;
  size_t where = 0;
  const auto size = static_cast<size_t>(found.size());
  for (size_t i = 0; i < size; ++i) {
    const double a = element(found, i), b = element(expected, i);
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
    double difference = std::abs(a - b);
    if (a == b || (std::isnan(a) && std::isnan(b))) difference = 0;
    else if (std::isnan(difference)) difference = HUGE_VAL;
    if (difference > worst) worst = difference, where = i;
  }
  const double allowed = real ? run.tolerance * largest : 0;
  if (worst <= allowed && (real || worst < 0)) return {};
  return error(fmt::format("result {} differs by {:g} at element {}: found {}, expected {}; {:g} is allowed", name,
                           worst, where, element(found, where), element(expected, where), allowed),
               run.expect);
}

Status compare(const runtime::NamedTensors& found, const ModuleRun& run) {
  runtime::NamedTensors expected;
  if (run.expect.ends_with(".npz")) {
    TENON_TRY_ASSIGN(all, runtime::load_npz(run.expect));
    expected = std::move(*all);
  } else {
    TENON_TRY_ASSIGN(one, load_tensor(run.expect));
    expected.emplace("0", std::move(*one));
  }
  for (const auto& [name, tensor] : found) {
    auto other = expected.find(name);
    if (other == expected.end()) return error(fmt::format("result {} is not among the expected", name), run.expect);
    TENON_TRY(compare(name, tensor, other->second, run));
  }
  return {};
}

// A tensor as {"dtype", "shape", "data"}, a tuple as a list, a constructed value as {"constructor", "fields"}; what is
// nested too deeply, and functions, as text.
void write_json(Json& out, const Context& context, const RunValue& value, int depth = 0) {
  using Kind = compiler::RunObject::Kind;
  constexpr int kDeepest = 200;
  const auto all = [&](std::span<const RunValue> values) {
    out.begin_array();
    for (const RunValue& next : values) write_json(out, context, next, depth + 1);
    out.end();
  };
  const Kind kind = value.object->kind;
  if (depth > kDeepest || kind == Kind::kClosure) {
    out.value(compiler::str(context, value));
  } else if (kind == Kind::kTensor) {
    const Tensor& tensor = value.tensor();
    out.begin_object().field("dtype", runtime::name(tensor.dtype())).key("shape").begin_array();
    for (int64_t size : tensor.shape()) out.value(size);
    out.end().key("data").begin_array();
    runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), [&]<class T>(T) {
      for (const T x : tensor.data<T>()) {
        if constexpr (std::is_floating_point_v<T>) out.value(static_cast<double>(x));
        else if constexpr (std::is_same_v<T, bool>) out.value(x);
        else out.value(static_cast<int64_t>(x));
      }
    });
    out.end().end();
  } else if (kind == Kind::kTuple) {
    all(value.fields());
  } else if (kind == Kind::kReference) {
    out.begin_object().key("ref");
    write_json(out, context, value.object->fields[0], depth + 1);
    out.end();
  } else {
    out.begin_object().field("constructor", context.name(value.object->constructor)).key("fields");
    all(value.fields());
    out.end();
  }
}

}  // namespace

bool is_module(const std::string& path) { return path.ends_with(".tn") || path.ends_with(".tnb"); }

Status run_module(const ModuleRun& run) {
  if (!(run.tolerance >= 0)) return error("--tolerance is at least 0", {}, {}, Fault::kUsage);
  Context context;
  TENON_TRY_ASSIGN(module, compiler::load(context, run.model, {.strict_shapes = run.strict_shapes}));
  const std::string name = run.entry.starts_with('@') ? run.entry.substr(1) : run.entry;
  const compiler::Symbol entry = context.symbol(name);
  const Function* function = module->function(entry);
  if (!function) {
    std::vector<std::string> names;
    for_each_function(*module, [&](compiler::Symbol each, const Function&) {
      names.push_back(fmt::format("@{}", context.name(each)));
    });
    return error(fmt::format("there is no function @{}", name), run.model,
                 names.empty() ? "the module has none" : fmt::format("there are {}", fmt::join(names, ", ")),
                 Fault::kUsage);
  }
  TENON_TRY_ASSIGN(inputs, read_inputs(context, *function, run));
  auto result = compiler::interpret(context, *module, entry, *inputs);
  if (!result) {
    if (result.error().where.empty()) result.error().where = run.model;
    return forward_error(result);
  }
  if (!run.output.empty() || !run.expect.empty()) {
    runtime::NamedTensors tensors;
    TENON_TRY(flatten(context, *result, "", tensors));
    if (!run.output.empty()) TENON_TRY(write(*result, tensors, run.output));
    if (!run.expect.empty()) {
      TENON_TRY(compare(tensors, run));
      if (!run.json) fmt::print("as expected: {} result{}\n", tensors.size(), tensors.size() == 1 ? "" : "s");
    }
  }
  if (run.json) {
    Json out;
    out.begin_object().key("result");
    write_json(out, context, *result);
    fmt::print("{}", out.end().str());
  } else if (run.output.empty() && run.expect.empty()) {
    fmt::print("{}\n", compiler::str(context, *result));
  }
  return {};
}

}  // namespace tenon::cli
