#include "runtime/run/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/dtype.h"
#include "runtime/run/inputs.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

double element(const Tensor& tensor, size_t i) {
  double value = 0;
  with_dtype<kAnyDType>(tensor.dtype(), [&]<class T>(T) { value = static_cast<double>(tensor.data<T>()[i]); });
  return value;
}

std::string type_of(const Tensor& tensor) {
  return fmt::format("Tensor[{}, {}]", to_string(tensor.shape()), name(tensor.dtype()));
}

// The element that differs most.
struct Difference {
  double size = -1, found = 0, expected = 0;
  size_t index = 0;
  double largest = 1;  // magnitude of a finite element expected
};

Difference largest_difference(const Tensor& found, const Tensor& expected) {
  Difference worst;
  const auto size = static_cast<size_t>(found.size());
  for (size_t i = 0; i < size; ++i) {
    const double a = element(found, i), b = element(expected, i);
    if (std::isfinite(b)) worst.largest = std::max(worst.largest, std::abs(b));
    double difference = std::abs(a - b);
    if (a == b || (std::isnan(a) && std::isnan(b))) difference = 0;
    else if (std::isnan(difference)) difference = HUGE_VAL;
    if (difference > worst.size) worst.size = difference, worst.found = a, worst.expected = b, worst.index = i;
  }
  return worst;
}

Status compare(const std::string& result, const Tensor& found, const Tensor& expected, const std::string& file,
               double tolerance) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    return error(fmt::format("result {} is {}, expected is {}", result, type_of(found), type_of(expected)), file);
  }
  const bool real = (kReals | kNarrowFloats).contains(found.dtype());
  if (!real && found == expected) return {};
  const Difference worst = largest_difference(found, expected);
  const double allowed = real ? tolerance * worst.largest : 0;
  if (worst.size <= allowed && (real || worst.size < 0)) return {};
  return error(fmt::format("result {} differs by {:g} at element {}: found {}, expected {}; {:g} is allowed", result,
                           worst.size, worst.index, worst.found, worst.expected, allowed),
               file);
}

std::string first_elements(const Tensor& tensor) {
  constexpr size_t kShown = 10;
  const auto size = static_cast<size_t>(tensor.size());
  std::string text = fmt::format("{} {}:", name(tensor.dtype()), to_string(tensor.shape()));
  for (size_t i = 0; i < std::min(size, kShown); ++i) text += fmt::format(" {:.5g}", element(tensor, i));
  return size > kShown ? text + " ..." : text;
}

auto view_of(const Executable& executable) {
  return [&executable](const Value& value) { return view(executable, value); };
}

bool is_equal(const Value& a, const Value& b) {
  std::vector<std::pair<const ValueObject*, const ValueObject*>> open{{a.object.get(), b.object.get()}};
  std::set<std::pair<const ValueObject*, const ValueObject*>> seen;  // shared values are compared once
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (!seen.emplace(x, y).second) continue;
    if (x->kind != y->kind || x->type != y->type || x->constructor != y->constructor ||
        x->fields.size() != y->fields.size() || (x->kind == ValueObject::Kind::kTensor && x->tensor != y->tensor))
      return false;
    for (size_t i = 0; i < x->fields.size(); ++i)
      open.emplace_back(x->fields[i].object.get(), y->fields[i].object.get());
  }
  return true;
}

}  // namespace

Status create_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return error(fmt::format("cannot make the directory: {}", failed.message()), directory.string());
  return {};
}

namespace {

// The elements of a sequence of an ONNX model, whose length the model computes: of a list from its last element on.
std::optional<std::vector<Value>> elements_of(const Executable& executable, const Value& list) {
  const auto is_list = [&](const Value& value) {
    return value.object->kind == ValueObject::Kind::kData && value.object->type < executable.types.size() &&
           executable.types[value.object->type].name == "Sequence";
  };
  if (!is_list(list)) return std::nullopt;
  std::vector<Value> elements;
  for (Value value = list; value.fields().size() == 2 && is_list(value); value = value.fields()[0])
    elements.push_back(value.fields()[1]);
  std::ranges::reverse(elements);
  return elements;
}

std::vector<NamedResult> leaves_of(const Executable& executable, std::span<const Value> results,
                                   const std::vector<std::string>& names) {
  std::vector<NamedResult> named;
  for (size_t i = 0; i < results.size(); ++i) {
    if (const auto elements = elements_of(executable, results[i])) {
      for (size_t k = 0; k < elements->size(); ++k)
        named.push_back({fmt::format("{}.{}", names[i], k), (*elements)[k]});
      continue;
    }
    for_each_leaf(results[i], view_of(executable), [&](const std::string& path, const Value& value) {
      named.push_back({path.empty() ? names[i] : fmt::format("{}.{}", names[i], path), value});
    });
  }
  return named;
}

}  // namespace

