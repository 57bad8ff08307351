"""What products with a frozen weight share: operators of rows of x, which torch.func's transforms take, too."""

import torch
from torch.autograd import forward_ad

from rooftile import _frameworks


library = torch.library.Library("rooftile", "FRAGMENT")


def operators(runs, schemas, gradient, remember):
    """Defines operators: of each name what runs, and what gives the result's shape. Returns the first, the product, with its gradient."""
    for name, (run, fake) in runs.items():
        library.define(name + schemas[name], tags=(torch.Tag.pt2_compliant_tag,))
        for device in ("CPU", "CUDA"):
            library.impl(name, run, device)
        torch.library.register_fake(f"rooftile::{name}", fake, lib=library)
    product = next(iter(runs))
    torch.library.register_autograd(f"rooftile::{product}", gradient, setup_context=remember, lib=library)
    return differentiable(product, gradient, remember)


def differentiable(name, gradient, remember):
    """An operator, x its first tensor, or while torch.func transforms, an autograd.Function with the operator's gradient. A batch
    of x alone is more rows; of other operands, one call after the other."""
    operator = getattr(torch.ops.rooftile, name).default

    def call(*args):
        if forward_ad._current_level >= 0:  # tangents would be zeros, without a word
            _frameworks.refuse_tangents(f"rooftile.torch.{name}", args)
        if torch._C._are_functorch_transforms_active() and not torch.compiler.is_compiling():
            return transformed.apply(*args)
        return operator(*args)

    def batched(info, in_dims, x, *others):
        if any(d is not None for d in in_dims[1:]):
            given = [[t if d is None else t.select(d, i) for t, d in zip((x, *others), in_dims)] for i in range(info.batch_size)]
            return torch.stack([call(*args) for args in given]), 0
        x = x.movedim(in_dims[0], 0)
        y = call(x.flatten(0, -2), *others)
        return y.view(*x.shape[:-1], y.shape[-1]), 0

    transformed = type(name, (torch.autograd.Function,), {
        "forward": staticmethod(call), "setup_context": staticmethod(remember), "backward": staticmethod(gradient),
        "vmap": staticmethod(batched)})
    return call
