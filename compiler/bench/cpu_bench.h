// Benchmarks of the CPU kernels, compared with oneDNN where it is available: matrix products and convolutions of well
// known networks, in CPU time of one thread, interleaved in one run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler::bench {

// A matrix product [m, k] times weights [k, n], or a convolution of one image; of f32, or of u8 with weights of i8, to
// i32.
struct Problem {
  std::string name, group;
  int64_t m = 0, n = 0, k = 0;  // 0 for a convolution
  bool int8 = false;
  int64_t weight_bits = 8;  // of int8 weights: the sums of two products with 7 bits fit into 16 bits
  int64_t channels = 0, outputs = 0, size = 0, kernel = 1, stride = 1, groups = 1;

  bool product() const { return m > 0; }
  int64_t padding() const { return kernel / 2; }
  int64_t out() const { return (size + 2 * padding() - kernel) / stride + 1; }
  double flops() const;
};
// Products of square, wide and tall matrices, and the convolutions of ResNet-18, MobileNetV2 and EfficientNet-Lite0;
// the products and the convolutions of ResNet-18 also in int8.
std::vector<Problem> problems();

struct Figures {
  Problem problem;
  double compile_seconds = 0;
  double ours = 0;             // seconds of a call, the median
  std::optional<double> peer;  // seconds of a call of oneDNN
  double error = 0;            // the largest difference from the peer's results, relative to their largest magnitude
};

// Whether this build includes oneDNN.
bool has_peer();
// Measures each problem `rounds` times, with the peer in the same round; for a level of this processor, the best one if
// empty.
Expected<std::vector<Figures>> measure(const std::vector<Problem>& problems, int rounds, const std::string& level = {});

// The time to compile the kernel of a problem.
struct CompileFigures {
  Problem problem;
  double loops = 0;                                    // seconds to emit and schedule its loops for all levels
  std::vector<std::pair<std::string, double>> levels;  // seconds from the loops to linked code, by level
};
// Medians of `rounds` compilations for each level of this architecture.
Expected<std::vector<CompileFigures>> measure_compilation(const std::vector<Problem>& problems, int rounds);

}  // namespace tenon::compiler::bench
