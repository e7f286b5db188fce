#include "runtime/run/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/run/inputs.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

// Calls visit(span of elements) with the tensor's type; false for dtypes without arithmetic.
template <class F>
bool visit_elements(const Tensor& tensor, F&& visit) {
  if (!kNumericTypes.contains(tensor.dtype())) return false;
  with_dtype<kNumericTypes>(tensor.dtype(), [&]<class T>(T) { visit(tensor.data<T>()); });
  return true;
}

}  // namespace

Expected<std::vector<Tensor>> split_samples(const Tensor& data, const Port& given, double divide) {
  if (!given.is_tensor()) {
    return error(fmt::format("input '{}' is {}: only tensors can be given", given.name, type_text(given)), {},
                 "write a function that builds the input from tensors");
  }
  // A size that varies is that of the data, which is then one sample along this axis.
  Port port = given;
  for (size_t i = 0; i < port.shape.size(); ++i) {
    if (port.shape[i] == kAnySize && i < data.shape().size()) port.shape[i] = data.shape()[i];
  }
  if (divide == 0 || !std::isfinite(divide))
    return error(fmt::format("--divide is {}, must be a number other than 0", divide), {}, {}, Fault::kUsage);
  if (data.dtype() != port.dtype && port.dtype != DType::kF32) {
    return error(fmt::format("the data is {}, the model's input is {}", name(data.dtype()), to_string(given)), {},
                 "convert the data");
  }
  // A scalar's data is a vector of as many samples, or one scalar.
  const Shape shape = port.shape.empty() ? Shape{1} : port.shape;
  const Shape whole = port.shape.empty() && data.shape().empty() ? Shape{1} : data.shape();
  const bool fits = whole.size() == shape.size() && std::equal(whole.begin() + 1, whole.end(), shape.begin() + 1);
  if (!fits || shape[0] < 1 || !port.is_static() || whole[0] % shape[0] != 0) {
    return error(fmt::format("the data is {} {}, the model's input is {}", name(data.dtype()), to_string(data.shape()),
                             to_string(given)),
                 {}, "the first dim of the data must be a multiple of the input's, the others must be the same");
  }
  Tensor converted = data;
  if (data.dtype() != port.dtype || divide != 1) {
    converted = Tensor(port.dtype, whole);
    const bool scaled = port.dtype == DType::kF32 && visit_elements(data, [&](auto values) {
                          std::ranges::transform(values, converted.data<float>().begin(), [&](auto v) {
                            return static_cast<float>(static_cast<double>(v) / divide);
                          });
                        });
    if (!scaled) return error(fmt::format("{} data cannot be scaled", name(data.dtype())), {}, "leave --divide out");
  }
  std::vector<Tensor> samples;
  const int64_t count = whole[0] / shape[0];
  const size_t bytes = count > 0 ? converted.bytes().size() / static_cast<size_t>(count) : 0;
  for (int64_t i = 0; i < count; ++i) {
    Tensor sample(port.dtype, port.shape);
    std::ranges::copy(std::as_const(converted).bytes().subspan(static_cast<size_t>(i) * bytes, bytes),
                      sample.bytes().begin());
    samples.push_back(std::move(sample));
  }
  return samples;
}

Expected<std::vector<Sample>> split_inputs(std::span<const Port> params, std::span<const Tensor> data, double divide,
                                           const std::string& where, const std::string& model) {
  std::vector<std::vector<Tensor>> columns;  // of each input, its tensor of each sample
  size_t count = 1;
  for (size_t i = 0; i < params.size(); ++i) {
    const bool divided = params.size() == 1 || params[i].dtype == DType::kF32;
    auto column = split_samples(data[i], params[i], divided ? divide : 1);
    if (!column) {
      if (column.error().where.empty()) column.error().where = where;
      return std::unexpected(std::move(column.error()));
    }
    if (i == 0 || count == 1) count = column->size();
    columns.push_back(std::move(*column));
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (columns[i].size() == count || columns[i].size() == 1) continue;
    return error(fmt::format("the data of '{}' is {} samples, that of another input {}", params[i].name,
                             columns[i].size(), count),
                 model, "give each input as many samples, or one sample that is the same in every run", Fault::kUsage);
  }
  std::vector<Sample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    for (const auto& column : columns) samples[i].push_back(column[column.size() == 1 ? 0 : i]);
  }
  return samples;
}

Expected<std::vector<Sample>> read_samples(std::span<const Port> params, std::span<const std::string> arguments,
                                           double divide, const std::string& model) {
  TENON_TRY_ASSIGN(inputs,
                   read_inputs(input_slots(params), arguments, {.where = model, .help = {}, .fault = Fault::kUsage}));
  return split_inputs(params, *inputs, divide, fmt::format("{}", fmt::join(arguments, ", ")), model);
}

std::vector<int64_t> arg_max(const Tensor& tensor, int64_t rows) {
  std::vector<int64_t> best;
  visit_elements(tensor, [&](auto values) {
    const size_t row = values.size() / static_cast<size_t>(rows);
    for (size_t at = 0; row > 0 && at + row <= values.size(); at += row) {
      const auto scores = values.subspan(at, row);
      best.push_back(std::ranges::max_element(scores) - scores.begin());
    }
  });
  return best;
}

Expected<std::vector<int64_t>> load_labels(std::string_view source, size_t count) {
  TENON_TRY_ASSIGN(tensor, load_tensor(source));
  if (!kIntegers.contains(tensor->dtype())) {
    return error(fmt::format("labels are {}, must be integers", name(tensor->dtype())), std::string(source), {},
                 Fault::kUsage);
  }
  std::vector<int64_t> labels;
  visit_elements(*tensor, [&](auto values) {
    for (const auto value : values) labels.push_back(static_cast<int64_t>(value));
  });
  if (labels.size() < count) {
    return error(fmt::format("{} labels for {} samples", labels.size(), count), std::string(source));
  }
  return labels;
}

Expected<Labels> Labels::load(std::string_view source, const Function& main, const std::string& model,
                              std::span<const Sample> samples) {
  const std::vector<Port>& results = main.results;
  Labels labels;
  const bool has_rows = !main.params.empty() && !main.params[0].shape.empty() && !samples.empty();
  labels.rows_ = has_rows ? std::max<int64_t>(samples[0][0].shape()[0], 1) : 1;
  const int64_t scored = results.empty() || results[0].shape.empty() ? 0 : results[0].shape[0];
  if (scored != labels.rows_ && scored != kAnySize) {
    return error(fmt::format("--labels wants one row of scores for each of {} rows of input, the first result is {}",
                             labels.rows_, results.empty() ? "missing" : to_string(results[0])),
                 model, "leave --labels out", Fault::kUsage);
  }
  TENON_TRY_ASSIGN(read, load_labels(source, samples.size() * static_cast<size_t>(labels.rows_)));
  labels.labels_ = std::move(*read);
  return labels;
}

void Labels::count(Accuracy& accuracy, std::span<const Tensor> results, size_t sample) const {
  if (labels_.empty()) return;
  const std::vector<int64_t> best = arg_max(results[0], rows_);
  for (size_t row = 0; row < best.size(); ++row) accuracy.right += best[row] == labels_[sample * best.size() + row];
  accuracy.rows += best.size();
}

}  // namespace tenon::runtime
