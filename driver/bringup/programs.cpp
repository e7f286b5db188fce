#include "driver/bringup/programs.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "hw/spec/requantize.h"
#include "support/random.h"

namespace tenon::driver {
namespace {

using spec::Engine;
using spec::Memory;

constexpr uint64_t kStart = 0x1000;  // of the first buffer: address 0 is in no buffer
constexpr uint64_t kAlignment = 64;

std::vector<int8_t> random_bytes(Random& random, int64_t count) {
  std::vector<int8_t> result(static_cast<size_t>(count));
  for (int8_t& b : result) b = static_cast<int8_t>(random.next());
  return result;
}

// Allocates buffers in order, each aligned to the widest bus, since the memory on small chips is a few pages; the
// stream is the last.
class Builder {
 public:
  Builder(const spec::Config& config, uint64_t seed) { reproducer_.config = config, reproducer_.seed = seed; }

  template <class T>
  uint64_t add(const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    const uint64_t address = reserve(bytes.size());
    add_contents(reproducer_, address, bytes);
    return address;
  }
  uint64_t reserve(uint64_t bytes) {
    const uint64_t address = next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return address;
  }
  template <class T>
  void expect(std::string name, uint64_t address, const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    reproducer_.expected.push_back({std::move(name), address, {bytes.begin(), bytes.end()}});
  }
  Reproducer finish(spec::Profile profile, const std::vector<spec::Instruction>& program,
                    const std::array<uint64_t, spec::kBases>& bases) {
    const spec::Isa isa(reproducer_.config);
    std::vector<spec::Slot> slots;
    for (const auto& instruction : program) {
      [[maybe_unused]] const auto status = isa.encode(instruction, slots);
      assert(status);
    }
    Launch launch{.profile = profile, .count = static_cast<uint32_t>(slots.size()), .bases = bases};
    launch.instructions = add(slots);
    reproducer_.launches.push_back(launch);
    reproducer_.memory_bytes = next_;
    return std::move(reproducer_);
  }

