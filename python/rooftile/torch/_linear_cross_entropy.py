"""A loss from a head's input and its weight, as PyTorch computes linear and cross_entropy one after the other."""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor

from rooftile.torch._linear import cast, said
from rooftile.torch._operators import functions


def in_autocasts(x):
    return next(iter(cast(x))) if isinstance(x, Tensor) else x


def casting(function):
    """linear_cross_entropy that takes hidden and weight in autocast's dtype, as torch.nn.functional.linear does."""
    @functools.wraps(function)
    def linear_cross_entropy(*args, **words):
        args = (*map(in_autocasts, args[:2]), *args[2:])
        return function(*args, **{n: in_autocasts(x) if n in ("hidden", "weight") else x for n, x in words.items()})

    linear_cross_entropy.__doc__ += ("\n\nUnder autocast hidden and weight are cast as torch.nn.functional.linear casts them; the loss is f32, bias "
                                     "and class_weight stay f32.")
    return linear_cross_entropy


# Without the kernel, in a build of other functions, there is none.
if "linear_cross_entropy" in functions:
    linear_cross_entropy = casting(functions["linear_cross_entropy"])


def widened(x):
    """The f32 that the library wants of a bias and of classes' weights; f64 is refused by its sentence."""
    return x.float() if x is not None and x.dtype in (torch.float16, torch.bfloat16) else x


def loss_of(hidden, weight, target, bias=None, class_weight=None, reduction="mean", **options):
    """A scalar; of reduction "none" each row's loss. Bias and class_weight may have 16 bits."""
    rows = reduction == "none"
    result = linear_cross_entropy(hidden, weight, target, bias=widened(bias), class_weight=widened(class_weight), losses=rows,
                                  reduction="sum" if rows else reduction, **options)
    return result.losses if rows else result.reshape(())


NAME = "rooftile.torch.nn.LinearCrossEntropyLoss"


class LinearCrossEntropyLoss(torch.nn.Module):
    """CrossEntropyLoss of Linear's logits, which are never all in memory: torch.nn.LinearCrossEntropyLoss's parameters and state_dict.
    forward(hidden, target): (…, in_features), and a class for each of (…). Make one that shares a model's head by from_linear.

    weight: what each class counts. reduction "none": each target's loss. z_loss: the factor of the squares of log Σ exp(logits).
    chunk: targets whose logits are in memory at once; 0: the library chooses. A target that is neither a class nor ignore_index has
    the loss NaN. Under autocast as Linear and CrossEntropyLoss, but that logits are f32."""

    weight: Tensor | None

    def __init__(self, in_features: int, num_classes: int, *, bias: bool = False, device: Any = None, dtype: torch.dtype | None = None,
                 weight: Tensor | None = None, reduction: Literal["mean", "sum", "none"] = "mean", ignore_index: int = -100,
                 label_smoothing: float = 0.0, z_loss: float = 0.0, chunk: int = 0) -> None:
        head = torch.nn.Linear(in_features, num_classes, bias, device, dtype)
        self._set(head, weight, reduction, ignore_index, label_smoothing, z_loss, chunk)

    def _set(self, linear, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0, z_loss=0.0, chunk=0):
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"{NAME}: reduction is {reduction!r}, must be one of: mean sum none")
        if weight is not None and weight.shape != (linear.out_features,):
            raise ValueError(f"{NAME}: weight is {said(weight)}, must be {linear.out_features}, one for each class")
        self.linear = linear
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing
        self.z_loss, self.chunk = z_loss, chunk

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, **options: Any) -> LinearCrossEntropyLoss:
        """Of a head that stays the model's: the parameters are the head's own, no copies. options: weight to chunk, as above."""
        if not isinstance(linear, torch.nn.Linear) or getattr(linear, "activation", "none") != "none":
            raise TypeError(f"{NAME}.from_linear: got {linear}, must be a Linear without an activation")
        mine = cls.__new__(cls)
        mine._set(linear, **options)
        return mine

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        head = self.linear
        return loss_of(hidden, head.weight, target, head.bias, self.weight, self.reduction, ignore_index=self.ignore_index,
                       label_smoothing=self.label_smoothing, z_loss=self.z_loss, chunk=self.chunk)

    def extra_repr(self) -> str:
        return (f"reduction={self.reduction!r}, ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, "
                f"z_loss={self.z_loss}, chunk={self.chunk}")
