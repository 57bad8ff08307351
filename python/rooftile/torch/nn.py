"""Modules with the parameters and the state_dict of torch.nn's, that run on rooftile's kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rooftile import _functions
from rooftile.torch._8bit import linear_8bit
from rooftile.torch._int4 import linear_int4, of_awq, of_gptq
from rooftile.torch._linear import ACTIVATIONS, drawn_seed, linear, refuse_inputs, said
from rooftile.torch._nf4 import linear_nf4
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
    device (drawn_seed)."""
    if not training or p == 0:
        return x if residual is None else residual + x
    return functions["dropout"](x, drawn_seed(x.device), residual=residual, p=p)


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


def keep_dtypes(module, apply, fn, recurse):
    """half(), bfloat16() and to(dtype) are x's and the bias's business: codes stay codes, and scales in their dtype."""
    before = dict(module._buffers)
    apply(fn, recurse)
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.dtype != before[name].dtype:
            module._buffers[name] = before[name].to(buffer.device)
    return module


def refuse_activation(cls, linear):
    """A quantised layer computes its product alone: it would leave out, in silence, what Linear's `activation` adds."""
    activation = getattr(linear, "activation", "none")
    if activation != "none":
        raise ValueError(f"{cls.__name__}.from_linear: the layer's activation is {activation!r}, must be 'none'; "
                         "apply the activation behind the quantised layer")


def refuse_weight(cls, weight, bias):
    if weight.dim() != 2 or not weight.is_floating_point():
        raise ValueError(f"{cls.__name__}.from_weight: weight is {said(weight)} of {weight.dtype}, must have 2 dimensions, outputs, then "
                         "inputs, and floats")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"{cls.__name__}.from_weight: bias is {said(bias)}, must be {len(weight)}, one for each row of weight")


def of_linear(cls, linear, *options):
    """from_weight, of a Linear whose bias may be frozen."""
    refuse_activation(cls, linear)
    mine = cls.from_weight(linear.weight, linear.bias, *options)
    if mine.bias is not None:
        mine.bias.requires_grad_(linear.bias.requires_grad)
    return mine


def copied(bias):
    return None if bias is None else torch.nn.Parameter(bias.detach().clone())


