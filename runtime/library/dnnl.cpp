// tenon-kernels-dnnl.so: convolutions and matrix products of oneDNN 2, with what follows them.
//
// Kernels, all f32: conv2d(x [N, C, H, W], w [O, C / groups, KH, KW]), dense(x [N, K], w [M, K]) and matmul(x, w) over
// equal batch dims. Attributes: strides, padding, dilation and groups as the operator conv2d has them; bias = 1: a
// third operand, one value a channel, or a column; add = 1: one more operand, of the result's shape, added next;
// activation: "", "relu", or "clip" from low to high. Operands and results have plain layouts; inside, oneDNN uses its
// own, and weights that are the same tensor as in the last call are reordered once.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "runtime/library/library.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

enum class Kind : uint8_t { kConvolution, kDense, kProduct };

memory::desc plain(const Dims& dims) {  // row-major, of any rank
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, memory::data_type::f32, strides};
}
memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Tag::any}; }

class Call {
 public:
  static Expected<std::shared_ptr<Call>> make(Kind kind, const Attrs& attrs, unsigned threads) {
    auto call = std::make_shared<Call>();
    call->kind_ = kind;
    call->threads_ = threads;
    const auto integer = [&](const char* name) {
      const auto found = attrs.find(name);
      const auto* value = found == attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
      return value ? *value : 0;
    };
    const auto real = [&](const char* name) {
      const auto found = attrs.find(name);
      const auto* value = found == attrs.end() ? nullptr : std::get_if<double>(&found->second);
      return value ? static_cast<float>(*value) : 0.0f;
    };
    const auto integers = [&](const char* name, size_t count, int64_t least) -> std::optional<Dims> {
      const auto found = attrs.find(name);
      const auto* value = found == attrs.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
      const auto good = [&](int64_t x) { return x >= least && x < (1 << 20); };
      if (!value || value->size() != count || !std::ranges::all_of(*value, good)) return std::nullopt;
      return Dims(value->begin(), value->end());
    };
    call->bias_ = integer("bias") == 1, call->add_ = integer("add") == 1;
    call->low_ = real("low"), call->high_ = real("high");
    const auto activation = attrs.find("activation");
    const auto* name = activation == attrs.end() ? nullptr : std::get_if<std::string>(&activation->second);
    if (!name || (!name->empty() && *name != "relu" && *name != "clip"))
      return error("dnnl: the activation is not supported");
    call->activation_ = *name;
    if (kind == Kind::kConvolution) {
      const auto strides = integers("strides", 2, 1), dilation = integers("dilation", 2, 1),
                 padding = integers("padding", 4, 0);
      call->groups_ = integer("groups");
      if (!strides || !dilation || !padding || call->groups_ < 1)
        return error("dnnl.conv2d: strides, dilation, padding or groups are not supported");
      call->strides_ = *strides;
      call->dilation_ = {(*dilation)[0] - 1, (*dilation)[1] - 1};
      call->before_ = {(*padding)[0], (*padding)[1]}, call->after_ = {(*padding)[2], (*padding)[3]};
    }
    return call;
  }

  Expected<std::vector<Tensor>> run(std::span<const Tensor> args) {
    std::vector<Shape> shapes;
    for (const Tensor& arg : args) {
      if (arg.dtype() != DType::kF32 || arg.size() == 0) return error("dnnl: an operand is empty, or not f32");
      shapes.push_back(arg.shape());
    }
    // oneDNN uses OpenMP's threads, whose number is a global of the process.
    if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")); set && threads_ > 0)
      set(static_cast<int>(threads_));
    try {
      if (shapes != shapes_) {
        shapes_.clear();
        weights_ = {};
        TENON_TRY(prepare(shapes));
        shapes_ = std::move(shapes);
      }
      return execute(args);
    } catch (const dnnl::error& failed) {
      return error(fmt::format("oneDNN: {}", failed.what()));
    }
  }

