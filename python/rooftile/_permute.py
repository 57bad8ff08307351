"""permute(x, dims) for NumPy, PyTorch, JAX and others: the library's function on a permuted view."""

import operator

from rooftile import _frameworks

USAGE = "permute(x, dims=None, *, out=None, queue=None, device=None, variant=None)"


def order(dims, rank):
    """dims as numbers from 0, each once."""
    try:
        named = [operator.index(d) for d in dims]
    except TypeError:
        raise TypeError(f"permute: dims is {dims!r}, must be the dimensions of x in the result's order, as (0, 2, 1)") from None
    if len(named) != rank:
        raise ValueError(f"permute: dims is {tuple(named)}, {len(named)} dimension{'s' * (len(named) != 1)}; x has {rank}: name each once")
    for d in named:
        if not -rank <= d < rank:
            raise ValueError(f"permute: dims is {tuple(named)}, {d} is no dimension of x: they are from {-rank} to {rank - 1}")
    found = tuple(d % rank for d in named)
    twice = next((d for d in found if found.count(d) > 1), None)
    if twice is not None:
        raise ValueError(f"permute: dims is {tuple(named)}, which names dimension {twice} twice; name each once")
    return found


def inverse(dims):
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def documented(usage, doc):
    return usage + """

y = x with its dimensions in the order of dims, negative ones from the end: permute(x, (0, 3, 1, 2)) makes NCHW of NHWC. Without
dims x in the order that it is seen in: permute(x.transpose(0, 3, 1, 2)) is the same.

""" + (doc or "")


def described(function, module, usage):
    """The same function with dims: of x as it is, where there are none."""
    def permute(x, dims=None, **words):
        if dims is None:
            return function(x, **words)
        if not hasattr(x, "shape"):
            _frameworks.framework_of("permute", "x", type(x))  # or a TypeError
        dims = order(dims, len(x.shape))
        if hasattr(x, "permute"):
            return function(x.permute(dims), **words)
        if _frameworks.is_jax(type(x)):
            import jax

            if isinstance(x, jax.core.Tracer):
                return function(x, **words)  # which refuses tracers
            import numpy

            host = all(device.platform == "cpu" for device in x.devices())  # of bf16 NumPy's DLPack knows nothing
            view = numpy.asarray(x) if host else numpy.from_dlpack(x)
            return _frameworks.finish(x, function(view.transpose(dims), **words))
        return function(x.transpose(dims), **words)

    permute.__doc__ = documented(usage, function.__doc__)
    permute.__module__, permute.__qualname__ = module, "permute"
    return permute
