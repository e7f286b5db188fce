/* Runs kernels without the runtime, on emulated processors: `runner LIBRARY LEVEL CALLS RESULTS`.
 *
 * CALLS consists of int64s: the number of calls; for each call the kernel's index, the number of dims, the dims, the
 * number of buffers; for each buffer its size in bytes and, padded to whole int64s, its contents. RESULTS contains each
 * call's status and its buffers after the call. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/native/kernel.h"

static int32_t parallel(tn_call* call, tn_task task, void* data, int64_t count) {
  int64_t i;
  for (i = count - 1; i >= 0; --i) {
    int32_t failed = task(call, data, i);
    if (failed) return failed;
  }
  return 0;
}
static int32_t fail(tn_call* call, uint32_t site, int64_t found, int64_t expected) {
  (void)call, (void)site, (void)found, (void)expected;
  return 1;
}
static void* allocate(tn_call* call, int64_t bytes) {
  (void)call;
  return aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
}
static void release(tn_call* call, void* memory) {
  (void)call;
  free(memory);
}

static const tn_library* library;
/* The only external function: y = x / 2 of f32s. */
static int32_t function(tn_call* call, uint32_t index, void* const* buffers, const int64_t* dims,
                        const tn_operand* operands, uint32_t inputs, uint32_t outputs) {
  int64_t i, count = 1;
  if (!call || library->abi < 2 || index >= library->functions) return 1;
  if (strcmp(library->function[index].name, "halve") != 0 || inputs != 1 || outputs != 1) return 1;
  if (operands[0].dtype != TN_F32 || operands[1].dtype != TN_F32) return 1;
  for (i = 0; i < (int64_t)operands[0].rank; ++i) count *= dims[i];
  for (i = 0; i < count; ++i) ((float*)buffers[1])[i] = ((const float*)buffers[0])[i] / 2;
  return 0;
}

static int64_t take(FILE* file) {
  int64_t value = 0;
  if (fread(&value, 8, 1, file) != 1) exit(5);
  return value;
}

int main(int argc, char** argv) {
  void* handle = argc == 5 ? dlopen(argv[1], RTLD_NOW) : 0;
  const tn_library* (*get)(void) = 0;
  const tn_kernel* kernels = 0;
  FILE *in, *out;
  uint32_t i;
  int64_t calls, k;
  if (!handle) return fprintf(stderr, "%s\n", dlerror()), 2;
  *(void**)&get = dlsym(handle, "tn_library_get");
  library = get();
  for (i = 0; i < library->variants; ++i) {
    if (strcmp(library->variant[i].level, argv[2]) == 0) kernels = library->variant[i].kernels;
  }
  in = fopen(argv[3], "rb"), out = fopen(argv[4], "wb");
  if (!kernels || !in || !out) return 3;
  for (calls = take(in); calls > 0; --calls) {
    void* buffers[64];
    int64_t dims[64], bytes[64], kernel = take(in), count = take(in), result;
    tn_call call = {sizeof(tn_call), 3, buffers, dims, parallel, fail, allocate, release,
                    function, 0, 0, 0};
    for (k = 0; k < count; ++k) dims[k] = take(in);
    count = take(in);
    for (k = 0; k < count; ++k) {
      bytes[k] = (take(in) + 7) / 8 * 8;
      buffers[k] = allocate(&call, bytes[k]);
      if (fread(buffers[k], 1, (size_t)bytes[k], in) != (size_t)bytes[k]) return 4;
    }
    result = kernels[kernel](&call);
    fwrite(&result, 8, 1, out);
    for (k = 0; k < count; ++k) fwrite(buffers[k], 1, (size_t)bytes[k], out), free(buffers[k]);
  }
  return fclose(out);
}
