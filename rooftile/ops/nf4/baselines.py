"""What a user would pick instead of NF4; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

LEVELS = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
          -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
          0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)

bitsandbytes = gpu_library("bitsandbytes")
LIBRARIES = {}
if bitsandbytes:
    functional = bitsandbytes.functional

    def quantize(case):
        x = case.get("x")

        def run():
            packed, state = functional.quantize_4bit(x, blocksize=int(case.parameter("block", 64)), quant_type="nf4")
            return case.ordered(packed=packed.reshape(-1), absmax=state.absmax)

        return [run]

    def dequantize(case):
        packed, absmax, y = case.many("packed", "absmax", "y")
        if case.parameter("first", 0):
            return []
        block = int(case.parameter("block", 64))
        return [lambda: (functional.dequantize_4bit(packed.reshape(-1, 1), absmax=absmax, out=y, blocksize=block,
                                                    quant_type="nf4"),)]

    def gemm(case):
        """gemv_4bit for one row, else dequantize_4bit and PyTorch's product, as its Linear4bit has it."""
        x, packed, absmax, bias, y = case.many("x", "packed", "absmax", "bias", "y")
        block, n, k = int(case.parameter("block", 64)), y.shape[-1], x.shape[-1]
        state = functional.QuantState(absmax, shape=torch.Size((n, k)), code=functional.get_4bit_type("nf4", device=x.device),
                                      blocksize=block, quant_type="nf4", dtype=x.dtype)
        packed = packed.reshape(-1, 1)
        return [lambda: (bitsandbytes.matmul_4bit(x, packed.t(), quant_state=state, bias=bias),)]

    LIBRARIES = {"gemm_nf4": gemm, "quantize_nf4": quantize, "dequantize_nf4": dequantize}


def dense(case):
    """PyTorch's product with the weight dequantised beforehand: in bf16 3.6 times the bytes."""
    x, packed, absmax, bias, y = case.many("x", "packed", "absmax", "bias", "y")
    codes = torch.stack([packed >> 4, packed & 15], 1).reshape(-1)[:y.shape[-1] * x.shape[-1]].long()
    scales = absmax.repeat_interleave(int(case.parameter("block", 64)))[:codes.numel()]
    w = (torch.tensor(LEVELS, device=x.device)[codes] * scales).reshape(y.shape[-1], x.shape[-1]).to(x.dtype)
    return torch.nn.functional.linear, [x, w, bias]


PYTORCH = {"gemm_nf4": dense}
OUT = LIBRARIES