class LinearNF4(torch.nn.Module):
    """torch.nn.Linear with a frozen weight in 4 bits (QLoRA's), and rooftile.torch.linear_nf4's product and gradients. Make one of
    a Linear by from_linear, of a tensor by from_weight. double: the scales are in 8 bits, too (4.127 instead of 4.5 bits per weight in
    blocks of 64); each forward restores them. bias is a parameter."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, block: int = 64, double: bool = False,
                 device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features, self.block, self.double = in_features, out_features, block, double
        blocks = (in_features * out_features + block - 1) // block
        self.register_buffer("packed", torch.zeros((in_features * out_features + 1) // 2, dtype=torch.uint8, device=device))
        if double:
            self.register_buffer("absmax_codes", torch.zeros(blocks, dtype=torch.uint8, device=device))
            self.register_buffer("absmax_offset", torch.zeros(1, dtype=torch.float32, device=device))
        self.register_buffer("absmax", torch.zeros((blocks + 255) // 256 if double else blocks, dtype=torch.float32, device=device))
        self.bias = torch.nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, block: int = 64, double: bool = False) -> LinearNF4:
        """The same with linear's weight quantised, and a copy of its bias."""
        return of_linear(cls, linear, block, double)

    @classmethod
    def from_weight(cls, weight: Tensor, bias: Tensor | None = None, block: int = 64, double: bool = False) -> LinearNF4:
        """Of a weight, (out_features, in_features), which is quantised, and a bias, of which a copy becomes the parameter."""
        refuse_weight(cls, weight, bias)
        mine = cls(weight.shape[1], weight.shape[0], False, block, double, weight.device)
        packed, absmax = functions["quantize_nf4"](weight.detach(), block=block)
        mine.packed.copy_(packed)
        if double:
            mine.absmax_offset.copy_(absmax.mean())
            codes, absmax = functions["quantize_scales"](absmax, mine.absmax_offset)
            mine.absmax_codes.copy_(codes)
        mine.absmax.copy_(absmax)
        mine.bias = copied(bias)
        return mine

    def scales(self) -> Tensor:
        """Of each block of weights, as f32."""
        return functions["dequantize_scales"](self.absmax_codes, self.absmax, self.absmax_offset) if self.double else self.absmax

    def weight(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(out_features, in_features), dequantised."""
        return torch.ops.rooftile.nf4_weight(self.packed, self.scales(), self.out_features, self.in_features, self.block, dtype)

    def forward(self, x: Tensor) -> Tensor:
        refuse_inputs(self, x)
        return linear_nf4(x, self.packed, self.scales(), self.out_features, self.bias, self.block)

    def _apply(self, fn, recurse=True):
        return keep_dtypes(self, super()._apply, fn, recurse)

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, block={self.block}, "
                f"double={self.double}")


class Linear8bit(torch.nn.Module):
    """torch.nn.Linear with a frozen weight in 8 bits, and rooftile.torch.linear_8bit's product, which quantises x on the fly, and
    gradients. Make one of a Linear by from_linear, of a tensor by from_weight. format: "f8e4m3", "f8e5m2" or "i8"; block: inputs that
    share a scale. bias is a parameter."""

    FORMATS = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i8": torch.int8}

    def __init__(self, in_features: int, out_features: int, bias: bool = True, format: str = "f8e4m3", block: int = 128,
                 device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        if format not in self.FORMATS:
            raise ValueError(f"Linear8bit: format is {format!r}, must be one of: {' '.join(self.FORMATS)}")
        self.in_features, self.out_features, self.format, self.block = in_features, out_features, format, block
        blocks = -(-in_features // block)
        self.register_buffer("codes", torch.zeros(out_features, in_features, dtype=self.FORMATS[format], device=device))
        self.register_buffer("scale", torch.ones(out_features, blocks, dtype=torch.float32, device=device))
        self.bias = torch.nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, format: str = "f8e4m3", block: int = 128) -> Linear8bit:
        """The same with linear's weight quantised, and a copy of its bias."""
        return of_linear(cls, linear, format, block)

    @classmethod
    def from_weight(cls, weight: Tensor, bias: Tensor | None = None, format: str = "f8e4m3", block: int = 128) -> Linear8bit:
        """Of a weight, (out_features, in_features), which is quantised, and a bias, of which a copy becomes the parameter."""
        refuse_weight(cls, weight, bias)
        mine = cls(weight.shape[1], weight.shape[0], False, format, block, weight.device)
        codes, scale = functions[f"quantize_{format}"](weight.detach(), block=block)
        mine.codes.copy_(codes)
        mine.scale.copy_(scale)
        mine.bias = copied(bias)
        return mine

    def weight(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(out_features, in_features), dequantised."""
        return torch.ops.rooftile.weight_8bit(self.codes, self.scale, self.block, 1, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return linear_8bit(x, self.codes, self.scale, self.bias, self.block)

    def _apply(self, fn, recurse=True):
        return keep_dtypes(self, super()._apply, fn, recurse)

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
                f"format={self.format!r}, block={self.block}")


class LinearInt4(torch.nn.Module):
    """torch.nn.Linear with a frozen weight in groups of 4-bit codes, and rooftile.torch.linear_int4's product and gradients. Make one
    of a Linear by from_linear, of a tensor by from_weight, of a checkpoint's tensors by from_gptq or from_awq. group: inputs that share
    a scale, an even number; zeros: groups have a zero point each; act_order: x's columns are put in the order of `columns` first, as
    GPTQ's act-order needs. bias is a parameter."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, group: int = 128, zeros: bool = False,
                 act_order: bool = False, device: Any = None, dtype: torch.dtype | None = None,
                 scale_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        if group < 2 or group % 2:
            raise ValueError(f"LinearInt4: group is {group}, must be an even number from 2 up; {in_features + in_features % 2} is one "
                             "for each row")
        self.in_features, self.out_features, self.group = in_features, out_features, group
        sizes = (out_features, -(-in_features // group))
        self.register_buffer("packed", torch.zeros(out_features, -(-in_features // 2), dtype=torch.uint8, device=device))
        self.register_buffer("scales", torch.zeros(sizes, dtype=scale_dtype or dtype, device=device))
        self.register_buffer("zeros", torch.full(sizes, 8, dtype=torch.uint8, device=device) if zeros else None)
        self.register_buffer("columns", torch.arange(in_features, device=device) if act_order else None)
        self.bias = torch.nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, group: int = 128, zeros: bool = False,
                    scale_dtype: torch.dtype | None = None) -> LinearInt4:
        """The same with linear's weight quantised to the nearest codes, and a copy of its bias. scale_dtype: None: the weight's."""
        return of_linear(cls, linear, group, zeros, scale_dtype)

    @classmethod
    def from_weight(cls, weight: Tensor, bias: Tensor | None = None, group: int = 128, zeros: bool = False,
                    scale_dtype: torch.dtype | None = None) -> LinearInt4:
        """Of a weight, (out_features, in_features), which is quantised to the nearest codes, and a bias, of which a copy becomes the
        parameter."""
        refuse_weight(cls, weight, bias)
        mine = cls(weight.shape[1], weight.shape[0], False, group, zeros, False, weight.device, weight.dtype, scale_dtype)
        _functions.below_gradients["quantize_int4"](weight.detach(), group=group, zeros=mine.zeros, out=(mine.packed, mine.scales))
        mine.bias = copied(bias)
        return mine

    @classmethod
    def _of(cls, bias, packed, scales, zeros, group, columns):
        inputs = packed.shape[1] * 2
        if bias is not None and (bias.shape != packed.shape[:1] or not bias.is_floating_point()):
            raise ValueError(f"LinearInt4: bias is {said(bias)} of {bias.dtype}, must be {len(packed)} floats, one for each output")
        mine = cls(inputs, packed.shape[0], bias is not None, group, True, columns is not None, packed.device, scales.dtype)
        mine.packed, mine.scales, mine.zeros, mine.columns = packed, scales, zeros, columns
        mine.bias = copied(bias)
        return mine

    @classmethod
    def from_gptq(cls, qweight: Tensor, qzeros: Tensor, scales: Tensor, g_idx: Tensor | None = None, bias: Tensor | None = None,
                  group: int | None = None, v2: bool = False) -> LinearInt4:
        """A layer of a GPTQ checkpoint: qweight (inputs/8, outputs) and qzeros (groups, outputs/8) of int32, scales (groups, outputs),
        g_idx (inputs): each input's group. With act-order x's columns are permuted in each forward. v2: zeros are stored as they
        are (checkpoint_format "gptq_v2"), else less 1. The dequantised weight is the checkpoint's in each bit."""
        return cls._of(bias, *of_gptq(qweight, qzeros, scales, g_idx, group, v2))

    @classmethod
    def from_awq(cls, qweight: Tensor, qzeros: Tensor, scales: Tensor, bias: Tensor | None = None,
                 group: int | None = None) -> LinearInt4:
        """A layer of an AWQ checkpoint ("gemm"): qweight (inputs, outputs/8) and qzeros (groups, outputs/8) of int32, whose eight
        columns are in the nibbles' order 0 2 4 6 1 3 5 7, scales (groups, outputs). The weight is the checkpoint's in each bit."""
        return cls._of(bias, *of_awq(qweight, qzeros, scales, group))

    def weight(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(out_features, in_features), dequantised."""
        w = torch.ops.rooftile.int4_weight(self.packed, self.scales, self.zeros, self.in_features, self.group, dtype)
        return w if self.columns is None else w[:, torch.argsort(self.columns)]

    def forward(self, x: Tensor) -> Tensor:
        refuse_inputs(self, x)
        if self.columns is not None:
            x = x.index_select(-1, self.columns)
        return linear_int4(x, self.packed, self.scales, self.zeros, self.bias, self.group)

    def _apply(self, fn, recurse=True):
        return keep_dtypes(self, super()._apply, fn, recurse)

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, group={self.group}, "
                f"zeros={self.zeros is not None}, act_order={self.columns is not None}")


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
        # Any other module in the gate's place (LinearNF4, an adapter) is called as it is.
        if type(gate) is not Linear or up.requires_grad or torch.jit.is_tracing():
            return self.down_proj(functions[name](gate(x), up, **options))
        return self.down_proj(linear(x, gate.weight, gate.bias, activation, gate=up))  # the gate is the product's end

    def extra_repr(self):
        return f"activation={self.activation!r}"


from rooftile.torch._linear_cross_entropy import LinearCrossEntropyLoss as LinearCrossEntropyLoss  # noqa: E402
from rooftile.torch._multi_head import KVCache as KVCache, MultiHeadAttention as MultiHeadAttention  # noqa: E402
from rooftile.torch._paged_cache import PagedKVCache as PagedKVCache, PagedStep as PagedStep  # noqa: E402
