#include "compiler/cli/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/npy.h"
#include "support/try.h"

namespace tenon::cli {

using runtime::DType;
using runtime::Tensor;

namespace {

// Calls visit(span of elements) with the tensor's type; false for bool.
template <class F>
bool visit_numbers(const Tensor& tensor, F&& visit) {
  switch (tensor.dtype()) {
    case DType::kBool: return false;
    case DType::kI8: visit(tensor.data<int8_t>()); return true;
    case DType::kU8: visit(tensor.data<uint8_t>()); return true;
    case DType::kI16: visit(tensor.data<int16_t>()); return true;
    case DType::kU16: visit(tensor.data<uint16_t>()); return true;
    case DType::kI32: visit(tensor.data<int32_t>()); return true;
    case DType::kI64: visit(tensor.data<int64_t>()); return true;
    case DType::kF32: visit(tensor.data<float>()); return true;
    case DType::kF64: visit(tensor.data<double>()); return true;
  }
  return false;
}

}  // namespace

Expected<Tensor> load_tensor(std::string_view spec) {
  const auto colon = spec.rfind(':');
  const std::string path(spec.substr(0, colon));
  if (!path.ends_with(".npz")) return runtime::load_npy(std::string(spec));
  return runtime::load_npz(path, colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1));
}

Expected<std::vector<Tensor>> split_samples(const Tensor& batch, const runtime::Port& port, double divide) {
  if (divide == 0 || !std::isfinite(divide))
    return error(fmt::format("--divide is {}, must be a number other than 0", divide), {}, {}, Fault::kUsage);
  if (batch.dtype() != port.dtype && port.dtype != DType::kF32) {
    return error(fmt::format("the data is {}, the model's input is {}", runtime::name(batch.dtype()), to_string(port)),
                 {}, "convert the data");
  }
  const runtime::Shape& whole = batch.shape();
  const bool fits = whole.size() == port.shape.size() && !whole.empty() &&
                    std::equal(whole.begin() + 1, whole.end(), port.shape.begin() + 1);
  if (!fits || port.shape[0] < 1 || whole[0] % port.shape[0] != 0) {
    return error(fmt::format("the data is {} {}, the model's input is {}", runtime::name(batch.dtype()),
                             runtime::to_string(whole), to_string(port)),
                 {}, "the data's first dim is a multiple of the input's, the others are the same");
  }
  Tensor converted = batch;
  if (batch.dtype() != port.dtype || divide != 1) {
    converted = Tensor(port.dtype, whole);
    bool numbers = port.dtype == DType::kF32;
    if (numbers) {
      numbers = visit_numbers(batch, [&](auto values) {
        std::ranges::transform(values, converted.data<float>().begin(),
                               [&](auto v) { return static_cast<float>(static_cast<double>(v) / divide); });
      });
    }
    if (!numbers)
      return error(fmt::format("{} data cannot be scaled", runtime::name(batch.dtype())), {}, "leave --divide out");
  }
  std::vector<Tensor> samples;
  const int64_t count = whole[0] / port.shape[0];
  const size_t bytes = count > 0 ? converted.bytes().size() / static_cast<size_t>(count) : 0;
  for (int64_t i = 0; i < count; ++i) {
    Tensor sample(port.dtype, port.shape);
    std::ranges::copy(std::as_const(converted).bytes().subspan(static_cast<size_t>(i) * bytes, bytes),
                      sample.bytes().begin());
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<int64_t> arg_max(const Tensor& tensor, int64_t rows) {
  std::vector<int64_t> best;
  visit_numbers(tensor, [&](auto values) {
    const size_t row = values.size() / static_cast<size_t>(rows);
    for (auto rest = values; row > 0 && rest.size() >= row; rest = rest.subspan(row)) {
      best.push_back(std::ranges::max_element(rest.first(row)) - rest.begin());
    }
  });
  return best;
}

Expected<std::vector<int64_t>> load_labels(std::string_view spec, size_t samples) {
  TENON_TRY_ASSIGN(tensor, load_tensor(spec));
  if (tensor->dtype() == DType::kBool || tensor->dtype() == DType::kF32 || tensor->dtype() == DType::kF64) {
    return error(fmt::format("labels are {}, must be integers", runtime::name(tensor->dtype())), std::string(spec), {},
                 Fault::kUsage);
  }
  std::vector<int64_t> labels;
  visit_numbers(*tensor, [&](auto values) {
    for (const auto value : values) labels.push_back(static_cast<int64_t>(value));
  });
  if (labels.size() < samples) {
    return error(fmt::format("{} labels for {} samples", labels.size(), samples), std::string(spec));
  }
  return labels;
}

}  // namespace tenon::cli