 private:
  Status prepare(const std::vector<Shape>& shapes) {
    if (shapes.size() != 2u + (bias_ ? 1 : 0) + (add_ ? 1 : 0)) return error("dnnl: wrong number of operands");
    const Shape &x = shapes[0], &w = shapes[1];
    const auto wrong = [] { return error("dnnl: the shapes of the operands do not match"); };
    x_plain_ = plain(x);
    int64_t channels = 0;
    switch (kind_) {
      case Kind::kConvolution: {
        if (x.size() != 4 || w.size() != 4 || x[1] % groups_ != 0 || w[0] % groups_ != 0 || w[1] != x[1] / groups_)
          return wrong();
        y_shape_ = {x[0], w[0], 0, 0};
        for (size_t d = 0; d < 2; ++d) {
          const int64_t window = (w[2 + d] - 1) * (dilation_[d] + 1) + 1;
          const int64_t padded = x[2 + d] + before_[d] + after_[d];
          if (padded < window) return wrong();
          y_shape_[2 + d] = (padded - window) / strides_[d] + 1;
        }
        w_plain_ = groups_ == 1 ? plain(w) : plain({groups_, w[0] / groups_, w[1], w[2], w[3]});
        channels = w[0];
        break;
      }
      case Kind::kDense: {
        if (x.size() != 2 || w.size() != 2 || x[1] != w[1]) return wrong();
        y_shape_ = {x[0], w[0]};
        w_plain_ = {{w[1], w[0]}, memory::data_type::f32, Tag::ba};
        channels = w[0];
        break;
      }
      case Kind::kProduct: {
        const size_t rank = x.size();
        if (rank < 2 || rank > 6 || w.size() != rank || x[rank - 1] != w[rank - 2]) return wrong();
        y_shape_ = x;
        y_shape_[rank - 1] = w[rank - 1];
        for (size_t d = 0; d + 2 < rank; ++d) {
          if (x[d] != w[d]) return wrong();
        }
        w_plain_ = plain(w);
        channels = w[rank - 1];
        break;
      }
    }
    if (bias_ && shapes[2] != Shape{channels}) return wrong();
    if (add_ && shapes.back() != y_shape_) return wrong();
    if (!checked_bytes(DType::kF32, y_shape_)) return error("dnnl: the result is too large");
    y_plain_ = plain(y_shape_);

    dnnl::post_ops after;
    if (add_) after.append_sum(1);
    if (activation_ == "relu") after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    if (activation_ == "clip") after.append_eltwise(1, dnnl::algorithm::eltwise_clip, low_, high_);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    if (kind_ == Kind::kConvolution) {
      const memory::desc none;
      bias_desc_ = bias_ ? plain({channels}) : none;
      const dnnl::convolution_forward::desc operation(
          dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(x_plain_.dims()),
          any(w_plain_.dims()), bias_desc_, any(y_plain_.dims()), strides_, dilation_, before_, after_);
      finish<dnnl::convolution_forward>({operation, attributes, engine_});
    } else {
      Dims row(y_shape_.size(), 1);
      row.back() = channels;
      bias_desc_ = bias_ ? plain(row) : memory::desc();
      const dnnl::matmul::desc operation(x_plain_, any(w_plain_.dims()), bias_desc_, y_plain_);
      finish<dnnl::matmul>({operation, attributes, engine_});
    }
    return {};
  }
  template <class Primitive>
  void finish(const typename Primitive::primitive_desc& descriptor) {
    x_inner_ = descriptor.src_desc(), w_inner_ = descriptor.weights_desc(), y_inner_ = descriptor.dst_desc();
    primitive_ = Primitive(descriptor);
  }

  memory over(const memory::desc& desc, const Tensor& tensor) {
    return {desc, engine_, const_cast<std::byte*>(tensor.bytes().data())};
  }
  // The tensor's values in the layout of the primitive; the tensor itself if it has that layout.
  memory stored(const Tensor& tensor, const memory::desc& from, const memory::desc& to) {
    memory given = over(from, tensor);
    if (from == to) return given;
    memory reordered(to, engine_);
    dnnl::reorder(given, reordered).execute(stream_, given, reordered);
    return reordered;
  }

  Expected<std::vector<Tensor>> execute(std::span<const Tensor> args) {
    Tensor result(DType::kF32, y_shape_);
    // The tensor is kept, so an equal address means the same tensor, and values of tensors never change.
    if (!weights_from_ || !weights_ || weights_from_.bytes().data() != args[1].bytes().data()) {
      weights_ = stored(args[1], w_plain_, w_inner_);
      weights_from_ = args[1];
    }
    memory x = stored(args[0], x_plain_, x_inner_);
    const bool direct = y_plain_ == y_inner_;
    memory plain_result = over(y_plain_, result);
    memory y = direct ? plain_result : memory(y_inner_, engine_);
    if (add_) {
      memory other = over(y_plain_, args.back());
      dnnl::reorder(other, y).execute(stream_, other, y);
    }
    std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, y}};
    if (bias_) operands.emplace(DNNL_ARG_BIAS, over(bias_desc_, args[2]));
    primitive_.execute(stream_, operands);
    if (!direct) dnnl::reorder(y, plain_result).execute(stream_, y, plain_result);
    stream_.wait();
    return std::vector{std::move(result)};
  }

  Kind kind_{};
  unsigned threads_ = 0;
  bool bias_ = false, add_ = false;
  std::string activation_;
  float low_ = 0, high_ = 0;
  int64_t groups_ = 1;
  Dims strides_, dilation_, before_, after_;

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Shape> shapes_;  // of the operands that the members below are prepared for
  Shape y_shape_;
  memory::desc x_plain_, w_plain_, y_plain_, bias_desc_, x_inner_, w_inner_, y_inner_;
  dnnl::primitive primitive_;
  Tensor weights_from_;
  memory weights_;
};

Expected<LibraryKernel> make(std::string_view name, const Attrs& attrs, unsigned threads) {
  static const std::map<std::string_view, Kind> kKernels{
      {"conv2d", Kind::kConvolution}, {"dense", Kind::kDense}, {"matmul", Kind::kProduct}};
  const auto found = kKernels.find(name);
  if (found == kKernels.end()) {
    return error(fmt::format("the library dnnl has no kernel '{}'", name), {},
                 "the executable is for another version: compile the model again");
  }
  TENON_TRY_ASSIGN(call, Call::make(found->second, attrs, threads));
  return LibraryKernel([call = std::move(*call)](std::span<const Tensor> args) { return call->run(args); });
}

}  // namespace
}  // namespace tenon::runtime

bool tenon_kernel_library(const char* abi, tenon::runtime::KernelLibrary* library) {
  if (std::string_view(abi) != tenon::driver::kPluginAbi) return false;
  const dnnl_version_t* version = dnnl_version();
  *library = {fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch), tenon::runtime::make};
  return true;
}
