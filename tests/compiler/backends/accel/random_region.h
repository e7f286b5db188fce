// Random regions and configurations as short lists of numbers, so that a failure can be shrunk and run again.
#pragma once

#include <array>
#include <random>
#include <string>
#include <string_view>

#include "compiler/backends/accel/layer.h"
#include "hw/spec/config.h"
#include "tests/compiler/backends/accel/harness.h"

namespace tenon::compiler::accel {

// The layers after the first one.
enum class Tail : int64_t {
  kNone,
  kResidualConvolution,
  kAdd,
  kPoolAndDense,
  kProject,
  kDepthwiseProject,
  kMaxPool,
  kEnd
};

struct Case {
  // First layer: n, c, h, w -> o, in groups.
  int64_t n = 1, c = 1, h = 1, w = 1, o = 1, kernel_h = 1, kernel_w = 1, stride_y = 1, stride_x = 1, dilation_y = 1,
          dilation_x = 1, top = 0, left = 0, bottom = 0, right = 0, groups = 1, tail = 0, pool_h = 1, pool_w = 1,
          data = 0;

  static constexpr std::array<std::pair<std::string_view, int64_t Case::*>, 20> kFields{
      {{"n", &Case::n},
       {"c", &Case::c},
       {"h", &Case::h},
       {"w", &Case::w},
       {"o", &Case::o},
       {"kernel_h", &Case::kernel_h},
       {"kernel_w", &Case::kernel_w},
       {"stride_y", &Case::stride_y},
       {"stride_x", &Case::stride_x},
       {"dilation_y", &Case::dilation_y},
       {"dilation_x", &Case::dilation_x},
       {"top", &Case::top},
       {"left", &Case::left},
       {"bottom", &Case::bottom},
       {"right", &Case::right},
       {"groups", &Case::groups},
       {"tail", &Case::tail},
       {"pool_h", &Case::pool_h},
       {"pool_w", &Case::pool_w},
       {"data", &Case::data}}};

  int64_t out_h() const { return extent(h + top + bottom, kernel_h, dilation_y, stride_y); }
  int64_t out_w() const { return extent(w + left + right, kernel_w, dilation_x, stride_x); }
  int64_t macs() const { return n * out_h() * out_w() * o * (c + (tail == 1 ? 9 * o : 0)) * kernel_h * kernel_w; }
  bool valid() const {
    return n > 0 && c > 0 && h > 0 && w > 0 && o > 0 && kernel_h > 0 && kernel_w > 0 && stride_y > 0 && stride_x > 0 &&
           dilation_y > 0 && dilation_x > 0 && groups > 0 && c % groups == 0 && o % groups == 0 && out_h() > 0 &&
           out_w() > 0;
  }
  std::string str() const;  // "c=3 h=8 ...", fields that are not the default

 private:
  static int64_t extent(int64_t size, int64_t kernel, int64_t dilation, int64_t stride) {
    const int64_t room = size - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

using Random = std::mt19937_64;

// A case of at most `macs` multiplications; about one in three has a map or channels beyond the scratchpads.
Case random_case(Random& random, const spec::Config& config, int64_t macs);
// Any configuration that validate() accepts, small ones preferred, with the native profile only.
spec::Config random_config(Random& random);

struct Problem {
  Region region;
  std::vector<Values> inputs;
};
Problem problem_of(const Case& c);

// Products of activations, as those of attention: a dense layer computes an operand of the first, the scores, whose
// results are an operand of the second; their matrices are images or groups of channels. At most `macs`
// multiplications in the first. `text` receives the sizes.
Problem random_products(Random& random, const spec::Config& config, int64_t macs, std::string& text);

}  // namespace tenon::compiler::accel