 private:
  Reproducer reproducer_;
  uint64_t next_ = kStart;
};

int64_t mask(Engine engine) { return static_cast<int64_t>(spec::bit(engine)); }

spec::native::Move move(spec::native::MoveFunction function, int base, int64_t units, int64_t unit_bytes) {
  spec::native::Move m;
  m.function = static_cast<int64_t>(function);
  m.base = base;
  m.rows = m.source_rows = units;
  m.vectors = 1;
  m.x_step = m.y_step = m.row_bytes = unit_bytes;
  return m;
}

// The encoded parameters of all lanes; a lane's shift is `shift` bits, plus 8 bits with rounding.
std::vector<uint8_t> parameters(const spec::Config& config, const std::vector<spec::ChannelParameters>& channels) {
  std::vector<uint8_t> bytes(static_cast<size_t>(config.block_out) * spec::kChannelParameterBytes);
  for (size_t c = 0; c < channels.size(); ++c) {
    uint8_t* to = bytes.data() + c * spec::kChannelParameterBytes;
    std::memcpy(to, &channels[c].bias, 4);
    std::memcpy(to + 4, &channels[c].multiplier, 2);
    to[6] = channels[c].shift;
  }
  return bytes;
}

int64_t dot(const int8_t* a, const int8_t* b, int64_t length) {
  int64_t sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += int64_t{a[i]} * b[i];
  return sum;
}

spec::base::Load base_load(spec::base::MemoryType type, int64_t elements) {
  spec::base::Load load;
  load.memory_type = static_cast<int64_t>(type);
  load.y_size = 1, load.x_size = load.x_stride = elements;
  return load;
}

std::vector<spec::Instruction> base_copy(int64_t vectors, int64_t passes) {
  std::vector<spec::Instruction> program;
  for (int64_t i = 0; i < passes; ++i) {
    spec::base::Load load;
    load.memory_type = static_cast<int64_t>(spec::base::MemoryType::kAcc8);
    load.y_size = 1, load.x_size = load.x_stride = vectors;
    load.push_next = 1;
    load.pop_next = i > 0;
    spec::base::Store store;
    store.memory_type = static_cast<int64_t>(spec::base::MemoryType::kOut);
    store.y_size = 1, store.x_size = store.x_stride = vectors;
    store.pop_prev = 1;
    store.push_prev = i + 1 < passes;
    program.insert(program.end(), {load, store});
  }
  program.emplace_back(spec::base::Finish{});
  return program;
}

// The product of `rows` input vectors with `depth` blocks of weights, requantized and stored, `passes` times.
std::vector<spec::Instruction> native_product(const spec::Config& config, int64_t rows, int64_t depth, int64_t passes) {
  using spec::native::MoveFunction;
  std::vector<spec::Instruction> program;
  auto weights = move(MoveFunction::kWgt, 1, depth * config.block_out, config.block_in);
  weights.signal = mask(Engine::kGemm);
  auto parameter = move(MoveFunction::kPar, 2, spec::kChannelParameterBytes, config.block_out);
  parameter.signal = mask(Engine::kRq);
  program.insert(program.end(), {weights, parameter});
  for (int64_t i = 0; i < passes; ++i) {
    auto input = move(MoveFunction::kInp, 0, rows * depth, config.block_in);
    input.wait = i > 0 ? mask(Engine::kGemm) : 0;
    input.signal = mask(Engine::kGemm);
    spec::native::Gemm gemm;
    gemm.wait = mask(Engine::kLdi) | (i == 0 ? mask(Engine::kLdw) : mask(Engine::kRq));
    gemm.signal = mask(Engine::kRq) | (i + 1 < passes ? mask(Engine::kLdi) : 0);
    gemm.first = 1;
    gemm.r0 = gemm.r1 = 1, gemm.r2 = depth, gemm.y = 1, gemm.x = rows;
    gemm.dst_x = 1, gemm.src_x = depth, gemm.src_r2 = 1, gemm.wgt_r2 = 1;
    spec::native::Requantize rq;
    rq.wait = mask(Engine::kGemm) | (i == 0 ? mask(Engine::kLdm) : mask(Engine::kSt));
    rq.signal = mask(Engine::kSt) | (i + 1 < passes ? mask(Engine::kGemm) : 0);
    rq.rows = 1, rq.cols = rows, rq.acc_step = 1;
    auto store = move(MoveFunction::kOut, 3, rows, config.block_out);
    store.wait = mask(Engine::kRq);
    store.signal = i + 1 < passes ? mask(Engine::kRq) : 0;
    program.insert(program.end(), {input, gemm, rq, store});
  }
  program.emplace_back(spec::native::Finish{});
  return program;
}

int64_t rows_that_fit(const spec::Config& config, int64_t depth) {
  return std::max<int64_t>(1, std::min({int64_t{16}, config.depth(Memory::kInp) / depth, config.depth(Memory::kAcc),
                                        config.depth(Memory::kOut)}));
}

}  // namespace

Reproducer loopback(const spec::Config& config, int64_t vectors, int64_t passes, uint64_t seed) {
  Builder build(config, seed);
  Random random(seed);
  std::array<uint64_t, spec::kBases> bases{};
  if (config.base) {
    vectors = std::clamp<int64_t>(vectors, 1, std::min<int64_t>(config.depth(Memory::kAcc), 65535));
    const auto data = random_bytes(random, vectors * config.block_out);
    bases[spec::kBaseAcc] = build.add(data);
    bases[spec::kBaseOut] = build.reserve(data.size());
    build.expect("loopback", bases[spec::kBaseOut], data);
    return build.finish(spec::Profile::kBase, base_copy(vectors, passes), bases);
  }
  // Lane c of the output is lane c of the input, for the lanes that both have; the remaining lanes are 0.
  vectors = std::min(vectors, rows_that_fit(config, 1));
  const auto data = random_bytes(random, vectors * config.block_in);
  std::vector<int8_t> unit(static_cast<size_t>(config.block_in) * static_cast<size_t>(config.block_out));
  std::vector<int8_t> expected(static_cast<size_t>(vectors * config.block_out));
  for (int64_t c = 0; c < std::min(config.block_in, config.block_out); ++c) {
    unit[static_cast<size_t>(c * config.block_in + c)] = 1;
    for (int64_t v = 0; v < vectors; ++v) {
      expected[static_cast<size_t>(v * config.block_out + c)] = data[static_cast<size_t>(v * config.block_in + c)];
    }
  }
  // 2^15 >> 7 is 2^8: the value with its eight fractional bits.
  const std::vector<spec::ChannelParameters> identity(static_cast<size_t>(config.block_out), {0, 1 << 15, 7});
  bases[0] = build.add(data);
  bases[1] = build.add(unit);
  bases[2] = build.add(parameters(config, identity));
  bases[3] = build.reserve(expected.size());
  build.expect("loopback", bases[3], expected);
  return build.finish(spec::Profile::kNative, native_product(config, vectors, 1, passes), bases);
}

Reproducer gemm(const spec::Config& config, spec::Profile profile, uint64_t seed) {
  Builder build(config, seed);
  Random random(seed);
  const int64_t depth = std::min<int64_t>({2, config.depth(Memory::kInp), config.depth(Memory::kWgt)});
  const int64_t rows = std::min(rows_that_fit(config, depth), config.depth(Memory::kUop));
  const int64_t in = config.block_in, out = config.block_out;
  const auto a = random_bytes(random, rows * depth * in), w = random_bytes(random, depth * out * in);
  std::vector<int64_t> sums(static_cast<size_t>(rows * out));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < out; ++c) {
      for (int64_t k = 0; k < depth; ++k) {
        sums[static_cast<size_t>(r * out + c)] +=
            dot(&a[static_cast<size_t>((r * depth + k) * in)], &w[static_cast<size_t>((k * out + c) * in)], in);
      }
    }
  }
  std::vector<int8_t> expected(sums.size());
  std::array<uint64_t, spec::kBases> bases{};
  if (profile == spec::Profile::kNative) {
    std::vector<spec::ChannelParameters> channels(static_cast<size_t>(out));
    for (auto& channel : channels) {
      channel.bias = static_cast<int32_t>(random.next() % 8192) - 4096;
      channel.multiplier = static_cast<uint16_t>(0x8000 | (random.next() & 0x7fff));
      channel.shift = 14;
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      expected[i] = spec::requantize(static_cast<int32_t>(sums[i]), channels[i % channels.size()], {});
    }
    bases[0] = build.add(a);
    bases[1] = build.add(w);
    bases[2] = build.add(parameters(config, channels));
    bases[3] = build.reserve(expected.size());
    build.expect("gemm", bases[3], expected);
    return build.finish(profile, native_product(config, rows, depth, 1), bases);
  }
  for (size_t i = 0; i < sums.size(); ++i) expected[i] = static_cast<int8_t>(sums[i]);
  const spec::Isa isa(config);
  std::vector<uint32_t> uops;
  for (int64_t r = 0; r < rows; ++r) {
    uops.push_back(
        isa.encode_uop({.dst = static_cast<uint32_t>(r), .src = static_cast<uint32_t>(r * depth), .wgt = 0}));
  }
  bases[spec::kBaseUop] = build.add(uops);
  bases[spec::kBaseWgt] = build.add(w);
  bases[spec::kBaseInp] = build.add(a);
  bases[spec::kBaseOut] = build.reserve(expected.size());
  build.expect("gemm", bases[spec::kBaseOut], expected);
  const auto product = [&](bool reset) {
    spec::base::Gemm g;
    g.reset = reset;
    g.uop_end = rows, g.iter_out = 1, g.iter_in = reset ? 1 : depth;
    g.src_factor_in = g.wgt_factor_in = reset ? 0 : 1;
    return g;
  };
  auto weights = base_load(spec::base::MemoryType::kWgt, depth);
  weights.push_next = 1;
  auto multiply = product(false);
  multiply.pop_prev = 1, multiply.push_next = 1;
  spec::base::Store store;
  store.memory_type = static_cast<int64_t>(spec::base::MemoryType::kOut);
  store.y_size = 1, store.x_size = store.x_stride = rows;
  store.pop_prev = 1;
  return build.finish(
      profile,
      {base_load(spec::base::MemoryType::kInp, rows * depth), weights, base_load(spec::base::MemoryType::kUop, rows),
       product(true), multiply, store, spec::base::Finish{}},
      bases);
}

