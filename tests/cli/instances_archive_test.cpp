// tenon run --instances of archives: tensors of each instance, and packed ones with lengths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "runtime/npy.h"
#include "support/file.h"

namespace tenon::test {
namespace {

using runtime::NamedTensors;
using runtime::Tensor;
using testing::HasSubstr;

class Archives : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    constexpr std::string_view kModule = R"(#[version = "1"]
def @main[n](%x: Tensor[(n, 2), f32]) { sum(%x, axes=[0]) }
def @pair[n](%p: (Tensor[(n,), i32], Tensor[(), i32])) { (%p.1, %p.0) }
def @two(%x: Tensor[(), i32], %y: Tensor[(), i32]) { %x - %y }
def @batch[n, t](%x: Tensor[(n, t, 2), f32]) { sum(%x, axes=[1]) }
)";
    ASSERT_TRUE(write_file(directory_ / "m.tn", std::as_bytes(std::span(kModule))));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // What the command prints on either stream, and its exit code.
  std::string run(const NamedTensors& tensors, const std::string& args = {}) {
    EXPECT_TRUE(runtime::save_npz(directory_ / "in.npz", tensors));
    const std::string command =
        "cd " + directory_.string() + " && " TENON_COMMAND " run m.tn --instances in.npz " + args + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    for (std::array<char, 4096> part; const size_t size = fread(part.data(), 1, part.size(), pipe);)
      output.append(part.data(), size);
    return output + "exit code " + std::to_string(WEXITSTATUS(pclose(pipe)));
  }

  template <class T>
  static Tensor tensor(runtime::Shape shape, std::vector<T> values) {
    return Tensor::of<T>(std::move(shape), std::span<const T>(values));
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("tenon-archives-" + std::to_string(getpid()));
};

TEST_F(Archives, LengthsCutPackedRows) {
  const Tensor rows = tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run({{"x", rows}, {"x.lengths", tensor<int64_t>({4}, {1, 0, 2, 0})}}),
            "Tensor[(2,), f32] [1, 2]\nTensor[(2,), f32] [0, 0]\nTensor[(2,), f32] [8, 10]\nTensor[(2,), f32] [0, 0]\n"
            "exit code 0");
  EXPECT_EQ(run({{"x", rows}, {"x.offsets", tensor<int64_t>({4}, {0, 1, 1, 3})}}),
            "Tensor[(2,), f32] [1, 2]\nTensor[(2,), f32] [0, 0]\nTensor[(2,), f32] [8, 10]\nexit code 0");
  // The rows of a model of batches are along its second axis.
  EXPECT_EQ(run({{"x", tensor<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6})}, {"x.lengths", tensor<int64_t>({3}, {1, 0, 2})}},
                "--entry batch"),
            "Tensor[(1, 2), f32] [[1, 2]]\nTensor[(1, 2), f32] [[0, 0]]\nTensor[(1, 2), f32] [[8, 10]]\nexit code 0");
  EXPECT_EQ(run({{"x", tensor<float>({1, 2}, {1, 2})}, {"x.lengths", tensor<int64_t>({2}, {0, 1})}}),
            "Tensor[(2,), f32] [0, 0]\nTensor[(2,), f32] [1, 2]\nexit code 0");
  EXPECT_EQ(run({{"x", tensor<float>({0, 2}, {})}, {"x.lengths", tensor<int64_t>({0}, {})}}), "exit code 0");
  EXPECT_THAT(run({{"x", rows}, {"x.offsets", tensor<int64_t>({4}, {0, 2, 1, 3})}}),
              HasSubstr("in.npz: error: input 'x': x.offsets[2] is 1, must be 2 or more, as the one before it"));
  EXPECT_THAT(
      run({{"x", rows}, {"x.offsets", tensor<int64_t>({2}, {0, 2})}}),
      HasSubstr("in.npz: error: input 'x': x.offsets[1] is 2, must be 3, the number of rows\n  help: the offsets"));
  EXPECT_THAT(run({{"x", rows}, {"x.offsets", tensor<uint64_t>({2}, {0, uint64_t{1} << 63})}}),
              HasSubstr("in.npz: error: x.offsets[1] is 9223372036854775808, must be less than 2^63"));
  EXPECT_THAT(run({{"x", rows}, {"x.lengths", tensor<int64_t>({1}, {3})}, {"x.offsets", tensor<int64_t>({2}, {0, 3})}}),
              HasSubstr("in.npz: error: x.lengths and x.offsets are both given\n  help: give one of them"));
  EXPECT_THAT(run({{"x", rows}, {"x.lengths", tensor<uint8_t>({2}, {1, 1})}}),
              HasSubstr("in.npz: error: input 'x': the sum of x.lengths is 2, there are 3 rows"));
  EXPECT_THAT(run({{"x", rows}, {"x.lengths", tensor<int32_t>({2}, {2, 2})}}),
              HasSubstr("x.lengths[1] is 2, must be from 0 to 1, the rows that are left"));
  EXPECT_THAT(run({{"x", rows}, {"x.lengths", tensor<int32_t>({1}, {-1})}}), HasSubstr("x.lengths[0] is -1"));
  EXPECT_THAT(run({{"x", rows}, {"x.lengths", tensor<float>({1}, {3})}}),
              HasSubstr("x.lengths is Tensor[(1,), f32], must be a vector of integers"));
}

