#include "tests/compiler/backends/accel/random_region.h"

#include <algorithm>
#include <cassert>

namespace tenon::compiler::accel {
namespace {

int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
int8_t byte(Random& random) { return static_cast<int8_t>(pick(random, -128, 127)); }

Values noise(Random& random, int64_t size) {
  Values values(size);
  for (int8_t& value : values) value = byte(random);
  return values;
}

// Parameters that keep sums of `terms` products of bytes in the range of the output, mostly.
void fill_parameters(Random& random, Layer& layer, int64_t channels, int64_t terms, bool residual) {
  for (int64_t i = 0; i < channels; ++i) {
    spec::ChannelParameters p;
    p.bias = static_cast<int32_t>(pick(random, -50000, 50000));
    p.multiplier = pick(random, 0, 20) == 0 ? 0 : static_cast<uint16_t>(pick(random, 1 << 15, (1 << 16) - 1));
    int shift = 8;
    for (int64_t t = terms; t > 1; t /= 4) ++shift;
    p.shift = static_cast<uint8_t>(std::min<int64_t>(spec::kMaxShift, shift + pick(random, -1, 3)));
    layer.channels.push_back(p);
  }
  layer.parameters.zero = byte(random);
  if (pick(random, 0, 1) == 0) layer.parameters.lo = layer.parameters.zero;
  if (pick(random, 0, 3) == 0) layer.parameters.v_lo = 0;
  layer.parameters.residual = residual;
  if (residual) {
    layer.parameters.r_zero = byte(random);
    layer.parameters.r_multiplier = static_cast<uint16_t>(pick(random, 1 << 15, (1 << 16) - 1));
    layer.parameters.r_shift = static_cast<uint8_t>(pick(random, 6, 12));
  }
}

}  // namespace

std::string Case::str() const {
  std::string text;
  const Case standard;
  for (const auto& [name, field] : kFields) {
    if (this->*field == standard.*field) continue;
    text += (text.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(this->*field);
  }
  return text;
}

Case random_case(Random& random, const spec::Config& config, int64_t macs) {
  for (;;) {
    Case c;
    c.n = pick(random, 0, 7) == 0 ? pick(random, 2, 3) : 1;
    const int64_t block = lane_block(config);
    c.c = pick(random, 1, 3 * block);
    c.o = pick(random, 1, 3 * block);
    if (pick(random, 0, 4) == 0) {  // dense
      c.c = pick(random, 1, 40 * block);
      c.o = pick(random, 1, 20 * block);
    } else {
      const bool square = pick(random, 0, 1) == 0;
      c.h = pick(random, 1, 40);
      c.w = pick(random, 1, 40);
      c.kernel_h = pick(random, 1, 7);
      c.kernel_w = square ? c.kernel_h : pick(random, 1, 7);
      c.stride_y = pick(random, 1, 3);
      c.stride_x = square ? c.stride_y : pick(random, 1, 3);
      if (pick(random, 0, 4) == 0) c.dilation_y = pick(random, 1, 3);
      if (pick(random, 0, 4) == 0) c.dilation_x = pick(random, 1, 3);
      for (auto pad : {&Case::top, &Case::left, &Case::bottom, &Case::right}) c.*pad = pick(random, 0, 3);
      switch (pick(random, 0, 5)) {  // beyond a scratchpad
        case 0: c.h = c.w = pick(random, 40, 90); break;
        case 1: c.c = pick(random, 3 * block, 20 * block); break;
        case 2: c.o = pick(random, 3 * block, 20 * block); break;
        case 3: c.c = pick(random, 1, 4); break;  // a first layer
        default: break;
      }
      if (pick(random, 0, 9) == 0 || (config.own_lanes && pick(random, 0, 1) == 0)) {
        c.groups = c.o = c.c;
      } else if (pick(random, 0, 4) == 0) {  // parts of a block, whole blocks, or any
        c.groups = pick(random, 2, 8);
        const int64_t kind = pick(random, 0, 2), part = int64_t{1} << pick(random, 0, 4);
        c.c = c.groups * (kind == 0 ? part : kind == 1 ? block * pick(random, 1, 2) : pick(random, 1, block));
        c.o = c.groups * (kind == 0 ? part : kind == 1 ? block * pick(random, 1, 2) : pick(random, 1, block));
      }
      c.tail = pick(random, 0, static_cast<int64_t>(Tail::kEnd) - 1);
      c.pool_h = pick(random, 1, 4), c.pool_w = pick(random, 1, 4);
      Layer pool;
      pool.kernel_h = c.pool_h, pool.kernel_w = c.pool_w;
      const bool pools = config.window_maximum && pool_accumulators(pool) <= config.depth(spec::Memory::kAcc);
      if (static_cast<Tail>(c.tail) == Tail::kMaxPool && !pools) c.tail = 0;
      if (static_cast<Tail>(c.tail) == Tail::kDepthwiseProject && c.groups == 1 && pick(random, 0, 3) != 0) {
        c.kernel_h = c.kernel_w = c.stride_y = c.stride_x = c.dilation_y = c.dilation_x = 1;
        c.top = c.left = c.bottom = c.right = 0;
      }
    }
    c.data = pick(random, 0, 1 << 30);
    if (c.valid() && c.macs() <= macs) return c;
  }
}

spec::Config random_config(Random& random) {
  for (;;) {
    spec::Config config;
    config.name = "random";
    config.block_in = 1 << pick(random, 1, 5);
    config.block_out = pick(random, 0, 2) == 0 ? config.block_in : 1 << pick(random, 1, 5);
    config.axi_data_bits = 32 << pick(random, 0, 3);
    config.queue_depth = 1 << pick(random, 1, 5);
    config.base = false;
    for (int i = 0; i < spec::kScratchpads; ++i) {
      config.bytes[i] = int64_t{config.element_bytes(static_cast<spec::Memory>(i))} << pick(random, 1, 10);
    }
    if (config.block_in == config.block_out) {
      config.own_lanes = pick(random, 0, 3) != 0;
      config.packed_products = pick(random, 0, 1) == 0;
      config.results_to_inp = pick(random, 0, 3) != 0;
    }
    config.window_maximum = pick(random, 0, 3) != 0;
    config.requantizer_passes = pick(random, 0, 3) == 0 ? static_cast<int>(std::min(2, config.block_out)) : 1;
    if (validate(config, "random")) return config;
  }
}

Problem problem_of(const Case& c) {
  Random random(static_cast<uint64_t>(c.data));
  Problem problem;
  Region& region = problem.region;
  region.name = "test";
  const auto tensor = [&](int64_t channels, int64_t h, int64_t w) {
    region.tensors.push_back({"t" + std::to_string(region.tensors.size()), c.n, channels, h, w});
    return static_cast<int>(region.tensors.size()) - 1;
  };
  const auto input = [&](int64_t channels, int64_t h, int64_t w) {
    region.inputs.push_back(tensor(channels, h, w));
    problem.inputs.push_back(noise(random, c.n * channels * h * w));
    return region.inputs.back();
  };

  Layer first;
  first.name = "first";
  first.op = "accel.conv2d";
  first.input = input(c.c, c.h, c.w);
  first.output = tensor(c.o, c.out_h(), c.out_w());
  first.kernel_h = c.kernel_h, first.kernel_w = c.kernel_w, first.stride_y = c.stride_y, first.stride_x = c.stride_x;
  first.dilation_y = c.dilation_y, first.dilation_x = c.dilation_x;
  first.pad_top = c.top, first.pad_left = c.left, first.pad_bottom = c.bottom, first.pad_right = c.right;
  first.pad_value = byte(random);
  first.groups = c.groups;
  const int64_t terms = c.c / first.groups * c.kernel_h * c.kernel_w;
  first.weights = noise(random, c.o * terms);
  fill_parameters(random, first, c.o, terms, false);
  int last = first.output;
  region.layers.push_back(std::move(first));

  // A pointwise convolution of `last`, half of the time with a residual.
  const auto project = [&](int64_t channels, int64_t h, int64_t w) {
    Layer layer;
    layer.name = "project";
    layer.op = "accel.conv2d";
    layer.input = last;
    const int64_t outputs = pick(random, 1, 2 * channels);
    layer.output = tensor(outputs, h, w);
    const bool residual = pick(random, 0, 1) == 0;
    if (residual) layer.residual = input(outputs, h, w);
    layer.weights = noise(random, outputs * channels);
    fill_parameters(random, layer, outputs, channels, residual);
    last = layer.output;
    region.layers.push_back(std::move(layer));
  };

  switch (static_cast<Tail>(c.tail)) {
    case Tail::kNone: break;
    case Tail::kResidualConvolution: {
      Layer layer;
      layer.name = "second";
      layer.op = "accel.conv2d";
      layer.input = layer.residual = last;
      layer.output = tensor(c.o, c.out_h(), c.out_w());
      layer.kernel_h = layer.kernel_w = 3;
      layer.pad_top = layer.pad_left = layer.pad_bottom = layer.pad_right = 1;
      layer.pad_value = byte(random);
      layer.weights = noise(random, c.o * c.o * 9);
      fill_parameters(random, layer, c.o, c.o * 9, true);
      last = layer.output;
      region.layers.push_back(std::move(layer));
      break;
    }
    case Tail::kAdd: {
      Layer layer;
      layer.name = "add";
      layer.op = "accel.add";
      layer.kind = LayerKind::kAdd;
      layer.input = last;
      layer.residual = input(c.o, c.out_h(), c.out_w());
      layer.output = tensor(c.o, c.out_h(), c.out_w());
      fill_parameters(random, layer, c.o, 1, true);
      region.outputs.push_back(last);  // also a result, and read again
      last = layer.output;
      region.layers.push_back(std::move(layer));
      break;
    }
    case Tail::kPoolAndDense: {
      Layer pool;
      pool.name = "pool";
      pool.op = "accel.global_sum_pool";
      pool.kind = LayerKind::kGlobalSumPool;
      pool.input = last;
      pool.output = tensor(c.o, 1, 1);
      fill_parameters(random, pool, c.o, c.out_h() * c.out_w(), false);
      last = pool.output;
      region.layers.push_back(std::move(pool));
      Layer dense;
      dense.name = "dense";
      dense.op = "accel.dense";
      dense.input = last;
      dense.output = tensor(10, 1, 1);
      dense.weights = noise(random, 10 * c.o);
      fill_parameters(random, dense, 10, c.o, false);
      last = dense.output;
      region.layers.push_back(std::move(dense));
      break;
    }
    case Tail::kProject: project(c.o, c.out_h(), c.out_w()); break;
    case Tail::kDepthwiseProject: {
      Layer layer;
      layer.name = "depthwise";
      layer.op = "accel.conv2d";
      layer.input = last;
      layer.groups = c.o;
      layer.kernel_h = pick(random, 1, 5), layer.kernel_w = pick(random, 1, 5);
      layer.stride_y = pick(random, 1, 2), layer.stride_x = pick(random, 1, 2);
      if (pick(random, 0, 5) == 0) layer.dilation_y = layer.dilation_x = 2;
      for (auto pad : {&Layer::pad_top, &Layer::pad_left, &Layer::pad_bottom, &Layer::pad_right})
        layer.*pad = pick(random, 0, 2);
      const auto extent = [](int64_t size, int64_t kernel, int64_t dilation, int64_t stride) {
        return (size - (kernel - 1) * dilation - 1) / stride + 1;
      };
      const auto most = [](int64_t size, int64_t kernel) { return std::min(size, kernel); };
      const int64_t h = c.out_h() + layer.pad_top + layer.pad_bottom, w = c.out_w() + layer.pad_left + layer.pad_right;
      layer.kernel_h = most((h - 1) / layer.dilation_y + 1, layer.kernel_h);
      layer.kernel_w = most((w - 1) / layer.dilation_x + 1, layer.kernel_w);
      const int64_t out_h = extent(h, layer.kernel_h, layer.dilation_y, layer.stride_y),
                    out_w = extent(w, layer.kernel_w, layer.dilation_x, layer.stride_x);
      layer.output = tensor(c.o, out_h, out_w);
      layer.pad_value = byte(random);
      layer.weights = noise(random, c.o * layer.kernel_h * layer.kernel_w);
      fill_parameters(random, layer, c.o, layer.kernel_h * layer.kernel_w, false);
      last = layer.output;
      region.layers.push_back(std::move(layer));
      project(c.o, out_h, out_w);
      break;
    }
    case Tail::kMaxPool: {
      Layer layer;
      layer.name = "pool";
      layer.op = "accel.max_pool2d";
      layer.kind = LayerKind::kMaxPool2d;
      layer.input = last;
      layer.kernel_h = std::min(c.pool_h, c.out_h()), layer.kernel_w = std::min(c.pool_w, c.out_w());
      layer.stride_y = pick(random, 1, 3), layer.stride_x = pick(random, 1, 3);
      layer.pad_top = pick(random, 0, layer.kernel_h - 1), layer.pad_left = pick(random, 0, layer.kernel_w - 1);
      const int64_t bottom = pick(random, 0, layer.kernel_h - 1), right = pick(random, 0, layer.kernel_w - 1);
      const int64_t h = (c.out_h() + layer.pad_top + bottom - layer.kernel_h) / layer.stride_y + 1,
                    w = (c.out_w() + layer.pad_left + right - layer.kernel_w) / layer.stride_x + 1;
      layer.output = tensor(c.o, h, w);
      if (pick(random, 0, 3) == 0) region.outputs.push_back(last);  // so that it is not fused
      last = layer.output;
      region.layers.push_back(std::move(layer));
      if (pick(random, 0, 1) == 0) project(c.o, h, w);
      break;
    }
    case Tail::kEnd: assert(false);
  }
  region.outputs.push_back(last);
  return problem;
}

Problem random_products(Random& random, const spec::Config& config, int64_t macs, std::string& text) {
  const int64_t block = lane_block(config);
  int64_t batch = 1, rows = 1, channels = 1, columns = 1;
  do {
    batch = pick(random, 1, 5);
    rows = pick(random, 1, 40), columns = pick(random, 1, 5 * block);
    channels = pick(random, 0, 1) == 0 ? block * pick(random, 1, 3) : pick(random, 1, 3 * block);
    if (pick(random, 0, 7) == 0) channels = pick(random, 3 * block, 40 * block);
  } while (batch * rows * channels * columns > macs);
  text = std::to_string(batch) + " x " + std::to_string(rows) + " x " + std::to_string(channels) + " x " +
         std::to_string(columns);
  Problem problem;
  Region& region = problem.region;
  region.name = "test";
  // `batch` matrices, perhaps as groups of channels.
  const auto tensor = [&](int64_t matrix_rows, int64_t matrix_columns) {
    RegionTensor t{.name = "t" + std::to_string(region.tensors.size()), .n = batch, .c = matrix_columns, .rank = 3};
    t.w = matrix_rows;
    if (matrix_columns % block == 0 && pick(random, 0, 1) == 0) {
      t.n = batch % 2 == 0 && pick(random, 0, 1) == 0 ? 2 : 1;
      t.c *= batch / t.n;
    }
    region.tensors.push_back(t);
    return static_cast<int>(region.tensors.size()) - 1;
  };
  const auto fill = [&](int t) {
    region.inputs.push_back(t);
    const RegionTensor& of = region.tensors[t];
    problem.inputs.push_back(noise(random, of.n * of.c * of.w));
    return t;
  };
  const auto product = [&](const char* name, int input, int weights, int64_t terms, int64_t outputs) {
    Layer layer;
    layer.name = name;
    layer.op = "accel.matmul";
    layer.kind = LayerKind::kMatmul;
    layer.batch = batch;
    layer.input = input;
    layer.computed_weights = weights;
    layer.output = tensor(rows, outputs);
    const bool residual = pick(random, 0, 3) == 0;
    fill_parameters(random, layer, outputs, terms, residual);
    if (residual) {
      RegionTensor other = region.tensors[layer.output];
      other.name = "t" + std::to_string(region.tensors.size());
      region.tensors.push_back(other);
      layer.residual = fill(static_cast<int>(region.tensors.size()) - 1);
    }
    region.layers.push_back(std::move(layer));
    return region.layers.back().output;
  };

  int keys = tensor(columns, channels);
  if (region.tensors[keys].n == 1) {  // the results of a dense layer, which are stored just before
    RegionTensor features{.name = "features", .c = pick(random, 1, 2 * block), .rank = 2};
    features.w = columns;
    region.tensors.push_back(features);
    Layer dense;
    dense.name = "dense";
    dense.op = "accel.dense";
    dense.input = fill(static_cast<int>(region.tensors.size()) - 1);
    dense.output = keys;
    const int64_t outputs = region.tensors[keys].c;
    dense.weights = noise(random, outputs * features.c);
    fill_parameters(random, dense, outputs, features.c, false);
    region.layers.push_back(std::move(dense));
  } else {
    fill(keys);
  }
  const int scores = product("scores", fill(tensor(rows, channels)), keys, channels, columns);
  if (region.inputs.size() > 3 || (region.tensors[scores].n != batch && columns % block != 0) ||
      pick(random, 0, 3) == 0) {
    region.outputs.push_back(scores);
    return problem;
  }
  const int64_t values = pick(random, 1, 3 * block);
  const int64_t images = batch % 2 == 0 && pick(random, 0, 1) == 0 ? 2 : 1;
  const int64_t groups = pick(random, 0, 1) == 0 ? batch / images : 1;
  if (groups > 1) {  // the positions of an image are those of several products
    RegionTensor t{.name = "values", .n = images, .c = columns, .rank = images > 1 ? 3 : 2};
    t.w = groups * values;
    region.tensors.push_back(t);
  }
  const int weights = groups > 1 ? static_cast<int>(region.tensors.size()) - 1 : tensor(values, columns);
  region.outputs.push_back(product("context", scores, fill(weights), columns, values));
  region.layers.back().weight_groups = groups;
  return problem;
}

}  // namespace tenon::compiler::accel
