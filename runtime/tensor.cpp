#include "runtime/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace tenon::runtime {
namespace {

// Vector kernels and DMA are fastest on whole cache lines.
constexpr std::align_val_t kAlignment{64};

}  // namespace

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    [[maybe_unused]] bool overflow = dim < 0 || __builtin_mul_overflow(count, dim, &count);
    assert(!overflow && "an untrusted shape is checked before it becomes a tensor");
  }
  return count;
}

std::optional<int64_t> checked_bytes(DType dtype, std::span<const int64_t> shape) {
  constexpr int64_t kMaxBytes = int64_t{1} << 48;
  if (shape.size() > kMaxRank) return std::nullopt;
  int64_t product = bytes(dtype);
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || dim >= kMaxBytes) return std::nullopt;
    empty |= dim == 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product) || product >= kMaxBytes)
      return std::nullopt;
  }
  return empty ? 0 : product;
}

std::string to_string(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

Storage Storage::allocate(size_t bytes) {
  // A tensor of no elements still has a buffer, which distinguishes it from no tensor.
  auto* raw = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow));
  if (!raw) return {};
  return {std::shared_ptr<std::byte[]>(raw, [](std::byte* p) { ::operator delete(p, kAlignment); }), bytes};
}

Tensor::Tensor(DType dtype, Shape shape) {
  *this = for_overwrite(dtype, std::move(shape));
  std::memset(data_.get(), 0, byte_size_);
}

Tensor Tensor::for_overwrite(DType dtype, Shape shape) {
  Storage storage =
      Storage::allocate(static_cast<size_t>(element_count(shape)) * static_cast<size_t>(runtime::bytes(dtype)));
  if (!storage.memory) throw std::bad_alloc();
  return in(std::move(storage), dtype, std::move(shape));
}

Tensor Tensor::in(Storage storage, DType dtype, Shape shape) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.byte_size_ = static_cast<size_t>(element_count(tensor.shape_)) * static_cast<size_t>(runtime::bytes(dtype));
  assert(storage.memory && storage.bytes >= tensor.byte_size_);
  tensor.data_ = std::move(storage.memory);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  assert(element_count(shape) == size());
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::clone() const {
  if (!*this) return {};
  Tensor result = for_overwrite(dtype_, shape_);
  std::memcpy(result.data_.get(), data_.get(), byte_size_);
  return result;
}

void Tensor::drop_buffer() {
  data_.reset();
  byte_size_ = 0;
}

bool Tensor::operator==(const Tensor& other) const {
  if (!*this || !other) return !*this && !other;
  return dtype_ == other.dtype_ && shape_ == other.shape_ &&
         std::memcmp(data_.get(), other.data_.get(), byte_size_) == 0;
}

void Tensor::check([[maybe_unused]] DType wanted) const { assert(data_ && wanted == dtype_); }

}  // namespace tenon::runtime
