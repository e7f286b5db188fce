#include "runtime/run/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/dtype.h"
#include "runtime/run/inputs.h"
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

}  // namespace

Status create_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return error(fmt::format("cannot make the directory: {}", failed.message()), directory.string());
  return {};
}

Status write_results(const std::filesystem::path& directory, std::span<const Port> ports,
                     std::span<const Tensor> results, std::optional<size_t> sample) {
  const std::vector<std::string> names = file_names(ports);
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_TRY(
        save_npy(directory / (sample ? fmt::format("{}_{}.npy", names[i], *sample) : names[i] + ".npy"), results[i]));
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

NamedTensors stacked(std::span<const Port> ports, std::span<const std::vector<Tensor>> samples) {
  const std::vector<std::string> names = file_names(ports);
  NamedTensors tensors;
  for (size_t i = 0; i < names.size() && !samples.empty(); ++i) {
    const Tensor& first = samples[0][i];
    const bool equal = std::ranges::all_of(samples, [&](const auto& results) {
      return results[i].shape() == first.shape() && results[i].dtype() == first.dtype();
    });
    if (!equal) {
      for (size_t k = 0; k < samples.size(); ++k) tensors.emplace(fmt::format("{}_{}", names[i], k), samples[k][i]);
      continue;
    }
    Shape shape = first.shape();
    if (shape.empty()) shape = {1};
    shape[0] *= static_cast<int64_t>(samples.size());
    Tensor all(first.dtype(), shape);
    const size_t bytes = first.bytes().size();
    for (size_t k = 0; k < samples.size(); ++k)
      std::ranges::copy(samples[k][i].bytes(), all.bytes().subspan(k * bytes, bytes).begin());
    tensors.emplace(names[i], std::move(all));
  }
  return tensors;
}

std::string first_elements(const Tensor& tensor) {
  constexpr size_t kShown = 10;
  const auto size = static_cast<size_t>(tensor.size());
  std::string text = fmt::format("{} {}:", name(tensor.dtype()), to_string(tensor.shape()));
  for (size_t i = 0; i < std::min(size, kShown); ++i) text += fmt::format(" {:.5g}", element(tensor, i));
  return size > kShown ? text + " ..." : text;
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

std::optional<size_t> first_difference(std::span<const Tensor> a, std::span<const Tensor> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return i;
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
