/* The C interface of Tenon's runtime: loads executables (.tnx, as `tenon compile` makes them), runs them, and trains
 * models by them. The compiler's is tenon_compiler.h.
 *
 * Semantics
 * - Compatibility: a program compiled with this header works with every library of the same TENON_API_VERSION or a
 *   later one. Functions and enumerators are only added; a struct begins with its size, by which the library knows
 *   which of its members the program has.
 * - Errors: a function that can fail returns a tenon_error, which the caller frees, or NULL for success. Results are
 *   written to `*out` on success only. A NULL argument is an error (TENON_FAULT_USAGE) unless NULL is said to be legal.
 * - Ownership: every object that a function writes to `*out` is freed by the caller with tenon_TYPE_free(), in any
 *   order; an object keeps what it depends on. Freeing NULL does nothing. Pointers that accessors return belong to the
 *   object asked.
 * - Threads: tenon_session_run(), tenon_session_run_many(), tenon_session_submit() and tenon_session_cancel() may be
 *   called from several threads, and so may tenon_ticket_wait(), tenon_ticket_is_done() and tenon_ticket_cancel() of
 *   one ticket. Programs, errors and values may be read from several threads. A device serves one session at a time.
 * - Values are immutable. Tensors are dense and row-major. */
#ifndef TENON_H
#define TENON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API_VERSION 1
#define TENON_API __attribute__((visibility("default")))

TENON_API uint32_t tenon_api_version(void); /* of the library */
TENON_API const char* tenon_version(void);  /* of the release, as "0.1.0" */

/* ---- Errors ---- */

typedef struct tenon_error tenon_error;

typedef enum tenon_fault {
  TENON_FAULT_INPUT = 1,   /* the data, the executable or the device is wrong */
  TENON_FAULT_USAGE = 2,   /* the call is wrong */
  TENON_FAULT_INTERNAL = 3 /* a bug of Tenon, or a failure of the machine, as too little memory */
} tenon_fault;

TENON_API tenon_fault tenon_error_fault(const tenon_error* error);
TENON_API const char* tenon_error_what(const tenon_error* error);  /* what was found, and what is required */
TENON_API const char* tenon_error_where(const tenon_error* error); /* file, operator or argument; may be empty */
TENON_API const char* tenon_error_help(const tenon_error* error);  /* what can be done about it; may be empty */
TENON_API const char* tenon_error_text(const tenon_error* error);  /* all of this, as the commands print it */
TENON_API void tenon_error_free(tenon_error* error);
/* An error with copies of these texts, of which NULL is the empty one: for libraries and bindings that extend this
 * interface. Never NULL. A fault that is none of tenon_fault is TENON_FAULT_INTERNAL. */
TENON_API tenon_error* tenon_error_create(int32_t fault, const char* what, const char* where, const char* help);

/* ---- Values: tensors, tuples, and data of the model's own types ---- */

typedef struct tenon_value tenon_value;

/* An integer, so that a dtype that the library does not have is an error and no undefined behavior. */
typedef int32_t tenon_dtype;
enum {
  TENON_BOOL = 0, /* a byte, 0 or 1 */
  TENON_I8 = 1,
  TENON_U8 = 2,
  TENON_I16 = 3,
  TENON_U16 = 4,
  TENON_I32 = 5,
  TENON_I64 = 6,
  TENON_F32 = 7,
  TENON_F64 = 8,
  TENON_U32 = 9,
  TENON_U64 = 10,
  TENON_F16 = 11,  /* IEEE 754 binary16 */
  TENON_BF16 = 12, /* the upper half of a binary32 */
  /* Of 8, 4 and 2 bits: one element a byte, in its low bits. */
  TENON_F8E4M3FN = 13,
  TENON_F8E4M3FNUZ = 14,
  TENON_F8E5M2 = 15,
  TENON_F8E5M2FNUZ = 16,
  TENON_F8E8M0 = 17,
  TENON_F4E2M1 = 18,
  TENON_I4 = 19,
  TENON_U4 = 20,
  TENON_I2 = 21,
  TENON_U2 = 22
};

typedef enum tenon_kind {
  TENON_TENSOR = 0,
  TENON_TUPLE = 1,
  TENON_DATA = 2,     /* a constructor with fields, as Cons(x, xs) */
  TENON_FUNCTION = 3, /* as a result only; nothing can be done with it */
  TENON_REFERENCE = 4 /* as a result only; its only field is the content */
} tenon_kind;

struct tenon_program;

/* A tensor with a copy of `data`, which has the elements in row-major order; NULL: zeros. `sizes` has `rank` sizes of
 * at least 0, and may be NULL for rank 0. The rank is at most 32, the bytes are less than 2^48. */
