#include "tests/compiler/backends/accel/harness.h"

#include <chrono>
#include <random>

#include "driver/accelerator.h"
#include "driver/simulated.h"
#include "sim/behavioral/behavioral.h"
#include "support/try.h"

namespace tenon::compiler::accel {
namespace {

int64_t at(const RegionTensor& t, int64_t n, int64_t c, int64_t y, int64_t x) {
  return ((n * t.c + c) * t.h + y) * t.w + x;
}

// Where channel c of position x is, in the p-th of `batch` matrices.
int64_t at_product(const RegionTensor& t, int64_t batch, int64_t p, int64_t c, int64_t x) {
  const int64_t groups = batch / t.n;
  return at(t, p / groups, p % groups * (t.c / groups) + c, 0, x);
}

Values products(const Layer& layer, const RegionTensor& in, const Values& input, const RegionTensor& other,
                const Values& weights, const RegionTensor& out, const Values* residual) {
  Values result(out.n * out.c * out.w);
  const int64_t groups = layer.weight_groups, columns = other.w / groups;
  const auto weight = [&](int64_t p, int64_t i, int64_t o) {
    return groups == 1 ? weights[at_product(other, layer.batch, p, i, o)]
                       : weights[at(other, p / groups, i, 0, p % groups * columns + o)];
  };
  for (int64_t p = 0; p < layer.batch; ++p) {
    for (int64_t x = 0; x < out.w; ++x) {
      for (int64_t o = 0; o < columns; ++o) {
        uint32_t sum = 0;  // wraps
        for (int64_t i = 0; i < in.n * in.c / layer.batch; ++i) {
          sum += static_cast<uint32_t>(input[at_product(in, layer.batch, p, i, x)] * weight(p, i, o));
        }
        const int64_t to = at_product(out, layer.batch, p, o, x);
        result[to] = spec::requantize(static_cast<int32_t>(sum), layer.channels[o], layer.parameters,
                                      residual ? (*residual)[to] : int8_t{0});
      }
    }
  }
  return result;
}

int32_t accumulate(const Layer& layer, const RegionTensor& in, const Values& input, int64_t n, int64_t o, int64_t oy,
                   int64_t ox) {
  uint32_t sum = 0;  // wraps
  switch (layer.kind) {
    case LayerKind::kAdd: return input[at(in, n, o, oy, ox)];
    case LayerKind::kGlobalSumPool:
      for (int64_t y = 0; y < in.h; ++y) {
        for (int64_t x = 0; x < in.w; ++x) sum += static_cast<uint32_t>(input[at(in, n, o, y, x)]);
      }
      return static_cast<int32_t>(sum);
    case LayerKind::kMaxPool2d:
    case LayerKind::kMatmul:
    case LayerKind::kConv2d: break;
  }
  const auto channels = static_cast<int64_t>(layer.channels.size());
  const int64_t per_group = in.c / layer.groups;
  for (int64_t i = 0; i < per_group; ++i) {
    const int64_t c = o / (channels / layer.groups) * per_group + i;
    for (int64_t ky = 0; ky < layer.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < layer.kernel_w; ++kx) {
        const int64_t y = oy * layer.stride_y - layer.pad_top + ky * layer.dilation_y;
        const int64_t x = ox * layer.stride_x - layer.pad_left + kx * layer.dilation_x;
        const bool inside = y >= 0 && y < in.h && x >= 0 && x < in.w;
        const int32_t value = inside ? input[at(in, n, c, y, x)] : layer.pad_value;
        const int32_t weight = layer.weights[((o * per_group + i) * layer.kernel_h + ky) * layer.kernel_w + kx];
        sum += static_cast<uint32_t>(value * weight);
      }
    }
  }
  return static_cast<int32_t>(sum);
}

int8_t maximum(const Layer& layer, const RegionTensor& in, const Values& input, int64_t n, int64_t o, int64_t oy,
               int64_t ox) {
  int8_t result = -128;
  for (int64_t ky = 0; ky < layer.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < layer.kernel_w; ++kx) {
      const int64_t y = oy * layer.stride_y - layer.pad_top + ky, x = ox * layer.stride_x - layer.pad_left + kx;
      if (y >= 0 && y < in.h && x >= 0 && x < in.w) result = std::max(result, input[at(in, n, o, y, x)]);
    }
  }
  return result;
}

}  // namespace

