"""Modules with the parameters and the state_dict of torch.nn's, that run on rooftile's kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rooftile.torch._linear import ACTIVATIONS, linear
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

    def forward(self, x: Tensor) -> Tensor:
        return along_last(functions["softmax"], x, self.dim, "Softmax")


class LogSoftmax(torch.nn.LogSoftmax):
    """torch.nn.LogSoftmax."""

    def forward(self, x: Tensor) -> Tensor:
        return along_last(lambda rows: functions["softmax"](rows, log=True), x, self.dim, "LogSoftmax")


def rows_of(module, x, residual, **words):
    """Normalised dimensions as one: a call's operands, for a module with a normalized_shape. Several become one row, and
    so do their weights."""
    shape, normalized = x.shape, tuple(module.normalized_shape)
    count = len(normalized)
    if tuple(shape[len(shape) - count:]) != normalized:
        raise ValueError(f"rooftile.torch.nn.{type(module).__name__}: x is {'x'.join(map(str, shape))}, its last sizes must be "
                         f"{'x'.join(map(str, normalized))}")
    if residual is not None and residual.shape != shape:
        raise ValueError(f"rooftile.torch.nn.{type(module).__name__}: residual is {'x'.join(map(str, residual.shape))}, must be "
                         f"as x, {'x'.join(map(str, shape))}")
    if count > 1:
        x = x.flatten(-count)
        residual = None if residual is None else residual.flatten(-count)
        words = {n: None if w is None else w.flatten() for n, w in words.items()}
    return x, residual, words


def normalised(name, module, x, residual, options, **weights):
    """y; of x + residual: (y, sum)."""
    rows, other, words = rows_of(module, x, residual, **weights)
    if residual is None:
        return functions[name](rows, **words, **options).view(x.shape)
    y, total = functions[name](rows, residual=other, sum=True, **words, **options)
    return y.view(x.shape), total.view(x.shape)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm. forward(x, residual) normalises x + residual and returns the sum, too: (y, sum)."""

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Any:
        return normalised("layer_norm", self, x, residual, {"eps": self.eps}, weight=self.weight, bias=self.bias)


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm. forward(x, residual) normalises x + residual and returns the sum, too: (y, sum). unit_offset: the
    factor is weight + 1, and the weight begins as 0 (Gemma). eps None is the step of f32 at 1, in each dtype, as PyTorch's."""

    unit_offset = False

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
                 unit_offset: bool = False, device: Any = None, dtype: torch.dtype | None = None) -> None:
        self.unit_offset = unit_offset
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)

    def reset_parameters(self):
        super().reset_parameters()
        if self.unit_offset and self.elementwise_affine:
            torch.nn.init.zeros_(self.weight)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Any:
        eps = torch.finfo(torch.float32).eps if self.eps is None else self.eps
        return normalised("rms_norm", self, x, residual, {"eps": eps, "unit_offset": self.unit_offset}, weight=self.weight)

    def extra_repr(self):
        return super().extra_repr() + (", unit_offset=True" if self.unit_offset else "")


