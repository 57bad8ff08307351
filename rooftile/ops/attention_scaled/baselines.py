"""What a user would pick instead of attention_scaled; bench/baselines/op_baselines.py says what the tables are."""

import torch


def dense(case):
    """PyTorch's attention to what was dequantised beforehand, which takes twice the bytes; no windows, no cap."""
    if case.get("cu_seqlens_q") is not None or case.parameter("window_left", -1) >= 0 or case.parameter("window_right", -1) >= 0:
        return None
    if case.parameter("softcap", 0) or case.parameter("causal", 0) and case.get("q").shape[1] != case.get("k").shape[1]:
        return None
    q, k, v, *scales, y = case.many("q", "k", "v", "q_scale", "k_scale", "v_scale", "y")

    def dequantized(codes, scale):
        heads = codes.float() if scale is None else codes.float() * scale.repeat_interleave(codes.shape[2] // scale.shape[1], 1)[:, None, :, None]
        return heads.to(y.dtype).transpose(1, 2)

    causal, scale = bool(case.parameter("causal", 0)), case.parameter("scale", 0) or None

    def attention(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale,
                                                                enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)

    return attention, [dequantized(x, s) for x, s in zip((q, k, v), scales)], ["y"]


PYTORCH = {"attention_scaled": dense}
