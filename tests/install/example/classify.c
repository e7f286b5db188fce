/* Runs an executable of Tenon on zeros and prints the shape and the first elements of each result.
 * Arguments: the executable, and the URI of a device where it requires one. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon.h>

static void check(tenon_error* error) {
  if (!error) return;
  fprintf(stderr, "%s\n", tenon_error_text(error));
  exit((int)tenon_error_fault(error));
}

/* Zeros of the input's shape; a size that varies is 1. */
static tenon_value* zeros(const tenon_port* port) {
  int64_t sizes[32];
  uint32_t axis;
  tenon_value* value = NULL;
  for (axis = 0; axis < tenon_port_rank(port); ++axis) {
    const int64_t size = tenon_port_sizes(port)[axis];
    sizes[axis] = size < 0 ? 1 : size;
  }
  check(tenon_tensor_create(tenon_port_dtype(port), tenon_port_rank(port), sizes, NULL, &value));
  return value;
}

static void print(const char* name, const tenon_value* value) {
  uint32_t axis;
  size_t i;
  printf("%s (", name);
  for (axis = 0; axis < tenon_tensor_rank(value); ++axis) {
    printf("%s%lld", axis ? ", " : "", (long long)tenon_tensor_sizes(value)[axis]);
  }
  printf("):");
  if (tenon_tensor_dtype(value) == TENON_F32) {
    for (i = 0; i < tenon_tensor_bytes(value) / sizeof(float) && i < 4; ++i) {
      printf(" %g", (double)((const float*)tenon_tensor_data(value))[i]);
    }
  }
  printf("\n");
}

int main(int count, char** arguments) {
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  tenon_program* program = NULL;
  tenon_device* device = NULL;
  tenon_session* session = NULL;
  tenon_value **inputs, **outputs;
  size_t i, input_count, output_count;
  if (count < 2) {
    fprintf(stderr, "usage: classify MODEL.tnx [DEVICE]\n");
    return TENON_FAULT_USAGE;
  }
  check(tenon_program_load(arguments[1], &program));
  if (count > 2) check(tenon_device_open(arguments[2], &device));
  options.device = device;
  check(tenon_session_create(program, &options, &session));

  input_count = tenon_program_input_count(program);
  output_count = tenon_program_output_count(program);
  inputs = calloc(input_count + 1, sizeof *inputs);
  outputs = calloc(output_count + 1, sizeof *outputs);
  if (!inputs || !outputs) return TENON_FAULT_INTERNAL;
  for (i = 0; i < input_count; ++i) inputs[i] = zeros(tenon_program_input(program, i));
  check(tenon_session_run(session, (const tenon_value* const*)inputs, input_count, outputs, output_count));
  for (i = 0; i < output_count; ++i) print(tenon_port_name(tenon_program_output(program, i)), outputs[i]);

  for (i = 0; i < input_count; ++i) tenon_value_free(inputs[i]);
  for (i = 0; i < output_count; ++i) tenon_value_free(outputs[i]);
  free(inputs);
  free(outputs);
  tenon_session_free(session);
  tenon_device_free(device);
  tenon_program_free(program);
  return 0;
}
