/* The C face: each kind of call, and what is refused. Compiled as C11 with all warnings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rooftile/c.h"

static int failures = 0;
static void expect(int condition, const char* what) {
  if (condition) return;
  printf("c_test: %s\n", what);
  ++failures;
}
static void expect_message(rooftile_status status, const char* expected) {
  if (strcmp(status.message, expected) == 0) return;
  printf("c_test: \"%s\" instead of \"%s\"\n", status.message, expected);
  ++failures;
}

int main(void) {
  rooftile_queue* queue = NULL;
  expect_message(rooftile_queue_cpu(1, &queue), "");
  const int64_t rows[] = {2, 3}, row[] = {3}, outer[] = {2};
  float data[6] = {0, 1, 2, 3, 3, 3}, result[6], weight[3] = {1, 2, 3}, mean[2], rstd[2], gradient[3];
  const rooftile_view x = rooftile_dense(data, ROOFTILE_F32, 2, rows), y = rooftile_dense(result, ROOFTILE_F32, 2, rows);
  const rooftile_view w = rooftile_dense(weight, ROOFTILE_F32, 1, row), g = rooftile_dense(gradient, ROOFTILE_F32, 1, row);
  const rooftile_view m = rooftile_dense(mean, ROOFTILE_F32, 1, outer), r = rooftile_dense(rstd, ROOFTILE_F32, 1, outer);

  expect_message(rooftile_softmax(queue, &x, &y, 1.0, 0), "");
  expect(fabsf(result[5] - 1.f / 3) < 1e-6f && fabsf(result[2] - 0.66524096f) < 1e-6f, "softmax is wrong");
  expect_message(rooftile_softmax(queue, &x, &y, 1.0, 2), "softmax: log is 2, must be 0 or 1");
  expect_message(rooftile_softmax(queue, &x, NULL, 1.0, 0), "softmax: y is absent");

  /* Operands left out, statistics, and a backward that needs a workspace. */
  expect_message(rooftile_layer_norm(queue, &x, NULL, &w, NULL, &y, NULL, &m, &r, 1e-5), "");
  expect(mean[0] == 1 && mean[1] == 3, "layer_norm's means are wrong");
  size_t bytes = 0;
  expect_message(rooftile_layer_norm_backward_workspace(queue, &x, &x, &w, &m, &r, &y, &g, NULL, &bytes), "");
  expect(bytes > 0, "layer_norm_backward needs a workspace");
  rooftile_workspace workspace = {aligned_alloc(64, (bytes + 63) / 64 * 64), bytes};
  expect_message(rooftile_layer_norm_backward(queue, &x, &x, &w, &m, &r, &y, &g, NULL, workspace), "");
  expect(fabsf(gradient[2] - 2.f * rstd[0]) < 1e-4f, "dweight is wrong");
  workspace.bytes = 0;
  expect(strstr(rooftile_layer_norm_backward(queue, &x, &x, &w, &m, &r, &y, &g, NULL, workspace).message,
                "needs a workspace") != NULL,
         "a workspace of no bytes is taken");
  free(workspace.pointer);

  /* By name, with a variant. */
  const rooftile_view* views[] = {&x, &y};
  const double options[] = {1, 0};
  const rooftile_workspace none = {NULL, 0};
  expect_message(rooftile_call(queue, "softmax", views, options, "01_scalar", none), "");
  expect_message(rooftile_call(queue, "softmaks", views, options, NULL, none), "rooftile_call: no function \"softmaks\"");
  expect_message(rooftile_call(NULL, "softmax", views, options, NULL, none), "softmax: the queue is NULL");
  rooftile_queue_free(queue);

  queue = (rooftile_queue*)&queue;
  expect(rooftile_queue_emulated(37, 0, &queue).message[0] != '\0' && queue == NULL, "architecture 37 is taken");
  rooftile_queue_free(queue);
  printf("c_test: %d failures\n", failures);
  return failures != 0;
}