std::vector<NamedResult> named_results(const Executable& executable, std::span<const Value> results) {
  return leaves_of(executable, results, file_names(executable.main().results));
}

Expected<NamedTensors> tensors_by_name(const Executable& executable, std::span<const Value> results) {
  NamedTensors tensors;
  std::vector<std::string> names;  // the model's: members of an archive may have any
  for (const Port& port : executable.main().results) names.push_back(port.name);
  for (const NamedResult& result : leaves_of(executable, results, names)) {
    if (!result.value.tensor()) {
      return error(fmt::format("the result {} is {}: an .npz holds tensors and tuples of them", result.name,
                               describe(executable, result.value)),
                   executable.name, "give a directory, in which it becomes a .json", Fault::kUsage);
    }
    tensors.emplace(result.name, result.value.tensor());
  }
  return tensors;
}

std::string text_of(const Executable& executable, const Value& value) {
  return value.tensor() ? first_elements(value.tensor()) : value_text(value, view_of(executable));
}

Status write_results(const std::filesystem::path& directory, const Executable& executable,
                     std::span<const Value> results, std::optional<size_t> sample) {
  for (const NamedResult& result : named_results(executable, results)) {
    const std::filesystem::path file = directory / (sample ? fmt::format("{}_{}", result.name, *sample) : result.name);
    if (result.value.tensor()) {
      TENON_TRY(save_npy(file.string() + ".npy", result.value.tensor()));
      continue;
    }
    tenon::Json json;
    write_json(json, result.value, view_of(executable));
    TENON_TRY(write_file(file.string() + ".json", json.str()));
  }
  return {};
}

Status write_results(const std::filesystem::path& file, const NamedTensors& results) {
  if (file.extension() == ".npz") return save_npz(file, results);
  if (file.extension() != ".npy")
    return error("--output of a module ends in .npy or .npz", file.string(), {}, Fault::kUsage);
  if (results.size() != 1) {
    return error("the result is a tuple", file.string(), "write it into an .npz, whose members are 0, 1, ...",
                 Fault::kUsage);
  }
  return save_npy(file, results.begin()->second);
}

NamedTensors stacked(std::span<const NamedTensors> samples) {
  NamedTensors tensors;
  for (const auto& [name, first] : samples.empty() ? NamedTensors() : samples[0]) {
    const bool equal = std::ranges::all_of(samples, [&](const NamedTensors& results) {
      const Tensor& tensor = results.at(name);
      return tensor.shape() == first.shape() && tensor.dtype() == first.dtype();
    });
    if (!equal) {
      for (size_t k = 0; k < samples.size(); ++k) tensors.emplace(fmt::format("{}_{}", name, k), samples[k].at(name));
      continue;
    }
    Shape shape = first.shape();
    if (shape.empty()) shape = {1};
    shape[0] *= static_cast<int64_t>(samples.size());
    Tensor all(first.dtype(), shape);
    const size_t bytes = first.bytes().size();
    for (size_t k = 0; k < samples.size(); ++k)
      std::ranges::copy(samples[k].at(name).bytes(), all.bytes().subspan(k * bytes, bytes).begin());
    tensors.emplace(name, std::move(all));
  }
  return tensors;
}

Status check_output(const std::filesystem::path& output, std::string_view option, std::span<const std::string> inputs) {
  if (output.empty()) return {};
  std::error_code ignored;
  for (const std::string& input : inputs) {
    // The file is what follows NAME= and precedes :MEMBER, either of which may be absent.
    const size_t member = input.rfind(".npz:");
    const std::string file = member == std::string::npos ? input : input.substr(0, member + 4);
    for (const std::string& path : {file, file.substr(file.find('=') + 1)}) {
      if (std::filesystem::equivalent(output, path, ignored)) {
        return error(fmt::format("{} {} is an input, which it would overwrite", option, output.string()), {},
                     "give another file", Fault::kUsage);
      }
    }
  }
  return {};
}

std::optional<size_t> first_difference(std::span<const Value> a, std::span<const Value> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!is_equal(a[i], b[i])) return i;
  }
  return std::nullopt;
}

Status compare_results(const NamedTensors& found, const std::string& expected_file, double tolerance) {
  NamedTensors expected;
  if (expected_file.ends_with(".npz")) {
    TENON_TRY_ASSIGN(tensors, load_npz(expected_file));
    expected = std::move(*tensors);
  } else {
    TENON_TRY_ASSIGN(tensor, load_tensor(expected_file));
    expected.emplace("0", std::move(*tensor));
  }
  for (const auto& [result, tensor] : found) {
    const auto other = expected.find(result);
    if (other == expected.end())
      return error(fmt::format("result {} is not among the expected", result), expected_file);
    TENON_TRY(compare(result, tensor, other->second, expected_file, tolerance));
  }
  return {};
}

}  // namespace tenon::runtime
