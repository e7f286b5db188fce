// Models and their inputs for the tests of GPUs, and sessions that run them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/lower.h"
#include "runtime/npy.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {

inline const std::string kResNet8 = TENON_SOURCE_DIR "/tests/models/resnet8_digits";

inline std::vector<runtime::Tensor> images(const std::string& array, size_t count) {
  const auto arrays = runtime::load_npz(kResNet8 + "_test.npz");
  EXPECT_TRUE(arrays) << arrays.error().str();
  const auto bytes = arrays->find(array)->second.data<uint8_t>();
  std::vector<runtime::Tensor> samples;
  for (size_t i = 0; i < count; ++i) {
    runtime::Tensor sample(DType::kF32, {1, 1, 28, 28});
    for (size_t k = 0; k < 784; ++k) sample.data<float>()[k] = static_cast<float>(bytes[i * 784 + k]) / 255;
    samples.push_back(std::move(sample));
  }
  return samples;
}

// The encoder of sentences of any batch and length, and the first `count` tokens of its test data with a mask of them.
inline const std::string kEncoder = TENON_SOURCE_DIR "/tests/models/tiny_minilm";
inline std::vector<runtime::Tensor> sentence(int64_t count) {
  const auto arrays = runtime::load_npz(kEncoder + ".npz");
  EXPECT_TRUE(arrays) << arrays.error().str();
  runtime::Tensor tokens(DType::kI64, {1, count}), mask(DType::kI64, {1, count});
  std::ranges::copy(arrays->find("tokens")->second.data<int64_t>().first(static_cast<size_t>(count)),
                    tokens.data<int64_t>().begin());
  std::ranges::fill(mask.data<int64_t>(), 1);
  return {std::move(tokens), std::move(mask)};
}

inline CpuOptions this_processor() { return {.levels = {std::string(runtime::host_levels().front())}}; }

inline Expected<std::vector<runtime::Tensor>> run(const runtime::Executable& executable,
                                                  const std::vector<runtime::Tensor>& inputs,
                                                  runtime::SessionOptions options = {}) {
  options.threads = 2;
  auto session = runtime::Session::create(executable, std::move(options));
  if (!session) return std::unexpected(std::move(session.error()));
  return session->run(inputs);
}

inline void expect_close(const runtime::Tensor& found, const runtime::Tensor& wanted) {
  ASSERT_EQ(found.shape(), wanted.shape());
  ASSERT_EQ(found.dtype(), wanted.dtype());
  if (wanted.dtype() != runtime::DType::kF32) {
    EXPECT_EQ(found, wanted);
    return;
  }
  for (size_t i = 0; i < wanted.data<float>().size(); ++i)
    ASSERT_NEAR(found.data<float>()[i], wanted.data<float>()[i], 1e-4f) << i;
}

}  // namespace tenon::compiler
