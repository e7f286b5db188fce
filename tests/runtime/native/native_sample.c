/* A library of native kernels in C: it depends on kernel.h only. */
#include <string.h>

#include "runtime/native/kernel.h"

/* y[i] = x[i] + 1 for i in n, a task for each eighth; 13 is a fault. */
struct work {
  const int32_t* x;
  int32_t* y;
  int64_t n;
};

static int32_t add_task(tn_call* call, void* data, int64_t index) {
  const struct work* work = data;
  int64_t i;
  int32_t* copy = call->allocate(call, 4 * (work->n + 1));
  if (!copy) return 1;
  for (i = index * work->n / 8; i < (index + 1) * work->n / 8; ++i) {
    if (work->x[i] == 13) return call->fail(call, 0, i, work->n);
    copy[i] = work->x[i] + 1;
    memcpy(work->y + i, copy + i, 4);
  }
  return 0;
}
static int32_t add(tn_call* call) {
  struct work work = {call->buffers[0], call->buffers[1], call->dims[0]};
  if (call->size < sizeof(tn_call) || call->threads == 0) return 1;
  return call->parallel(call, add_task, &work, 8);
}

/* Allocates more memory than there is. */
static int32_t greedy(tn_call* call) { return call->allocate(call, (int64_t)1 << 50) ? 0 : 1; }

static const char* const kNames[] = {"add", "greedy"};
static const tn_kernel kBest[] = {add, greedy};
static const tn_variant kVariants[] = {{"a level of the future", 0},
                                       {"x86-64-v3", kBest},
                                       {"x86-64-v2", kBest},
                                       {"x86-64", kBest},
                                       {"armv8-a", kBest},
                                       {"generic", kBest}};
static const tn_site kSites[] = {{TN_FAULT_INDEX, "@add, by hand"}};
static const tn_library kLibrary = {TN_ABI, 2, kNames, 6, 1, kVariants, kSites, 0, NULL, NULL, NULL, NULL};

const tn_library* tn_library_get(void) { return &kLibrary; }
