// The layout of an executable file, shared by writer and reader:
//
//   0   magic (8 bytes), version (u32), 0 (u32), header bytes (u64), file bytes (u64), SHA-256 of the header (32 bytes)
//   64  header: a FlatBuffer, executable.fbs
//   ... sections, each at a multiple of 64 bytes, with zeros in the gaps
//
// FlatBuffers aligns to 32 bytes at most and ends at 2 GiB, so bulk data is stored outside the FlatBuffer. Little
// endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::runtime {

// As in PNG: a first byte that is not ASCII, and line ends that a text-mode copy would change.
inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'T', 'N', 'X', '\r', '\n', 0x1a, '\n'};
inline constexpr uint64_t kSectionAlignment = 64;

using Sha256 = std::array<uint8_t, 32>;
Sha256 sha256(std::span<const std::byte> bytes);

struct Preface {
  std::array<uint8_t, 8> magic = kMagic;
  uint32_t version = 0;
  uint32_t reserved = 0;
  uint64_t header_bytes = 0;
  uint64_t file_bytes = 0;
  Sha256 header_hash{};
};
static_assert(sizeof(Preface) == 64);

constexpr uint64_t align(uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

}  // namespace tenon::runtime
