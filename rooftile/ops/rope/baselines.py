"""What a user would pick instead of rope; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

liger = gpu_library("liger_kernel.ops.rope")


def angles_of(q, case):
    """transformers' tables, which a model computes once a step for all of its layers: not part of the call."""
    d = q.shape[3]
    f = 1 / case.parameter("base", 10000.0) ** (torch.arange(0, d, 2, device=q.device).float() / d)
    angles = torch.arange(q.shape[1], device=q.device).float()[:, None] * f
    both = angles.repeat_interleave(2, -1) if case.parameter("interleaved", 0) else torch.cat((angles, angles), -1)
    return both.cos().to(q.dtype), both.sin().to(q.dtype)


def plain(case):
    return case.get("positions") is None and case.get("inv_freq") is None and case.parameter("rotary", 0) == 0


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def apply(q, k, cos, sin, rotate):
    """Hugging Face's apply_rotary_pos_emb."""
    cos, sin = cos[None, :, None], sin[None, :, None]
    return q * cos + rotate(q) * sin, k * cos + rotate(k) * sin


def forward(case):
    if not plain(case):
        return None
    q, k = case.get("q"), case.get("k")
    rotate = rotate_every_two if case.parameter("interleaved", 0) else rotate_half
    return apply, [q, k, *angles_of(q, case), rotate], ["yq", "yk"]


PYTORCH = {"rope": forward}
LIGER = {}
if liger:

    def liger_forward(case):
        """Liger's writes queries and keys in their place, as {B, H, S, D}; halves alone."""
        if not plain(case) or case.parameter("interleaved", 0):
            return []
        q, k = (case.get(n).transpose(1, 2) for n in ("q", "k"))
        cos, sin = (t[None] for t in angles_of(case.get("q"), case))

        def run():
            yq, yk = liger.rope_forward(q, k, cos, sin)[:2]
            return case.ordered(yq=yq.transpose(1, 2), yk=yk.transpose(1, 2))

        return [run]

    LIGER["rope"] = liger_forward
