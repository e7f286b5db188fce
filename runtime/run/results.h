// Results of a run: their files, and the comparison with expected ones.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "runtime/executable/executable.h"
#include "runtime/npy.h"

namespace tenon::runtime {

Status create_directory(const std::filesystem::path& directory);

// NAME.npy of each result in the directory, which exists; with a sample's index NAME_INDEX.npy.
Status write_results(const std::filesystem::path& directory, std::span<const Port> ports,
                     std::span<const Tensor> results, std::optional<size_t> sample = {});

// One tensor into a file of either kind, several only into an .npz.
Status write_results(const std::filesystem::path& file, const NamedTensors& results);

// The index of the first tensor that is not equal bit for bit.
std::optional<size_t> first_difference(std::span<const Tensor> a, std::span<const Tensor> b);

// Integers must be equal, floats within `tolerance` of the largest element expected, or of 1. The file is .npz, with
// the names of the results, or the .npy of the only result, whose name is 0.
Status compare_results(const NamedTensors& found, const std::string& expected_file, double tolerance);

}  // namespace tenon::runtime
