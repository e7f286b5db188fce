/* The one C interface between the runtime and its kernels: code that the compiler generates, user-defined functions,
 * libraries such as oneDNN, and the reference kernels.
 *
 * Semantics: a kernel reads its inputs and fills its outputs; buffers are dense, row-major, aligned to 64 bytes and do
 * not overlap, except inputs that are the same tensor, and an output in place of an input where the kernel's signature
 * says that it may be. It returns 0, or not 0 after a fault that it has reported by `fail` or `refuse`; then its
 * outputs are undefined. What it keeps from one call to the next is in `state`, and it may be called by several threads
 * at once.
 *
 * A kernel is called in one of three ways:
 * - Generated kernels have a signature: the runtime has checked the inputs' shapes and made the outputs.
 * - Library functions, which generated kernels call by `function`, get the types and sizes of all operands, and check
 *   them themselves.
 * - Kernels of operators, which an executable calls by name with attributes, get the types and sizes of their inputs,
 *   check them themselves, and ask for the memory of each output by `result`.
 *
 * A structure grows at its end only; `size` is the size of the caller's. */
#ifndef TENON_RUNTIME_NATIVE_KERNEL_H_
#define TENON_RUNTIME_NATIVE_KERNEL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version 1 ends before tn_library.functions, version 2 before tn_library.doc, and version 3 has no tables after a
 * kernel's outputs; all are supported too. */
enum { TN_ABI = 4, TN_ABI_FUNCTIONS = 2, TN_ABI_OPERATORS = 3 };

typedef struct tn_call tn_call;
/* A buffer of a kernel that another kernel calls by name: its type as tn_dtype, and its number of axes. */
typedef struct {
  uint32_t dtype, rank;
} tn_operand;
/* Runs one index of a parallel call; `call` is the thread's own copy. Not 0: stop. */
typedef int32_t (*tn_task)(tn_call* call, void* data, int64_t index);

struct tn_call {
  uint32_t size;        /* sizeof(tn_call) at the caller */
  uint32_t threads;     /* the most tasks that run at a time: a few times as many tasks are enough */
  void* const* buffers; /* inputs, then outputs, then tables of int64_t, in the signature's order */
  const int64_t* dims;  /* the values of the signature's dim variables, in its order */
  /* Runs task(.., data, 0), ..., task(.., data, count - 1) in any order and at the same time; returns 0, or not 0 if
   * one failed. Inside a task it runs them in order. */
  int32_t (*parallel)(tn_call* call, tn_task task, void* data, int64_t count);
  /* Reports a fault at one of the library's sites, with the value found and the value expected; returns not 0. */
  int32_t (*fail)(tn_call* call, uint32_t site, int64_t found, int64_t expected);
  /* Memory aligned to 64 bytes, for this thread; NULL if there is not enough (then `fail` has been called). Memory is
   * released in the opposite order; the end of the kernel or of the task that took it releases it too. */
  void* (*allocate)(tn_call* call, int64_t bytes);
  void (*release)(tn_call* call, void* memory);
  /* Calls the library function with that index in tn_library.function on whole buffers: inputs, then outputs; returns
   * 0, or not 0 if it failed. `dims` are the sizes of all their axes, one buffer after another. */
  int32_t (*function)(tn_call* call, uint32_t index, void* const* buffers, const int64_t* dims,
                      const tn_operand* operands, uint32_t inputs, uint32_t outputs);
  /* The operands of a library function, and the inputs of an operator's kernel; of kernels with a signature NULL and 0.
   * `dims` are the sizes of all their axes, as above. Such a kernel calls no further function, and the sites of its
   * faults are those of its own library. */
  const tn_operand* operands;
  uint32_t inputs, outputs;

  /* Since version 3. */