TENON_API tenon_error* tenon_tensor_create(tenon_dtype dtype, uint32_t rank, const int64_t* sizes, const void* data,
                                           tenon_value** out);
TENON_API tenon_error* tenon_tuple_create(const tenon_value* const* fields, size_t count, tenon_value** out);
/* Data of a type of the program; `constructor` is the constructor's name. */
TENON_API tenon_error* tenon_data_create(const struct tenon_program* program, const char* constructor,
                                         const tenon_value* const* fields, size_t count, tenon_value** out);
TENON_API void tenon_value_free(tenon_value* value);

TENON_API tenon_kind tenon_value_kind(const tenon_value* value);
/* Of tensors; for other values TENON_BOOL, 0 and NULL. */
TENON_API tenon_dtype tenon_tensor_dtype(const tenon_value* value);
TENON_API uint32_t tenon_tensor_rank(const tenon_value* value);
TENON_API const int64_t* tenon_tensor_sizes(const tenon_value* value);
TENON_API const void* tenon_tensor_data(const tenon_value* value);
TENON_API size_t tenon_tensor_bytes(const tenon_value* value);
/* Of tuples, data and references; for other values 0. */
TENON_API size_t tenon_value_field_count(const tenon_value* value);
TENON_API tenon_error* tenon_value_field(const tenon_value* value, size_t index, tenon_value** out);
/* The name of the constructor of data that the program returned or tenon_data_create() made; otherwise NULL. */
TENON_API const char* tenon_value_constructor(const struct tenon_program* program, const tenon_value* value);

/* The tensors of several instances, as sentences of different lengths, as one: their rows follow one another along
 * `axis`, and the axes before it have size 1. parts[i], of `count`, becomes a tensor of lengths[i] rows, which shares
 * the memory of `packed` where it begins at a multiple of 64 bytes, and else is a copy; the caller frees each. No
 * instances, and instances without rows, are legal. An error, and nothing is written, where `packed` is not a tensor or
 * has no such axis, an axis before it has a size other than 1, a length is negative, their sum is not the number of
 * rows, or there are more than 2^31 rows. */
TENON_API tenon_error* tenon_tensor_unpack(const tenon_value* packed, uint32_t axis, const int64_t* lengths,
                                           size_t count, tenon_value** parts);
/* The same by offsets, count + 1 of them: instance i has the rows offsets[i] .. offsets[i + 1] - 1, the first one
 * begins at 0, none is less than the one before it, and the last one is the number of rows. */
TENON_API tenon_error* tenon_tensor_unpack_offsets(const tenon_value* packed, uint32_t axis, const int64_t* offsets,
                                                   size_t count, tenon_value** parts);
/* The inverse: `count` tensors, which differ in the size of `axis` alone, as one, which the caller frees; the parts
 * stay the caller's. An error, and nothing is written, where `count` is 0, a part is NULL or not a tensor, the first
 * one has no such axis, an axis before it has a size other than 1, dtypes or other sizes differ, or there are more than
 * 2^31 rows or 2^48 bytes. */
TENON_API tenon_error* tenon_tensor_pack(const tenon_value* const* parts, size_t count, uint32_t axis,
                                         tenon_value** out);

/* Exchange of tensors with other libraries, without a copy where the data is dense and aligned to 64 bytes. The struct
 * is DLPack's DLManagedTensor (version 0.8, <dlpack/dlpack.h>). On success the value owns the tensor, which no caller
 * may write to any more; the exported tensor is freed by its deleter, and must not be written to while the value is
 * used.
 */
struct DLManagedTensor;
TENON_API tenon_error* tenon_tensor_from_dlpack(struct DLManagedTensor* tensor, tenon_value** out);
TENON_API tenon_error* tenon_tensor_to_dlpack(const tenon_value* value, struct DLManagedTensor** out);

/* ---- Programs ---- */

typedef struct tenon_program tenon_program;
typedef struct tenon_port tenon_port; /* an input or output of a program */

/* Reads and checks a whole file. */
TENON_API tenon_error* tenon_program_load(const char* path, tenon_program** out);
/* The same of a file in memory, which is copied; `name` is for errors. */
TENON_API tenon_error* tenon_program_load_bytes(const void* bytes, size_t size, const char* name, tenon_program** out);
/* Writes the program's file; a file that exists is replaced as a whole. */
TENON_API tenon_error* tenon_program_save(const tenon_program* program, const char* path);
TENON_API void tenon_program_free(tenon_program* program);
TENON_API const char* tenon_program_name(const tenon_program* program);
/* The name of the accelerator configuration that the program requires, the first of several; NULL: it requires no
 * device. */
