#include "runtime/dlpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace tenon::runtime {
namespace {

constexpr int32_t kCpu = 1;
constexpr size_t kDlpackAlignment = 64;
constexpr int32_t kMaxDlpackRank = 32;

struct DlpackType {
  DType dtype;
  uint8_t code, bits;
};
constexpr std::array kDlpackTypes = {
    DlpackType{DType::kBool, 6, 8}, DlpackType{DType::kI8, 0, 8},   DlpackType{DType::kU8, 1, 8},
    DlpackType{DType::kI16, 0, 16}, DlpackType{DType::kU16, 1, 16}, DlpackType{DType::kI32, 0, 32},
    DlpackType{DType::kU32, 1, 32}, DlpackType{DType::kI64, 0, 64}, DlpackType{DType::kU64, 1, 64},
    DlpackType{DType::kF16, 2, 16}, DlpackType{DType::kF32, 2, 32}, DlpackType{DType::kF64, 2, 64},
    DlpackType{DType::kBF16, 4, 16}};

std::optional<DType> dtype_of_dlpack(DLDataType type) {
  for (const DlpackType& t : kDlpackTypes) {
    if (t.code == type.code && t.bits == type.bits && type.lanes == 1) return t.dtype;
  }
  return {};
}

bool is_dense(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t stride = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// Copies the elements of the axes from `axis` on, and returns the end of what it has filled.
std::byte* copy_strided(const DLTensor& tensor, const std::byte* from, int32_t axis, size_t width, std::byte* to) {
  if (axis == tensor.ndim) {
    std::memcpy(to, from, width);
    return to + width;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i) {
    to = copy_strided(tensor, from + i * tensor.strides[axis] * static_cast<int64_t>(width), axis + 1, width, to);
  }
  return to;
}

void end(DLManagedTensor* tensor) {
  if (tensor->deleter) tensor->deleter(tensor);
}

// What an exported tensor keeps.
struct Export {
  Tensor tensor;
  Shape shape;
  DLManagedTensor managed;
};

}  // namespace

Expected<Tensor> from_dlpack(DLManagedTensor& managed) {
  const DLTensor& t = managed.dl_tensor;
  if (t.device.device_type != kCpu) {
    return error(fmt::format("the DLPack tensor is on a device of type {}, must be in memory of the CPU (type {})",
                             t.device.device_type, kCpu),
                 {}, "copy it to the CPU first");
  }
  const auto dtype = dtype_of_dlpack(t.dtype);
  if (!dtype) {
    return error(fmt::format("the DLPack tensor has elements of code {}, {} bits and {} lanes, which no dtype matches",
                             t.dtype.code, t.dtype.bits, t.dtype.lanes),
                 {}, "convert it to bool, an integer, f16, bf16, f32 or f64");
  }
  if (t.ndim < 0 || t.ndim > kMaxDlpackRank || (t.ndim > 0 && !t.shape)) {
    return error(fmt::format("the DLPack tensor has rank {}{}, must be 0 to {}", t.ndim, t.shape ? "" : " and no sizes",
                             kMaxDlpackRank));
  }
  Shape shape(t.shape, t.shape + t.ndim);
  const auto count = checked_bytes(*dtype, shape);
  if (!count) return error(fmt::format("the DLPack tensor has the impossible shape {}", to_string(shape)));
  const auto* data = static_cast<const std::byte*>(t.data);
  if (!data && *count > 0) return error(fmt::format("the DLPack tensor {} has no data", to_string(shape)));
  if (*count == 0) {
    end(&managed);
    return Tensor(*dtype, std::move(shape));
  }
  data += t.byte_offset;
  const auto size = static_cast<size_t>(*count);
  if (is_dense(t) && reinterpret_cast<uintptr_t>(data) % kDlpackAlignment == 0) {
    const std::shared_ptr<DLManagedTensor> owner(&managed, end);
    const std::shared_ptr<std::byte[]> memory(owner, const_cast<std::byte*>(data));
    return Tensor::in({memory, size}, *dtype, std::move(shape));
  }
  Tensor copy = Tensor::for_overwrite(*dtype, std::move(shape));
  if (is_dense(t)) std::memcpy(copy.bytes().data(), data, size);
  else copy_strided(t, data, 0, static_cast<size_t>(bytes(*dtype)), copy.bytes().data());
  end(&managed);
  return copy;
}

Expected<DLManagedTensor*> to_dlpack(const Tensor& tensor) {
  const auto* type = std::ranges::find(kDlpackTypes, tensor.dtype(), &DlpackType::dtype);
  if (type == kDlpackTypes.end()) {
    return error(fmt::format("DLPack has no dtype for {}", name(tensor.dtype())), {}, "cast it to another dtype first");
  }
  auto exported = std::make_unique<Export>(Export{tensor, tensor.shape(), {}});
  exported->managed = {.dl_tensor = {.data = exported->tensor.bytes().data(),
                                     .device = {kCpu, 0},
                                     .ndim = static_cast<int32_t>(tensor.shape().size()),
                                     .dtype = {type->code, type->bits, 1},
                                     .shape = exported->shape.data(),
                                     .strides = nullptr,
                                     .byte_offset = 0},
                       .manager_ctx = exported.get(),
                       .deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); }};
  return &exported.release()->managed;
}

}  // namespace tenon::runtime
