"""A model's own modules on rooftile's kernels: their class is exchanged, all else (parameters, hooks, names) stays."""

import torch

from rooftile.torch import nn

#: PyTorch's modules and ours that extend them.
REPLACED = {original: ours for ours in vars(nn).values() if isinstance(ours, type) and issubclass(ours, torch.nn.Module)
            for original in [ours.__bases__[0]] if original.__module__.startswith("torch.nn.")
            and original is not torch.nn.Module}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def obstacle(module):
    """Why a module that has a kernel keeps its own; "": nothing is in the way."""
    others = {str(p.dtype) for p in module.parameters(recurse=False) if p.dtype not in DTYPES}
    if others:
        return f"has parameters of {', '.join(sorted(others))}"
    if getattr(module, "inplace", False):
        return "works in place"
    if isinstance(module, (torch.nn.Softmax, torch.nn.LogSoftmax)) and module.dim is None:
        return "names no dimension"
    return ""


def patch(model, verbose=True):
    """Lets every module of `model` that torch.nn has and rooftile has a kernel for run on that kernel; says which,
    and which not. Returns the model. Functions that a model calls by itself (torch.nn.functional) are not seen."""
    replaced, kept = [], []
    for name, module in model.named_modules():
        ours = REPLACED.get(type(module))
        if ours is None:
            continue
        reason = obstacle(module)
        if reason:
            kept.append((name, type(module).__name__, reason))
        else:
            module.__class__ = ours
            replaced.append((name, ours.__name__))
    if verbose:
        print(f"rooftile: {len(replaced)} modules run on its kernels, {len(kept)} that could keep their own")
        for name, kind in replaced:
            print(f"  {name or '(the model)'}: {kind}")
        for name, kind, reason in kept:
            print(f"  {name or '(the model)'}: {kind} stays, it {reason}")
    return model


def unpatch(model):
    """Gives each module that patch() changed its own class back. Returns the model."""
    originals = {ours: original for original, ours in REPLACED.items()}
    for module in model.modules():
        if type(module) in originals:
            module.__class__ = originals[type(module)]
    return model
