#include "compiler/backends/accel/constants.h"

#include <cstring>
#include <functional>
#include <string_view>

#include "hw/spec/isa.h"

namespace tenon::compiler::accel {

int64_t ConstantPool::add(const std::vector<std::byte>& bytes) {
  const uint64_t hash = std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto [first, last] = entries_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const auto [offset, size] = it->second;
    if (size == static_cast<int64_t>(bytes.size()) && std::memcmp(&bytes_[offset], bytes.data(), bytes.size()) == 0)
      return offset;
  }
  const int64_t offset = reserve(static_cast<int64_t>(bytes.size()));
  bytes_.resize(offset);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  entries_.emplace(hash, std::pair{offset, static_cast<int64_t>(bytes.size())});
  return offset;
}

int64_t ConstantPool::reserve(int64_t size) {
  constexpr int64_t kAlignment = 64;
  const int64_t offset = ceil_div(size_, kAlignment) * kAlignment;
  size_ = offset + size;
  return offset;
}

std::vector<std::byte> pack_weights(const Contraction& c, const Operands& operands, Range blocks, const Chunk& chunk) {
  std::vector<std::byte> bytes;
  const auto append = [&](int64_t block, int64_t step, int64_t ky, int64_t kx) {
    for (int64_t out = 0; out < c.block_out; ++out) {
      for (int64_t in = 0; in < c.block_in; ++in) {
        bytes.push_back(static_cast<std::byte>(
            weight_at(c, operands.layer, operands.input, operands.output, block, step, ky, kx, out, in)));
      }
    }
  };
  if (c.own) {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      for (const OwnWindow& w : own_windows(c, chunk.kernel_h.size(), chunk.kernel_w.size())) {
        const size_t element = bytes.size();
        bytes.resize(element + static_cast<size_t>(c.block_in * c.block_out));
        for (int64_t lane = 0; lane < c.block_out; ++lane) {
          for (int64_t i = 0; i < w.rows; ++i) {
            for (int64_t j = 0; j < w.cols; ++j) {
              bytes[element + static_cast<size_t>(lane * c.block_in + i + spec::native::kOwnRows * (w.cols - 1 - j))] =
                  static_cast<std::byte>(weight_at(c, operands.layer, operands.input, operands.output, block, 0,
                                                   chunk.kernel_h.begin + w.row + i, chunk.kernel_w.begin + w.col + j,
                                                   lane, lane));
            }
          }
        }
      }
    }
  } else if (c.shared && c.block_in > c.block_out) {
    const int64_t count = blocks.size() == 1 ? 1 : c.group_out;
    for (int64_t i = 0; i < count; ++i) append(blocks.size() == 1 ? blocks.begin : i, 0, 0, 0);
  } else if (c.shared) {
    for (int64_t step = chunk.steps.begin; step < chunk.steps.end; ++step) append(0, step, 0, 0);
  } else {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      for (int64_t step = chunk.steps.begin; step < chunk.steps.end; ++step) {
        for (int64_t ky = chunk.kernel_h.begin; ky < chunk.kernel_h.end; ++ky) {
          for (int64_t kx = chunk.kernel_w.begin; kx < chunk.kernel_w.end; ++kx) append(block, step, ky, kx);
        }
      }
    }
  }
  return bytes;
}

std::vector<std::byte> pack_parameters(const Contraction& c, const Operands& operands, Range blocks) {
  std::vector<std::byte> bytes(blocks.size() * c.block_out * spec::kChannelParameterBytes);
  // A pool selects: its results are the accumulators, in eight fractional bits before they are rounded.
  constexpr spec::ChannelParameters kIdentity{.bias = 0, .multiplier = 1 << 15, .shift = 7};
  std::vector<spec::ChannelParameters> identities;
  if (operands.layer.kind == LayerKind::kMaxPool2d) identities.resize(operands.output.c, kIdentity);
  const auto& channels = identities.empty() ? operands.layer.channels : identities;
  for (int64_t lane = 0; lane < blocks.size() * c.block_out; ++lane) {
    const int64_t channel = blocks.begin * c.block_out + lane;
    if (channel >= static_cast<int64_t>(channels.size())) break;
    const spec::ChannelParameters& parameters = channels[channel];
    std::byte* to = &bytes[lane * spec::kChannelParameterBytes];
    for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(static_cast<uint32_t>(parameters.bias) >> 8 * i);
    for (int i = 0; i < 2; ++i) to[4 + i] = static_cast<std::byte>(parameters.multiplier >> 8 * i);
    to[6] = static_cast<std::byte>(parameters.shift);
  }
  return bytes;
}

}  // namespace tenon::compiler::accel
