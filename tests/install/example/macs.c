/* A code generator in 200 lines: a MAC array of 8 output lanes for int8 convolutions and dense layers, whose weights
 * have a layout of their own; depthwise convolutions are not supported. The file is both halves of a plugin: the target,
 * which the compiler asks (compiler/plugin/target.h), and the kernel, which the run time calls
 * (runtime/native/kernel.h) and which here emulates the array. Compile it as macs.so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/plugin/target.h"

enum { LANES = 8 };

/* A layer, at the beginning of the artifact. Parameters of the channels follow, then the weights: by block of LANES
 * output channels, input channel, row and column of the window, the LANES weights one after the other. */
typedef struct {
  int32_t n, c, h, w, o, kh, kw, oh, ow;
  int32_t stride[2], pad[2], pad_value;
  int32_t zero, lo, hi, v_lo, v_hi;
  int32_t rank; /* of the result */
} layer;
typedef struct {
  int32_t bias;
  uint16_t multiplier;
  uint8_t shift, unused;
} channel;

static int64_t blocks(const layer* l) { return (l->o + LANES - 1) / LANES; }
static int64_t window(const layer* l) { return (int64_t)l->c * l->kh * l->kw; }
static uint64_t artifact_bytes(const layer* l) {
  return sizeof(layer) + (uint64_t)blocks(l) * LANES * (sizeof(channel) + (uint64_t)window(l));
}

/* The compiler's half. */

static const tn_attribute* find(const tn_node* node, const char* name) {
  for (uint32_t i = 0; i < node->attributes; ++i) {
    if (strcmp(node->attribute[i].name, name) == 0) return &node->attribute[i];
  }
  return NULL;
}
static int32_t number(const tn_node* node, const char* name, uint32_t index, int32_t otherwise) {
  const tn_attribute* attribute = find(node, name);
  return attribute && index < attribute->count ? (int32_t)((const int64_t*)attribute->value)[index] : otherwise;
}
static const tn_value* input(const tn_region* region, const tn_node* node, uint32_t i) {
  return &region->value[node->input[i]];
}
static int32_t size(const tn_value* value, uint32_t axis, int32_t otherwise) {
  return axis < value->rank ? (int32_t)value->sizes[axis] : otherwise;
}

/* The two nodes of a match: a product, whose result is requantized. */
static layer read_layer(const tn_region* region) {
  const tn_node *product = &region->node[0], *scale = &region->node[1];
  const tn_value *x = input(region, product, 0), *w = input(region, product, 1);
  const tn_value* y = &region->value[region->result[0]];
  layer l;
  memset(&l, 0, sizeof l);
  l.n = size(x, 0, 1), l.c = size(x, 1, 1), l.h = size(x, 2, 1), l.w = size(x, 3, 1);
  l.o = size(w, 0, 1), l.kh = size(w, 2, 1), l.kw = size(w, 3, 1);
  l.oh = size(y, 2, 1), l.ow = size(y, 3, 1), l.rank = (int32_t)y->rank;
  for (uint32_t i = 0; i < 2; ++i) {
    l.stride[i] = number(product, "strides", i, 1);
    l.pad[i] = number(product, "padding", i, 0);
  }
  l.pad_value = number(product, "pad_value", 0, 0);
  l.zero = number(scale, "zero", 0, 0), l.lo = number(scale, "lo", 0, -128), l.hi = number(scale, "hi", 0, 127);
  l.v_lo = number(scale, "v_lo", 0, -2048), l.v_hi = number(scale, "v_hi", 0, 2047);
  return l;
}

static int32_t accepts(const tn_region* region, char* message, uint32_t bytes) {
  const tn_node *product = &region->node[0], *scale = &region->node[1];
  if (number(product, "groups", 0, 1) != 1)
    return snprintf(message, bytes, "the array has no depthwise or grouped convolutions"), 1;
  if (number(product, "dilation", 0, 1) != 1 || number(product, "dilation", 1, 1) != 1)
    return snprintf(message, bytes, "the array has no dilation"), 1;
  if (number(scale, "axis", 0, 1) != 1) return snprintf(message, bytes, "the channels are not axis 1"), 1;
  return 0;
}

/* One step of the array a nanosecond. */
static int32_t cost(const tn_region* region, double* seconds, char* message, uint32_t bytes) {
  const layer l = read_layer(region);
  (void)message, (void)bytes;
  *seconds = 1e-9 * (double)l.n * (double)l.oh * (double)l.ow * (double)blocks(&l) * (double)window(&l);
  return 0;
}

