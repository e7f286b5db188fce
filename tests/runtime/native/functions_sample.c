/* A library of functions that programs call by name, in C: it depends on kernel.h only. */
#include <stdlib.h>

#include "runtime/native/kernel.h"

/* The number of elements of an operand; its sizes follow those of the operands before it. */
static int64_t elements(const tn_call* call, uint32_t operand) {
  const int64_t* dims = call->dims;
  int64_t product = 1;
  uint32_t i;
  for (i = 0; i < operand; ++i) dims += call->operands[i].rank;
  for (i = 0; i < call->operands[operand].rank; ++i) product *= dims[i];
  return product;
}
static int takes_floats(const tn_call* call) {
  return call->operands && call->inputs == 1 && call->outputs == 1 && call->operands[0].dtype == TN_F32 &&
         call->operands[1].dtype == TN_F32 && elements(call, 0) == elements(call, 1);
}

static int32_t halve_task(tn_call* call, void* data, int64_t index) {
  const float* x = call->buffers[0];
  float* y = call->buffers[1];
  const int64_t count = *(const int64_t*)data;
  int64_t i;
  for (i = index * count / 4; i < (index + 1) * count / 4; ++i) {
    if (x[i] == 13) return call->fail(call, 1, i, count);
    y[i] = x[i] / 2;
  }
  return 0;
}
/* y = x / 2, whatever the shape, four tasks; 13 is a fault. */
static int32_t halve(tn_call* call) {
  int64_t count;
  if (!takes_floats(call)) return call->fail(call, 0, 0, 0);
  count = elements(call, 0);
  return call->parallel(call, halve_task, &count, 4);
}

static int compare(const void* a, const void* b) {
  const float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}
/* Sorts the rows of x, in memory that the runtime allocates. */
static int32_t sort_rows(tn_call* call) {
  int64_t i, k, rows, columns;
  float* row;
  if (!takes_floats(call) || call->operands[0].rank != 2) return call->fail(call, 0, 0, 0);
  rows = call->dims[0], columns = call->dims[1];
  row = call->allocate(call, columns * 4);
  if (!row) return 1;
  for (i = 0; i < rows; ++i) {
    for (k = 0; k < columns; ++k) row[k] = ((const float*)call->buffers[0])[i * columns + k];
    qsort(row, (size_t)columns, 4, compare);
    for (k = 0; k < columns; ++k) ((float*)call->buffers[1])[i * columns + k] = row[k];
  }
  return 0; /* the runtime releases the row */
}

static int32_t fails(tn_call* call) { return (void)call, 1; }

static const char* const kNames[] = {"halve", "sort.rows", "fails"};
static const tn_kernel kKernels[] = {halve, sort_rows, fails};
static const tn_variant kVariants[] = {{"x86-64", kKernels}, {"armv8-a", kKernels}, {"armv7-a", kKernels}, {"generic", kKernels}};
static const tn_site kSites[] = {{TN_FAULT_OTHER, "it takes f32"}, {TN_FAULT_INDEX, "halving"}};
static const tn_library kLibrary = {TN_ABI, 3, kNames, 4, 2, kVariants, kSites, 0, 0, NULL, NULL, NULL};

const tn_library* tn_library_get(void) { return &kLibrary; }
