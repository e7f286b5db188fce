// Samples: data of many runs cut into the inputs of each, and the accuracy of a classifier over them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/tensor.h"

namespace tenon::runtime {

// The inputs of one run, in the order of the parameters.
using Sample = std::vector<Tensor>;

// Data for one input: [M * B, ...] becomes M tensors of the port's shape, whose first dim is B; for a scalar, [M]
// becomes M tensors, and [] one. Integers become floats where the port is f32, and are divided by `divide`.
Expected<std::vector<Tensor>> split_samples(const Tensor& data, const Port& port, double divide);

// Data for all inputs, in their order, as samples. An input whose data is one sample has the same in each. Where there
// are several inputs, only those of f32 are divided. `where` names the data, `model` the model in errors.
Expected<std::vector<Sample>> split_inputs(std::span<const Port> params, std::span<const Tensor> data, double divide,
                                           const std::string& where, const std::string& model);

// The same of files, as read_inputs() takes them; none for a model without inputs, which has one sample.
Expected<std::vector<Sample>> read_samples(std::span<const Port> params, std::span<const std::string> arguments,
                                           double divide, const std::string& model);

// The index of the largest element of each of a result's rows.
std::vector<int64_t> arg_max(const Tensor& tensor, int64_t rows);

// Labels of any integer type, at least `count`.
Expected<std::vector<int64_t>> load_labels(std::string_view source, size_t count);

// How many rows a classifier gets right.
struct Accuracy {
  size_t right = 0, rows = 0;
  double percent() const { return rows ? 100.0 * static_cast<double>(right) / static_cast<double>(rows) : 0; }
};

// The true classes of samples: `rows` labels for each, for the rows of the first result.
class Labels {
 public:
  Labels() = default;  // none: nothing is counted
  // An error where the first result does not have a row of scores for each row of the first input, whose rows are those
  // of the data where this size varies.
  static Expected<Labels> load(std::string_view source, const Function& main, const std::string& model,
                               std::span<const Sample> samples);

  explicit operator bool() const { return !labels_.empty(); }
  void count(Accuracy& accuracy, std::span<const Tensor> results, size_t sample) const;

 private:
  std::vector<int64_t> labels_;
  int64_t rows_ = 1;
};

}  // namespace tenon::runtime