TEST_F(Archives, EachInstanceMayHaveATensorOfItsOwn) {
  const NamedTensors pairs = {{"p.0_0", tensor<int32_t>({2}, {1, 2})},
                              {"p.0_1", tensor<int32_t>({0}, {})},
                              {"p.1", tensor<int32_t>({2}, {7, 8})}};
  EXPECT_EQ(run(pairs, "--entry pair"), "(7i32, Tensor[(2,), i32] [1, 2])\n(8i32, Tensor[(0,), i32] [])\nexit code 0");
  // The results of instances are instances.
  ASSERT_EQ(run(pairs, "--entry pair --output out.npz"), "exit code 0");
  const auto results = runtime::load_npz(directory_ / "out.npz");
  ASSERT_TRUE(results);
  EXPECT_EQ(results->at("1_0"), pairs.at("p.0_0"));
  EXPECT_EQ(results->at("0_1"), tensor<int32_t>({}, {8}));
  NamedTensors again;
  for (const auto& [name, tensor] : *results) again.emplace("p." + name, tensor);
  EXPECT_THAT(run(again, "--entry pair"),
              HasSubstr("expected Tensor[(n,), i32] for input 'p.0', found Tensor[(), i32]"));
}

TEST_F(Archives, AMissingOrWrongTensorIsNamed) {
  const Tensor two = tensor<int32_t>({2}, {5, 7});
  EXPECT_EQ(run({{"x", two}, {"y", two}}, "--entry two"), "0i32\n0i32\nexit code 0");
  EXPECT_EQ(run({{"x", two}}, "--entry two --shared y --input y=4"), "1i32\n3i32\nexit code 0");
  EXPECT_THAT(run({{"x", two}}, "--entry two"), HasSubstr("there is neither y nor y_0 in the file"));
  EXPECT_THAT(run({{"x", two}, {"y", tensor<int32_t>({1}, {5})}}, "--entry two"),
              HasSubstr("the inputs have tensors for 2 and for 1 instances"));
  EXPECT_THAT(run({{"x", two}, {"y", tensor<int32_t>({}, {5})}}, "--entry two"),
              HasSubstr("y has no axis of the instances"));
  EXPECT_THAT(run({{"x", two}, {"y", tensor<float>({2}, {5, 7})}}, "--entry two"),
              HasSubstr("instance 0: expected Tensor[(), i32] for input 'y', found Tensor[(), f32]"));
}

}  // namespace
}  // namespace tenon::test
