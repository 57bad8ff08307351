"""A PyTorch operator made by hand from one function of rooftile/c.h, with its gradient and a module; lesson 16 tells of it,
python/tests/test_binding.py judges it.

The library is build/release/lib/librooftile.so, or the file that ROOFTILE_LIBRARY names.
"""

import ctypes
import functools
import os
import pathlib
import sys

import torch


# [structs]
class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_uint8), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8)]


class Status(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 1000)]


class Workspace(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
# [/structs]


def load():
    file = os.environ.get("ROOFTILE_LIBRARY")
    file = pathlib.Path(file) if file else pathlib.Path(__file__).parents[1] / "build/release/lib/librooftile.so"
    if not file.exists():
        sys.exit(f"torch_binding: there is no library {file}; build it with make build, or name it by ROOFTILE_LIBRARY")
    return ctypes.CDLL(str(file))


# [declare]
library = load()
library.rooftile_call.restype = Status
library.rooftile_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.POINTER(View)),
                                  ctypes.POINTER(ctypes.c_double), ctypes.c_char_p, Workspace]
# [/declare]
for name, first in (("cpu", [ctypes.c_int]), ("cuda", [ctypes.c_int, ctypes.c_void_p])):
    make = library[f"rooftile_queue_{name}"]
    make.restype, make.argtypes = Status, [*first, ctypes.POINTER(ctypes.c_void_p)]
    setattr(library, f"rooftile_queue_{name}", make)


# [raise]
def raise_if_refused(status):
    if status.message:
        raise ValueError(status.message.decode())
# [/raise]


# [queue]
@functools.lru_cache(maxsize=None)  # a queue lives as long as the process
def queue(device, *where):
    made = ctypes.c_void_p()
    raise_if_refused(getattr(library, f"rooftile_queue_{device}")(*where, ctypes.byref(made)))
    return made


def queue_of(tensor):
    if tensor.device.type == "cpu":
        return queue("cpu", 0)  # 0: all threads
    return queue("cuda", tensor.device.index, torch.cuda.current_stream(tensor.device).cuda_stream)
# [/queue]


DTYPES = {torch.float32: 1, torch.float16: 3, torch.bfloat16: 4}  # ROOFTILE_F32, …: what swiglu takes


# [call]
def view(tensor):
    shape, stride = (ctypes.c_int64 * 8)(*tensor.shape), (ctypes.c_int64 * 8)(*tensor.stride())
    return View(tensor.data_ptr(), DTYPES[tensor.dtype], tensor.dim(), shape, stride)


def call(function, tensors, beta):
    views = [view(tensor) for tensor in tensors]
    pointers = (ctypes.POINTER(View) * len(views))(*map(ctypes.pointer, views))
    options, none = (ctypes.c_double * 1)(beta), Workspace(None, 0)
    raise_if_refused(library.rooftile_call(queue_of(tensors[0]), function, pointers, options, None, none))
# [/call]


# [check]
def check(gate, *others):
    """What C could not survive, or could not say as well."""
    if gate.dtype not in DTYPES:
        raise TypeError(f"swiglu: gate has dtype {gate.dtype}, must be one of: {', '.join(map(str, DTYPES))}")
    for tensor in others:
        if (tensor.device, tensor.dtype, tensor.shape) != (gate.device, gate.dtype, gate.shape):
            raise ValueError(f"swiglu: all operands must be as gate, {tuple(gate.shape)} {gate.dtype} on {gate.device}; "
                             f"one is {tuple(tensor.shape)} {tensor.dtype} on {tensor.device}")
    if gate.dim() > 8:
        raise ValueError(f"swiglu: gate has {gate.dim()} dimensions, must have at most 8")
# [/check]


# [operator]
@torch.library.custom_op("by_hand::swiglu", mutates_args=(), device_types=("cpu", "cuda"))
def swiglu(gate: torch.Tensor, up: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    check(gate, up)
    y = gate.new_empty(gate.shape)
    call(b"swiglu", (gate, up, y), beta)
    return y


@swiglu.register_fake
def _(gate, up, beta=1.0):
    check(gate, up)
    return gate.new_empty(gate.shape)
# [/operator]


# [backward]
@torch.library.custom_op("by_hand::swiglu_backward", mutates_args=(), device_types=("cpu", "cuda"))
def swiglu_backward(gate: torch.Tensor, up: torch.Tensor, dy: torch.Tensor,
                    beta: float) -> tuple[torch.Tensor, torch.Tensor]:
    check(gate, up, dy)
    dgate, dup = gate.new_empty(gate.shape), gate.new_empty(gate.shape)
    call(b"swiglu_backward", (gate, up, dy, dgate, dup), beta)
    return dgate, dup


@swiglu_backward.register_fake
def _(gate, up, dy, beta):
    check(gate, up, dy)
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)
# [/backward]


# [autograd]
def remember(ctx, inputs, output):
    gate, up, ctx.beta = inputs
    ctx.save_for_backward(gate, up)


def gradient(ctx, dy):
    gate, up = ctx.saved_tensors
    return *swiglu_backward(gate, up, dy, ctx.beta), None  # one for each input; beta has none


swiglu.register_autograd(gradient, setup_context=remember)
# [/autograd]


# [module]
class FeedForward(torch.nn.Module):
    """The feed-forward block of Llama: down(silu(gate(x)) · up(x))."""

    def __init__(self, size, hidden, beta=1.0):
        super().__init__()
        self.gate_proj = torch.nn.Linear(size, hidden, bias=False)
        self.up_proj = torch.nn.Linear(size, hidden, bias=False)
        self.down_proj = torch.nn.Linear(hidden, size, bias=False)
        self.beta = beta

    def forward(self, x):
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x), self.beta))

    def extra_repr(self):
        return f"beta={self.beta}"
# [/module]


# [judge]
def judge(shape=(5, 33), beta=1.5):
    """PyTorch's own checks of an operator, then its gradients against those of the formula in f64."""
    gate, up, dy = (torch.randn(shape, requires_grad=True) for _ in range(3))
    print(torch.library.opcheck(swiglu, (gate, up, beta)))
    ours = torch.autograd.grad(swiglu(gate, up, beta), (gate, up), dy)
    exact_gate, exact_up = gate.double(), up.double()
    exact = exact_gate * torch.sigmoid(beta * exact_gate) * exact_up
    theirs = torch.autograd.grad(exact, (exact_gate, exact_up), dy.double())
    torch.testing.assert_close(ours, theirs, check_dtype=False)
# [/judge]


if __name__ == "__main__":
    torch.manual_seed(0)
    judge()
    x, model = torch.randn(2, 64), FeedForward(64, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