TENON_API const char* tenon_program_configuration(const tenon_program* program);
/* Of all that it requires, each once; NULL where the index is out of range. */
TENON_API size_t tenon_program_configuration_count(const tenon_program* program);
TENON_API const char* tenon_program_configuration_at(const tenon_program* program, size_t index);
TENON_API size_t tenon_program_input_count(const tenon_program* program);
TENON_API size_t tenon_program_output_count(const tenon_program* program);
/* NULL where the index is out of range. */
TENON_API const tenon_port* tenon_program_input(const tenon_program* program, size_t index);
TENON_API const tenon_port* tenon_program_output(const tenon_program* program, size_t index);

TENON_API const char* tenon_port_name(const tenon_port* port);
/* 1 for a tensor, 0 for other types. */
TENON_API int tenon_port_is_tensor(const tenon_port* port);
/* As "f32 (n, 4)" or "List[f32]". */
TENON_API const char* tenon_port_type(const tenon_port* port);
/* Of tensors. A size that varies is -1. */
TENON_API tenon_dtype tenon_port_dtype(const tenon_port* port);
TENON_API uint32_t tenon_port_rank(const tenon_port* port);
TENON_API const int64_t* tenon_port_sizes(const tenon_port* port);

/* ---- Devices ---- */

typedef struct tenon_device tenon_device;

/* Opens the accelerator of a URI, as "behavioral:default", "xrt:0" or "remote:board.local:8461/fpga". */
TENON_API tenon_error* tenon_device_open(const char* uri, tenon_device** out);
TENON_API void tenon_device_free(tenon_device* device);

/* ---- Sessions ---- */

typedef struct tenon_session tenon_session;

/* Initialize it with TENON_SESSION_OPTIONS_INIT; 0 and NULL mean the default of each member. */
typedef struct tenon_session_options {
  size_t size;                  /* of this struct */
  tenon_device* device;         /* NULL: none, for programs that require none, or those of `devices` */
  const char* native_level;     /* of native kernels, as "x86-64-v3"; NULL: the best that the processor supports */
  uint32_t threads;             /* of native kernels; 0: one pool of the process, a thread for each usable processor */
  int refuse_native;            /* not 0: an executable with native code is an error */
  uint64_t max_bytes;           /* of the values of one run; 0: no limit */
  uint64_t max_steps;           /* instructions of one run; 0: no limit */
  uint64_t max_stack;           /* words of all frames of one run, the limit of recursion; 0: 2^25 */
  double max_seconds;           /* of one run; 0: no limit. A kernel ends at its next parallel task */
  double launch_seconds;        /* of one wait for the device; 0: 600 */
  uint64_t budget;              /* bytes of the tensors of one run: others are given up and computed again; 0: none */
  uint64_t max_batch;           /* requests of tenon_session_submit() that run together; 0: 64 */
  uint64_t max_wait_us;         /* of the oldest request for others, where none runs and fewer wait than max_batch */
  uint64_t max_queue;           /* requests that wait for their turn; 0: 1024 */
  tenon_device* const* devices; /* in place of `device`: one of each configuration that the program requires */
  size_t device_count;          /* of `devices` */
  /* Shared objects, which belong to the process once a session has named them, as native code with all of its rights.
   * `plugins`: those of the plugins that the program was compiled with, for the kernels that it calls; the file name
   * says of which one. `libraries`: those with functions that the program calls by name (`tenon-run --library`). */
  const char* const* plugins;
  size_t plugin_count;
  const char* const* libraries;
  size_t library_count;
} tenon_session_options;
#define TENON_SESSION_OPTIONS_INIT \
  { sizeof(tenon_session_options), NULL, NULL, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0 }

/* Checks the devices against the program, and uploads to it. `options` may be NULL. */
TENON_API tenon_error* tenon_session_create(const tenon_program* program, const tenon_session_options* options,
                                            tenon_session** out);
/* No run is in progress. Requests without an answer get an error; their tickets may be used afterwards. */
TENON_API void tenon_session_free(tenon_session* session);

/* One run: the inputs in the program's order, and space for all of its outputs. After an error the session can be used
 * again. */
TENON_API tenon_error* tenon_session_run(tenon_session* session, const tenon_value* const* inputs, size_t input_count,
                                         tenon_value** outputs, size_t output_count);

/* Runs of several instances: `inputs` has input_count values for each, one instance after the other, and there is space
 * for output_count outputs of each, and for its error. An instance's outputs are those that it has alone, to the bit.
 * errors[i] is NULL, or what tenon_session_run() would return for instance i, whose outputs are NULL then; the caller
 * frees it. The error that the function itself returns is that of the call, and then nothing is written. An executable
 * of `tenon compile --batch` runs them together, and its operators in batches of them; instances of different lengths,
 * which tenon_tensor_unpack() makes of packed rows, without padding. Inputs whose types have one size, as n, are
 * compared before any kernel runs. */
