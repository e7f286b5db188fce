/* The C interface between the virtual machine and functions of an executable that are compiled ahead of time.
 *
 * Semantics: the code of a function executes the function's instructions on the registers of the current frame, as the
 * machine does, and returns the index of the first instruction that enters or leaves a frame, which the machine then
 * executes; or TN_COMPILED_FAILED after a callback that failed. `from` is the instruction to begin with: the first one,
 * or the one where the frame goes on after a call. Values that are no scalars are touched by the callbacks alone. */
#ifndef TENON_RUNTIME_EXECUTABLE_COMPILED_CODE_H_
#define TENON_RUNTIME_EXECUTABLE_COMPILED_CODE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_COMPILED_ABI = 1 };
#define TN_COMPILED_FAILED UINT32_MAX

/* A register: its kind, for a scalar its tn_dtype, and the scalar's bytes followed by zeros. */
typedef struct {
  uint8_t tag; /* tn_word_tag */
  uint8_t dtype;
  uint16_t unused;
  uint32_t id; /* 0 for a scalar */
  int64_t bits;
} tn_word;
enum tn_word_tag { TN_WORD_EMPTY = 0, TN_WORD_SCALAR = 1, TN_WORD_FIRST_OBJECT = 4 /* and all greater ones */ };

typedef struct tn_machine tn_machine;
struct tn_machine {
  tn_word* registers;
  const tn_word* constants; /* by index */
  uint64_t budget;          /* instructions until the limits of the run are checked */
  /* Each returns 0, or not 0 after an error; instructions are given by their index. */
  int32_t (*step)(tn_machine* machine, uint32_t instruction); /* executes an instruction that enters no frame */
  /* Takes that many instructions off a budget that has no more left, and checks the limits. */
  int32_t (*spend)(tn_machine* machine, uint32_t instruction, uint32_t count);
  void (*release)(tn_machine* machine, uint32_t reg); /* empties a register */
  /* The instruction where a branch or a switch goes on; TN_COMPILED_FAILED after an error. */
  uint32_t (*target)(tn_machine* machine, uint32_t instruction);
};
typedef uint32_t (*tn_compiled_function)(tn_machine* machine, uint32_t from);

typedef struct {
  uint32_t abi, count; /* TN_COMPILED_ABI; number of functions */
  const tn_compiled_function* functions;
} tn_compiled;

/* The only symbol that the code exports. */
const tn_compiled* tn_compiled_get(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RUNTIME_EXECUTABLE_COMPILED_CODE_H_ */
