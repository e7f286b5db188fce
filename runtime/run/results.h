// Results of a run: their files, and the comparison with expected ones.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/npy.h"

namespace tenon::runtime {

Status create_directory(const std::filesystem::path& directory);

// NAME.npy of each result in the directory, which exists; with a sample's index NAME_INDEX.npy.
Status write_results(const std::filesystem::path& directory, std::span<const Port> ports,
                     std::span<const Tensor> results, std::optional<size_t> sample = {});

// One tensor into a file of either kind, several only into an .npz.
Status write_results(const std::filesystem::path& file, const NamedTensors& results);

// The results of several samples by name, for one .npz: along the first axis where they have one, otherwise as a
// vector. Samples whose shapes differ get NAME_INDEX.
NamedTensors stacked(std::span<const Port> ports, std::span<const std::vector<Tensor>> samples);

// "(1, 10) f32: 1.2 -3 ...", with the first elements.
std::string first_elements(const Tensor& tensor);

// An error where the output is one of the input files, which it would overwrite. Inputs are sources as
// "[NAME=]FILE.npz:x".
Status check_output(const std::filesystem::path& output, std::string_view option, std::span<const std::string> inputs);

// The index of the first tensor that is not equal bit for bit.
std::optional<size_t> first_difference(std::span<const Tensor> a, std::span<const Tensor> b);

// Integers must be equal, floats within `tolerance` of the largest element expected, or of 1. The file is .npz, with
// the names of the results, or the .npy of the only result, whose name is 0.
Status compare_results(const NamedTensors& found, const std::string& expected_file, double tolerance);

}  // namespace tenon::runtime
