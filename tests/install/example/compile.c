/* Imports a model, quantizes and compiles it for an accelerator, saves it, and runs it on a simulated one.
 * Arguments: the model, the configuration, the executable to write. Instead of a configuration, the file of a plugin:
 * its code generator compiles the layers, at the sizes that the option "shapes" binds, and its kernels run them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon_compiler.h>

#define SAMPLES 8
#define PIXELS (28 * 28)

static void check(tenon_error* error) {
  if (!error) return;
  fprintf(stderr, "%s\n", tenon_error_text(error));
  exit((int)tenon_error_fault(error));
}

/* Pictures with a bar at different heights. */
static tenon_value* pictures(void) {
  static float pixels[SAMPLES * PIXELS];
  const int64_t sizes[] = {SAMPLES, 1, 28, 28};
  tenon_value* value = NULL;
  int i;
  for (i = 0; i < SAMPLES * PIXELS; ++i) pixels[i] = (i % PIXELS) / (3 * 28) == i / PIXELS ? 1.0F : 0.0F;
  check(tenon_tensor_create(TENON_F32, 4, sizes, pixels, &value));
  return value;
}

static int is_plugin(const char* name) {
  const char* ending = strrchr(name, '.');
  return ending && strcmp(ending, ".so") == 0;
}

int main(int count, char** arguments) {
  tenon_session_options options = TENON_SESSION_OPTIONS_INIT;
  tenon_option compilation[] = {{"config", NULL}, {"calibration", "mse"}, {"cpu", NULL}, {"shapes", "N=1"}};
  const char* plugin = NULL;
  const int64_t sizes[] = {1, 1, 28, 28};
  char uri[256];
  tenon_model* model = NULL;
  tenon_text* report = NULL;
  tenon_program* program = NULL;
  tenon_device* device = NULL;
  tenon_session* session = NULL;
  tenon_value *samples = pictures(), *zeros = NULL, *logits = NULL;
  if (count != 4) {
    fprintf(stderr, "usage: compile MODEL CONFIGURATION|PLUGIN.so FILE.tnx\n");
    return TENON_FAULT_USAGE;
  }
  if (is_plugin(arguments[2])) compilation[0].name = "plugin", plugin = arguments[2];
  compilation[0].value = arguments[2];
  check(tenon_model_import(arguments[1], compilation, plugin ? 4 : 2, &model));
  printf("%s: %s\n", tenon_model_input_name(model, 0), tenon_model_input_type(model, 0));
  check(tenon_model_calibrate(model, (const tenon_value* const*)&samples, 1));
  check(tenon_model_compile(model, &program));
  check(tenon_model_report(model, &report));
  printf("%s", tenon_text_string(report));
  check(tenon_program_save(program, arguments[3]));

  if (plugin) {
    options.plugins = &plugin;
    options.plugin_count = 1;
  } else {
    snprintf(uri, sizeof uri, "behavioral:%s", arguments[2]);
    check(tenon_device_open(uri, &device));
    options.device = device;
  }
  check(tenon_session_create(program, &options, &session));
  check(tenon_tensor_create(TENON_F32, 4, sizes, NULL, &zeros));
  check(tenon_session_run(session, (const tenon_value* const*)&zeros, 1, &logits, 1));
  printf("first logit %g\n", (double)((const float*)tenon_tensor_data(logits))[0]);

  tenon_value_free(samples);
  tenon_value_free(zeros);
  tenon_value_free(logits);
  tenon_session_free(session);
  tenon_device_free(device);
  tenon_program_free(program);
  tenon_text_free(report);
  tenon_model_free(model);
  return 0;
}
