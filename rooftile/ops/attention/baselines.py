"""What a user would pick instead of attention; bench/baselines/op_baselines.py says what the tables are."""

import torch

sdpa = torch.nn.functional.scaled_dot_product_attention


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


def forward(case):
    if not plain(case):
        return None
    arguments = [*(case.get(n) for n in ("q", "k", "v")), bool(case.parameter("causal", 0)), case.parameter("scale", 0) or None]
    return attention_of, arguments, ["y"]


PYTORCH = {"attention": forward}
