/* The C interface (C99) between the compiler and a code generator of a user's, a plugin: a shared object that exports
 * tn_target_get, and, for the run time, tn_library_get of runtime/native/kernel.h with the kernels that it calls. It is
 * NAME.so, libNAME.so or tenon-kernels-NAME.so, where NAME is that of the target.
 *
 * Semantics: the compiler asks the functions below in a process of their own, each call in a new copy of it: a call
 * leaves nothing for the next one, a crash is a diagnostic, and time and memory are limited. What they return depends
 * on the region alone. `accepts`, `cost` and `boundary` are asked once for equal regions; constants of more than 64 KiB
 * count as equal where their types are, so that these answers may depend on the elements of smaller ones only. All that
 * they get belongs to the compiler and lives until they return; what they return may be static or allocated, and is
 * copied before the process ends.
 *
 * A region is operators that run as one call. Its values are numbered: params from outside, constants, and results of
 * nodes, which stand in an order in which they can be computed. Tuples and their fields are no nodes: an operator of a
 * tuple has its fields as inputs, and one of several results has as many outputs. All sizes are known. `tenon ops NAME`
 * explains operators and attributes; attributes are complete. The interpreter defines the results of a region, which
 * are expected bit for bit of integers.
 *
 * A structure that has `size` grows at its end only, and so does tn_target; elements of arrays never grow. */
#ifndef TENON_COMPILER_PLUGIN_TARGET_H_
#define TENON_COMPILER_PLUGIN_TARGET_H_

#include "runtime/native/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_TARGET_ABI = 1 };

typedef struct {
  uint32_t dtype, rank; /* dtype: tn_dtype */
  const int64_t* sizes; /* outermost first */
  const void* data;     /* the elements of a constant, dense and row-major; else NULL */
  uint64_t bytes;       /* of all elements */
} tn_value;

typedef struct {
  const char* op;     /* "conv2d" */
  const char* origin; /* the model's node, or "" */
  uint32_t layer;     /* index of the match that the node is part of */
  uint32_t inputs, outputs, attributes;
  const uint32_t *input, *output; /* indices of values */
  const tn_attribute* attribute;  /* ascending by name */
} tn_node;

typedef struct {
  uint32_t size; /* sizeof(tn_region) at the compiler */
  uint32_t values, nodes, layers, params, results;
  const tn_value* value; /* each constant once, however many nodes read it */
  const tn_node* node;
  const uint32_t* row;            /* by layer: index of the row whose pattern it matches */
  const uint32_t *param, *result; /* indices of values */
  /* For `compile`: the layout in which each param, and then each result, crosses the boundary, as `boundary` said; ""
   * is the plain layout. Values have their plain sizes. */
  const char* const* layout;
} tn_region;

/* What `compile` makes of a region: the call of a kernel of the same file's tn_library. Its inputs are the artifact, a
 * vector of u8, then the region's params in their layouts, then `constant`; its outputs are the region's results in
 * their layouts. The artifact and the constants are stored in the executable, equal ones once. */
typedef struct {
  uint32_t size;      /* sizeof(tn_artifact) at the compiler */
  const char* kernel; /* NULL: "run" */
  const void* data;   /* the artifact: code, tables, weights in a layout of its own */
  uint64_t bytes;
  uint32_t constants; /* of the region that the kernel reads at run time, and their indices among its values */
  const uint32_t* constant;
} tn_artifact;

enum {
  TN_ROW_ROWS = 1,       /* row i of the result depends on row i of each operand alone (axis 0) */
  TN_ROW_OWN_RESULTS = 2 /* the row is for results of this target: its first operand is that of another match */
};
typedef struct {
  const char* name;    /* "conv2d": of the matches; that of another row must be another one */
  const char* pattern; /* its text: the grammar is in compiler/partition/pattern_text.h. Its root is an operator; it has
                          no `if` and no `fn`: rows match inside of arms and functions too */
  uint32_t flags;      /* TN_ROW_... */
} tn_row;

enum {
  TN_TARGET_INTEGER_LAYERS = 1, /* its patterns are of integer layers: requantize(conv2d(...), ...) */
  TN_TARGET_REGIONS = 2         /* neighbouring matches are one region where `accepts` supports it; else each is one */
};

/* Functions return 0, or not 0 with a message of at most `bytes` bytes with the byte 0: it says why the region is not
 * supported (accepts), or what is wrong (the others). */
typedef struct {
  uint32_t abi, flags; /* the version whose members it has, at most TN_TARGET_ABI; TN_TARGET_... */
  const char* name;    /* small letters, digits and underscores */
  const char* doc;     /* one line */
  uint32_t rows;
  const tn_row* row; /* earlier ones win */
  /* Whether a match, or a region of several, is supported. NULL: all are. */
  int32_t (*accepts)(const tn_region* region, char* message, uint32_t bytes);
  /* Its time in seconds, without the launch and the copies of its values. NULL: by the entries gmacs and memory_gbytes
   * of the costs file. */
  int32_t (*cost)(const tn_region* region, double* seconds, char* message, uint32_t bytes);
  /* Replaces layouts[i], which are "", by the layout that param i, and after the params result i, has to have: "NHWC"
   * or "NCHW16c", in the notation of the operator layout_transform. NULL: all are plain. */
  int32_t (*boundary)(const tn_region* region, const char** layouts, char* message, uint32_t bytes);
  int32_t (*compile)(const tn_region* region, tn_artifact* artifact, char* message, uint32_t bytes);
} tn_target;

const tn_target* tn_target_get(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_COMPILER_PLUGIN_TARGET_H_ */
