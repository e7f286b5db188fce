#include "hw/generator/boards.h"

#include <algorithm>

namespace tenon::generator {
namespace {

// Parts and platforms as AMD's platform downloads name them; `platforminfo -l` lists those that are installed.
constexpr Board kBoards[] = {
    {"u50", "Alveo U50, memory HBM", "xcu50-fsvh2104-2-e", "xilinx_u50_gen3x16_xdma_5_202210_1", "HBM[0]", 200, 8,
     false},
    {"u200", "Alveo U200, memory DDR4", "xcu200-fsgd2104-2-e", "xilinx_u200_gen3x16_xdma_2_202110_1", "DDR[0]", 200, 8,
     false},
    {"u250", "Alveo U250, memory DDR4", "xcu250-figd2104-2L-e", "xilinx_u250_gen3x16_xdma_4_1_202210_1", "DDR[0]", 200,
     8, false},
    {"kv260", "Kria KV260, memory of its processor", "xck26-sfvc784-2LV-c", "xilinx_kv260_base_202210_1", "", 150, 2,
     true},
};

}  // namespace

std::span<const Board> boards() { return kBoards; }

const Board* find_board(std::string_view name) {
  const auto* it = std::ranges::find(kBoards, name, &Board::name);
  return it == std::end(kBoards) ? nullptr : it;
}

}  // namespace tenon::generator
