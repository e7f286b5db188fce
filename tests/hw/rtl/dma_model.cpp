// The rules of MOVE, LOAD and STORE as isa.h states them, byte by byte and without any optimization.
#include "tests/hw/rtl/dma_bench.h"

namespace tenon::rtl_test {
namespace {

using spec::Memory;

// A base transfer in elements: the DRAM element of element (y, x) of the padded block, or -1 for a pad.
int64_t dram_element(const spec::base::Transfer& t, int64_t y, int64_t x) {
  y -= t.y_pad_top;
  x -= t.x_pad_left;
  return y < 0 || y >= t.y_size || x < 0 || x >= t.x_size ? -1 : t.dram_base + y * t.x_stride + x;
}

int64_t move_byte(const spec::native::Move& m, uint64_t base, int64_t y, int64_t x, int64_t j) {
  const int64_t k = x * m.x_step - m.left + j;
  const int64_t row = y - m.top;
  if (k < 0 || k >= m.row_bytes || row < 0 || row >= m.source_rows) return -1;
  return static_cast<int64_t>(base) + m.offset + row * m.y_step + k;
}

}  // namespace

std::vector<UnitWrite> expected_writes(const spec::Config& config, const spec::Instruction& instruction, uint32_t index,
                                       uint64_t base, const std::vector<uint8_t>& memory) {
  std::vector<UnitWrite> writes;
  if (const auto* m = std::get_if<spec::native::Move>(&instruction)) {
    constexpr Memory kTargets[] = {Memory::kInp, Memory::kWgt, Memory::kPar, Memory::kRes};
    const Memory target = kTargets[m->function];
    const int bytes = config.unit_bytes(target);
    auto unit = static_cast<uint32_t>(m->sram_base * config.units_per_element(target));
    for (int64_t y = 0; y < m->rows; ++y) {
      for (int64_t x = 0; x < m->vectors; ++x) {
        UnitWrite write{index, static_cast<int>(target), unit++, {}};
        for (int j = 0; j < bytes; ++j) {
          const int64_t address = move_byte(*m, base, y, x, j);
          const bool data = m->valid == 0 || j < m->valid;
          write.bytes.push_back(!data         ? 0
                                : address < 0 ? static_cast<uint8_t>(m->pad_value)
                                              : memory.at(static_cast<size_t>(address)));
        }
        writes.push_back(std::move(write));
      }
    }
    return writes;
  }
  const auto& t = std::get<spec::base::Load>(instruction);
  if (t.x_size == 0) return writes;
  constexpr Memory kTargets[] = {Memory::kUop, Memory::kWgt, Memory::kInp, Memory::kAcc, Memory::kOut, Memory::kAcc};
  const Memory target = kTargets[t.memory_type];
  const bool acc8 = t.memory_type == static_cast<int>(spec::base::MemoryType::kAcc8);
  const int bytes = config.unit_bytes(target);
  const int units = acc8 ? 1 : config.units_per_element(target);
  auto unit = static_cast<uint32_t>(t.sram_base * units);
  for (int64_t y = 0; y < t.y_pad_top + t.y_size + t.y_pad_bottom; ++y) {
    for (int64_t x = 0; x < t.x_pad_left + t.x_size + t.x_pad_right; ++x) {
      const int64_t element = dram_element(t, y, x);
      for (int u = 0; u < units; ++u) {
        UnitWrite write{index, acc8 ? 7 : static_cast<int>(target), unit++, {}};
        for (int j = 0; j < bytes; ++j) {
          const auto address = base + static_cast<uint64_t>((element * units + u) * bytes + j);
          write.bytes.push_back(element < 0 ? 0 : memory.at(address));
        }
        writes.push_back(std::move(write));
      }
    }
  }
  return writes;
}

void expected_store(const spec::Config& config, const spec::Instruction& instruction, uint64_t base,
                    const std::vector<uint8_t>& source, std::vector<uint8_t>& memory) {
  const int bytes = config.block_out;
  if (const auto* m = std::get_if<spec::native::Move>(&instruction)) {
    auto unit = static_cast<size_t>(m->sram_base);
    for (int64_t y = 0; y < m->rows; ++y) {
      for (int64_t x = 0; x < m->vectors; ++x, ++unit) {
        for (int j = 0; j < bytes && (m->valid == 0 || j < m->valid); ++j) {
          const int64_t address = move_byte(*m, base, y, x, j);
          if (address >= 0)
            memory.at(static_cast<size_t>(address)) =
                source.at(unit * static_cast<size_t>(bytes) + static_cast<size_t>(j));
        }
      }
    }
    return;
  }
  const auto& t = std::get<spec::base::Store>(instruction);
  auto unit = static_cast<size_t>(t.sram_base);
  for (int64_t y = 0; y < t.y_size; ++y) {
    for (int64_t x = 0; x < t.x_size; ++x, ++unit) {
      for (int j = 0; j < bytes; ++j) {
        const auto address = base + static_cast<uint64_t>((t.dram_base + y * t.x_stride + x) * bytes + j);
        memory.at(address) = source.at(unit * static_cast<size_t>(bytes) + static_cast<size_t>(j));
      }
    }
  }
}

}  // namespace tenon::rtl_test
