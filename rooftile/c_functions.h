#pragma once
#include "rooftile/c.h"
/* Written by `make docs` from the functions' signatures; included by rooftile/c.h. */
/* clang-format off */
static inline rooftile_status rooftile_relu(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "relu", views, options, NULL, none);
}
static inline rooftile_status rooftile_relu_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* dx) {
  const rooftile_view* const views[] = {x, dy, dx};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "relu_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_sigmoid(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "sigmoid", views, options, NULL, none);
}
static inline rooftile_status rooftile_sigmoid_backward(const rooftile_queue* queue, const rooftile_view* y, const rooftile_view* dy, const rooftile_view* dx) {
  const rooftile_view* const views[] = {y, dy, dx};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "sigmoid_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_tanh(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "tanh", views, options, NULL, none);
}
static inline rooftile_status rooftile_tanh_backward(const rooftile_queue* queue, const rooftile_view* y, const rooftile_view* dy, const rooftile_view* dx) {
  const rooftile_view* const views[] = {y, dy, dx};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "tanh_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_silu(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, double beta) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "silu", views, options, NULL, none);
}
static inline rooftile_status rooftile_silu_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* dx, double beta) {
  const rooftile_view* const views[] = {x, dy, dx};
  const double options[] = {beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "silu_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_gelu(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, int tanh) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {(double)tanh};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gelu", views, options, NULL, none);
}
static inline rooftile_status rooftile_gelu_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* dx, int tanh) {
  const rooftile_view* const views[] = {x, dy, dx};
  const double options[] = {(double)tanh};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gelu_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_adamw(const rooftile_queue* queue, int64_t tensors, const rooftile_view* parameter, const rooftile_view* gradient, const rooftile_view* m, const rooftile_view* v, const rooftile_view* max_v, const rooftile_view* master, const rooftile_view* steps, const rooftile_view* gradient_scale, const rooftile_view* found_inf, double lr, double beta1, double beta2, double eps, double weight_decay, int l2, int maximize, int64_t step) {
  const rooftile_view* const views[] = {parameter, gradient, m, v, max_v, master, steps, gradient_scale, found_inf};
  const double options[] = {lr, beta1, beta2, eps, weight_decay, (double)l2, (double)maximize, (double)step};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "adamw", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_adamw_8bit(const rooftile_queue* queue, int64_t tensors, const rooftile_view* parameter, const rooftile_view* gradient, const rooftile_view* m, const rooftile_view* v, const rooftile_view* master, const rooftile_view* m_absmax, const rooftile_view* v_absmax, const rooftile_view* steps, const rooftile_view* gradient_scale, const rooftile_view* found_inf, double lr, double beta1, double beta2, double eps, double weight_decay, int maximize, int64_t step) {
  const rooftile_view* const views[] = {parameter, gradient, m, v, master, m_absmax, v_absmax, steps, gradient_scale, found_inf};
  const double options[] = {lr, beta1, beta2, eps, weight_decay, (double)maximize, (double)step};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "adamw_8bit", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_attention(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k, const rooftile_view* v, const rooftile_view* bias, const rooftile_view* sink, const rooftile_view* cu_seqlens_q, const rooftile_view* cu_seqlens_k, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* alibi, const rooftile_view* y, const rooftile_view* lse, int causal, int64_t window_left, int64_t window_right, double scale, double softcap, double dropout) {
  const rooftile_view* const views[] = {q, k, v, bias, sink, cu_seqlens_q, cu_seqlens_k, seed, offset, alibi, y, lse};
  const double options[] = {(double)causal, (double)window_left, (double)window_right, scale, softcap, dropout};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "attention", views, options, NULL, none);
}
static inline rooftile_status rooftile_attention_backward(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k, const rooftile_view* v, const rooftile_view* bias, const rooftile_view* sink, const rooftile_view* cu_seqlens_q, const rooftile_view* cu_seqlens_k, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* alibi, const rooftile_view* y, const rooftile_view* dy, const rooftile_view* lse, const rooftile_view* dq, const rooftile_view* dk, const rooftile_view* dv, const rooftile_view* dsink, int causal, int64_t window_left, int64_t window_right, double scale, double softcap, double dropout) {
  const rooftile_view* const views[] = {q, k, v, bias, sink, cu_seqlens_q, cu_seqlens_k, seed, offset, alibi, y, dy, lse, dq, dk, dv, dsink};
  const double options[] = {(double)causal, (double)window_left, (double)window_right, scale, softcap, dropout};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "attention_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_attention_scaled(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k, const rooftile_view* v, const rooftile_view* q_scale, const rooftile_view* k_scale, const rooftile_view* v_scale, const rooftile_view* cu_seqlens_q, const rooftile_view* cu_seqlens_k, const rooftile_view* y, const rooftile_view* lse, int causal, int64_t window_left, int64_t window_right, double scale, double softcap, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {q, k, v, q_scale, k_scale, v_scale, cu_seqlens_q, cu_seqlens_k, y, lse};
  const double options[] = {(double)causal, (double)window_left, (double)window_right, scale, softcap};
  return rooftile_call(queue, "attention_scaled", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_attention_scaled_workspace(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k, const rooftile_view* v, const rooftile_view* q_scale, const rooftile_view* k_scale, const rooftile_view* v_scale, const rooftile_view* cu_seqlens_q, const rooftile_view* cu_seqlens_k, const rooftile_view* y, const rooftile_view* lse, int causal, int64_t window_left, int64_t window_right, double scale, double softcap, size_t* bytes) {
  const rooftile_view* const views[] = {q, k, v, q_scale, k_scale, v_scale, cu_seqlens_q, cu_seqlens_k, y, lse};
  const double options[] = {(double)causal, (double)window_left, (double)window_right, scale, softcap};
  return rooftile_workspace_of(queue, "attention_scaled", views, options, bytes);
}
static inline rooftile_status rooftile_batch_norm(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* running_mean, const rooftile_view* running_var, const rooftile_view* y, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* new_running_mean, const rooftile_view* new_running_var, double eps, double momentum, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, weight, bias, running_mean, running_var, y, mean, rstd, new_running_mean, new_running_var};
  const double options[] = {eps, momentum};
  return rooftile_call(queue, "batch_norm", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_batch_norm_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* running_mean, const rooftile_view* running_var, const rooftile_view* y, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* new_running_mean, const rooftile_view* new_running_var, double eps, double momentum, size_t* bytes) {
  const rooftile_view* const views[] = {x, weight, bias, running_mean, running_var, y, mean, rstd, new_running_mean, new_running_var};
  const double options[] = {eps, momentum};
  return rooftile_workspace_of(queue, "batch_norm", views, options, bytes);
}
static inline rooftile_status rooftile_batch_norm_inference(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* running_mean, const rooftile_view* running_var, const rooftile_view* y, double eps, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, weight, bias, running_mean, running_var, y};
  const double options[] = {eps};
  return rooftile_call(queue, "batch_norm_inference", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_batch_norm_inference_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* running_mean, const rooftile_view* running_var, const rooftile_view* y, double eps, size_t* bytes) {
  const rooftile_view* const views[] = {x, weight, bias, running_mean, running_var, y};
  const double options[] = {eps};
  return rooftile_workspace_of(queue, "batch_norm_inference", views, options, bytes);
}
static inline rooftile_status rooftile_batch_norm_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {0};
  return rooftile_call(queue, "batch_norm_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_batch_norm_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, size_t* bytes) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {0};
  return rooftile_workspace_of(queue, "batch_norm_backward", views, options, bytes);
}
static inline rooftile_status rooftile_copy(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "copy", views, options, NULL, none);
}
static inline rooftile_status rooftile_swap(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "swap", views, options, NULL, none);
}
static inline rooftile_status rooftile_scal(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, double alpha) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {alpha};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "scal", views, options, NULL, none);
}
static inline rooftile_status rooftile_add(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* z) {
  const rooftile_view* const views[] = {x, y, z};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "add", views, options, NULL, none);
}
static inline rooftile_status rooftile_axpby(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, double alpha, double beta) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {alpha, beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "axpby", views, options, NULL, none);
}
static inline rooftile_status rooftile_dot(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* result) {
  const rooftile_view* const views[] = {x, y, result};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dot", views, options, NULL, none);
}
static inline rooftile_status rooftile_nrm2(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* result) {
  const rooftile_view* const views[] = {x, result};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "nrm2", views, options, NULL, none);
}
static inline rooftile_status rooftile_asum(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* result) {
  const rooftile_view* const views[] = {x, result};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "asum", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemv(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* x, const rooftile_view* c, const rooftile_view* y, double alpha, double beta) {
  const rooftile_view* const views[] = {a, x, c, y};
  const double options[] = {alpha, beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gemv", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemv_backward(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* da, const rooftile_view* dx, const rooftile_view* dc, double alpha, double beta) {
  const rooftile_view* const views[] = {a, x, dy, da, dx, dc};
  const double options[] = {alpha, beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gemv_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_geru(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* c, const rooftile_view* a, double alpha) {
  const rooftile_view* const views[] = {x, y, c, a};
  const double options[] = {alpha};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "geru", views, options, NULL, none);
}
static inline rooftile_status rooftile_geru_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* da, const rooftile_view* dx, const rooftile_view* dy, const rooftile_view* dc, double alpha) {
  const rooftile_view* const views[] = {x, y, da, dx, dy, dc};
  const double options[] = {alpha};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "geru_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_box_blur(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, int64_t radius, int border) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {(double)radius, (double)border};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "box_blur", views, options, NULL, none);
}
static inline rooftile_status rooftile_gaussian_blur(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, double sigma, int border) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {sigma, (double)border};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gaussian_blur", views, options, NULL, none);
}
static inline rooftile_status rooftile_conv2d(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* w, const rooftile_view* bias, const rooftile_view* y, int64_t stride_h, int64_t stride_w, int64_t padding_h, int64_t padding_w, int64_t dilation_h, int64_t dilation_w, int64_t groups, int activation, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, w, bias, y};
  const double options[] = {(double)stride_h, (double)stride_w, (double)padding_h, (double)padding_w, (double)dilation_h, (double)dilation_w, (double)groups, (double)activation};
  return rooftile_call(queue, "conv2d", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_conv2d_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* w, const rooftile_view* bias, const rooftile_view* y, int64_t stride_h, int64_t stride_w, int64_t padding_h, int64_t padding_w, int64_t dilation_h, int64_t dilation_w, int64_t groups, int activation, size_t* bytes) {
  const rooftile_view* const views[] = {x, w, bias, y};
  const double options[] = {(double)stride_h, (double)stride_w, (double)padding_h, (double)padding_w, (double)dilation_h, (double)dilation_w, (double)groups, (double)activation};
  return rooftile_workspace_of(queue, "conv2d", views, options, bytes);
}
static inline rooftile_status rooftile_conv2d_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* w, const rooftile_view* dy, const rooftile_view* dx, const rooftile_view* dw, const rooftile_view* dbias, int64_t stride_h, int64_t stride_w, int64_t padding_h, int64_t padding_w, int64_t dilation_h, int64_t dilation_w, int64_t groups, int activation, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, w, dy, dx, dw, dbias};
  const double options[] = {(double)stride_h, (double)stride_w, (double)padding_h, (double)padding_w, (double)dilation_h, (double)dilation_w, (double)groups, (double)activation};
  return rooftile_call(queue, "conv2d_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_conv2d_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* w, const rooftile_view* dy, const rooftile_view* dx, const rooftile_view* dw, const rooftile_view* dbias, int64_t stride_h, int64_t stride_w, int64_t padding_h, int64_t padding_w, int64_t dilation_h, int64_t dilation_w, int64_t groups, int activation, size_t* bytes) {
  const rooftile_view* const views[] = {x, w, dy, dx, dw, dbias};
  const double options[] = {(double)stride_h, (double)stride_w, (double)padding_h, (double)padding_w, (double)dilation_h, (double)dilation_w, (double)groups, (double)activation};
  return rooftile_workspace_of(queue, "conv2d_backward", views, options, bytes);
}
static inline rooftile_status rooftile_cross_entropy(const rooftile_queue* queue, const rooftile_view* logits, const rooftile_view* target, const rooftile_view* weight, const rooftile_view* loss, const rooftile_view* losses, const rooftile_view* lse, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {logits, target, weight, loss, losses, lse};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss};
  return rooftile_call(queue, "cross_entropy", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_cross_entropy_workspace(const rooftile_queue* queue, const rooftile_view* logits, const rooftile_view* target, const rooftile_view* weight, const rooftile_view* loss, const rooftile_view* losses, const rooftile_view* lse, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, size_t* bytes) {
  const rooftile_view* const views[] = {logits, target, weight, loss, losses, lse};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss};
  return rooftile_workspace_of(queue, "cross_entropy", views, options, bytes);
}
static inline rooftile_status rooftile_cross_entropy_backward(const rooftile_queue* queue, const rooftile_view* logits, const rooftile_view* target, const rooftile_view* weight, const rooftile_view* lse, const rooftile_view* dlosses, const rooftile_view* dloss, const rooftile_view* dlogits, int reduction, int64_t ignore_index, double label_smoothing, double z_loss) {
  const rooftile_view* const views[] = {logits, target, weight, lse, dlosses, dloss, dlogits};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "cross_entropy_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_cumsum(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, int exclusive, int reverse) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {(double)exclusive, (double)reverse};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "cumsum", views, options, NULL, none);
}
static inline rooftile_status rooftile_cumsum_backward(const rooftile_queue* queue, const rooftile_view* dy, const rooftile_view* dx, int exclusive, int reverse) {
  const rooftile_view* const views[] = {dy, dx};
  const double options[] = {(double)exclusive, (double)reverse};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "cumsum_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_dropout(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* residual, const rooftile_view* y, double p) {
  const rooftile_view* const views[] = {x, seed, offset, residual, y};
  const double options[] = {p};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dropout", views, options, NULL, none);
}
static inline rooftile_status rooftile_dropout_backward(const rooftile_queue* queue, const rooftile_view* dy, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* dx, const rooftile_view* dresidual, double p) {
  const rooftile_view* const views[] = {dy, seed, offset, dx, dresidual};
  const double options[] = {p};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dropout_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_dyt(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* alpha, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, alpha, weight, bias, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dyt", views, options, NULL, none);
}
static inline rooftile_status rooftile_dyt_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* alpha, const rooftile_view* weight, const rooftile_view* dx, const rooftile_view* dalpha, const rooftile_view* dweight, const rooftile_view* dbias, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, dy, alpha, weight, dx, dalpha, dweight, dbias};
  const double options[] = {0};
  return rooftile_call(queue, "dyt_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_dyt_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* alpha, const rooftile_view* weight, const rooftile_view* dx, const rooftile_view* dalpha, const rooftile_view* dweight, const rooftile_view* dbias, size_t* bytes) {
  const rooftile_view* const views[] = {x, dy, alpha, weight, dx, dalpha, dweight, dbias};
  const double options[] = {0};
  return rooftile_workspace_of(queue, "dyt_backward", views, options, bytes);
}
static inline rooftile_status rooftile_ema(const rooftile_queue* queue, int64_t tensors, const rooftile_view* average, const rooftile_view* parameter, double decay) {
  const rooftile_view* const views[] = {average, parameter};
  const double options[] = {decay};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "ema", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_embedding(const rooftile_queue* queue, const rooftile_view* tokens, const rooftile_view* table, const rooftile_view* position_table, const rooftile_view* y, int64_t padding_idx) {
  const rooftile_view* const views[] = {tokens, table, position_table, y};
  const double options[] = {(double)padding_idx};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "embedding", views, options, NULL, none);
}
static inline rooftile_status rooftile_embedding_backward(const rooftile_queue* queue, const rooftile_view* tokens, const rooftile_view* table, const rooftile_view* dy, const rooftile_view* dtable, const rooftile_view* dposition_table, int64_t padding_idx, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {tokens, table, dy, dtable, dposition_table};
  const double options[] = {(double)padding_idx};
  return rooftile_call(queue, "embedding_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_embedding_backward_workspace(const rooftile_queue* queue, const rooftile_view* tokens, const rooftile_view* table, const rooftile_view* dy, const rooftile_view* dtable, const rooftile_view* dposition_table, int64_t padding_idx, size_t* bytes) {
  const rooftile_view* const views[] = {tokens, table, dy, dtable, dposition_table};
  const double options[] = {(double)padding_idx};
  return rooftile_workspace_of(queue, "embedding_backward", views, options, bytes);
}
static inline rooftile_status rooftile_geglu(const rooftile_queue* queue, const rooftile_view* gate, const rooftile_view* up, const rooftile_view* y, int tanh) {
  const rooftile_view* const views[] = {gate, up, y};
  const double options[] = {(double)tanh};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "geglu", views, options, NULL, none);
}
static inline rooftile_status rooftile_geglu_backward(const rooftile_queue* queue, const rooftile_view* gate, const rooftile_view* up, const rooftile_view* dy, const rooftile_view* dgate, const rooftile_view* dup, int tanh) {
  const rooftile_view* const views[] = {gate, up, dy, dgate, dup};
  const double options[] = {(double)tanh};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "geglu_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_swiglu(const rooftile_queue* queue, const rooftile_view* gate, const rooftile_view* up, const rooftile_view* y, double beta) {
  const rooftile_view* const views[] = {gate, up, y};
  const double options[] = {beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "swiglu", views, options, NULL, none);
}
static inline rooftile_status rooftile_swiglu_backward(const rooftile_queue* queue, const rooftile_view* gate, const rooftile_view* up, const rooftile_view* dy, const rooftile_view* dgate, const rooftile_view* dup, double beta) {
  const rooftile_view* const views[] = {gate, up, dy, dgate, dup};
  const double options[] = {beta};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "swiglu_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* b, const rooftile_view* c, const rooftile_view* bias, const rooftile_view* y, double alpha, double beta, int activation, int gate) {
  const rooftile_view* const views[] = {a, b, c, bias, y};
  const double options[] = {alpha, beta, (double)activation, (double)gate};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gemm", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm_pack(const rooftile_queue* queue, const rooftile_view* b, const rooftile_view* packed) {
  const rooftile_view* const views[] = {b, packed};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gemm_pack", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm_packed(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* packed, const rooftile_view* c, const rooftile_view* bias, const rooftile_view* y, double alpha, double beta, int activation, int gate) {
  const rooftile_view* const views[] = {a, packed, c, bias, y};
  const double options[] = {alpha, beta, (double)activation, (double)gate};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "gemm_packed", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm_scaled(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* b, const rooftile_view* scale_a, const rooftile_view* scale_b, const rooftile_view* bias, const rooftile_view* y, int64_t block, int64_t block_n, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {a, b, scale_a, scale_b, bias, y};
  const double options[] = {(double)block, (double)block_n};
  return rooftile_call(queue, "gemm_scaled", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_gemm_scaled_workspace(const rooftile_queue* queue, const rooftile_view* a, const rooftile_view* b, const rooftile_view* scale_a, const rooftile_view* scale_b, const rooftile_view* bias, const rooftile_view* y, int64_t block, int64_t block_n, size_t* bytes) {
  const rooftile_view* const views[] = {a, b, scale_a, scale_b, bias, y};
  const double options[] = {(double)block, (double)block_n};
  return rooftile_workspace_of(queue, "gemm_scaled", views, options, bytes);
}
static inline rooftile_status rooftile_grad_norm(const rooftile_queue* queue, int64_t tensors, const rooftile_view* gradient, const rooftile_view* gradient_scale, const rooftile_view* norm, const rooftile_view* coefficient, const rooftile_view* found_inf, double max_norm) {
  const rooftile_view* const views[] = {gradient, gradient_scale, norm, coefficient, found_inf};
  const double options[] = {max_norm};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "grad_norm", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_clip_by_norm(const rooftile_queue* queue, int64_t tensors, const rooftile_view* gradient, const rooftile_view* norm, const rooftile_view* gradient_scale, double max_norm) {
  const rooftile_view* const views[] = {gradient, norm, gradient_scale};
  const double options[] = {max_norm};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "clip_by_norm", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_group_norm(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* y, const rooftile_view* mean, const rooftile_view* rstd, int64_t groups, double eps, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, weight, bias, y, mean, rstd};
  const double options[] = {(double)groups, eps};
  return rooftile_call(queue, "group_norm", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_group_norm_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* y, const rooftile_view* mean, const rooftile_view* rstd, int64_t groups, double eps, size_t* bytes) {
  const rooftile_view* const views[] = {x, weight, bias, y, mean, rstd};
  const double options[] = {(double)groups, eps};
  return rooftile_workspace_of(queue, "group_norm", views, options, bytes);
}
static inline rooftile_status rooftile_group_norm_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, int64_t groups, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {(double)groups};
  return rooftile_call(queue, "group_norm_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_group_norm_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, int64_t groups, size_t* bytes) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {(double)groups};
  return rooftile_workspace_of(queue, "group_norm_backward", views, options, bytes);
}
static inline rooftile_status rooftile_rgb_to_gray(const rooftile_queue* queue, const rooftile_view* rgb, const rooftile_view* gray, int weights) {
  const rooftile_view* const views[] = {rgb, gray};
  const double options[] = {(double)weights};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "rgb_to_gray", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_int4(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* scales, const rooftile_view* zeros, int64_t group) {
  const rooftile_view* const views[] = {x, packed, scales, zeros};
  const double options[] = {(double)group};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_int4", views, options, NULL, none);
}
static inline rooftile_status rooftile_dequantize_int4(const rooftile_queue* queue, const rooftile_view* packed, const rooftile_view* scales, const rooftile_view* zeros, const rooftile_view* y, int64_t group) {
  const rooftile_view* const views[] = {packed, scales, zeros, y};
  const double options[] = {(double)group};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dequantize_int4", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm_int4(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* scales, const rooftile_view* zeros, const rooftile_view* bias, const rooftile_view* y, int64_t group, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, packed, scales, zeros, bias, y};
  const double options[] = {(double)group};
  return rooftile_call(queue, "gemm_int4", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_gemm_int4_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* scales, const rooftile_view* zeros, const rooftile_view* bias, const rooftile_view* y, int64_t group, size_t* bytes) {
  const rooftile_view* const views[] = {x, packed, scales, zeros, bias, y};
  const double options[] = {(double)group};
  return rooftile_workspace_of(queue, "gemm_int4", views, options, bytes);
}
static inline rooftile_status rooftile_layer_norm(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* residual, const rooftile_view* weight, const rooftile_view* bias, const rooftile_view* y, const rooftile_view* sum, const rooftile_view* mean, const rooftile_view* rstd, double eps) {
  const rooftile_view* const views[] = {x, residual, weight, bias, y, sum, mean, rstd};
  const double options[] = {eps};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "layer_norm", views, options, NULL, none);
}
static inline rooftile_status rooftile_layer_norm_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {0};
  return rooftile_call(queue, "layer_norm_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_layer_norm_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* mean, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, const rooftile_view* dbias, size_t* bytes) {
  const rooftile_view* const views[] = {x, dy, weight, mean, rstd, dx, dweight, dbias};
  const double options[] = {0};
  return rooftile_workspace_of(queue, "layer_norm_backward", views, options, bytes);
}
static inline rooftile_status rooftile_linear_cross_entropy(const rooftile_queue* queue, const rooftile_view* hidden, const rooftile_view* weight, const rooftile_view* target, const rooftile_view* bias, const rooftile_view* class_weight, const rooftile_view* loss, const rooftile_view* losses, const rooftile_view* lse, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, int64_t chunk, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {hidden, weight, target, bias, class_weight, loss, losses, lse};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss, (double)chunk};
  return rooftile_call(queue, "linear_cross_entropy", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_linear_cross_entropy_workspace(const rooftile_queue* queue, const rooftile_view* hidden, const rooftile_view* weight, const rooftile_view* target, const rooftile_view* bias, const rooftile_view* class_weight, const rooftile_view* loss, const rooftile_view* losses, const rooftile_view* lse, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, int64_t chunk, size_t* bytes) {
  const rooftile_view* const views[] = {hidden, weight, target, bias, class_weight, loss, losses, lse};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss, (double)chunk};
  return rooftile_workspace_of(queue, "linear_cross_entropy", views, options, bytes);
}
static inline rooftile_status rooftile_linear_cross_entropy_backward(const rooftile_queue* queue, const rooftile_view* hidden, const rooftile_view* weight, const rooftile_view* target, const rooftile_view* bias, const rooftile_view* class_weight, const rooftile_view* lse, const rooftile_view* dlosses, const rooftile_view* dloss, const rooftile_view* dhidden, const rooftile_view* dweight, const rooftile_view* dbias, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, int64_t chunk, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {hidden, weight, target, bias, class_weight, lse, dlosses, dloss, dhidden, dweight, dbias};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss, (double)chunk};
  return rooftile_call(queue, "linear_cross_entropy_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_linear_cross_entropy_backward_workspace(const rooftile_queue* queue, const rooftile_view* hidden, const rooftile_view* weight, const rooftile_view* target, const rooftile_view* bias, const rooftile_view* class_weight, const rooftile_view* lse, const rooftile_view* dlosses, const rooftile_view* dloss, const rooftile_view* dhidden, const rooftile_view* dweight, const rooftile_view* dbias, int reduction, int64_t ignore_index, double label_smoothing, double z_loss, int64_t chunk, size_t* bytes) {
  const rooftile_view* const views[] = {hidden, weight, target, bias, class_weight, lse, dlosses, dloss, dhidden, dweight, dbias};
  const double options[] = {(double)reduction, (double)ignore_index, label_smoothing, z_loss, (double)chunk};
  return rooftile_workspace_of(queue, "linear_cross_entropy_backward", views, options, bytes);
}
static inline rooftile_status rooftile_unscale(const rooftile_queue* queue, int64_t tensors, const rooftile_view* gradient, const rooftile_view* scale, const rooftile_view* found_inf) {
  const rooftile_view* const views[] = {gradient, scale, found_inf};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "unscale", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_update_loss_scale(const rooftile_queue* queue, const rooftile_view* scale, const rooftile_view* growth_tracker, const rooftile_view* found_inf, double growth_factor, double backoff_factor, int64_t growth_interval) {
  const rooftile_view* const views[] = {scale, growth_tracker, found_inf};
  const double options[] = {growth_factor, backoff_factor, (double)growth_interval};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "update_loss_scale", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_nf4(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* absmax, int64_t block) {
  const rooftile_view* const views[] = {x, packed, absmax};
  const double options[] = {(double)block};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_nf4", views, options, NULL, none);
}
static inline rooftile_status rooftile_dequantize_nf4(const rooftile_queue* queue, const rooftile_view* packed, const rooftile_view* absmax, const rooftile_view* y, int64_t block, int64_t first) {
  const rooftile_view* const views[] = {packed, absmax, y};
  const double options[] = {(double)block, (double)first};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dequantize_nf4", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_scales(const rooftile_queue* queue, const rooftile_view* scales, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* absmax) {
  const rooftile_view* const views[] = {scales, offset, codes, absmax};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_scales", views, options, NULL, none);
}
static inline rooftile_status rooftile_dequantize_scales(const rooftile_queue* queue, const rooftile_view* codes, const rooftile_view* absmax, const rooftile_view* offset, const rooftile_view* scales) {
  const rooftile_view* const views[] = {codes, absmax, offset, scales};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dequantize_scales", views, options, NULL, none);
}
static inline rooftile_status rooftile_gemm_nf4(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* absmax, const rooftile_view* bias, const rooftile_view* y, int64_t block, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, packed, absmax, bias, y};
  const double options[] = {(double)block};
  return rooftile_call(queue, "gemm_nf4", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_gemm_nf4_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* packed, const rooftile_view* absmax, const rooftile_view* bias, const rooftile_view* y, int64_t block, size_t* bytes) {
  const rooftile_view* const views[] = {x, packed, absmax, bias, y};
  const double options[] = {(double)block};
  return rooftile_workspace_of(queue, "gemm_nf4", views, options, bytes);
}
static inline rooftile_status rooftile_l1_normalize(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* norm, double eps) {
  const rooftile_view* const views[] = {x, y, norm};
  const double options[] = {eps};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "l1_normalize", views, options, NULL, none);
}
static inline rooftile_status rooftile_l1_normalize_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* norm, const rooftile_view* dx, double eps) {
  const rooftile_view* const views[] = {x, dy, norm, dx};
  const double options[] = {eps};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "l1_normalize_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_l2_normalize(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* norm, double eps) {
  const rooftile_view* const views[] = {x, y, norm};
  const double options[] = {eps};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "l2_normalize", views, options, NULL, none);
}
static inline rooftile_status rooftile_l2_normalize_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* norm, const rooftile_view* dx, double eps) {
  const rooftile_view* const views[] = {x, dy, norm, dx};
  const double options[] = {eps};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "l2_normalize_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_kv_cache_append(const rooftile_queue* queue, const rooftile_view* k, const rooftile_view* v, const rooftile_view* slots, const rooftile_view* k_scale, const rooftile_view* v_scale, const rooftile_view* k_cache, const rooftile_view* v_cache) {
  const rooftile_view* const views[] = {k, v, slots, k_scale, v_scale, k_cache, v_cache};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "kv_cache_append", views, options, NULL, none);
}
static inline rooftile_status rooftile_paged_attention(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k_cache, const rooftile_view* v_cache, const rooftile_view* page_table, const rooftile_view* lengths, const rooftile_view* sink, const rooftile_view* k_scale, const rooftile_view* v_scale, const rooftile_view* y, const rooftile_view* lse, int64_t window_left, double scale, double softcap, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {q, k_cache, v_cache, page_table, lengths, sink, k_scale, v_scale, y, lse};
  const double options[] = {(double)window_left, scale, softcap};
  return rooftile_call(queue, "paged_attention", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_paged_attention_workspace(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k_cache, const rooftile_view* v_cache, const rooftile_view* page_table, const rooftile_view* lengths, const rooftile_view* sink, const rooftile_view* k_scale, const rooftile_view* v_scale, const rooftile_view* y, const rooftile_view* lse, int64_t window_left, double scale, double softcap, size_t* bytes) {
  const rooftile_view* const views[] = {q, k_cache, v_cache, page_table, lengths, sink, k_scale, v_scale, y, lse};
  const double options[] = {(double)window_left, scale, softcap};
  return rooftile_workspace_of(queue, "paged_attention", views, options, bytes);
}
static inline rooftile_status rooftile_color_pattern(const rooftile_queue* queue, const rooftile_view* y, double t) {
  const rooftile_view* const views[] = {y};
  const double options[] = {t};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "color_pattern", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_f8e4m3(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* given, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale, int64_t block) {
  const rooftile_view* const views[] = {x, given, seed, offset, codes, scale};
  const double options[] = {(double)block};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_f8e4m3", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_f8e5m2(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* given, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale, int64_t block) {
  const rooftile_view* const views[] = {x, given, seed, offset, codes, scale};
  const double options[] = {(double)block};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_f8e5m2", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_i8(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* given, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale, int64_t block) {
  const rooftile_view* const views[] = {x, given, seed, offset, codes, scale};
  const double options[] = {(double)block};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_i8", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_tensor_f8e4m3(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale) {
  const rooftile_view* const views[] = {x, seed, offset, codes, scale};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_tensor_f8e4m3", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_tensor_f8e5m2(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale) {
  const rooftile_view* const views[] = {x, seed, offset, codes, scale};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_tensor_f8e5m2", views, options, NULL, none);
}
static inline rooftile_status rooftile_quantize_tensor_i8(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* codes, const rooftile_view* scale) {
  const rooftile_view* const views[] = {x, seed, offset, codes, scale};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "quantize_tensor_i8", views, options, NULL, none);
}
static inline rooftile_status rooftile_dequantize(const rooftile_queue* queue, const rooftile_view* codes, const rooftile_view* scale, const rooftile_view* y, int64_t block) {
  const rooftile_view* const views[] = {codes, scale, y};
  const double options[] = {(double)block};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "dequantize", views, options, NULL, none);
}
static inline rooftile_status rooftile_fake_quantize(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* given, const rooftile_view* y, int64_t block, int format) {
  const rooftile_view* const views[] = {x, given, y};
  const double options[] = {(double)block, (double)format};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "fake_quantize", views, options, NULL, none);
}
static inline rooftile_status rooftile_fake_quantize_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* given, const rooftile_view* dy, const rooftile_view* dx, int64_t block, int format) {
  const rooftile_view* const views[] = {x, given, dy, dx};
  const double options[] = {(double)block, (double)format};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "fake_quantize_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_rms_norm(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* residual, const rooftile_view* weight, const rooftile_view* y, const rooftile_view* sum, const rooftile_view* rstd, double eps, int unit_offset) {
  const rooftile_view* const views[] = {x, residual, weight, y, sum, rstd};
  const double options[] = {eps, (double)unit_offset};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "rms_norm", views, options, NULL, none);
}
static inline rooftile_status rooftile_rms_norm_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, int unit_offset, rooftile_workspace workspace) {
  const rooftile_view* const views[] = {x, dy, weight, rstd, dx, dweight};
  const double options[] = {(double)unit_offset};
  return rooftile_call(queue, "rms_norm_backward", views, options, NULL, workspace);
}
static inline rooftile_status rooftile_rms_norm_backward_workspace(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* dy, const rooftile_view* weight, const rooftile_view* rstd, const rooftile_view* dx, const rooftile_view* dweight, int unit_offset, size_t* bytes) {
  const rooftile_view* const views[] = {x, dy, weight, rstd, dx, dweight};
  const double options[] = {(double)unit_offset};
  return rooftile_workspace_of(queue, "rms_norm_backward", views, options, bytes);
}
static inline rooftile_status rooftile_rope(const rooftile_queue* queue, const rooftile_view* q, const rooftile_view* k, const rooftile_view* positions, const rooftile_view* inv_freq, const rooftile_view* yq, const rooftile_view* yk, int interleaved, int64_t rotary, int64_t offset, double base, double attention_factor) {
  const rooftile_view* const views[] = {q, k, positions, inv_freq, yq, yk};
  const double options[] = {(double)interleaved, (double)rotary, (double)offset, base, attention_factor};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "rope", views, options, NULL, none);
}
static inline rooftile_status rooftile_rope_backward(const rooftile_queue* queue, const rooftile_view* dyq, const rooftile_view* dyk, const rooftile_view* positions, const rooftile_view* inv_freq, const rooftile_view* dq, const rooftile_view* dk, int interleaved, int64_t rotary, int64_t offset, double base, double attention_factor) {
  const rooftile_view* const views[] = {dyq, dyk, positions, inv_freq, dq, dk};
  const double options[] = {(double)interleaved, (double)rotary, (double)offset, base, attention_factor};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "rope_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_row_reduce(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, int kind) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {(double)kind};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "row_reduce", views, options, NULL, none);
}
static inline rooftile_status rooftile_row_reduce_backward(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, const rooftile_view* dy, const rooftile_view* dx, int kind) {
  const rooftile_view* const views[] = {x, y, dy, dx};
  const double options[] = {(double)kind};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "row_reduce_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_row_arg(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* index, int least) {
  const rooftile_view* const views[] = {x, index};
  const double options[] = {(double)least};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "row_arg", views, options, NULL, none);
}
static inline rooftile_status rooftile_top_k(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* values, const rooftile_view* indices, int64_t k) {
  const rooftile_view* const views[] = {x, values, indices};
  const double options[] = {(double)k};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "top_k", views, options, NULL, none);
}
static inline rooftile_status rooftile_sample(const rooftile_queue* queue, const rooftile_view* logits, const rooftile_view* seed, const rooftile_view* offset, const rooftile_view* seeds, const rooftile_view* offsets, const rooftile_view* token, double temperature, int64_t top_k, double top_p, double min_p) {
  const rooftile_view* const views[] = {logits, seed, offset, seeds, offsets, token};
  const double options[] = {temperature, (double)top_k, top_p, min_p};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "sample", views, options, NULL, none);
}
static inline rooftile_status rooftile_sgd(const rooftile_queue* queue, int64_t tensors, const rooftile_view* parameter, const rooftile_view* gradient, const rooftile_view* momentum_buffer, const rooftile_view* master, const rooftile_view* steps, const rooftile_view* gradient_scale, const rooftile_view* found_inf, double lr, double momentum, double dampening, double weight_decay, int nesterov, int maximize, int64_t step) {
  const rooftile_view* const views[] = {parameter, gradient, momentum_buffer, master, steps, gradient_scale, found_inf};
  const double options[] = {lr, momentum, dampening, weight_decay, (double)nesterov, (double)maximize, (double)step};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call_lists(queue, "sgd", views, tensors, options, NULL, none);
}
static inline rooftile_status rooftile_softmax(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y, double scale, int log, int causal, int masked) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {scale, (double)log, (double)causal, (double)masked};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "softmax", views, options, NULL, none);
}
static inline rooftile_status rooftile_softmax_backward(const rooftile_queue* queue, const rooftile_view* y, const rooftile_view* dy, const rooftile_view* dx, double scale, int log, int causal, int masked) {
  const rooftile_view* const views[] = {y, dy, dx};
  const double options[] = {scale, (double)log, (double)causal, (double)masked};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "softmax_backward", views, options, NULL, none);
}
static inline rooftile_status rooftile_transpose(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "transpose", views, options, NULL, none);
}
static inline rooftile_status rooftile_permute(const rooftile_queue* queue, const rooftile_view* x, const rooftile_view* y) {
  const rooftile_view* const views[] = {x, y};
  const double options[] = {0};
  const rooftile_workspace none = {NULL, 0};
  return rooftile_call(queue, "permute", views, options, NULL, none);
}