TENON_API tenon_error* tenon_session_run_many(tenon_session* session, size_t instance_count,
                                              const tenon_value* const* inputs, size_t input_count,
                                              tenon_value** outputs, size_t output_count, tenon_error** errors);

/* ---- Requests: runs that begin when their turn comes ---- */

typedef struct tenon_ticket tenon_ticket;

/* Submits a request, which a thread of the session runs. Requests begin in the order in which they came; those of an
 * executable of `tenon compile --batch` run together, max_batch of them at most, and one that comes later joins their
 * next batch: its answer waits for what the others compute until then, not for their ends. The answer is that of
 * tenon_session_run(), to the bit; the limits of the options are those of each request. An error where max_queue
 * requests wait. */
TENON_API tenon_error* tenon_session_submit(tenon_session* session, const tenon_value* const* inputs,
                                            size_t input_count, tenon_ticket** out);
/* Waits for the answer: space for all of the program's outputs, or the error of the run. It may be asked for again. */
TENON_API tenon_error* tenon_ticket_wait(const tenon_ticket* ticket, tenon_value** outputs, size_t output_count);
/* 1: the answer is there, and tenon_ticket_wait() returns at once. 0 otherwise. */
TENON_API int tenon_ticket_is_done(const tenon_ticket* ticket);
/* Ends the request with an error, unless its answer is there; all others go on. */
TENON_API tenon_error* tenon_ticket_cancel(const tenon_ticket* ticket);
/* Cancels the request, too, whose answer no caller can ask for any more. No other thread uses the ticket. */
TENON_API void tenon_ticket_free(tenon_ticket* ticket);

/* Not 0: runs in progress end soon, with an error, and later ones at once, until it is called with 0. */
TENON_API tenon_error* tenon_session_cancel(tenon_session* session, int cancelled);

/* ---- Training ---- */

/* The weights of a model, which steps over batches of samples change. It is for one thread at a time. */
typedef struct tenon_trainer tenon_trainer;

/* Of the step of a model's training, as `tenon train --step` writes it with its first weights. `options` may be NULL.
 */
TENON_API tenon_error* tenon_trainer_create(const tenon_program* step, const tenon_session_options* options,
                                            tenon_trainer** out);
TENON_API void tenon_trainer_free(tenon_trainer* trainer);
/* The samples of a batch; -1 where batches may be of any size. */
TENON_API int64_t tenon_trainer_batch(const tenon_trainer* trainer);
TENON_API int64_t tenon_trainer_steps(const tenon_trainer* trainer); /* so far */

/* Samples are tensors whose leading axis counts them: one for each of the model's inputs, in their order, and the
 * labels. No float may be NaN or infinite.
 *
 * One step with the samples `first`, ..., which are a batch (all of them where batches may be of any size), at this
 * learning rate. `*loss`, which may be NULL, becomes the loss before the step. After an error, as a loss that is not
 * finite, the weights are those before the step; where a kernel has failed after others had written new weights, all
 * are lost, as the error says, until tenon_trainer_load(). */
TENON_API tenon_error* tenon_trainer_step(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                          const tenon_value* labels, size_t first, double rate, double* loss);
/* A step with each whole batch, in an order that `seed` and the number of the epoch tell, the same everywhere. `*loss`
 * becomes the mean of the losses. */
TENON_API tenon_error* tenon_trainer_epoch(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                           const tenon_value* labels, uint64_t seed, int64_t epoch, double rate,
                                           double* loss);
/* The loss of the samples `first`, ..., which changes nothing. */
TENON_API tenon_error* tenon_trainer_loss(tenon_trainer* trainer, const tenon_value* const* inputs, size_t input_count,
                                          const tenon_value* labels, size_t first, double* loss);

/* Weights by index, in the order of their names; NULL where the index is out of range. */
TENON_API size_t tenon_trainer_weight_count(const tenon_trainer* trainer);
TENON_API const char* tenon_trainer_weight_name(const tenon_trainer* trainer, size_t index);
TENON_API tenon_error* tenon_trainer_weight(const tenon_trainer* trainer, const char* name, tenon_value** out);
TENON_API tenon_error* tenon_trainer_set_weight(tenon_trainer* trainer, const char* name, const tenon_value* weight);

/* Weights, the optimizer's tensors and the number of steps, in an .npz file, which is replaced as a whole. A trainer
 * that loads it goes on as the one that saved it would, to the bit. */
TENON_API tenon_error* tenon_trainer_save(const tenon_trainer* trainer, const char* path);
TENON_API tenon_error* tenon_trainer_load(tenon_trainer* trainer, const char* path);

#ifdef __cplusplus
}
#endif
#endif
