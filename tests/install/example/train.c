/* Trains the step of a model of two inputs and two classes on points in a square, whose class is whether they are in a
 * circle. Arguments: the step, and a file for the state of the training. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon.h>

enum { kSamples = 512, kEpochs = 10 };

static void check(tenon_error* error) {
  if (!error) return;
  fprintf(stderr, "%s\n", tenon_error_text(error));
  exit((int)tenon_error_fault(error));
}

static float coordinate(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

int main(int count, char** arguments) {
  static float points[kSamples][2];
  static int64_t classes[kSamples];
  const int64_t sizes[2] = {kSamples, 2};
  tenon_program* step = NULL;
  tenon_trainer *trainer = NULL, *resumed = NULL;
  tenon_value *x = NULL, *labels = NULL, *weight = NULL;
  const tenon_value* inputs[1];
  double loss = 0, first = 0;
  size_t i;
  int64_t epoch;
  if (count < 3) {
    fprintf(stderr, "usage: train STEP.tnx STATE.npz\n");
    return TENON_FAULT_USAGE;
  }
  for (i = 0; i < kSamples; ++i) {
    points[i][0] = coordinate(), points[i][1] = coordinate();
    classes[i] = points[i][0] * points[i][0] + points[i][1] * points[i][1] < 0.6f;
  }
  check(tenon_tensor_create(TENON_F32, 2, sizes, points, &x));
  check(tenon_tensor_create(TENON_I64, 1, sizes, classes, &labels));
  inputs[0] = x;
  check(tenon_program_load(arguments[1], &step));
  check(tenon_trainer_create(step, NULL, &trainer));
  check(tenon_trainer_loss(trainer, inputs, 1, labels, 0, &first));
  for (epoch = 0; epoch < kEpochs; ++epoch) {
    check(tenon_trainer_epoch(trainer, inputs, 1, labels, 1, epoch, 0.05, &loss));
    printf("epoch %d: loss %.4f\n", (int)epoch + 1, loss);
    if (epoch == kEpochs / 2) check(tenon_trainer_save(trainer, arguments[2]));
  }

  /* A training that goes on from the file has the same loss, to the bit. */
  check(tenon_trainer_create(step, NULL, &resumed));
  check(tenon_trainer_load(resumed, arguments[2]));
  for (epoch = kEpochs / 2 + 1; epoch < kEpochs; ++epoch) {
    double again = 0;
    check(tenon_trainer_epoch(resumed, inputs, 1, labels, 1, epoch, 0.05, &again));
    if (epoch == kEpochs - 1) printf("resumed: %s\n", again == loss ? "same" : "other");
  }
  for (i = 0; i < tenon_trainer_weight_count(trainer); ++i) {
    check(tenon_trainer_weight(trainer, tenon_trainer_weight_name(trainer, i), &weight));
    printf("%s: %lu bytes\n", tenon_trainer_weight_name(trainer, i), (unsigned long)tenon_tensor_bytes(weight));
    tenon_value_free(weight);
  }
  printf("%s after %d steps\n", loss < 0.5 * first ? "learned" : "did not learn", (int)tenon_trainer_steps(trainer));
  tenon_trainer_free(resumed);
  tenon_trainer_free(trainer);
  tenon_program_free(step);
  tenon_value_free(labels);
  tenon_value_free(x);
  return 0;
}