std::vector<Values> reference(const Region& region, const std::vector<Values>& inputs) {
  std::vector<Values> values(region.tensors.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[region.inputs[i]] = inputs[i];
  for (const Layer& layer : region.layers) {
    const RegionTensor& in = region.tensors[layer.input];
    const RegionTensor& out = region.tensors[layer.output];
    Values& result = values[layer.output];
    if (layer.kind == LayerKind::kMatmul) {
      result = products(layer, in, values[layer.input], region.tensors[layer.computed_weights],
                        values[layer.computed_weights], out, layer.residual == -1 ? nullptr : &values[layer.residual]);
      continue;
    }
    result.resize(out.n * out.c * out.h * out.w);
    for (int64_t n = 0; n < out.n; ++n) {
      for (int64_t o = 0; o < out.c; ++o) {
        for (int64_t y = 0; y < out.h; ++y) {
          for (int64_t x = 0; x < out.w; ++x) {
            const int64_t to = at(out, n, o, y, x);
            if (layer.kind == LayerKind::kMaxPool2d) {
              result[to] = maximum(layer, in, values[layer.input], n, o, y, x);
              continue;
            }
            const int8_t residual = layer.residual == -1 ? 0 : values[layer.residual][to];
            result[to] = spec::requantize(accumulate(layer, in, values[layer.input], n, o, y, x), layer.channels[o],
                                          layer.parameters, residual);
          }
        }
      }
    }
  }
  return values;
}

Values to_device(const Values& values, const RegionTensor& t, Layout layout, const spec::Config& config) {
  std::minstd_rand noise(1);
  Values bytes(runtime::element_count(boundary_shape(t, layout, config)));
  for (int8_t& byte : bytes) byte = static_cast<int8_t>(noise());
  const int64_t block = lane_block(config), blocks = (t.c + block - 1) / block;
  for (int64_t n = 0; n < t.n; ++n) {
    for (int64_t c = 0; c < t.c; ++c) {
      for (int64_t y = 0; y < t.h; ++y) {
        for (int64_t x = 0; x < t.w; ++x) {
          const int64_t to = layout == Layout::kRows
                                 ? ((n * t.h + y) * t.w + x) * t.c + c
                                 : (((n * blocks + c / block) * t.h + y) * t.w + x) * block + c % block;
          bytes[to] = values[at(t, n, c, y, x)];
        }
      }
    }
  }
  return bytes;
}

Values from_device(const Values& bytes, const RegionTensor& t, const spec::Config& config) {
  const int64_t block = lane_block(config), blocks = (t.c + block - 1) / block;
  Values values(t.n * t.c * t.h * t.w);
  for (int64_t n = 0; n < t.n; ++n) {
    for (int64_t c = 0; c < t.c; ++c) {
      for (int64_t y = 0; y < t.h; ++y) {
        for (int64_t x = 0; x < t.w; ++x) {
          values[at(t, n, c, y, x)] = bytes[(((n * blocks + c / block) * t.h + y) * t.w + x) * block + c % block];
        }
      }
    }
  }
  return values;
}

Expected<std::vector<Values>> run_on_simulator(const spec::Config& config, const Region& region,
                                               const std::vector<Values>& inputs, const ScheduleOptions& options) {
  TENON_TRY_ASSIGN(program, compile(config, region, options));
  return run_on_simulator(config, region, inputs, *program);
}

Expected<std::vector<Values>> run_on_simulator(const spec::Config& config, const Region& region,
                                               const std::vector<Values>& inputs,
                                               const runtime::AcceleratorProgram& program) {
  TENON_TRY_ASSIGN(simulator, sim::make_behavioral(config, {.memory_bytes = uint64_t{64} << 20}));
  const auto device = driver::make_simulated("behavioral:test", std::move(*simulator), false);

  driver::Launch launch{.profile = program.profile};
  const auto upload = [&](std::span<const std::byte> bytes, size_t size) -> Expected<driver::Buffer> {
    auto buffer = device->allocate(std::max<size_t>(size, 64));
    if (!buffer) return buffer;
    TENON_TRY(device->write(*buffer, 0, bytes));
    return buffer;
  };
  auto code = upload(std::as_bytes(std::span(program.instructions)), program.instructions.size() * spec::kSlotBytes);
  auto constants = upload(program.constants, program.constants.size());
  auto workspace = upload({}, program.workspace_bytes);
  for (auto* buffer : {&code, &constants, &workspace}) {
    if (!*buffer) return std::unexpected(std::move(buffer->error()));
  }
  launch.instructions = code->address;
  launch.count = static_cast<uint32_t>(program.instructions.size());
  launch.bases[runtime::kBaseConstants] = constants->address;
  launch.bases[runtime::kBaseWorkspace] = workspace->address;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int tensor = region.inputs[i];
    const Values bytes = to_device(inputs[i], region.tensors[tensor], boundary_layout(region, tensor, config), config);
    TENON_TRY_ASSIGN(buffer, upload(std::as_bytes(std::span(bytes)), bytes.size()));
    launch.bases[program.inputs[i].base] = buffer->address;
  }
  std::vector<driver::Buffer> outputs;
  for (const runtime::TensorSlot& slot : program.outputs) {
    TENON_TRY_ASSIGN(buffer, upload({}, runtime::element_count(slot.shape)));
    launch.bases[slot.base] = buffer->address;
    outputs.push_back(*buffer);
  }

  TENON_TRY(driver::start(*device, launch));
  TENON_TRY(driver::finish(*device, std::chrono::seconds(100)));
  std::vector<Values> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Values bytes(runtime::element_count(program.outputs[i].shape));
    TENON_TRY(device->read(outputs[i], 0, std::as_writable_bytes(std::span(bytes))));
    results.push_back(from_device(bytes, region.tensors[region.outputs[i]], config));
  }
  return results;
}

}  // namespace tenon::compiler::accel
