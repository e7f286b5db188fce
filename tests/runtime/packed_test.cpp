#include "runtime/packed.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::runtime {
namespace {

template <class T>
std::string what(const Expected<T>& result) {
  return result ? "no error" : result.error().what;
}

std::string unpacked(const Shape& shape, size_t axis, const std::vector<int64_t>& lengths) {
  return what(unpack(Tensor(DType::kF32, shape), axis, lengths, "x.lengths"));
}

TEST(Packed, TensorsOfAnyLengthsComeBackFromTheirPackedRows) {
  std::mt19937_64 random(test_seed(491));
  for (int round = 0; round < rounds(200); ++round) {
    const size_t axis = random() % 3;
    const auto columns = static_cast<int64_t>(random() % 4);
    std::vector<Tensor> parts;
    std::vector<int64_t> lengths, offsets{0};
    for (size_t i = 0; i <= random() % 5; ++i) {
      lengths.push_back(static_cast<int64_t>(random() % 4) * 4);
      offsets.push_back(offsets.back() + lengths.back());
      Shape shape(axis, 1);
      shape.insert(shape.end(), {lengths.back(), columns});
      Tensor part(DType::kI32, std::move(shape));
      for (int32_t& element : part.data<int32_t>()) element = static_cast<int32_t>(random());
      parts.push_back(std::move(part));
    }
    const auto packed = pack(parts, axis);
    ASSERT_TRUE(packed) << packed.error().str();
    const auto again = unpack(*packed, axis, lengths, "lengths");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, parts);
    const auto same = unpack_offsets(*packed, axis, offsets, "offsets");
    ASSERT_TRUE(same) << same.error().str();
    EXPECT_EQ(*same, parts);
    // A part that is aligned in the packed tensor is no copy.
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t begin = static_cast<size_t>(offsets[i] * columns) * sizeof(int32_t);
      EXPECT_EQ((*again)[i].bytes().data() == packed->bytes().data() + begin, begin % 64 == 0);
    }
  }
}

TEST(Packed, LengthsThatDoNotFitAreErrors) {
  EXPECT_EQ(unpacked({0, 2}, 0, {}), "no error");
  EXPECT_EQ(unpacked({3, 2}, 0, {0, 3, 0}), "no error");
  EXPECT_EQ(unpacked({3, 2}, 0, {}), "the sum of x.lengths is 0, there are 3 rows");
  EXPECT_EQ(unpacked({3, 2}, 0, {1, 1}), "the sum of x.lengths is 2, there are 3 rows");
  EXPECT_EQ(unpacked({3, 2}, 0, {1, -1}), "x.lengths[1] is -1, must be from 0 to 2, the rows that are left");
  EXPECT_EQ(unpacked({3, 2}, 0, {INT64_MIN}),
            "x.lengths[0] is -9223372036854775808, must be from 0 to 3, the rows that are left");
  EXPECT_EQ(unpacked({3, 2}, 0, {1, 3}), "x.lengths[1] is 3, must be from 0 to 2, the rows that are left");
  EXPECT_EQ(unpacked({2}, 1, {2}), "the rows are along axis 1, the tensor is a (2,)");
  EXPECT_EQ(unpacked({2, 4}, 1, {4}),
            "axis 0 of a tensor (2, 4) has 2 elements, axes before that of the rows must have one");
  constexpr int64_t kMost = int64_t{1} << 31;
  EXPECT_EQ(unpacked({kMost, 0}, 0, {kMost - 1, 1}), "no error");
  EXPECT_EQ(unpacked({kMost + 1, 0}, 0, {kMost, 1}), "there are 2147483649 rows, must be 2^31 at most");
}

TEST(Packed, OffsetsThatDoNotFitAreErrors) {
  const auto unpacked = [](int64_t rows, std::vector<int64_t> offsets, size_t axis = 0) {
    return what(unpack_offsets(Tensor(DType::kF32, {rows, 2}), axis, offsets, "x.offsets"));
  };
  EXPECT_EQ(unpacked(0, {0}), "no error");
  EXPECT_EQ(unpacked(3, {0, 0, 3}), "no error");
  EXPECT_EQ(unpacked(3, {}), "x.offsets is empty, must have one more than there are instances");
  EXPECT_EQ(unpacked(2, {1, 2}), "x.offsets[0] is 1, must be 0");
  EXPECT_EQ(unpacked(2, {0, 3, 2}), "x.offsets[2] is 2, must be 3 or more, as the one before it");
  EXPECT_EQ(unpacked(3, {0}), "x.offsets[0] is 0, must be 3, the number of rows");
  EXPECT_EQ(unpacked(3, {0, 2}), "x.offsets[1] is 2, must be 3, the number of rows");
  EXPECT_EQ(unpacked(3, {0, 2, 4}), "x.offsets[2] is 4, must be 3, the number of rows");
  EXPECT_EQ(unpacked(3, {0, INT64_MAX}), "x.offsets[1] is 9223372036854775807, must be 3, the number of rows");
  EXPECT_EQ(unpacked(3, {0, 3}, 2), "the rows are along axis 2, the tensor is a (3, 2)");
}

TEST(Packed, TensorsThatDifferAreNotPacked) {
  const auto packed = [](const std::vector<Tensor>& parts, size_t axis) { return what(pack(parts, axis)); };
  const Tensor one(DType::kF32, {3, 2});
  EXPECT_EQ(packed({}, 0), "no tensors were given: the shape of the result is unknown");
  EXPECT_EQ(packed({one, Tensor(DType::kF32, {0, 2})}, 0), "no error");
  EXPECT_EQ(packed({one, Tensor(DType::kF32, {3, 1})}, 0),
            "tensor 1 is f32 (3, 1), tensor 0 f32 (3, 2): only axis 0 may differ");
  EXPECT_EQ(packed({one, Tensor(DType::kI32, {3, 2})}, 0),
            "tensor 1 is i32 (3, 2), tensor 0 f32 (3, 2): only axis 0 may differ");
  EXPECT_EQ(packed({one, Tensor(DType::kF32, {3})}, 0),
            "tensor 1 is f32 (3,), tensor 0 f32 (3, 2): only axis 0 may differ");
  EXPECT_EQ(packed({one}, 1), "axis 0 of a tensor (3, 2) has 3 elements, axes before that of the rows must have one");
  const Tensor large(DType::kF32, {int64_t{1} << 31, 0});
  EXPECT_EQ(packed({large, one}, 0), "tensor 1 is f32 (3, 2), tensor 0 f32 (2147483648, 0): only axis 0 may differ");
  EXPECT_EQ(packed({large, Tensor(DType::kF32, {1, 0})}, 0), "the rows of the tensors up to 1 are more than 2^31");
}

}  // namespace
}  // namespace tenon::runtime
