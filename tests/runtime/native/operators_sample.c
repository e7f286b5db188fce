/* A library of operators' kernels in C, tenon-kernels-sample.so: it depends on kernel.h only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/native/kernel.h"

/* The attributes of one call of a program, and how often it copied the constant that it keeps. */
struct state {
  double factor;
  int64_t offsets[4];
  char text[16];
  const void* kept_from;
  float kept;
  int64_t copies;
};
static int opened; /* calls whose state is open */

enum { kScale, kPositive, kEndless, kWrong };

static int32_t open_call(uint32_t kernel, const tn_attribute* attributes, uint32_t count, void** state, char* message,
                         uint32_t bytes) {
  struct state* s = calloc(1, sizeof(struct state));
  uint32_t i;
  for (i = 0; i < count; ++i) {
    const tn_attribute* a = &attributes[i];
    if (!strcmp(a->name, "factor") && a->kind == TN_REAL) s->factor = *(const double*)a->value;
    else if (!strcmp(a->name, "offsets") && a->kind == TN_INTEGERS && a->count <= 4)
      memcpy(s->offsets, a->value, a->count * sizeof(int64_t));
    else if (!strcmp(a->name, "text") && a->kind == TN_TEXT && a->count < 16) strcpy(s->text, a->value);
    else {
      snprintf(message, bytes, "sample: attribute %s of kernel %u is not supported", a->name, (unsigned)kernel);
      free(s);
      return 1;
    }
  }
  ++opened;
  *state = s;
  return 0;
}
static void close_call(void* state) {
  --opened;
  free(state);
}

/* y = factor * x + offsets[0] + w for an f32 vector x and a scalar w, and how often w was copied and calls that are
 * open, as i64 scalars. */
static int32_t scale(tn_call* call) {
  struct state* s = call->state;
  float* y;
  int64_t i;
  if (call->inputs != 2 || call->operands[0].dtype != TN_F32 || call->operands[0].rank != 1 ||
      call->operands[1].dtype != TN_F32 || call->operands[1].rank != 1)
    return call->refuse(call, "sample.scale: two vectors of f32 are required");
  if (!(call->constants & 2) || s->kept_from != call->buffers[1]) {
    s->kept = *(const float*)call->buffers[1];
    s->kept_from = call->buffers[1];
    ++s->copies;
  }
  y = call->result(call, 0, TN_F32, 1, call->dims);
  if (!y) return 1;
  for (i = 0; i < call->dims[0]; ++i)
    y[i] = (float)(s->factor * ((const float*)call->buffers[0])[i]) + (float)s->offsets[0] + s->kept;
  if (call->outputs > 1) {
    int64_t* counts = call->result(call, 1, TN_I64, 0, NULL);
    if (!counts) return 1;
    *counts = 100 * opened + s->copies;
  }
  return 0;
}

/* The elements of an f32 vector that are greater than 0: as many as there are. */
static int32_t positive(tn_call* call) {
  const float* x = call->buffers[0];
  int64_t i, count = 0;
  float* y;
  for (i = 0; i < call->dims[0]; ++i) count += x[i] > 0;
  y = call->result(call, 0, TN_F32, 1, &count);
  if (!y) return 1;
  for (i = 0; i < call->dims[0]; ++i) {
    if (x[i] > 0) *y++ = x[i];
  }
  return 0;
}

/* Tasks that would take years. */
static int32_t nothing(tn_call* call, void* data, int64_t index) { return (void)call, (void)data, (void)index, 0; }
static int32_t endless(tn_call* call) { return call->parallel(call, nothing, NULL, (int64_t)1 << 61); }

/* Breaks the interface as `text` says. */
static int32_t wrong(tn_call* call) {
  const char* how = ((struct state*)call->state)->text;
  const int64_t size = 1, negative = -1;
  if (!strcmp(how, "index")) return call->result(call, 7, TN_F32, 1, &size) == NULL;
  if (!strcmp(how, "twice")) return !call->result(call, 0, TN_F32, 1, &size) || !call->result(call, 0, TN_F32, 1, &size);
  if (!strcmp(how, "dtype")) return call->result(call, 0, 99, 1, &size) == NULL;
  if (!strcmp(how, "shape")) return call->result(call, 0, TN_F32, 1, &negative) == NULL;
  if (!strcmp(how, "silent")) return 1;
  return 0; /* and no result */
}

static const char* const kNames[] = {"scale", "positive", "endless", "wrong"};
static const tn_kernel kKernels[] = {scale, positive, endless, wrong};
static const tn_variant kVariants[] = {
    {"x86-64", kKernels}, {"armv8-a", kKernels}, {"armv7-a", kKernels}, {"generic", kKernels}};
static const tn_library kLibrary = {
    TN_ABI, 4, kNames, 4, 0, kVariants, NULL, 0, NULL, "four kernels for tests", open_call, close_call};

const tn_library* tn_library_get(void) { return &kLibrary; }
