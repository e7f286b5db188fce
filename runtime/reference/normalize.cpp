// Normalizations: elements minus their mean, divided by their deviation, over some dims of the tensor.
#include <cmath>

#include "runtime/reference/elements.h"

namespace tenon::runtime::reference {
namespace {

template <class T>
T mean_of(std::span<const T> x) {
  T sum = 0;
  for (T value : x) sum += value;
  return sum / static_cast<T>(x.size());
}

// (x - mean) / sqrt(variance + epsilon)
template <class T>
void standardize(std::span<const T> x, std::span<T> y, double epsilon) {
  const T mean = mean_of(x);
  T squares = 0;
  for (T value : x) squares += (value - mean) * (value - mean);
  const T scale = 1 / std::sqrt(squares / static_cast<T>(x.size()) + static_cast<T>(epsilon));
  for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) * scale;
}

template <class T>
void divide_by_root_mean_square(std::span<const T> x, std::span<T> y, double epsilon) {
  T squares = 0;
  for (T value : x) squares += value * value;
  const T scale = 1 / std::sqrt(squares / static_cast<T>(x.size()) + static_cast<T>(epsilon));
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale;
}

Result batch_norm(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("batch_norm", attrs, inputs);
  call.expect_inputs(5);
  call.expect_dtype(0, kReals);
  call.expect_one_dtype();
  for (size_t i = 1; i < 5; ++i) {
    call.expect_rank(i, 1);
    call.expect(call.dim(i, 0) == call.dim(0, 1), "a parameter's length is not the number of channels");
  }
  const double epsilon = call.real("epsilon");
  call.expect(call.input(0).shape().size() >= 2, "needs at least 2 dims");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(inputs[0].shape(), 1);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>(), gamma = inputs[1].data<T>(), beta = inputs[2].data<T>(), mean = inputs[3].data<T>(),
         variance = inputs[4].data<T>();
    auto y = out.data<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t c = static_cast<int64_t>(i) / view.inner % view.length;
      y[i] = gamma[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + static_cast<T>(epsilon)) + beta[c];
    }
  });
  return std::vector{out};
}

// layer_norm and rms_norm: over the dims from `axis` on; parameters have those dims.
template <Name op, bool centered>
Result over_last_dims(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  call.expect_inputs(centered ? 3 : 2);
  call.expect_dtype(0, kReals);
  call.expect_one_dtype();
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size()));
  const double epsilon = call.real("epsilon");
  if (!call.ok()) return call.fail();
  const Shape& shape = inputs[0].shape();
  for (size_t i = 1; i < inputs.size(); ++i) {
    call.expect(inputs[i].shape() == Shape(shape.begin() + axis, shape.end()),
                "a parameter has not the last dims of x");
  }
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), shape);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>(), scale = inputs[1].data<T>();
    auto y = out.data<T>();
    const size_t length = scale.size();
    for (size_t at = 0; at < x.size(); at += length) {
      if (centered) standardize(x.subspan(at, length), y.subspan(at, length), epsilon);
      else divide_by_root_mean_square(x.subspan(at, length), y.subspan(at, length), epsilon);
      for (size_t i = 0; i < length; ++i) y[at + i] = y[at + i] * scale[i] + (centered ? inputs[2].data<T>()[i] : T{0});
    }
  });
  return std::vector{out};
}

// instance_norm and group_norm: over the spatial dims of each channel, or of each group of channels.
Result over_channels(std::string_view op, bool grouped, const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op, attrs, inputs);
  call.expect_inputs(3);
  call.expect_dtype(0, kReals);
  call.expect_one_dtype();
  call.expect(call.input(0).shape().size() >= 2, "needs at least 2 dims");
  const int64_t channels = call.dim(0, 1), groups = grouped ? call.integer("groups", 1, kMaxExtent) : channels;
  const double epsilon = call.real("epsilon");
  for (size_t i = 1; i < 3; ++i) {
    call.expect_rank(i, 1);
    call.expect(call.dim(i, 0) == channels, "a parameter's length is not the number of channels");
  }
  call.expect(groups == 0 || channels % groups == 0, "the channels do not divide into the groups");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  if (out.size() == 0) return std::vector{out};
  const AxisView view = view_axis(inputs[0].shape(), 1);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>(), scale = inputs[1].data<T>(), bias = inputs[2].data<T>();
    auto y = out.data<T>();
    const auto length = static_cast<size_t>(channels / groups * view.inner);
    for (size_t at = 0; at < x.size(); at += length) {
      standardize(x.subspan(at, length), y.subspan(at, length), epsilon);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t c = static_cast<int64_t>(i) / view.inner % view.length;
      y[i] = y[i] * scale[c] + bias[c];
    }
  });
  return std::vector{out};
}
Result instance_norm(const Attrs& attrs, std::span<const Tensor> inputs) {
  return over_channels("instance_norm", false, attrs, inputs);
}
Result group_norm(const Attrs& attrs, std::span<const Tensor> inputs) {
  return over_channels("group_norm", true, attrs, inputs);
}

Result lp_normalize(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("lp_normalize", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kReals);
  const int64_t axis = call.axis("axis", static_cast<int64_t>(call.input(0).shape().size())),
                p = call.integer("p", 1, 2);
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(out.shape(), axis);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>();
    auto y = out.data<T>();
    for_each_line(view, [&](auto at) {
      T sum = 0;
      for (int64_t k = 0; k < view.length; ++k) sum += p == 1 ? std::abs(x[at(k)]) : x[at(k)] * x[at(k)];
      const T norm = p == 1 ? sum : std::sqrt(sum);
      for (int64_t k = 0; k < view.length; ++k) y[at(k)] = norm == 0 ? T{0} : x[at(k)] / norm;
    });
  });
  return std::vector{out};
}

Result local_response_norm(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call("local_response_norm", attrs, inputs);
  call.expect_inputs(1);
  call.expect_dtype(0, kReals);
  call.expect(call.input(0).shape().size() >= 2, "needs at least 2 dims");
  const int64_t size = call.integer("size", 1, 1 << 20);
  const double alpha = call.real("alpha"), beta = call.real("beta"), bias = call.real("bias");
  if (!call.ok()) return call.fail();
  Tensor out(inputs[0].dtype(), inputs[0].shape());
  const AxisView view = view_axis(out.shape(), 1);
  with_arithmetic<kReals>(out.dtype(), [&]<class T>(T) {
    auto x = inputs[0].data<T>();
    auto y = out.data<T>();
    for_each_line(view, [&](auto at) {
      for (int64_t c = 0; c < view.length; ++c) {
        T squares = 0;
        const int64_t first = std::max<int64_t>(c - (size - 1) / 2, 0), last = std::min(c + size / 2, view.length - 1);
        for (int64_t k = first; k <= last; ++k) squares += x[at(k)] * x[at(k)];
        y[at(c)] = x[at(c)] / std::pow(static_cast<T>(bias) + static_cast<T>(alpha) / static_cast<T>(size) * squares,
                                       static_cast<T>(beta));
      }
    });
  });
  return std::vector{out};
}

}  // namespace

std::span<const Entry> normalize_kernels() {
  static constexpr Entry kEntries[] = {{"batch_norm", batch_norm},
                                       {"layer_norm", over_last_dims<"layer_norm", true>},
                                       {"group_norm", group_norm},
                                       {"rms_norm", over_last_dims<"rms_norm", false>},
                                       {"instance_norm", instance_norm},
                                       {"lp_normalize", lp_normalize},
                                       {"local_response_norm", local_response_norm}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
