// Results of a run: their files, and the comparison with expected ones.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/executable/value.h"
#include "runtime/npy.h"

namespace tenon::runtime {

Status create_directory(const std::filesystem::path& directory);

// The results of one run of an executable's entry. A tuple is its fields, named by their path, as y.0 and y.1.2, and a
// sequence of an ONNX model is its elements, as y.0.
struct NamedResult {
  std::string name;  // of a file
  Value value;
};
std::vector<NamedResult> named_results(const Executable& executable, std::span<const Value> results);
// The results as tensors of one file, by the model's names; an error where one is neither a tensor nor a tuple or
// sequence of them.
Expected<NamedTensors> tensors_by_name(const Executable& executable, std::span<const Value> results);
// A result for readers: of a tensor "f32 (1, 10): 1.2 -3 ..." with the first elements, other values as value_text().
std::string text_of(const Executable& executable, const Value& value);

// NAME.npy of each tensor in the directory, which exists, and NAME.json of each other result; with a sample's index
// NAME_INDEX.
Status write_results(const std::filesystem::path& directory, const Executable& executable,
                     std::span<const Value> results, std::optional<size_t> sample = {});

// One tensor into a file of either kind, several only into an .npz.
Status write_results(const std::filesystem::path& file, const NamedTensors& results);

// The tensors of several samples by name, for one .npz: along the first axis where they have one, otherwise as a
// vector. Samples whose shapes differ get NAME_INDEX.
NamedTensors stacked(std::span<const NamedTensors> samples);

// An error where the output is one of the input files, which it would overwrite. Inputs are sources as
// "[NAME=]FILE.npz:x".
Status check_output(const std::filesystem::path& output, std::string_view option, std::span<const std::string> inputs);

// The index of the first value that differs: tensors bit for bit, functions not at all.
std::optional<size_t> first_difference(std::span<const Value> a, std::span<const Value> b);

// Integers must be equal, floats within `tolerance` of the largest element expected, or of 1. The file is .npz, with
// the names of the results, or the .npy of the only result, whose name is 0.
Status compare_results(const NamedTensors& found, const std::string& expected_file, double tolerance);

}  // namespace tenon::runtime
