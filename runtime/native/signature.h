// The signature of a native kernel, as data: by it the runtime checks parameters and makes results without calling the
// kernel.
//
// Sizes are integer expressions over the kernel's dim variables; the size of an axis may also depend on the indices
// before it and on elements of integer parameters (a ragged axis, `lengths(b)`). All axes up to the last ragged one are
// one axis of the tensor, which has their rows one after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::runtime {

// A size as a program for a stack machine, in postfix order: the one value that remains on the stack.
struct SizeStep {
  enum class Op : uint8_t {
    kConstant,     // operand
    kDim,          // the dim variable with index `operand`
    kIndex,        // the index along axis `operand` of this buffer
    kElement,      // of parameter `operand`; takes one index for each of its axes from the stack
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

// A dim variable, by the size of an axis of a parameter's tensor: size = factor * variable + offset. The offset depends
// on variables before this one.
struct SignatureDim {
  std::string name;
  uint32_t param = 0, axis = 0;
  int64_t factor = 1;
  Size offset;
  bool operator==(const SignatureDim&) const = default;
};

// A result whose memory may be that of a parameter: the kernel reads each element of the parameter for the last time
// before it writes the result's element there. At most one result of a call is in the memory of one parameter.
struct InPlace {
  uint32_t result = 0, param = 0;
  bool operator==(const InPlace&) const = default;
};

// A condition on the sizes of the parameters that their types do not state.
struct SizeCheck {
  Size size;            // of the dims; must be at least 0
  std::string message;  // the error where it is less: "the window is larger than the padded input"
  bool operator==(const SizeCheck&) const = default;
};

// A table that the kernel reads beside its parameters. It describes `count` rows of `width` elements, one row after
// another; it is made once for all calls with equal lengths.
struct SignatureTable {
  enum class Kind : uint8_t {
    kUnused,      // no code reads it
    kOffsets,     // of b in 0 .. count: the first element of row b, or the number of all elements
    kRows,        // of each element: the row that contains it
    kDescending,  // the rows by falling width; of equal ones, the first comes first
    kPositions,   // of each row: its index among those
    kCounts,      // of t in 0 .. limit - 1: the number of rows that are wider than t
  };
  Kind kind = Kind::kUnused;
  Size count;       // of the dims
  Size width;       // of the dims and of elements of parameters; its index of axis 0 is the row
  Size limit = {};  // of the dims: a wider row is an error; empty: there is none, but counts have one
  bool operator==(const SignatureTable&) const = default;
};

struct Signature {
  std::vector<SignatureDim> dims;
  std::vector<SignatureBuffer> params, results;
  std::vector<InPlace> in_place = {};
  std::vector<SizeCheck> checks = {};
  std::vector<SignatureTable> tables = {};
  bool operator==(const Signature&) const = default;
};

// Whether the program is well formed, reads only the first `dims` variables, and neither indices nor elements.
bool is_sound(const Size& size, size_t dims);
// The value of such a program; nothing where a variable that it reads has none, for a division by 0, and beyond 64
// bits.
std::optional<int64_t> evaluate(const Size& size, std::span<const std::optional<int64_t>> dims);

// Checks that all indices in the signature are valid; a signature from a file has passed this check.
Status verify(const Signature& signature, std::string_view where);

// The values of the dims for these parameters; an error if their shapes or types do not match the signature, or do not
// pass its checks.
Expected<std::vector<int64_t>> bind_dims(const Signature& signature, std::span<const Tensor> params);
// Tensors for the results, with unknown contents.
Expected<std::vector<Tensor>> make_results(const Signature& signature, std::span<const int64_t> dims,
                                           std::span<const Tensor> params);

// What calls of kernels take memory from. A caller that keeps it from call to call lets them reuse its memory.
class CallMemory {
 public:
  CallMemory() = default;
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
  virtual ~CallMemory() = default;
  // The memory of a result, by its index in the signature; no memory if there is not enough.
  virtual Storage storage(size_t result, size_t bytes);
  // An empty shape, which may have capacity.
  virtual Shape shape();

  std::vector<int64_t> dims;  // of the current call
  // Tables of earlier calls, for calls with equal lengths, of whichever kernel.
  struct MadeTable {
    SignatureTable table;                         // with constants for dims, and the index in `lengths` for parameters
    std::vector<std::vector<std::byte>> lengths;  // the elements that the sizes are made of
    std::shared_ptr<const std::vector<int64_t>> contents;
  };
  std::vector<MadeTable> tables;
  uint64_t num_tables_made = 0, num_tables_reused = 0;
  // A kernel has called a library function, which may have effects. Whoever wants to know it sets it to false before.
  std::atomic<bool> called_function = false;
};
// The contents of the kernel's tables, in the signature's order; nullptr of those that are not used. Errors: a row of
// negative size, or beyond the limit; more than 2^31 elements.
Expected<std::vector<std::shared_ptr<const std::vector<int64_t>>>> make_tables(const Signature& signature,
                                                                               std::span<const Tensor> params,
                                                                               CallMemory& memory);
// The same two functions with memory of the caller: the dims go into `memory.dims`, and `results` is replaced.
Status bind_dims(const Signature& signature, std::span<const Tensor> params, CallMemory& memory);
Status make_results(const Signature& signature, std::span<const Tensor> params, CallMemory& memory,
                    std::vector<Tensor>& results);

}  // namespace tenon::runtime
