"""What the versions of the kernels share (rooftile/ops/*/versions.py): the libraries, each where it is installed, how a
version says what it takes, and how CuTe's are called.

A version is a function FUNCTION_LANGUAGE, softmax_plain; a word behind it tells several apart, add_plain_blocks. It takes
the inputs and options of the library's function by their names, and returns new outputs in the order of the library's.
What it does not name, it does not take, and `rooftile check softmax --versions` says how many cases it accepted. One
marked @trap is wrong, as published code is: the check must reject it.

On a CPU, Triton interprets its kernels under TRITON_INTERPRET=1, and Numba simulates a GPU under NUMBA_ENABLE_CUDASIM=1;
both are read when this file is imported.
"""

import importlib
import os
from dataclasses import dataclass

REALS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i8", "u8")


@dataclass(frozen=True)
class Language:
    """What all versions in a language take, unless one says otherwise by @takes."""

    name: str
    modules: tuple  # what must be installed, besides Python
    dtypes: tuple
    not_on_cpu: tuple  # of these; all of them: the language runs on a GPU alone
    strided: bool  # views whose elements are not next to each other
    flat: bool  # outer dimensions come as one: rows of C elements, whatever the tensor's rank
    # In a check on the CPU what is slow gets small cases alone, and not all of these:
    largest: int  # elements of a case
    most: int = 0  # cases of a dtype, taken evenly from the small ones; 0: all

    def runs_on(self, device):
        return device == "cuda" or not set(self.dtypes) <= set(self.not_on_cpu)


ALL = (*REALS, *INTEGERS)
LANGUAGES = {
    "plain": Language("plain Python", (), (*ALL, "u4"), (), False, True, 20000),
    "numpy": Language("NumPy", ("numpy",), ("f64", "f32", "f16", *INTEGERS), (), True, False, 400000),
    "torch": Language("PyTorch", ("torch",), ALL, (), True, False, 400000),
    # The interpreter adds the bits of two bf16, and cuts where a GPU rounds: bf16 on a GPU alone.
    "triton": Language("Triton", ("triton", "torch"), ALL, ("bf16",), False, True, 20000, 64),
    # The simulator runs each thread of a kernel as a thread of Python, 1 ms each.
    "numba": Language("Numba CUDA", ("numba", "numpy"), ("f64", "f32", *INTEGERS), (), False, True, 400, 24),
    "cutile": Language("cuTile", ("cuda.tile", "torch"), ALL, ALL, False, True, 0),
    "cute": Language("CuTe DSL", ("cutlass", "torch"), ALL, ALL, False, True, 0),
}


class Missing:
    """Stands for a library that is not installed: its decorators leave a function as it is, which nobody then calls."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, name):
        return self

    def __call__(self, *arguments, **named):
        return arguments[0] if arguments and callable(arguments[0]) else self

    def __bool__(self):
        return False


def library(name):
    """A library where it is installed and needed. A process for one language alone (ROOFTILE_LANGUAGE=numpy/cpu) needs that
    language's: what a version uses is then known, and plain Python starts within 50 ms."""
    language, _, device = os.environ.get("ROOFTILE_LANGUAGE", "").partition("/")
    if language:
        own = LANGUAGES[language]
        if not own.runs_on(device) or not any(f"{name}.".startswith(f"{module}.") for module in own.modules):
            return Missing()
    try:
        return importlib.import_module(name)
    except ImportError:
        return Missing()


np = library("numpy")
torch = library("torch")
triton = library("triton")
tl = library("triton.language")
cuda = library("numba.cuda")
ct = library("cuda.tile")
cutlass = library("cutlass")
cute = library("cutlass.cute")
library("cutlass.torch")  # its current_stream


def takes(**what):
    """@takes(dtypes=("f32",), strided=False, longest=1024, only={"tanh": 1}): what differs from the language's; `longest`: of
    a row; `only`: options that must have these values."""

    def mark(version):
        version.takes = what
        return version

    return mark


def trap(why):
    """@trap("…"): a version that is wrong on purpose, and why."""

    def mark(version):
        version.trap = why
        return version

    return mark


def tensors(*arrays):
    """Dense arrays as CuTe has them, each with its layout. Compiled is that neighbours are along the last dimension; sizes and
    other strides are not. A dimension of one element may have any stride, and gets a dense array's."""
    dense = [array.as_strided(array.shape, torch.empty(array.shape, device="meta").stride()) for array in arrays]
    return [cute.runtime.from_dlpack(array).mark_layout_dynamic(leading_dim=array.dim() - 1) for array in dense]


compiled = {}


def call_compiled(function, key, *arguments):
    """Compiles a function once for each key, then calls what came out. Its Constexpr arguments, which are bools, are part of
    the key: they are compiled in, and the call takes none."""
    if (function, key) not in compiled:
        compiled[function, key] = cute.compile(function, *arguments)
    compiled[function, key](*(x for x in arguments if not isinstance(x, bool)))
