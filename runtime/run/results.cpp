#include "runtime/run/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/reference/dtypes.h"
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
  const bool real = kReals.contains(found.dtype());
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
