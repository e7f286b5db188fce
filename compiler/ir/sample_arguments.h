// The constraints on the values of an operator's arguments, beyond their types, from which the fuzzer generates
// samples.
#pragma once

#include <cstdint>

namespace tenon::compiler {

struct SampleArguments {
  enum class Kind : uint8_t {
    kAny,             // all arguments that the type rule accepts
    kImages,          // x is a batch of images of `count` spatial dims: [N, C, ...]
    kAboveZero,       // one tensor of floats above 0
    kUnitInterval,    // floats in -1 .. 1
    kAboveOne,        // floats above 1
    kStatistics,      // x, and for each channel gamma, beta, mean, and a variance above 0
    kDivisor,         // the second tensor has no zero
    kShift,           // integers, and shift distances
    kLengths,         // x [time, batch, ...], and the length of each sequence of the batch
    kIndices,         // x, and indices along the attribute `axis`, of any shape
    kElementIndices,  // x, and indices along `axis` in a tensor of x's other sizes; updates of its shape where they are
                      // inputs
    kIndexTuples,     // x, and index tuples [n, depth]; updates [n, ...] where they are inputs
    kCondition,       // x, and a vector of bools along the attribute `axis`
    kBoxes,           // boxes [B, N, 4] and their scores [B, C, N]
    kRegions,         // images [N, C, H, W], regions [R, 4] in them, and the image of each region [R]
    kEquation,        // tensors that fit the attribute `equation`
    kRecurrent,       // a recurrent layer with `count` gates: x, weights, bias, initial states, lengths where they are
                      // inputs
    kRequantization,  // accumulators, and for each channel bias, multiplier and shift; a residual where it is an input
    kRandomKey,       // the key of a random generator
    kPermutation,     // the attribute `axes` is a permutation of x's axes
    kSameSize,        // the attribute `shape` has as many elements as x
  };
  Kind kind = Kind::kAny;
  int64_t count = 0;

  static constexpr SampleArguments images(int64_t spatial_dims) { return {Kind::kImages, spatial_dims}; }
  static constexpr SampleArguments above_zero() { return {Kind::kAboveZero}; }
  static constexpr SampleArguments unit_interval() { return {Kind::kUnitInterval}; }
  static constexpr SampleArguments above_one() { return {Kind::kAboveOne}; }
  static constexpr SampleArguments statistics() { return {Kind::kStatistics}; }
  static constexpr SampleArguments divisor() { return {Kind::kDivisor}; }
  static constexpr SampleArguments shift() { return {Kind::kShift}; }
  static constexpr SampleArguments lengths() { return {Kind::kLengths}; }
  static constexpr SampleArguments indices() { return {Kind::kIndices}; }
  static constexpr SampleArguments element_indices() { return {Kind::kElementIndices}; }
  static constexpr SampleArguments index_tuples() { return {Kind::kIndexTuples}; }
  static constexpr SampleArguments condition() { return {Kind::kCondition}; }
  static constexpr SampleArguments boxes() { return {Kind::kBoxes}; }
  static constexpr SampleArguments regions() { return {Kind::kRegions}; }
  static constexpr SampleArguments equation() { return {Kind::kEquation}; }
  static constexpr SampleArguments recurrent(int64_t gates) { return {Kind::kRecurrent, gates}; }
  static constexpr SampleArguments requantization() { return {Kind::kRequantization}; }
  static constexpr SampleArguments random_key() { return {Kind::kRandomKey}; }
  static constexpr SampleArguments permutation() { return {Kind::kPermutation}; }
  static constexpr SampleArguments same_size() { return {Kind::kSameSize}; }
};

}  // namespace tenon::compiler
