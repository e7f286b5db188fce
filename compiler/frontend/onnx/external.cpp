#include "compiler/frontend/onnx/external.h"

#include "compiler/frontend/onnx/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "support/number.h"
#include "support/try.h"

namespace tenon::compiler::onnx {
namespace {

namespace fs = std::filesystem;

Expected<fs::path> find_file(const ExternalData& data, const fs::path& folder) {
  const auto refused = [&](std::string_view why) {
    return error(fmt::format("{} is stored in '{}', {}", data.what, data.location, why), data.model,
                 "external files lie in the model's folder or below it");
  };
  const fs::path location(data.location);
  if (location.empty()) return refused("which is no file name");
  if (location.is_absolute() || location.has_root_name()) return refused("which is an absolute path");
  if (std::ranges::find(location, fs::path("..")) != location.end()) return refused("which leads out of its folder");
  std::error_code failure;
  const fs::path base = fs::canonical(folder.empty() ? fs::path(".") : folder, failure);
  if (failure) return refused("whose folder cannot be read: " + failure.message());
  const fs::path file = fs::canonical(base / location, failure);
  if (failure) return refused("which cannot be read: " + failure.message());
  if (std::mismatch(base.begin(), base.end(), file.begin(), file.end()).first != base.end()) {
    return refused("a link that leads out of its folder");
  }
  if (!fs::is_regular_file(file, failure)) return refused("which is not a regular file");
  return file;
}

Expected<int64_t> number(const ExternalData& data, std::string_view name, const std::string& text, int64_t fallback) {
  if (text.empty()) return fallback;
  if (const auto value = parse_number<int64_t>(text); value && *value >= 0) return *value;
  return error(fmt::format("{} has the {} '{}', must be a number of bytes", data.what, name, text), data.model);
}

}  // namespace

Expected<runtime::Tensor> read_external(const ExternalData& data, const fs::path& folder, runtime::DType dtype,
                                        runtime::Shape shape) {
  TENON_TRY_ASSIGN(file, find_file(data, folder));
  const int64_t bytes = packed_bytes(dtype, runtime::element_count(shape));
  TENON_TRY_ASSIGN(offset, number(data, "offset", data.offset, 0));
  TENON_TRY_ASSIGN(length, number(data, "length", data.length, bytes));
  if (*length != bytes) {
    return error(fmt::format("{} has {} bytes of data, its shape {} needs {}", data.what, *length,
                             runtime::to_string(shape), bytes),
                 data.model);
  }
  std::ifstream in(*file, std::ios::binary | std::ios::ate);
  const int64_t size = in ? static_cast<int64_t>(in.tellg()) : -1;
  if (size < bytes || *offset > size - bytes) {
    return error(fmt::format("{} is at bytes {} .. {} of '{}', which has {}", data.what, *offset,
                             static_cast<uint64_t>(*offset) + static_cast<uint64_t>(bytes), data.location, size),
                 data.model, "the file is truncated, or belongs to another model");
  }
  runtime::Tensor tensor = runtime::Tensor::for_overwrite(dtype, std::move(shape));
  in.seekg(*offset);
  const bool packed = runtime::bits(dtype) < 8;
  std::vector<std::byte> buffer(packed ? static_cast<size_t>(bytes) : 0);
  in.read(reinterpret_cast<char*>(packed ? buffer.data() : tensor.bytes().data()), bytes);
  if (packed) unpack(dtype, buffer, tensor.bytes());
  if (!in) return error(fmt::format("'{}' cannot be read", data.location), data.model);
  if (dtype == runtime::DType::kBool) {  // any byte but 0 is true
    std::ranges::transform(tensor.bytes(), tensor.bytes().begin(),
                           [](std::byte byte) { return std::byte{byte != std::byte{0}}; });
  }
  return tensor;
}

}  // namespace tenon::compiler::onnx
