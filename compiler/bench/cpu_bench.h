// How fast the CPU's kernels are, beside oneDNN's where it is there: matrix products and convolutions of known
// networks, one thread, interleaved in one run, CPU time.
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
  int64_t m = 0, n = 0, k = 0;  // 0: a convolution
  bool int8 = false;
  int64_t channels = 0, outputs = 0, size = 0, kernel = 1, stride = 1, groups = 1;

  bool product() const { return m > 0; }
  int64_t padding() const { return kernel / 2; }
  int64_t out() const { return (size + 2 * padding() - kernel) / stride + 1; }
  double flops() const;
};
// Products of square, flat and tall matrices, and the convolutions of ResNet-18, MobileNetV2 and EfficientNet-Lite0;
// the products and those of ResNet-18 once more in bytes.
std::vector<Problem> problems();

struct Figures {
  Problem problem;
  double compile_seconds = 0;
  double ours = 0;             // seconds a call, the median
  std::optional<double> peer;  // oneDNN's
  double error = 0;            // the largest difference from the peer's results, by their largest
};

// Whether oneDNN was found when this was built.
bool has_peer();
// Each problem `rounds` times, both after each other in each round; for a level of this processor, the best if empty.
Expected<std::vector<Figures>> measure(const std::vector<Problem>& problems, int rounds, const std::string& level = {});

// What it takes to compile a problem's kernel.
struct CompileFigures {
  Problem problem;
  double loops = 0;                                    // seconds until its loops are there, scheduled
  std::vector<std::pair<std::string, double>> levels;  // seconds from there to code, linked, for each level
};
// For all levels of this architecture, each `rounds` times: the medians.
Expected<std::vector<CompileFigures>> measure_compilation(const std::vector<Problem>& problems, int rounds);

}  // namespace tenon::compiler::bench
