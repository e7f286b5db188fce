// oneDNN 2 as the peer.
#include <dlfcn.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "compiler/bench/peer.h"

namespace tenon::compiler::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;

struct Call {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  memory x, w, y, plain;

  memory stored(const memory::desc& layout, const Dims& dims, Tag tag, const std::vector<float>& values) {
    memory from({dims, memory::data_type::f32, tag}, engine, const_cast<float*>(values.data()));
    memory to(layout, engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return to;
  }
  template <class Primitive>
  void finish(const typename Primitive::primitive_desc& descriptor, const Dims& out, Tag tag) {
    y = memory(descriptor.dst_desc(), engine);
    plain = memory({out, memory::data_type::f32, tag}, engine);
    primitive = Primitive(descriptor);
  }
  void run() {
    primitive.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    stream.wait();
  }
  std::vector<float> result() {
    dnnl::reorder(y, plain).execute(stream, y, plain);
    stream.wait();
    const auto* data = static_cast<const float*>(plain.get_data_handle());
    return {data, data + plain.get_desc().get_size() / sizeof(float)};
  }
};

using Type = memory::data_type;
memory::desc any(const Dims& dims, Type type) { return {dims, type, Tag::any}; }

}  // namespace

bool has_peer() { return true; }

std::optional<Peer> make_peer(const Problem& p, const std::vector<float>& x, const std::vector<float>& w) {
  // oneDNN uses the threads of OpenMP.
  if (auto* threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) threads(1);
  auto call = std::make_shared<Call>();
  const Type input = p.int8 ? Type::u8 : Type::f32, weight = p.int8 ? Type::s8 : Type::f32,
             output = p.int8 ? Type::s32 : Type::f32;
  if (p.product()) {
    const Dims a{p.m, p.k}, b{p.k, p.n}, c{p.m, p.n};
    const memory::desc plain_a(a, input, Tag::ab), plain_c(c, output, Tag::ab);
    const dnnl::matmul::primitive_desc descriptor(dnnl::matmul::desc(plain_a, any(b, weight), plain_c), call->engine);
    call->x = call->stored(descriptor.src_desc(), a, Tag::ab, x);
    call->w = call->stored(descriptor.weights_desc(), b, Tag::ab, w);
    call->finish<dnnl::matmul>(descriptor, c, Tag::ab);
  } else {
    const Dims in{1, p.channels, p.size, p.size}, out{1, p.outputs, p.out(), p.out()}, pad{p.padding(), p.padding()};
    Dims weights{p.outputs, p.channels / p.groups, p.kernel, p.kernel};
    if (p.groups > 1) weights = {p.groups, p.outputs / p.groups, p.channels / p.groups, p.kernel, p.kernel};
    using Convolution = dnnl::convolution_forward;
    const Convolution::primitive_desc descriptor(
        Convolution::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(in, input),
                          any(weights, weight), any(out, output), {p.stride, p.stride}, pad, pad),
        call->engine);
    call->x = call->stored(descriptor.src_desc(), in, Tag::nchw, x);
    call->w = call->stored(descriptor.weights_desc(), weights, p.groups > 1 ? Tag::goihw : Tag::oihw, w);
    call->finish<Convolution>(descriptor, out, Tag::nchw);
  }
  return Peer{[call] { call->run(); }, [call] { return call->result(); }};
}

}  // namespace tenon::compiler::bench
