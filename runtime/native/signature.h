// What a native kernel takes and gives, as data: the runtime checks tensors against it and makes the results without
// asking the kernel.
//
// Sizes are integer expressions over the kernel's dim variables; the size of an axis may also depend on the indices
// before it and on elements of integer parameters (a ragged axis, `lengths(b)`). Axes up to the last ragged one are one
// axis of the tensor: their rows lie behind each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::runtime {

// A size as a program for a stack machine, in postfix order: what is left is the value.
struct SizeStep {
  enum class Op : uint8_t {
    kConstant,     // operand
    kDim,          // the dim variable of that number
    kIndex,        // the index of that axis of this buffer
    kElement,      // of the parameter of that number, at as many indices as it has axes
    kAdd,          // of two
    kMultiply,     // of two
    kFloorDivide,  // of two
    kMin,          // of two
    kMax,          // of two
  };
  Op op = Op::kConstant;
  int64_t operand = 0;
  bool operator==(const SizeStep&) const = default;
};
using Size = std::vector<SizeStep>;

struct SignatureBuffer {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<Size> axes;
  bool operator==(const SignatureBuffer&) const = default;
};

// A dim variable: the size of an axis of a parameter's tensor, less `rest`, which depends on variables before it, and
// divided by `factor`.
struct SignatureDim {
  std::string name;
  uint32_t param = 0, axis = 0;
  int64_t factor = 1;
  Size rest;
  bool operator==(const SignatureDim&) const = default;
};

struct Signature {
  std::vector<SignatureDim> dims;
  std::vector<SignatureBuffer> params, results;
  bool operator==(const Signature&) const = default;
};

// Whether the numbers in it are those of what there is; a signature from a file has passed this.
Status verify(const Signature& signature, std::string_view where);

// The dims' values for these tensors, which have the shapes and types that the signature says.
Expected<std::vector<int64_t>> bind_dims(const Signature& signature, std::span<const Tensor> params);
// Tensors for the results, with unknown contents: in these places, one for each where any are given, and in memory of
// their own where a place is none or too small.
Expected<std::vector<Tensor>> make_results(const Signature& signature, std::span<const int64_t> dims,
                                           std::span<const Tensor> params, std::span<const Storage> places = {});

}  // namespace tenon::runtime
