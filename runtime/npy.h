// NumPy's files, the formats of tensors in files: .npy (one tensor) and .npz (a ZIP archive of them).
//
// Reads format versions 1 to 3, both byte orders, C and Fortran order (transposed to row-major), stored and deflated
// archives, ZIP64 among them; writes version 1, little endian, C order. The bytes are hostile: sizes are checked before
// memory is allocated, checksums of archives are compared, and every fault is a Diagnostic that names the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
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
// The tensor with that name; of the others only the names are read.
Expected<Tensor> parse_npz(std::span<const std::byte> bytes, std::string_view where, std::string_view name);

// The dtype and shape of a tensor in a file.
struct NpyType {
  DType dtype = DType::kF32;
  Shape shape;
};
// From the first bytes of a .npy file, whose data may be missing.
Expected<NpyType> parse_npy_type(std::span<const std::byte> bytes, std::string_view where);

// An archive whose members are read one at a time, so that a member of no use costs nothing, and the type of a member
// is known before memory is allocated for its data.
class Npz {
 public:
  static Expected<Npz> open(std::span<const std::byte> bytes, std::string_view where);  // the bytes outlive the archive

  std::vector<std::string_view> names() const;  // without ".npy", sorted
  bool contains(std::string_view name) const { return entries_.contains(name); }
  uint64_t unpacked_bytes() const;  // of all members, as their directory has it
  // Of a member, which exists.
  Expected<NpyType> type(std::string_view name) const;
  Expected<Tensor> read(std::string_view name) const;

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::map<std::string, std::shared_ptr<const struct NpzEntry>, std::less<>> entries_;
};

std::vector<std::byte> to_npy(const Tensor& tensor);
std::vector<std::byte> to_npz(const NamedTensors& tensors, bool deflate = false);  // ZIP64

Expected<Tensor> load_npy(const std::filesystem::path& path);
Expected<NamedTensors> load_npz(const std::filesystem::path& path);
Expected<Tensor> load_npz(const std::filesystem::path& path, std::string_view name);
Expected<std::vector<std::string>> npz_names(const std::filesystem::path& path);  // of its members, without ".npy"
Status save_npy(const std::filesystem::path& path, const Tensor& tensor);
Status save_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon::runtime
