// NumPy's files: .npy (one tensor) and .npz (a ZIP archive of them), the way tensors come in and go out.
//
// Reads format versions 1 to 3, both byte orders, C and Fortran order (turned into row-major), stored and deflated
// archives, ZIP64 among them; writes version 1, little endian, C order. The bytes are taken as hostile: sizes are
// checked before memory is taken, checksums of archives are compared, and every fault is a Diagnostic that names the
// file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

// `where` names the bytes in messages.
Expected<Tensor> parse_npy(std::span<const std::byte> bytes, std::string_view where);
Expected<NamedTensors> parse_npz(std::span<const std::byte> bytes, std::string_view where);  // names without ".npy"
// One of them; of the others only the names are looked at.
Expected<Tensor> parse_npz(std::span<const std::byte> bytes, std::string_view where, std::string_view name);
std::vector<std::byte> to_npy(const Tensor& tensor);
std::vector<std::byte> to_npz(const NamedTensors& tensors, bool deflate = false);  // ZIP64

Expected<Tensor> load_npy(const std::filesystem::path& path);
Expected<NamedTensors> load_npz(const std::filesystem::path& path);
Expected<Tensor> load_npz(const std::filesystem::path& path, std::string_view name);
Status save_npy(const std::filesystem::path& path, const Tensor& tensor);
Status save_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon::runtime
