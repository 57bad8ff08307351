"""What a user would pick instead of attention; bench/baselines/op_baselines.py says what the tables are."""

import torch

sdpa = torch.nn.functional.scaled_dot_product_attention
aten = torch.ops.aten


def plain(case):
    """PyTorch's knows no window and no cap, and its diagonal begins in the upper left corner."""
    q, k = case.get("q"), case.get("k")
    return (
        case.parameter("window_left", -1) < 0
        and case.parameter("window_right", -1) < 0
        and case.parameter("softcap", 0) == 0
        and case.get("bias") is None
        and (case.parameter("causal", 0) == 0 or q.shape[1] == k.shape[1])
    )


def attention_of(q, k, v, causal, scale):
    y = sdpa(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=causal, scale=scale, enable_gqa=q.shape[2] != k.shape[2])
    return y.transpose(1, 2)


def options(case):
    return bool(case.parameter("causal", 0)), case.parameter("scale", 0) or None


def forward(case):
    if not plain(case):
        return None
    return attention_of, [*case.many("q", "k", "v"), *options(case)], ["y"]


def backward(case):
    """The operators that sdpa's gradient calls, of y and lse as they are; on a GPU cuDNN's and flash attention's."""
    q, k, v, y, dy = (x.transpose(1, 2) for x in case.many("q", "k", "v", "y", "dy"))
    if not plain(case) or q.shape != k.shape or q.shape != v.shape:
        return []
    causal, scale = options(case)
    lse, s, t = case.get("lse"), q.shape[2], k.shape[2]

    def of(gradient, *arguments):
        def run():
            dq, dk, dv = (x.transpose(1, 2) for x in gradient(dy, q, k, v, y, *arguments, scale=scale)[:3])
            return case.ordered(dq=dq, dk=dk, dv=dv)

        return run

    if q.device.type == "cpu":
        return [of(aten._scaled_dot_product_flash_attention_for_cpu_backward, lse, 0.0, causal)]
    if q.dtype == torch.float32:
        return []
    state = torch.zeros((), dtype=torch.int64, device=q.device)  # of a dropout that is not there
    return [
        of(aten._scaled_dot_product_flash_attention_backward, lse, None, None, s, t, 0.0, causal, state, state),
        of(aten._scaled_dot_product_cudnn_attention_backward, lse[..., None], state, state, None, None, None, s, t, 0.0, causal),
    ]


PYTORCH = {"attention": forward}
OUT = {"attention_backward": backward}
