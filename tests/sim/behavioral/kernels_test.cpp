// All kernel sets of this machine compute the same bits, at the extremes too.
#include <gtest/gtest.h>

#include <vector>

#include "sim/behavioral/kernels.h"
#include "support/random.h"
#include "tests/seed.h"

namespace tenon::sim {
namespace {

std::vector<const KernelSet*> supported() {
  std::vector<const KernelSet*> sets;
  for (const KernelSet* k : kernel_sets())
    if (k->supported()) sets.push_back(k);
  return sets;
}

TEST(KernelSets, gemm_is_the_sum_of_products_for_every_block) {
  Random random(test_seed(1));
  for (const int block_in : {2, 4, 8, 16, 32, 64}) {
    for (const int block_out : {2, 4, 8, 16, 32, 64}) {
      const Shape shape{block_in, block_out};
      const auto in = static_cast<size_t>(block_in), out = static_cast<size_t>(block_out);
      std::vector<std::byte> inp(3 * in), wgt(in * out);
      for (auto& b : inp)
        b = static_cast<std::byte>(random.of({-128, -127, -1, 0, 1, 127, static_cast<int>(random.next() & 255)}));
      for (auto& b : wgt)
        b = static_cast<std::byte>(random.of({-128, -1, 0, 127, static_cast<int>(random.next() & 255)}));
      for (const KernelSet* k : supported()) {
        std::vector<std::byte> packed_inp(3 * k->inp_bytes(shape)), packed_wgt(k->wgt_bytes(shape));
        for (size_t i = 0; i < 3; ++i) k->pack_inp(shape, &inp[i * in], &packed_inp[i * k->inp_bytes(shape)]);
        k->pack_wgt(shape, wgt.data(), packed_wgt.data());
        for (const bool overwrite : {false, true}) {
          std::vector<int32_t> acc(3 * out + 1, INT32_MAX - 5);  // wraps
          k->gemm(shape, {.acc = acc.data(),
                          .inp = packed_inp.data(),
                          .wgt = packed_wgt.data(),
                          .nx = 3,
                          .acc_x = block_out,
                          .inp_x = static_cast<ptrdiff_t>(k->inp_bytes(shape)),
                          .overwrite = overwrite});
          for (size_t i = 0; i < 3 * out; ++i) {
            int64_t sum = overwrite ? 0 : INT32_MAX - 5;
            for (size_t j = 0; j < in; ++j)
              sum += static_cast<int8_t>(inp[i / out * in + j]) * static_cast<int8_t>(wgt[i % out * in + j]);
            ASSERT_EQ(acc[i], static_cast<int32_t>(static_cast<uint64_t>(sum)))
                << k->name << " " << block_in << "x" << block_out;
          }
          ASSERT_EQ(acc.back(), INT32_MAX - 5) << k->name << " writes past the last lane";
        }
      }
    }
  }
}

TEST(KernelSets, requantize_follows_its_definition_at_the_extremes) {
  Random random(test_seed(2));
  for (int round = 0; round < 20000; ++round) {
    constexpr int kLanes = 32;
    std::vector<int32_t> acc(kLanes);
    std::vector<std::byte> parameters(kLanes * spec::kChannelParameterBytes);
    std::vector<int8_t> residual(kLanes);
    for (auto& a : acc) a = static_cast<int32_t>(random.value(INT32_MIN, INT32_MAX));
    for (auto& p : parameters)
      p = static_cast<std::byte>(random.of({0, 255, 128, static_cast<int>(random.next() & 255)}));
    for (auto& r : residual) r = static_cast<int8_t>(random.value(-128, 127));
    const spec::LayerParameters layer{.v_lo = static_cast<int16_t>(random.value(-2048, 2047)),
                                      .v_hi = static_cast<int16_t>(random.value(-2048, 2047)),
                                      .zero = static_cast<int8_t>(random.value(-128, 127)),
                                      .lo = static_cast<int8_t>(random.value(-128, 127)),
                                      .hi = static_cast<int8_t>(random.value(-128, 127)),
                                      .residual = random.chance(50),
                                      .r_zero = static_cast<int8_t>(random.value(-128, 127)),
                                      .r_multiplier = static_cast<uint16_t>(random.value(0, 65535)),
                                      .r_shift = static_cast<uint8_t>(random.value(0, 31))};
    const int lanes = static_cast<int>(random.of({2, 4, 8, 16, 32}));
    for (const KernelSet* k : supported()) {
      std::vector<int8_t> out(kLanes + 1, 77);
      k->requantize({.acc = acc.data(),
                     .parameters = parameters.data(),
                     .residual = layer.residual ? residual.data() : nullptr,
                     .out = out.data(),
                     .lanes = lanes},
                    layer);
      for (int c = 0; c < lanes; ++c) {
        const auto channel = kernels::channel_parameters(&parameters[static_cast<size_t>(c) * 8]);
        const auto i = static_cast<size_t>(c);
        ASSERT_EQ(out[i], spec::requantize(acc[i], channel, layer, residual[i])) << k->name;
      }
      ASSERT_EQ(out[static_cast<size_t>(lanes)], 77) << k->name << " writes past the last lane";
    }
  }
}

TEST(KernelSets, portable_is_always_available) {
  ASSERT_NE(find_kernel_set("portable"), nullptr);
  EXPECT_EQ(find_kernel_set("portable")->name, "portable");
  EXPECT_EQ(find_kernel_set("no such set"), nullptr);
  EXPECT_NE(find_kernel_set(""), nullptr);
}

}  // namespace
}  // namespace tenon::sim