class DyT(torch.nn.Module):
    """weight·tanh(alpha·x) + bias in the place of a norm (arXiv:2503.10622). alpha has one element, and begins as init_alpha;
    weight as 1, bias as 0."""

    def __init__(self, normalized_shape: int | Sequence[int], init_alpha: float = 0.5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.init_alpha, self.elementwise_affine = init_alpha, elementwise_affine
        words = {"device": device, "dtype": dtype}
        self.alpha = torch.nn.Parameter(torch.empty(1, **words))
        for name, there in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, torch.nn.Parameter(torch.empty(self.normalized_shape, **words)) if there else None)
        self.reset_parameters()

    def reset_parameters(self):
        torch.nn.init.constant_(self.alpha, self.init_alpha)
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        rows, _, words = rows_of(self, x, None, weight=self.weight, bias=self.bias)
        return functions["dyt"](rows, self.alpha, **words).view(x.shape)

    def extra_repr(self):
        return (f"{self.normalized_shape}, init_alpha={self.init_alpha}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


def normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """torch.nn.functional.normalize: x / max(‖x‖ₚ, eps) along a dimension; p: 1 or 2."""
    if p not in (1, 2):
        raise ValueError(f"rooftile.torch.nn.normalize: p is {p}, must be 1 or 2; torch.nn.functional.normalize has the others")
    return along_last(lambda rows: functions[f"l{p:.0f}_normalize"](rows, eps=eps), x, dim, "normalize")


class Normalize(torch.nn.Module):
    """normalize() as a module."""

    def __init__(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> None:
        super().__init__()
        self.p, self.dim, self.eps = p, dim, eps

    def forward(self, x: Tensor) -> Tensor:
        return normalize(x, self.p, self.dim, self.eps)

    def extra_repr(self):
        return f"p={self.p}, dim={self.dim}, eps={self.eps}"


def channels_apart(x, name):
    """(N, C, …) as the library's three dimensions, and what brings a result back. Channels that are contiguous, as in
    channels_last, come as columns, so that the result lies in memory as x does."""
    if x.dim() < 2:
        raise ValueError(f"rooftile.torch.nn.{name}: x has {x.dim()} dimensions, must have 2 at least: N, C, …")
    if x.dim() > 2 and x.shape[1] > 1 and x.movedim(1, -1).is_contiguous() and not x.is_contiguous():
        columns = x.movedim(1, -1)
        return columns.reshape(-1, x.shape[1], 1), lambda y: y.view(columns.shape).movedim(-1, 1)
    return x.reshape(*x.shape[:2], -1) if x.numel() else x.reshape(*x.shape[:2], math.prod(x.shape[2:])), lambda y: y.view(x.shape)


def batch_norm(x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.batch_norm: in training the running statistics are written in place."""
    x3, back = channels_apart(x, "batch_norm")
    mean, var = (t if t is None else t.float() for t in (running_mean, running_var))  # f32 is as it is
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("rooftile.torch.nn.batch_norm: training is False and running_mean or running_var is None; pass both, "
                             "or training=True")
        return back(inference(x3, mean, var, weight, bias, eps))
    asked = {n: True for n, t in (("new_running_mean", running_mean), ("new_running_var", running_var)) if t is not None}
    result = functions["batch_norm"](x3, weight=weight, bias=bias, running_mean=mean, running_var=var, eps=eps, momentum=momentum,
                                     **asked)
    if not asked:
        return back(result)
    with torch.no_grad():
        for name in asked:
            (running_mean if name == "new_running_mean" else running_var).copy_(getattr(result, name))
    return back(result.y)


def inference(x, mean, var, weight, bias, eps):
    """By known statistics. With gradients the factors are PyTorch's: a pass over C numbers, then one over x."""
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        scale = (var + eps).rsqrt()
        y = (x - mean[:, None]) * (scale if weight is None else scale * weight)[:, None]
        return (y if bias is None else y + bias[:, None]).to(x.dtype)
    return functions["batch_norm_inference"](x, mean, var, weight=weight, bias=bias, eps=eps)


def batch_norm_forward(self, x: Tensor) -> Tensor:
    """forward() of the three modules: torch.nn's parameters, buffers and state_dict, on the library's kernels."""
    self._check_input_dim(x)
    share = 0.0 if self.momentum is None else self.momentum
    if self.training and self.track_running_stats and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None:  # a cumulative average
            share = 1.0 / float(self.num_batches_tracked)
    training = self.training or (self.running_mean is None and self.running_var is None)
    mean, var = (self.running_mean, self.running_var) if not self.training or self.track_running_stats else (None, None)
    return batch_norm(x, mean, var, self.weight, self.bias, training, share, self.eps)


class BatchNorm1d(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d."""

    forward = batch_norm_forward


class BatchNorm2d(torch.nn.BatchNorm2d):
    """torch.nn.BatchNorm2d."""

    forward = batch_norm_forward


class BatchNorm3d(torch.nn.BatchNorm3d):
    """torch.nn.BatchNorm3d."""

    forward = batch_norm_forward


def group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.group_norm. The result is contiguous, whatever x is."""
    if x.dim() < 2:
        raise ValueError(f"rooftile.torch.nn.group_norm: x has {x.dim()} dimensions, must have 2 at least: N, C, …")
    x3 = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    return functions["group_norm"](x3, weight=weight, bias=bias, groups=num_groups, eps=eps).view(x.shape)


class GroupNorm(torch.nn.GroupNorm):
    """torch.nn.GroupNorm."""

    def forward(self, x: Tensor) -> Tensor:
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


def instance_norm_forward(self, x: Tensor) -> Tensor:
    """forward() of the three modules: a group for each channel."""
    if self.track_running_stats:
        raise ValueError(f"rooftile.torch.nn.{type(self).__name__}: track_running_stats is True, which the library does not have; "
                         "use torch.nn's")
    self._check_input_dim(x)
    batch = x if x.dim() == self._get_no_batch_dim() + 1 else x.unsqueeze(0)
    return group_norm(batch, batch.shape[1], self.weight, self.bias, self.eps).view(x.shape)


class InstanceNorm1d(torch.nn.InstanceNorm1d):
    """torch.nn.InstanceNorm1d, without running statistics."""

    forward = instance_norm_forward


class InstanceNorm2d(torch.nn.InstanceNorm2d):
    """torch.nn.InstanceNorm2d, without running statistics."""

    forward = instance_norm_forward


class InstanceNorm3d(torch.nn.InstanceNorm3d):
    """torch.nn.InstanceNorm3d, without running statistics."""

    forward = instance_norm_forward


def dropout(x, p=0.5, training=True, residual=None):
    """torch.nn.functional.dropout; of x and a residual: residual + dropout(x). The seed comes from PyTorch's generator of x's
    device, in that device's memory: compiled and captured steps draw anew, checkpoints draw again."""
    if not training or p == 0:
        return x if residual is None else residual + x
    seed = torch.randint(-2**63, 2**63 - 1, (1,), dtype=torch.int64, device=x.device)
    return functions["dropout"](x, seed, residual=residual, p=p)


class Dropout(torch.nn.Dropout):
    """torch.nn.Dropout, not in place. forward(x, residual) is residual + dropout(x)."""

    def forward(self, x, residual=None):
        return dropout(x, self.p, self.training, residual)


class ReLU(torch.nn.ReLU):
    """torch.nn.ReLU, not in place."""

    def forward(self, x: Tensor) -> Tensor:
        return functions["relu"](x)


class Sigmoid(torch.nn.Sigmoid):
    """torch.nn.Sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        return functions["sigmoid"](x)


class Tanh(torch.nn.Tanh):
    """torch.nn.Tanh."""

    def forward(self, x: Tensor) -> Tensor:
        return functions["tanh"](x)


class SiLU(torch.nn.SiLU):
    """torch.nn.SiLU, not in place."""

    def forward(self, x: Tensor) -> Tensor:
        return functions["silu"](x)


def is_tanh(module):
    """Which GELU a module is."""
    if module.approximate not in ("none", "tanh"):
        raise ValueError(f"rooftile.torch.nn.{type(module).__name__}: approximate is {module.approximate!r}, must be one of: "
                         "none tanh")
    return module.approximate == "tanh"


class GELU(torch.nn.GELU):
    """torch.nn.GELU."""

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__(approximate)
        is_tanh(self)

    def forward(self, x: Tensor) -> Tensor:
        return functions["gelu"](x, tanh=is_tanh(self))


class Gated(torch.nn.Module):
    """forward(gate, up), or forward(x) whose last dimension holds gate, then up."""

    function = ""

    def forward(self, gate: Tensor, up: Tensor | None = None) -> Tensor:
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

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = beta

    def options(self):
        return {"beta": self.beta}

    def extra_repr(self):
        return f"beta={self.beta}"


class GEGLU(Gated):
    """gelu(gate)·up; approximate: "none" or "tanh", as torch.nn.GELU has it."""

    function = "geglu"

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        self.approximate = approximate
        is_tanh(self)

    def options(self):
        return {"tanh": is_tanh(self)}

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class GatedMLP(torch.nn.Module):
    """down_proj(f(gate_proj(x))·up_proj(x)), the feed-forward block of Llama and Gemma, with their state_dict.
    activation: "silu", "gelu" or "gelu_tanh"."""

    ACTIVATIONS = {"silu": ("swiglu", {}), "gelu": ("geglu", {}), "gelu_tanh": ("geglu", {"tanh": True})}

    def __init__(self, hidden_size: int, intermediate_size: int, activation: Literal["silu", "gelu", "gelu_tanh"] = "silu",
                 bias: bool = False, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        if activation not in self.ACTIVATIONS:
            raise ValueError(f"rooftile.torch.nn.GatedMLP: activation is {activation!r}, must be one of: "
                             f"{' '.join(self.ACTIVATIONS)}")
        self.activation = activation
        words = {"bias": bias, "device": device, "dtype": dtype}
        self.gate_proj = torch.nn.Linear(hidden_size, intermediate_size, **words)
        self.up_proj = torch.nn.Linear(hidden_size, intermediate_size, **words)
        self.down_proj = torch.nn.Linear(intermediate_size, hidden_size, **words)

    def forward(self, x: Tensor) -> Tensor:
        name, options = self.ACTIVATIONS[self.activation]
        return self.down_proj(functions[name](self.gate_proj(x), self.up_proj(x), **options))

    def extra_repr(self):
        return f"activation={self.activation!r}"


class Linear(torch.nn.Linear):
    """torch.nn.Linear. activation: a function of rooftile.torch.linear's, computed with the product."""

    activation = "none"

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, activation="none"):
        if activation not in ACTIVATIONS:
            raise ValueError(f"rooftile.torch.nn.Linear: activation is {activation!r}, must be one of: {' '.join(ACTIVATIONS)}")
        super().__init__(in_features, out_features, bias, device, dtype)
        self.activation = activation

    def forward(self, x):
        return linear(x, self.weight, self.bias, self.activation)

    def extra_repr(self):
        return super().extra_repr() + (f", activation={self.activation!r}" if self.activation != "none" else "")


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, with padding by numbers and zeros."""

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.padding, str) or self.padding_mode != "zeros":
            raise ValueError(f"rooftile.torch.nn.Conv2d: padding is {self.padding!r} of {self.padding_mode!r}, must be one or two "
                             "numbers of 'zeros'; pad by torch.nn.functional.pad before")
        words = {f"{name}_{axis}": pair[place] for name, pair in (("stride", self.stride), ("padding", self.padding),
                                                                   ("dilation", self.dilation)) for place, axis in enumerate("hw")}
        return functions["conv2d"](x, self.weight, bias=self.bias, groups=self.groups, **words)


class MLP(torch.nn.Module):
    """down_proj(f(up_proj(x))), f one of linear's functions; of "swiglu", "geglu" and "geglu_tanh":
    down_proj(f(gate_proj(x))·up_proj(x)), with GatedMLP's state_dict. All products are the library's."""

    #: The function of the gate in a product; the gated op and its options.
    GATES = {"swiglu": ("silu", "swiglu", {}), "geglu": ("gelu", "geglu", {}), "geglu_tanh": ("gelu_tanh", "geglu", {"tanh": True})}

    def __init__(self, hidden_size, intermediate_size, activation="gelu", bias=True, device=None, dtype=None):
        super().__init__()
        if activation not in (*ACTIVATIONS, *self.GATES):
            raise ValueError(f"rooftile.torch.nn.MLP: activation is {activation!r}, must be one of: "
                             f"{' '.join((*ACTIVATIONS, *self.GATES))}")
        self.activation = activation
        words = {"bias": bias, "device": device, "dtype": dtype}
        self.gated = self.GATES.get(activation)
        if self.gated:
            self.gate_proj = Linear(hidden_size, intermediate_size, **words)
        self.up_proj = Linear(hidden_size, intermediate_size, activation="none" if self.gated else activation, **words)
        self.down_proj = Linear(intermediate_size, hidden_size, **words)

    def forward(self, x):
        if not self.gated:
            return self.down_proj(self.up_proj(x))
        activation, name, options = self.gated
        gate, up = self.gate_proj, self.up_proj(x)
        if up.requires_grad or torch.jit.is_tracing():
            return self.down_proj(functions[name](gate(x), up, **options))
        return self.down_proj(linear(x, gate.weight, gate.bias, activation, gate=up))  # the gate is the product's end

    def extra_repr(self):
        return f"activation={self.activation!r}"


from rooftile.torch._multi_head import KVCache as KVCache, MultiHeadAttention as MultiHeadAttention  # noqa: E402
