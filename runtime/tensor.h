// Tensors of the runtime: dense, row-major, typed; the buffer is shared between copies of the handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dtype.h"

namespace tenon::runtime {

using Shape = std::vector<int64_t>;
inline constexpr size_t kMaxRank = 32;  // of a tensor; NumPy's limit
int64_t element_count(std::span<const int64_t> shape);
// The bytes of a tensor of an untrusted shape; nothing if a size is negative, the rank above kMaxRank, or the product
// of the nonzero sizes in bytes 2^48 or more.
std::optional<int64_t> checked_bytes(DType dtype, std::span<const int64_t> shape);
std::string to_string(std::span<const int64_t> shape);  // "(1, 16, 28, 28)"

// Memory for a tensor, which may be a part of a larger allocation; it keeps the whole allocation alive.
struct Storage {
  std::shared_ptr<std::byte[]> memory;
  size_t bytes = 0;

  // New memory, aligned for tensors, with unknown contents; no memory if there is not enough.
  static Storage allocate(size_t bytes);
  Storage part(size_t offset, size_t size) const { return {{memory, memory.get() + offset}, size}; }
};

class Tensor {
 public:
  Tensor() = default;                // no tensor
  Tensor(DType dtype, Shape shape);  // zeros
  // With unknown contents, for callers that write all of it.
  static Tensor for_overwrite(DType dtype, Shape shape);
  // The same in existing memory: `storage` is aligned to 64 and large enough (asserted).
  static Tensor in(Storage storage, DType dtype, Shape shape);

  // A tensor with a copy of `values`, which are as many as the shape's elements.
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values) {
    Tensor tensor(dtype_of<T>, std::move(shape));
    std::copy(values.begin(), values.end(), tensor.data<T>().begin());
    return tensor;
  }

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return element_count(shape_); }
  std::span<std::byte> bytes() { return {data_.get(), byte_size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), byte_size_}; }

  // The elements; T must be the dtype (asserted).
  template <class T>
  std::span<T> data() {
    check(dtype_of<T>);
    return {reinterpret_cast<T*>(data_.get()), byte_size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> data() const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(data_.get()), byte_size_ / sizeof(T)};
  }

  // Whether no other tensor shares the buffer.
  bool alone() const { return data_.use_count() == 1; }
  // The buffer, for those who ask later whether the tensor is the same one.
  std::weak_ptr<const std::byte[]> memory() const { return data_; }
  Storage storage() const { return {data_, byte_size_}; }
  // The same buffer under another shape of the same size.
  Tensor reshaped(Shape shape) const;
  Tensor clone() const;
  // Gives the buffer up, and keeps dtype and shape: converts to false, and has no bytes.
  void drop_buffer();

  // Same dtype, shape and bytes.
  bool operator==(const Tensor& other) const;

 private:
  void check(DType wanted) const;

  DType dtype_ = DType::kF32;
  Shape shape_;
  std::shared_ptr<std::byte[]> data_;
  size_t byte_size_ = 0;
};

}  // namespace tenon::runtime