Reproducer convolution(const spec::Config& config, int64_t size, uint64_t seed) {
  constexpr int64_t kKernel = 3, kWindow = kKernel * kKernel;
  const int64_t in = config.block_in, out = config.block_out, padded = size + 2;
  assert(config.base && padded * padded <= config.depth(Memory::kInp) && size * size <= config.depth(Memory::kAcc));
  Builder build(config, seed);
  Random random(seed);
  const auto image = random_bytes(random, size * size * in), w = random_bytes(random, kWindow * out * in);
  std::vector<int8_t> expected;
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      for (int64_t c = 0; c < out; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < kWindow; ++k) {
          const int64_t sy = y + k / kKernel - 1, sx = x + k % kKernel - 1;
          if (sy < 0 || sy >= size || sx < 0 || sx >= size) continue;
          sum +=
              dot(&image[static_cast<size_t>((sy * size + sx) * in)], &w[static_cast<size_t>((k * out + c) * in)], in);
        }
        expected.push_back(static_cast<int8_t>(sum));
      }
    }
  }
  const spec::Isa isa(config);
  std::vector<uint32_t> uops;
  for (int64_t k = 0; k < kWindow; ++k) {
    const int64_t src = k / kKernel * padded + k % kKernel;
    uops.push_back(isa.encode_uop({.dst = 0, .src = static_cast<uint32_t>(src), .wgt = static_cast<uint32_t>(k)}));
  }
  std::array<uint64_t, spec::kBases> bases{};
  bases[spec::kBaseUop] = build.add(uops);
  bases[spec::kBaseWgt] = build.add(w);
  bases[spec::kBaseInp] = build.add(image);
  bases[spec::kBaseOut] = build.reserve(expected.size());
  build.expect("convolution", bases[spec::kBaseOut], expected);

  auto inputs = base_load(spec::base::MemoryType::kInp, size);
  inputs.y_size = size;
  inputs.y_pad_top = inputs.y_pad_bottom = inputs.x_pad_left = inputs.x_pad_right = 1;
  auto weights = base_load(spec::base::MemoryType::kWgt, kWindow);
  weights.push_next = 1;
  const auto product = [&](bool reset) {
    spec::base::Gemm g;
    g.reset = reset;
    g.uop_end = reset ? 1 : kWindow;
    g.iter_out = g.iter_in = size;
    g.dst_factor_out = size, g.dst_factor_in = 1;
    g.src_factor_out = reset ? 0 : padded, g.src_factor_in = reset ? 0 : 1;
    return g;
  };
  auto multiply = product(false);
  multiply.pop_prev = 1, multiply.push_next = 1;
  spec::base::Store store;
  store.memory_type = static_cast<int64_t>(spec::base::MemoryType::kOut);
  store.y_size = 1, store.x_size = store.x_stride = size * size;
  store.pop_prev = 1;
  return build.finish(spec::Profile::kBase,
                      {inputs, weights, base_load(spec::base::MemoryType::kUop, kWindow), product(true), multiply,
                       store, spec::base::Finish{}},
                      bases);
}

}  // namespace tenon::driver