static int32_t compile(const tn_region* region, tn_artifact* artifact, char* message, uint32_t bytes) {
  const layer l = read_layer(region);
  const tn_node* scale = &region->node[1];
  const int8_t* weights = input(region, &region->node[0], 1)->data;
  const int32_t* bias = input(region, scale, 1)->data;
  const uint16_t* multiplier = input(region, scale, 2)->data;
  const uint8_t* shift = input(region, scale, 3)->data;
  unsigned char* data = calloc(1, artifact_bytes(&l));
  if (!data) return snprintf(message, bytes, "not enough memory"), 1;
  channel* channels = (channel*)(data + sizeof l);
  int8_t* packed = (int8_t*)(channels + blocks(&l) * LANES);
  memcpy(data, &l, sizeof l);
  for (int64_t o = 0; o < l.o; ++o) {
    channels[o].bias = bias[o], channels[o].multiplier = multiplier[o], channels[o].shift = shift[o];
    for (int64_t k = 0; k < window(&l); ++k)
      packed[(o / LANES * window(&l) + k) * LANES + o % LANES] = weights[o * window(&l) + k];
  }
  artifact->data = data, artifact->bytes = artifact_bytes(&l);
  return 0;
}

const tn_target* tn_target_get(void) {
  static const tn_row rows[] = {
      {"conv2d", "requantize(conv2d(_: i8, const), const, const, const)", TN_ROW_ROWS},
      {"dense", "requantize(dense(_: i8, const), const, const, const)", TN_ROW_ROWS},
  };
  static const tn_target target = {TN_TARGET_ABI, TN_TARGET_INTEGER_LAYERS, "macs", "a MAC array of 8 lanes; int8",
                                   2, rows, accepts, cost, NULL, compile};
  return &target;
}

/* The run time's half. */

static int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }

/* hw/spec/requantize.h */
static int8_t requantize(const layer* l, const channel* c, int32_t acc) {
  const int32_t t = (int32_t)((uint32_t)acc + (uint32_t)c->bias);
  const int64_t v = clamp(((int64_t)t * c->multiplier) >> c->shift, 256 * (int64_t)l->v_lo, 256 * (int64_t)l->v_hi);
  return (int8_t)clamp(l->zero + ((v + 128) >> 8), l->lo, l->hi);
}

/* What the array computes in one position for all lanes of a block. */
static void compute(const layer* l, const int8_t* x, const int8_t* w, int64_t row, int64_t column, int32_t* acc) {
  memset(acc, 0, LANES * sizeof *acc);
  for (int64_t c = 0; c < l->c; ++c) {
    for (int64_t i = 0; i < l->kh; ++i) {
      for (int64_t j = 0; j < l->kw; ++j, w += LANES) {
        const int64_t h = row + i, k = column + j;
        const int inside = h >= 0 && h < l->h && k >= 0 && k < l->w;
        const int32_t value = inside ? x[(c * l->h + h) * l->w + k] : l->pad_value;
        for (int lane = 0; lane < LANES; ++lane) acc[lane] += value * w[lane];
      }
    }
  }
}

static int32_t run(tn_call* call) {
  layer l;
  const int64_t* sizes = call->dims; /* of the artifact, then of x */
  if (call->inputs != 2 || call->operands[0].dtype != TN_U8 || (uint64_t)sizes[0] < sizeof l ||
      call->operands[1].dtype != TN_I8 || call->operands[1].rank < 2)
    return call->refuse(call, "macs: the operands are not an artifact and a map");
  memcpy(&l, call->buffers[0], sizeof l);
  const int64_t h = call->operands[1].rank > 2 ? sizes[3] : 1, w = call->operands[1].rank > 3 ? sizes[4] : 1;
  if (sizes[1] != l.n || sizes[2] != l.c || h != l.h || w != l.w || (uint64_t)sizes[0] != artifact_bytes(&l))
    return call->refuse(call, "macs: the artifact is for another map");
  const int64_t result[] = {l.n, l.o, l.oh, l.ow};
  int8_t* y = call->result(call, 0, TN_I8, (uint32_t)l.rank, result);
  if (!y) return 1;
  const channel* channels = (const channel*)((const char*)call->buffers[0] + sizeof l);
  const int8_t* weights = (const int8_t*)(channels + blocks(&l) * LANES);
  for (int64_t n = 0; n < l.n; ++n) {
    const int8_t* x = (const int8_t*)call->buffers[1] + n * l.c * l.h * l.w;
    for (int64_t block = 0; block < blocks(&l); ++block) {
      for (int64_t i = 0; i < (int64_t)l.oh * l.ow; ++i) {
        int32_t acc[LANES];
        compute(&l, x, weights + block * window(&l) * LANES, i / l.ow * l.stride[0] - l.pad[0],
                i % l.ow * l.stride[1] - l.pad[1], acc);
        for (int64_t o = block * LANES; o < l.o && o < (block + 1) * LANES; ++o)
          y[(n * l.o + o) * l.oh * l.ow + i] = requantize(&l, &channels[o], acc[o % LANES]);
      }
    }
  }
  return 0;
}

const tn_library* tn_library_get(void) {
  static const char* const names[] = {"run"};
  static const tn_kernel kernels[] = {run};
  static const tn_variant variants[] = {
      {"x86-64", kernels}, {"armv8-a", kernels}, {"armv7-a", kernels}, {"rv64gc", kernels}, {"generic", kernels}};
  static const tn_library library = {.abi = TN_ABI, .count = 1, .names = names, .variants = 5, .variant = variants};
  return &library;
}
