// Kernels that create tensors from attributes, and random tensors from a key.
//
// Random bits are Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
// 32-bit word i of a tensor is half i % 2 of the block whose counter is (i / 2, purpose). A key is two 32-bit words;
// the same key gives the same values on every machine.
#include <array>
#include <cmath>

#include "runtime/reference/elements.h"
#include "support/try.h"

namespace tenon::runtime::reference {
namespace {

Expected<DType> read_dtype(Call& call) {
  const std::string name = call.string("dtype");
  if (!call.ok()) return call.fail();
  return parse_dtype(name);
}

Result full(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("full", attrs, inputs);
  call.expect_inputs(0);
  const Shape shape = call.integers("shape", 0, 0, kMaxExtent);
  const double value = call.real("value");
  TENON_TRY_ASSIGN(dtype, read_dtype(call));
  call.expect(representable(*dtype, value), "the value is not representable in the dtype");
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, shape);
  with_arithmetic<kAnyDType>(*dtype, [&]<class T>(T) { std::ranges::fill(out.data<T>(), static_cast<T>(value)); });
  return std::vector{out};
}

Result arange(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("arange", attrs, inputs);
  call.expect_inputs(0);
  const double start = call.real("start"), step = call.real("step");
  const int64_t count = call.integer("count", 0, kMaxExtent);
  TENON_TRY_ASSIGN(dtype, read_dtype(call));
  call.expect(kNumericTypes.contains(*dtype), "the dtype must not be bool");
  if (call.ok()) {
    const double last = start + step * static_cast<double>(std::max<int64_t>(count - 1, 0));
    call.expect(representable(*dtype, start) && representable(*dtype, last),
                "an element is not representable in the dtype");
  }
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, Shape{count});
  with_arithmetic<kNumericTypes>(*dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < count; ++i) out.data<T>()[i] = static_cast<T>(start + step * static_cast<double>(i));
  });
  return std::vector{out};
}

Result eye(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("eye", attrs, inputs);
  call.expect_inputs(0);
  const int64_t rows = call.integer("rows", 0, kMaxExtent), columns = call.integer("columns", 0, kMaxExtent);
  const int64_t diagonal = call.integer("diagonal", -kMaxExtent, kMaxExtent);
  TENON_TRY_ASSIGN(dtype, read_dtype(call));
  const Shape shape{rows, columns};
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, shape);
  with_arithmetic<kAnyDType>(*dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t k = i + diagonal;
      if (k >= 0 && k < columns) out.data<T>()[i * columns + k] = T{1};
    }
  });
  return std::vector{out};
}

using Words = std::array<uint32_t, 2>;

Words threefry(const Words& key, const Words& counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  Words x{counter[0] + keys[0], counter[1] + keys[1]};
  for (uint32_t round = 0; round < 5; ++round) {
    for (int r : kRotations[round % 2]) {
      x[0] += x[1];
      x[1] = (x[1] << r | x[1] >> (32 - r)) ^ x[0];
    }
    x[0] += keys[(round + 1) % 3];
    x[1] += keys[(round + 2) % 3] + round + 1;
  }
  return x;
}

enum class Purpose : uint32_t { kValues, kKeys };

class Random {
 public:
  Random(const Tensor& key, Purpose purpose) : purpose_(purpose) {
    for (size_t i : {0, 1}) key_[i] = static_cast<uint32_t>(key.data<int32_t>()[i]);
  }
  uint32_t next() {
    const uint64_t word = count_++;
    if (word % 2 == 0) block_ = threefry(key_, {static_cast<uint32_t>(word / 2), static_cast<uint32_t>(purpose_)});
    return block_[word % 2];
  }
  // In [0, 1): 24 bits for f32, 53 for f64.
  template <class T>
  T uniform() {
    if constexpr (std::is_same_v<T, float>) return static_cast<float>(next() >> 8) * 0x1p-24f;
    const uint64_t high = next() >> 5, low = next() >> 6;
    return static_cast<T>(static_cast<double>(high << 26 | low) * 0x1p-53);
  }

 private:
  Words key_{}, block_{};
  Purpose purpose_;
  uint64_t count_ = 0;
};

void expect_key(Call& call) {
  call.expect_inputs(1);
  call.expect_dtype(0, {DType::kI32});
  call.expect(call.input(0).shape() == Shape{2}, "a key has two elements");
}

Result random_split(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("random_split", attrs, inputs);
  expect_key(call);
  const int64_t count = call.integer("count", 1, 1 << 20);
  if (!call.ok()) return call.fail();
  Tensor out(DType::kI32, Shape{count, 2});
  Random random(inputs[0], Purpose::kKeys);
  for (int32_t& word : out.data<int32_t>()) word = static_cast<int32_t>(random.next());
  return std::vector{out};
}

template <Name op, class F>
Result random_values(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  expect_key(call);
  const Shape shape = call.integers("shape", 0, 0, kMaxExtent);
  const double a = call.real("a"), b = call.real("b");
  TENON_TRY_ASSIGN(dtype, read_dtype(call));
  call.expect(kReals.contains(*dtype), "the dtype must be that of a float");
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(*dtype, shape);
  with_arithmetic<kReals>(*dtype, [&]<class T>(T) {
    Random random(inputs[0], Purpose::kValues);
    for (T& value : out.data<T>()) value = F{}(random, static_cast<T>(a), static_cast<T>(b));
  });
  return std::vector{out};
}
template <Name op, class F>
constexpr Entry distribution(F) {
  return {op.view(), random_values<op, F>};
}

Result random_bernoulli(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("random_bernoulli", attrs, inputs);
  expect_key(call);
  const Shape shape = call.integers("shape", 0, 0, kMaxExtent);
  const double probability = call.real("probability");
  call.expect_size(shape);
  if (!call.ok()) return call.fail();
  Tensor out(DType::kBool, shape);
  Random random(inputs[0], Purpose::kValues);
  for (bool& value : out.data<bool>()) value = random.uniform<double>() < probability;
  return std::vector{out};
}

}  // namespace

std::span<const Entry> create_kernels() {
  static constexpr Entry kEntries[] = {
      {"full", full},
      {"arange", arange},
      {"eye", eye},
      {"random_split", random_split},
      distribution<"random_uniform">(
          [](Random& random, auto low, auto high) { return low + (high - low) * random.uniform<decltype(low)>(); }),
      // Box and Muller's transform.
      distribution<"random_normal">([](Random& random, auto mean, auto deviation) {
        using T = decltype(mean);
        const T radius = std::sqrt(-2 * std::log(1 - random.uniform<T>()));
        return mean + deviation * radius * std::cos(2 * static_cast<T>(M_PI) * random.uniform<T>());
      }),
      {"random_bernoulli", random_bernoulli},
  };
  return kEntries;
}

}  // namespace tenon::runtime::reference