  /* What tn_library.open has made for this call of the program; NULL where the library has no `open`. */
  void* state;
  /* Bit i: input i is a constant of the program. While `state` is open, memory at the address of a constant belongs to
   * it alone and does not change. Inputs from 64 on have no bit. */
  uint64_t constants;
  /* Memory for an output of an operator's kernel, whose address is not in `buffers`: for a tensor of this tn_dtype and
   * of `rank` sizes. At most once an output. NULL if there is not enough memory, or there can be no such tensor (then
   * the fault has been reported). */
  void* (*result)(tn_call* call, uint32_t output, uint32_t dtype, uint32_t rank, const int64_t* sizes);
  /* Reports a fault by a message, which is copied; returns not 0. */
  int32_t (*refuse)(tn_call* call, const char* message);
  /* Not 0: the run was cancelled, or its time is over. The kernel ends soon and returns not 0. `parallel` asks before
   * each task. */
  int32_t (*stopped)(tn_call* call);
};
typedef int32_t (*tn_kernel)(tn_call* call);

typedef enum {
  TN_BOOL = 0, /* a byte, 0 or 1 */
  TN_I8 = 1,
  TN_U8 = 2,
  TN_I16 = 3,
  TN_U16 = 4,
  TN_I32 = 5,
  TN_I64 = 6,
  TN_F32 = 7,
  TN_F64 = 8,
  TN_U32 = 9,
  TN_U64 = 10,
  TN_F16 = 11,
  TN_BF16 = 12
} tn_dtype;

typedef enum {
  TN_FAULT_DIVISION = 0,      /* an integer is divided by 0 */
  TN_FAULT_INDEX = 1,         /* an index `found` that is not in 0 .. expected - 1 */
  TN_FAULT_CONVERSION = 2,    /* a float (found: the bits of a double) that does not fit into type `expected` */
  TN_FAULT_SIZE_DIVISION = 3, /* a size is divided by 0 */
  TN_FAULT_SIZE = 4,          /* an axis of `found` elements, or more memory than there can be */
  TN_FAULT_OTHER = 5          /* what `where` says */
} tn_fault;

typedef struct {
  uint32_t fault;    /* tn_fault */
  const char* where; /* loop function and stage */
} tn_site;

/* The same kernels for one level of a processor: "x86-64-v3". */
typedef struct {
  const char* level;
  const tn_kernel* kernels;
} tn_variant;

typedef struct {
  const char* name;   /* "sort" */
  const char* caller; /* "@f" */
} tn_function;

/* An attribute of an operator: a number, a list of numbers, or a text. */
typedef enum { TN_INTEGER = 0, TN_REAL = 1, TN_TEXT = 2, TN_INTEGERS = 3, TN_REALS = 4 } tn_attribute_kind;
typedef struct {
  const char* name;
  uint32_t kind;     /* tn_attribute_kind */
  uint32_t count;    /* of elements; of a text its bytes, which a byte 0 follows */
  const void* value; /* int64_t, double, or char */
} tn_attribute;

typedef struct {
  uint32_t abi, count;       /* the version whose members the library has, at most TN_ABI; number of kernels */
  const char* const* names;  /* of the kernels */
  uint32_t variants, sites;  /* number of variants, number of sites */
  const tn_variant* variant; /* the best level first; the first that the processor supports is used */
  const tn_site* site;
  /* Kernels of other libraries that the kernels call, by name, and their callers: looked up when this library is
   * loaded, among the libraries that the process has opened. */
  uint32_t functions;
  const tn_function* function;

  /* Since version 3; each may be NULL. */

  const char* doc; /* one line: "oneDNN 2.7.3" */
  /* Prepares kernel `kernel` for one call in a program, whose attributes are these; they live until `open` returns.
   * Returns 0, or not 0 with a message, of at most `bytes` bytes with the byte 0. */
  int32_t (*open)(uint32_t kernel, const tn_attribute* attributes, uint32_t count, void** state, char* message,
                  uint32_t bytes);
  void (*close)(void* state);
} tn_library;

/* The only symbol that a library exports. */
const tn_library* tn_library_get(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RUNTIME_NATIVE_KERNEL_H_ */
