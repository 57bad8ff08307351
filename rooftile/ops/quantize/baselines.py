"""What a user would pick instead of quantize; bench/baselines/op_baselines.py says what the tables are."""

import torch

TYPES = {"quantize_f8e4m3": (torch.float8_e4m3fn, 448.0), "quantize_f8e5m2": (torch.float8_e5m2, 57344.0), "quantize_i8":
         (torch.int8, 127.0)}


def quantize(function):
    dtype, largest = TYPES[function]

    def prepared(case):
        x = case.get("x")
        block = min(int(case.parameter("block", 128)), x.shape[-1])
        if case.parameter("given", 0) or x.shape[-1] % block:
            return None

        def run(x):
            parts = x.float().unflatten(-1, (-1, block))
            scale = (parts.abs().amax(-1) / largest).clamp(min=2.0**-126)
            products = (parts * (1 / scale)[..., None]).flatten(-2).clamp(-largest, largest)
            return (products if dtype.is_floating_point else products.round()).to(dtype), scale

        return run, [x]

    return prepared


PYTORCH = {name: quantize(name) for name in TYPES}
