// tenon-kernels-dnnl.so: convolutions and matrix products of oneDNN 2, with what follows them, as kernels of operators
// (runtime/native/kernel.h).
//
// Kernels, all f32: conv2d(x [N, C, H, W], w [O, C / groups, KH, KW]), dense(x [N, K], w [M, K]) and matmul(x, w) over
// equal batch dims. Attributes: strides, padding, dilation and groups as the operator conv2d has them; bias = 1: a
// third operand, one value a channel, or a column; add = 1: one more operand, of the result's shape, added next;
// activation: "", "relu", or "clip" from low to high. Operands and results have plain layouts; inside, oneDNN uses its
// own, and weights that are a constant of the program are reordered once.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <expected>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/native/kernel.h"

namespace tenon::runtime {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
using Outcome = std::expected<void, std::string>;  // the message of a call that is refused

enum class Kind : uint8_t { kConvolution, kDense, kProduct };
constexpr const char* kNames[] = {"conv2d", "dense", "matmul"};  // by Kind

memory::desc plain(const Dims& dims) {  // row-major, of any rank
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, memory::data_type::f32, strides};
}
memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Tag::any}; }

// The attributes of a call, by name and kind.
class Attributes {
 public:
  explicit Attributes(std::span<const tn_attribute> all) : all_(all) {}
  int64_t integer(std::string_view name) const {
    const tn_attribute* found = find(name, TN_INTEGER);
    return found ? *static_cast<const int64_t*>(found->value) : 0;
  }
  float real(std::string_view name) const {
    const tn_attribute* found = find(name, TN_REAL);
    return found ? static_cast<float>(*static_cast<const double*>(found->value)) : 0.0f;
  }
  std::optional<std::string> text(std::string_view name) const {
    const tn_attribute* found = find(name, TN_TEXT);
    return found ? std::optional(std::string(static_cast<const char*>(found->value), found->count)) : std::nullopt;
  }
  // A list of `count` integers from `least` on.
  std::optional<Dims> integers(std::string_view name, size_t count, int64_t least) const {
    const tn_attribute* found = find(name, TN_INTEGERS);
    if (!found || found->count != count) return std::nullopt;
    const std::span values(static_cast<const int64_t*>(found->value), count);
    if (!std::ranges::all_of(values, [&](int64_t x) { return x >= least && x < (1 << 20); })) return std::nullopt;
    return Dims(values.begin(), values.end());
  }

 private:
  const tn_attribute* find(std::string_view name, tn_attribute_kind kind) const {
    const auto is_wanted = [&](const tn_attribute& attribute) {
      return attribute.name == name && attribute.kind == static_cast<uint32_t>(kind);
    };
    const auto found = std::ranges::find_if(all_, is_wanted);
    return found == all_.end() ? nullptr : &*found;
  }
  std::span<const tn_attribute> all_;
};

// One call in a program: its attributes, and what is prepared for the shapes of the last run. Runs take turns.
class Layer {
 public:
  static std::expected<std::unique_ptr<Layer>, std::string> make(Kind kind, const Attributes& attributes) {
    auto layer = std::make_unique<Layer>();
    layer->kind_ = kind;
    layer->bias_ = attributes.integer("bias") == 1, layer->add_ = attributes.integer("add") == 1;
    layer->low_ = attributes.real("low"), layer->high_ = attributes.real("high");
    const auto activation = attributes.text("activation");
    if (!activation || (!activation->empty() && *activation != "relu" && *activation != "clip"))
      return std::unexpected("dnnl: the activation is not supported");
    layer->activation_ = *activation;
    if (kind == Kind::kConvolution) {
      const auto strides = attributes.integers("strides", 2, 1), dilation = attributes.integers("dilation", 2, 1),
                 padding = attributes.integers("padding", 4, 0);
      layer->groups_ = attributes.integer("groups");
      if (!strides || !dilation || !padding || layer->groups_ < 1)
        return std::unexpected("dnnl.conv2d: strides, dilation, padding or groups are not supported");
      layer->strides_ = *strides;
      layer->dilation_ = {(*dilation)[0] - 1, (*dilation)[1] - 1};
      layer->before_ = {(*padding)[0], (*padding)[1]}, layer->after_ = {(*padding)[2], (*padding)[3]};
    }
    return layer;
  }

  int32_t run(tn_call* call) {
    const std::lock_guard lock(mutex_);
    try {
      const Outcome done = prepare_and_execute(call);
      return done ? 0 : call->refuse(call, done.error().c_str());
    } catch (const dnnl::error& failed) {
      return call->refuse(call, fmt::format("oneDNN: {}", failed.what()).c_str());
    } catch (const std::bad_alloc&) {
      return call->refuse(call, "not enough memory for oneDNN");
    }
  }

