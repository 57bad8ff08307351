"""rooftile.* under torch.compile: its tracer follows no function of C, so it gets those of rooftile.torch, which call PyTorch's
operators. It is told when it is imported, which takes seconds and which most programs never do."""

import importlib.machinery
import sys

import rooftile
from rooftile import _functions

TRACER = "torch._dynamo"


class Waiting:
    """A finder of modules: whoever imports the tracer has it told at once."""

    def find_spec(self, name, path, target=None):
        if name != TRACER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                tell()

            spec.loader.exec_module = exec_module
        return spec


def traced(name):
    """What the tracer follows instead of rooftile.<name>. It may hold nothing but texts, and reach all else by imports."""

    def call(*args, **words):
        import numpy
        import torch

        from rooftile.torch._operators import functions

        its = {"axis": "dim", "keepdims": "keepdim"}
        result = functions[name](*args, **{its.get(w, w): value for w, value in words.items()})
        arrays = [a for a in (*args, *words.values()) if isinstance(a, (torch.Tensor, numpy.ndarray))]
        if any(isinstance(a, torch.Tensor) for a in arrays):
            return result
        return type(result)(*[r.numpy() for r in result]) if isinstance(result, tuple) else result.numpy()

    return call


def tell():
    from torch.compiler import substitute_in_graph

    import rooftile.torch  # noqa: F401

    for name in _functions.public:
        substitute_in_graph(getattr(rooftile, name), skip_signature_check=True)(traced(name))


def listen():
    """Tells the tracer, now or when it is imported."""
    if TRACER in sys.modules:
        tell()
    else:
        sys.meta_path.insert(0, Waiting())
