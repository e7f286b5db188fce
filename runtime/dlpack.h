// Exchange of tensors with other libraries by DLPack, version 0.8.
//
// The structs are those of <dlpack/dlpack.h> in layout and names, so that a pointer can be passed on; they are declared
// here because nothing else of that project is needed.
#pragma once

#include <cstdint>

#include "runtime/tensor.h"
#include "support/diagnostic.h"

extern "C" {
struct DLDevice {
  int32_t device_type;  // 1: CPU
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;  // 0: signed, 1: unsigned, 2: float, 4: bfloat16, 6: bool
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense and row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // may be null
};
}

namespace tenon::runtime {

// The same memory where it is dense, row-major and aligned to 64 bytes, otherwise a copy, after which the deleter has
// been called. On an error the caller still owns the tensor.
Expected<Tensor> from_dlpack(DLManagedTensor& tensor);

// The memory of the tensor, which the export keeps alive until its deleter is called; an error for dtypes that DLPack
// does not have.
Expected<DLManagedTensor*> to_dlpack(const Tensor& tensor);

}  // namespace tenon::runtime
