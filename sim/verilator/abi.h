/* The C interface between Tenon and a Verilated model: one shared object per configuration, opened with dlopen.
 *
 * The interface is plain C, because the two sides are compiled at different times, with different flags. The object
 * exports tenon_rtl_get only; `abi` of its result must be TENON_RTL_ABI. All functions run in the caller's thread.
 * Cycles pass in step() and, a few per call, in read_register() and write_register(), which use AXI4-Lite as software
 * does.
 *
 * The instrumented object, from whose run the profile of a model is made, also exports
 * uint64_t tenon_rtl_profile(char* buffer): it writes the raw profile to the buffer, where that is not NULL, and
 * returns the profile's size in bytes, 0 where writing fails.
 */
#ifndef TENON_SIM_VERILATOR_ABI_H_
#define TENON_SIM_VERILATOR_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_RTL_ABI 4

typedef struct tenon_rtl tenon_rtl;

typedef struct {
  uint8_t* memory; /* DRAM, owned by the caller, at physical address 0 */
  uint64_t memory_bytes;
  uint32_t read_latency;  /* cycles from a burst's address to its first beat */
  uint32_t write_latency; /* cycles from a burst's last beat to its response */
  uint32_t outstanding;   /* bursts that the memory accepts at once, of reads and of writes each */
  uint32_t max_beats;     /* a longer burst breaks the protocol */
  uint32_t stall_percent; /* probability that a channel stalls in a cycle, those of AXI4-Lite included */
  uint32_t interleave;    /* nonzero: bursts of different IDs are answered in random order, beat by beat */
  uint32_t write_order;   /* WriteOrder of axi_memory.h: which of a write's address and data the memory takes first */
  uint32_t late_ready;    /* nonzero: the memory raises ready only after valid */
  uint64_t read_error;    /* the beat with this address is read with an error; UINT64_MAX: none */
  uint64_t seed;          /* of stalls, order and the scratchpads' first contents */
  const char* trace_path; /* a VCD file, or NULL; requires a model with `traces` */
  /* A file of Verilator's coverage, written when the model is destroyed, or NULL; requires a model that counts. */
  const char* coverage_path;
} tenon_rtl_options;

/* The destination of a write. The first eight are MEM_* of tenon_pkg: DMA units of a load, `address` counts units, ACC8
 * is an accumulator element that is loaded from one byte per lane. The others are whole elements, and bytes of DRAM. */
enum {
  TENON_RTL_UOP,
  TENON_RTL_WGT,
  TENON_RTL_INP,
  TENON_RTL_ACC,
  TENON_RTL_OUT,
  TENON_RTL_PAR,
  TENON_RTL_RES,
  TENON_RTL_ACC8,
  TENON_RTL_ACC_ELEMENT,
  TENON_RTL_OUT_ELEMENT,
  TENON_RTL_DRAM,
};

/* Callbacks during step(); each may be NULL, which is fast. */
typedef struct {
  void* context;
  void (*write)(void* context, uint32_t kind, uint32_t instruction, uint64_t address, const uint8_t* data);
  void (*dram)(void* context, uint32_t instruction, uint64_t address, const uint8_t* data, uint32_t bytes);
  void (*done)(void* context, uint32_t instruction);
  /* One engine in one state over [begin, end), in cycles since reset; kind: 0 busy, 1 waits for tokens. */
  void (*interval)(void* context, uint32_t engine, uint32_t kind, uint32_t instruction, uint64_t begin, uint64_t end);
} tenon_rtl_observer;

/* What the harness has seen at the ports since the model was made: what the accelerator's counters should count. The
 * cycles of the engines are counted only while an observer is set. */
typedef struct {
  uint64_t read_beats, write_beats, read_bursts, write_bursts;
  uint64_t busy[8], waiting[8]; /* cycles, by engine, of which the register map holds eight */
} tenon_rtl_counts;

typedef struct {
  uint32_t abi;
  uint32_t traces; /* whether the model can write a VCD file */
  tenon_rtl* (*create)(const tenon_rtl_options* options);
  void (*destroy)(tenon_rtl* rtl);
  /* Sets the observer of later events; instructions in flight are not reported. */
  void (*observe)(tenon_rtl* rtl, const tenon_rtl_observer* observer);
  uint32_t (*read_register)(tenon_rtl* rtl, uint32_t offset);
  void (*write_register)(tenon_rtl* rtl, uint32_t offset, uint32_t value);
  void (*step)(tenon_rtl* rtl, uint64_t cycles);
  uint64_t (*cycles)(const tenon_rtl* rtl); /* since reset */
  void (*counts)(const tenon_rtl* rtl, tenon_rtl_counts* counts);
  uint32_t (*interrupt)(const tenon_rtl* rtl); /* the interrupt output */
  /* The first protocol violation or failed assertion, "" if none. After a failure, the model does not advance. */
  const char* (*failure)(const tenon_rtl* rtl);
} tenon_rtl_api;

#ifdef __cplusplus
}
#endif
#endif
