/* The C interface of Tenon's compiler: imports models, quantizes and compiles them to the programs that tenon.h runs.
 *
 * Semantics are those of tenon.h, whose errors, values and programs these functions take and return: a program links
 * libtenon_compiler and libtenon. A model is for one thread at a time; several models may be compiled in several
 * threads. Nothing is printed. */
#ifndef TENON_COMPILER_H
#define TENON_COMPILER_H

#include <tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An option of `tenon compile`, which lists and explains them (--help), without its dashes: {"config", "tiny"}. NULL or
 * "" is the value of a flag, as {"cpu", NULL}; an option that may be repeated stands in several elements. A program
 * that is compiled with {"plugin", FILE} calls kernels of this file, which tenon_session_options.plugins names. */
typedef struct tenon_option {
  const char* name;
  const char* value;
} tenon_option;

/* A model, how it is to be compiled, and the samples that it is quantized with. */
typedef struct tenon_model tenon_model;

/* Reads a model: .onnx, or .tn and .tnb of Tenon's language. The options are those of its compilation: all of `tenon
 * compile` but those that print, and the file of the executable. */
TENON_API tenon_error* tenon_model_import(const char* path, const tenon_option* options, size_t option_count,
                                          tenon_model** out);
TENON_API void tenon_model_free(tenon_model* model);

TENON_API const char* tenon_model_name(const tenon_model* model);
TENON_API size_t tenon_model_input_count(const tenon_model* model);
TENON_API size_t tenon_model_output_count(const tenon_model* model);
/* Names and types, as "Tensor[(n, 3), f32]"; NULL where the index is out of range. A later call of
 * tenon_model_calibrate() may replace them. */
TENON_API const char* tenon_model_input_name(const tenon_model* model, size_t index);
TENON_API const char* tenon_model_input_type(const tenon_model* model, size_t index);
TENON_API const char* tenon_model_output_type(const tenon_model* model, size_t index);

/* The model is quantized with these samples when it is compiled, as with the option "calibrate" for files: one tensor
 * for each input, whose leading axis has the samples one after the other; unknown sizes become those of the data where
 * an accelerator needs them, for which the model's file is read again. The options "calibration", "keep", "accuracy"
 * and others say how. After an error the model is as it was before. */
TENON_API tenon_error* tenon_model_calibrate(tenon_model* model, const tenon_value* const* data, size_t input_count);

/* Compiles the model; it may be compiled again, with other samples. */
TENON_API tenon_error* tenon_model_compile(tenon_model* model, tenon_program** out);

/* A text, which the caller frees. */
typedef struct tenon_text tenon_text;
TENON_API const char* tenon_text_string(const tenon_text* text);
TENON_API void tenon_text_free(tenon_text* text);

/* What the last compilation decided, as JSON: where each operator runs and why, estimated costs, what was measured to
 * quantize the model, and which operators have no native kernel. An error where the model is not compiled. */
TENON_API tenon_error* tenon_model_report(const tenon_model* model, tenon_text** out);
/* What the file of a program is made of, as JSON: that of `tenon inspect --json`. */
TENON_API tenon_error* tenon_inspect(const char* path, tenon_text** out);

#ifdef __cplusplus
}
#endif
#endif
