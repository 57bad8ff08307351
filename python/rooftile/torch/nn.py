"""Modules with the parameters and the state_dict of torch.nn's, that run on rooftile's kernels."""

import torch

from rooftile.torch._operators import functions


def along_last(function, x, dim, name):
    """`function` along any dimension: another one is brought to the end, as a view."""
    if dim is None:
        raise ValueError(f"rooftile.torch.nn.{name}: dim is None, must be a dimension's number")
    if dim in (-1, x.dim() - 1):
        return function(x)
    return function(x.movedim(dim, -1)).movedim(-1, dim)


class Softmax(torch.nn.Softmax):
    """torch.nn.Softmax."""

    def forward(self, x):
        return along_last(functions["softmax"], x, self.dim, "Softmax")


class LogSoftmax(torch.nn.LogSoftmax):
    """torch.nn.LogSoftmax."""

    def forward(self, x):
        return along_last(lambda rows: functions["softmax"](rows, log=True), x, self.dim, "LogSoftmax")


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm. forward(x, residual) normalises x + residual and returns the sum, too: (y, sum)."""

    def forward(self, x, residual=None):
        shape, count = x.shape, len(self.normalized_shape)
        if tuple(shape[len(shape) - count:]) != tuple(self.normalized_shape):
            raise ValueError(f"rooftile.torch.nn.LayerNorm: x is {'x'.join(map(str, shape))}, its last sizes must be "
                             f"{'x'.join(map(str, self.normalized_shape))}")
        words = {"weight": self.weight, "bias": self.bias, "eps": self.eps}
        if count > 1:  # several dimensions are one row
            x = x.flatten(-count)
            residual = None if residual is None else residual.flatten(-count)
            words.update({n: None if words[n] is None else words[n].flatten() for n in ("weight", "bias")})
        if residual is None:
            return functions["layer_norm"](x, **words).view(shape)
        y, total = functions["layer_norm"](x, residual=residual, sum=True, **words)
        return y.view(shape), total.view(shape)


class ReLU(torch.nn.ReLU):
    """torch.nn.ReLU, not in place."""

    def forward(self, x):
        return functions["relu"](x)


class Sigmoid(torch.nn.Sigmoid):
    """torch.nn.Sigmoid."""

    def forward(self, x):
        return functions["sigmoid"](x)


class Tanh(torch.nn.Tanh):
    """torch.nn.Tanh."""

    def forward(self, x):
        return functions["tanh"](x)


class SiLU(torch.nn.SiLU):
    """torch.nn.SiLU, not in place."""

    def forward(self, x):
        return functions["silu"](x)


class GELU(torch.nn.GELU):
    """torch.nn.GELU."""

    def forward(self, x):
        return functions["gelu"](x, tanh=self.approximate == "tanh")


class Gated(torch.nn.Module):
    """forward(gate, up), or forward(x) whose last dimension holds gate, then up."""

    function = None

    def forward(self, gate, up=None):
        if up is None:
            if gate.shape[-1] % 2:
                raise ValueError(f"rooftile.torch.nn.{type(self).__name__}: the last size is {gate.shape[-1]}, must be even: "
                                 "gate and up")
            gate, up = gate.chunk(2, -1)
        return functions[self.function](gate, up, **self.options())

    def options(self):
        return {}


class SwiGLU(Gated):
    """silu(gate)·up; beta: of gate·σ(beta·gate)."""

    function = "swiglu"

    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def options(self):
        return {"beta": self.beta}

    def extra_repr(self):
        return f"beta={self.beta}"


class GEGLU(Gated):
    """gelu(gate)·up; approximate: "none" or "tanh", as torch.nn.GELU has it."""

    function = "geglu"

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def options(self):
        return {"tanh": self.approximate == "tanh"}

    def extra_repr(self):
        return f"approximate={self.approximate!r}"
