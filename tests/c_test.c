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

/* The function of that name, as the library describes it. */
static rooftile_function described(const char* name) {
  rooftile_function f;
  int place = 0;
  while (rooftile_function_at(place, &f) && strcmp(f.name, name) != 0) ++place;
  expect(rooftile_function_at(place, &f), name);
  return f;
}

static void expect_descriptions(void) {
  rooftile_function f = described("layer_norm");
  expect(f.backward && strcmp(f.backward, "layer_norm_backward") == 0 && !f.has_workspace, "layer_norm's backward is another");
  expect(f.operands == 8 && f.options == 1, "layer_norm takes other numbers of operands and options");
  const rooftile_operand *x = &f.operand[0], *w = &f.operand[2], *sum = &f.operand[5], *mean = &f.operand[6];
  expect(strcmp(x->name, "x") == 0 && x->role == ROOFTILE_INPUT && !x->optional && x->type == 'T', "x is another");
  expect(x->dtypes == (1u << ROOFTILE_F64 | 1u << ROOFTILE_F32 | 1u << ROOFTILE_F16 | 1u << ROOFTILE_BF16) && !x->or_as,
         "x's dtypes");
  expect(x->outer && !x->one && strcmp(x->letters, "C") == 0, "x's shape");
  expect(w->optional && w->or_as == 'T' && w->dtypes == x->dtypes && !w->outer, "weight is another");
  expect(sum->role == ROOFTILE_OUTPUT && strcmp(sum->sum_of, "x residual") == 0, "sum is the sum of others");
  expect(strcmp(sum->may_be, "x residual") == 0 && !*x->may_be && !*x->sum_of, "what sum may be");
  expect(mean->dtypes == (1u << ROOFTILE_F64 | 1u << ROOFTILE_F32) && mean->wide_as == 'T', "mean's dtypes");
  expect(mean->outer && !*mean->letters, "mean is another");
  expect(strcmp(f.option[0].name, "eps") == 0 && f.option[0].kind == ROOFTILE_REAL && f.option[0].least == 0,
         "eps is another");
  f = described("layer_norm_backward");
  expect(!f.backward && f.has_workspace && f.operand[6].dtypes == x->dtypes, "layer_norm_backward is another");
  f = described("rgb_to_gray");
  expect(!f.backward && f.option[0].kind == ROOFTILE_CHOICE && strcmp(f.option[0].words, "bt601 luminosity") == 0,
         "rgb_to_gray is another");
  expect(strcmp(f.operand[0].letters, "3") == 0, "rgb's shape");
  f = described("axpby");
  expect(f.operand[1].role == ROOFTILE_IN_OUT && f.option[0].kind == ROOFTILE_ANY_REAL, "axpby is another");
  f = described("dot");
  expect(f.operand[2].one && !*f.operand[2].letters, "dot's result is one element");
  expect(!rooftile_function_at(-1, &f) && !rooftile_function_at(1 << 20, &f), "a function beyond the last");
}

static void expect_queues(void) {
  rooftile_queue_options options = ROOFTILE_QUEUE_DEFAULTS;
  rooftile_queue_facts facts;
  rooftile_queue* queue = NULL;
  options.threads = 2;
  options.isa = "avx3";
  expect(strstr(rooftile_queue_new("cpu", &options, &queue).message, "avx3") != NULL && !queue, "isa avx3 is taken");
  options.isa = NULL;
  expect_message(rooftile_queue_new("cpu", &options, &queue), "");
  expect_message(rooftile_queue_about(queue, &facts), "");
  expect(strcmp(facts.device, "cpu") == 0 && facts.threads == 2 && !facts.architecture && facts.index == -1 && *facts.isa_reason,
         "the queue runs on something else");
  rooftile_queue_free(queue);
  expect_message(rooftile_queue_about(NULL, &facts), "rooftile_queue_about: the queue is NULL");
  expect_message(rooftile_queue_new("tpu", NULL, &queue),
                 "rooftile_queue: device is \"tpu\", must be cpu, cuda or emulated");
  expect(!queue, "a queue without a device");
  options.architecture = 37;
  expect(strstr(rooftile_queue_new("emulated", &options, &queue).message, "37") != NULL, "architecture 37 is taken");
  options.device = -2;
  expect(strstr(rooftile_queue_new("cuda", &options, &queue).message, "-2") != NULL, "device -2 is taken");
}

int main(void) {
  expect_descriptions();
  expect_queues();
  rooftile_queue* queue = NULL;
  expect_message(rooftile_queue_cpu(1, &queue), "");
  const int64_t rows[] = {2, 3}, row[] = {3}, outer[] = {2};
  float data[6] = {0, 1, 2, 3, 3, 3}, result[6], weight[3] = {1, 2, 3}, mean[2], rstd[2], gradient[3];
  const rooftile_view x = rooftile_dense(data, ROOFTILE_F32, 2, rows), y = rooftile_dense(result, ROOFTILE_F32, 2, rows);
  const rooftile_view w = rooftile_dense(weight, ROOFTILE_F32, 1, row), g = rooftile_dense(gradient, ROOFTILE_F32, 1, row);
  const rooftile_view m = rooftile_dense(mean, ROOFTILE_F32, 1, outer), r = rooftile_dense(rstd, ROOFTILE_F32, 1, outer);

  expect_message(rooftile_softmax(queue, &x, &y, 1.0, 0, 0, 0), "");
  expect(fabsf(result[5] - 1.f / 3) < 1e-6f && fabsf(result[2] - 0.66524096f) < 1e-6f, "softmax is wrong");
  expect_message(rooftile_softmax(queue, &x, &y, 1.0, 2, 0, 0), "softmax: log is 2, must be 0 or 1");
  expect_message(rooftile_softmax(queue, &x, NULL, 1.0, 0, 0, 0), "softmax: y is absent");

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
  const double options[] = {1, 0, 0, 0};
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
