"""A model's own modules on rooftile's kernels: their class is exchanged, all else (parameters, hooks, names) stays."""

import copy
import typing

import torch

from rooftile.torch import nn
from rooftile.torch._operators import functions

DTYPES = (torch.float32, torch.float16, torch.bfloat16)

#: PyTorch's modules and ours that extend them.
TORCH = {original: ours for ours in vars(nn).values() if isinstance(ours, type) and issubclass(ours, torch.nn.Module)
         for original in [ours.__bases__[0]] if original.__module__.startswith("torch.nn.")
         and original is not torch.nn.Module}


class Patched(typing.NamedTuple):
    """What patch() did: [(name, class), …] of the modules that run on rooftile's kernels, [(name, class, why), …] of those
    that keep their own. As a text: both, line by line."""

    replaced: list
    kept: list

    def __str__(self):
        lines = [f"rooftile: {len(self.replaced)} modules run on its kernels, {len(self.kept)} that could keep their own"]
        lines += [f"  {name or '(the model)'}: {kind}" for name, kind in self.replaced]
        lines += [f"  {name or '(the model)'}: {kind} stays, {reason}" for name, kind, reason in self.kept]
        return "\n".join(lines)

    __repr__ = __str__


class Replaced:
    """Marks the classes that patch() makes."""

    def __reduce_ex__(self, protocol):  # pickle would look for the class by its name
        return revived, (self.rooftile_own, self.rooftile_looks, self.rooftile_form), self.__dict__


MADE = {}


def made(own, looks, form=None):
    """The class of modules of class `own` that run as `looks`; `form`: which of those."""
    key = (own, looks, str(form))
    if key not in MADE:
        bases = (Replaced, looks) if issubclass(looks, own) else (Replaced, looks, own)
        MADE[key] = type(own.__name__, bases, {"__module__": own.__module__, "__doc__": own.__doc__, "rooftile_own": own,
                                               "rooftile_looks": looks, "rooftile_form": form})
    return MADE[key]


def revived(own, looks, form):
    kind = made(own, looks, form)
    return kind.__new__(kind)


# ---- Modules of libraries that are not known here, by what they hold. A trial says whether such a module computes what it
# looks like: a copy of it with random weights of f32, a few of them, gets a few numbers.


def probe(module, parameters, modules):
    """A copy of a module in which these are others."""
    other = copy.copy(module)
    other.__dict__.update(_parameters={**module._parameters, **parameters}, _modules={**module._modules, **modules},
                          training=False)
    return other


def device_of(module):
    device = next(module.parameters()).device
    return "cpu" if device.type == "meta" else device


class RMSNormByLooks:
    """`weight` and `variance_epsilon` or `eps`, in a class called …Norm: those of Llama, Qwen, Mistral, Gemma, T5."""

    computes = "RMS normalisation"

    @staticmethod
    def forms(module):
        """The forms that it may have, if it looks like one: (the name of its eps, unit_offset)."""
        state = [n for n, _ in (*module.named_parameters(), *module.named_buffers())]
        if not type(module).__name__.endswith("Norm") or state != ["weight"] or module.weight.dim() != 1:
            return []
        names = [n for n in ("variance_epsilon", "eps") if isinstance(getattr(module, n, None), float)]
        return [(names[0], offset) for offset in (False, True)] if names else []

    @staticmethod
    def probe(module):
        """A copy for a trial, and an input."""
        width, device = module.weight.shape[0], device_of(module)
        return probe(module, {"weight": torch.nn.Parameter(torch.randn(width).to(device))}, {}), torch.randn(2, width).to(device)

    def forward(self, hidden_states):
        eps, unit_offset = self.rooftile_form
        return functions["rms_norm"](hidden_states, weight=self.weight, eps=getattr(self, eps), unit_offset=unit_offset)


class GatedMLPByLooks:
    """gate_proj, up_proj and down_proj: down(f(gate(x))·up(x))."""

    computes = "a gated MLP of SiLU or GELU"

    @staticmethod
    def forms(module):
        """The activations that it may have, if it looks like one."""
        looks = {"gate_proj", "up_proj", "down_proj"} <= {n for n, _ in module.named_children()}
        return list(nn.GatedMLP.ACTIVATIONS) if looks else []

    @staticmethod
    def probe(module):
        small = nn.GatedMLP(8, 16).to(device_of(module))
        return probe(module, {}, dict(small.named_children())), 4 * torch.randn(2, 8).to(device_of(module))

    def forward(self, x):
        name, options = nn.GatedMLP.ACTIVATIONS[self.rooftile_form]
        return self.down_proj(functions[name](self.gate_proj(x), self.up_proj(x), **options))


def trial(module, looks):
    """The class for a module that computes what rooftile's kernels do; or None, and why."""
    own = type(module)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            other, x = looks.probe(module)
            expected, errors = other.forward(x), {}
            for form in looks.forms(module):
                other.__class__ = made(own, looks, form)
                errors[form] = ((other.forward(x) - expected).abs().max() / expected.abs().max()).item()
                other.__class__ = own
        form = min(errors, key=errors.get)
        if errors[form] < 1e-5:  # GELU's two forms differ by 1e-4 here
            return made(own, looks, form), ""
    except Exception as error:  # of a class that nobody here knows
        return None, f"a trial of it failed: {error}"
    return None, f"a trial of it gave other numbers than {looks.computes}"


# ---- Which class a module gets


def obstacle(module):
    """Why a module that has a kernel keeps its own; "": nothing is in the way."""
    others = {str(p.dtype) for p in module.parameters() if p.dtype not in DTYPES}
    if others:
        return f"it has parameters of {', '.join(sorted(others))}"
    if getattr(module, "inplace", False):
        return "it works in place"
    if isinstance(module, (torch.nn.Softmax, torch.nn.LogSoftmax)) and module.dim is None:
        return "it names no dimension"
    return ""


def replacement(module):
    """(class, ""), (None, why not), or None where there is nothing to replace."""
    if isinstance(module, Replaced):
        return None
    ours = TORCH.get(type(module))
    looks = None if ours else next((kind for kind in (RMSNormByLooks, GatedMLPByLooks) if kind.forms(module)), None)
    if not ours and not looks:
        return None
    reason = obstacle(module)
    if reason:
        return None, reason
    return (made(type(module), ours), "") if ours else trial(module, looks)


def patch(model):
    """Lets every module of `model` for which rooftile has a kernel run on it: those of torch.nn, and RMS norms and gated
    MLPs as Llama, Mistral, Qwen and Gemma have them, which are recognised by what they hold and by a trial. Returns which
    and which not, and prints nothing. Functions that a model calls by itself (torch.nn.functional) are not seen."""
    done = Patched([], [])
    for name, module in model.named_modules():
        found = replacement(module)
        if found is None:
            continue
        kind, reason = found
        if reason:
            done.kept.append((name, type(module).__name__, reason))
        else:
            module.__class__ = kind
            done.replaced.append((name, kind.__name__))
    return done


def unpatch(model):
    """Gives each module that patch() changed its own class back. Returns the model."""
    for module in model.modules():
        if isinstance(module, Replaced):
            module.__class__ = module.rooftile_own
    return model