 private:
  Outcome prepare_and_execute(tn_call* call) {
    std::vector<Dims> shapes;
    const int64_t* next = call->dims;
    for (uint32_t i = 0; i < call->inputs; ++i) {
      const auto [dtype, rank] = call->operands[i];
      const Dims& shape = shapes.emplace_back(next, next + rank);
      next += rank;
      if (dtype != TN_F32 || std::ranges::find(shape, 0) != shape.end())
        return std::unexpected("dnnl: an operand is empty, or not f32");
    }
    // oneDNN uses OpenMP's threads, whose number is a global of the process.
    if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      set(static_cast<int>(call->threads));
    if (shapes != shapes_) {
      shapes_.clear();
      weights_ = {};
      weights_from_ = nullptr;
      if (Outcome prepared = prepare(shapes); !prepared) return prepared;
      shapes_ = std::move(shapes);
    }
    return execute(call);
  }

  Outcome prepare(const std::vector<Dims>& shapes) {
    if (shapes.size() != 2u + (bias_ ? 1 : 0) + (add_ ? 1 : 0))
      return std::unexpected("dnnl: wrong number of operands");
    const Dims &x = shapes[0], &w = shapes[1];
    const auto wrong = [] { return std::unexpected(std::string("dnnl: the shapes of the operands do not match")); };
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
    if (bias_ && shapes[2] != Dims{channels}) return wrong();
    if (add_ && shapes.back() != y_shape_) return wrong();
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

  memory over(const memory::desc& desc, const void* data) { return {desc, engine_, const_cast<void*>(data)}; }
  // The values at `data` in the layout of the primitive; the same memory if they have that layout.
  memory stored(const void* data, const memory::desc& from, const memory::desc& to) {
    memory given = over(from, data);
    if (from == to) return given;
    memory reordered(to, engine_);
    dnnl::reorder(given, reordered).execute(stream_, given, reordered);
    return reordered;
  }

  Outcome execute(tn_call* call) {
    void* const result = call->result(call, 0, TN_F32, static_cast<uint32_t>(y_shape_.size()), y_shape_.data());
    if (!result) return std::unexpected("");  // the runtime has reported it
    const std::span inputs(call->buffers, call->inputs);
    // Constants are reordered once.
    const bool is_constant = (call->constants >> 1 & 1) != 0;
    if (!is_constant || weights_from_ != inputs[1]) {
      weights_ = stored(inputs[1], w_plain_, w_inner_);
      weights_from_ = is_constant ? inputs[1] : nullptr;
    }
    memory x = stored(inputs[0], x_plain_, x_inner_);
    const bool direct = y_plain_ == y_inner_;
    memory plain_result = over(y_plain_, result);
    memory y = direct ? plain_result : memory(y_inner_, engine_);
    if (add_) {
      memory other = over(y_plain_, inputs.back());
      dnnl::reorder(other, y).execute(stream_, other, y);
    }
    std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, y}};
    if (bias_) operands.emplace(DNNL_ARG_BIAS, over(bias_desc_, inputs[2]));
    primitive_.execute(stream_, operands);
    if (!direct) dnnl::reorder(y, plain_result).execute(stream_, y, plain_result);
    stream_.wait();
    return {};
  }

  std::mutex mutex_;
  Kind kind_{};
  bool bias_ = false, add_ = false;
  std::string activation_;
  float low_ = 0, high_ = 0;
  int64_t groups_ = 1;
  Dims strides_, dilation_, before_, after_;

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Dims> shapes_;  // of the operands that the members below are prepared for
  Dims y_shape_;
  memory::desc x_plain_, w_plain_, y_plain_, bias_desc_, x_inner_, w_inner_, y_inner_;
  dnnl::primitive primitive_;
  const void* weights_from_ = nullptr;  // of a constant
  memory weights_;
};

int32_t open(uint32_t kernel, const tn_attribute* attributes, uint32_t count, void** state, char* message,
             uint32_t bytes) {
  auto layer = Layer::make(static_cast<Kind>(kernel), Attributes({attributes, count}));
  if (!layer) return std::snprintf(message, bytes, "%s", layer.error().c_str()), 1;
  *state = layer->release();
  return 0;
}
void close(void* state) { delete static_cast<Layer*>(state); }

int32_t run(tn_call* call) { return static_cast<Layer*>(call->state)->run(call); }

const tn_library* make_library() {
  static const tn_kernel kernels[] = {run, run, run};
  static const tn_variant variants[] = {
      {"x86-64", kernels}, {"armv8-a", kernels}, {"armv7-a", kernels}, {"rv64gc", kernels}, {"generic", kernels}};
  static const dnnl_version_t* const version = dnnl_version();
  static const std::string doc = fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  static const tn_library library{.abi = TN_ABI,
                                  .count = std::size(kNames),
                                  .names = kNames,
                                  .variants = std::size(variants),
                                  .sites = 0,
                                  .variant = variants,
                                  .site = nullptr,
                                  .functions = 0,
                                  .function = nullptr,
                                  .doc = doc.c_str(),
                                  .open = open,
                                  .close = close};
  return &library;
}

}  // namespace
}  // namespace tenon::runtime

extern "C" __attribute__((visibility("default"))) const tn_library* tn_library_get() {
  return tenon::runtime::make_library();
}
