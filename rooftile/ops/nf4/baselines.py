"""What a user would pick instead of NF4; bench/baselines/op_baselines.py says what the tables are."""

import torch  # noqa: F401
from op_baselines import gpu_library

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

    LIBRARIES = {"quantize_nf4": quantize, "dequantize_nf4": dequantize}
OUT = LIBRARIES
