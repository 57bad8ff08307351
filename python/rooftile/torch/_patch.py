"""A model's own modules on rooftile's kernels: their class is exchanged, all else (parameters, hooks, names) stays."""

import copy
import functools
import inspect
import itertools
import typing

import torch
from torch.autograd import forward_ad

from rooftile.torch import _patch_attention, _patch_loss, nn
from rooftile.torch._operators import functions

Model = typing.TypeVar("Model", bound=torch.nn.Module)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)

#: PyTorch's modules and ours that extend them. Two are for those who name them: Linear, as the library's product reaches 0.09 to
#: 0.64 of cuBLAS's speed in f32 on an H200 (bf16: 0.76 to 1.19); Dropout, as its masks are other ones than PyTorch's for the same seed.
TORCH = {original: ours for ours in vars(nn).values() if isinstance(ours, type) and issubclass(ours, torch.nn.Module)
         for original in [ours.__bases__[0]] if original.__module__.startswith("torch.nn.")
         and original not in (torch.nn.Module, torch.nn.Linear, torch.nn.Dropout)}


class Patched(typing.NamedTuple):
    """What patch() did: [(name, class), …] of the modules that run on rooftile's kernels, [(name, class, why), …] of those
    that keep their own. As a text: both, line by line."""

    replaced: list[tuple[str, str]]
    kept: list[tuple[str, str, str]]

    def __str__(self) -> str:
        lines = [f"rooftile: {len(self.replaced)} modules run on its kernels, {len(self.kept)} that could keep their own"]
        lines += [f"  {name or '(the model)'}: {kind}" for name, kind in self.replaced]
        lines += [f"  {name or '(the model)'}: {kind} stays, {reason}" for name, kind, reason in self.kept]
        return "\n".join(lines)

    __repr__ = __str__


class Replaced:
    """Marks the classes that patch() makes."""

    def __reduce_ex__(self, protocol):  # pickle would look for the class by its name
        return revived, (self.rooftile_own, self.rooftile_looks, self.rooftile_form), self.__dict__


class Form(typing.NamedTuple):
    """How a module of another library is computed, and with what that was tried: whatever else comes runs as it did."""

    kind: tuple
    modes: tuple  # training, or not
    ranks: tuple
    dtypes: tuple  # of x and of the parameters


MADE = {}


def made(own, looks, form=None):
    """The class of modules of class `own` that run as `looks`; `form`: which of those."""
    key = (own, looks, str(form))
    if key not in MADE:
        bases = (Replaced, looks) if issubclass(looks, own) else (Replaced, looks, own)
        guard = _patch_attention.guarded_multi_head if looks is nn.MultiHeadAttention else guarded
        overrides = getattr(looks, "overrides", guard)(own, looks)
        MADE[key] = type(own.__name__, bases, {"__module__": own.__module__, "__doc__": own.__doc__, "rooftile_own": own,
                                               "rooftile_looks": looks, "rooftile_form": form, **overrides})
    return MADE[key]


def method_of(looks):
    """What a class replaces."""
    return getattr(looks, "method", "forward")


def guarded(own, looks):
    """What a class overrides: the method of looks for one plain tensor as it was tried; own's for all else."""
    theirs, ours = (getattr(kind, method_of(looks)) for kind in (own, looks))
    word = next(iter(list(inspect.signature(theirs).parameters)[1:]), None)

    @functools.wraps(theirs)
    def forward(self, *args, **words):
        if len(args) + len(words) == 1:
            x = args[0] if args else words.get(word)
            if isinstance(x, torch.Tensor) and is_plain(x) and looks.takes(self, x):
                result = ours(self, x)
                if result is not None:
                    return result
        return theirs(self, *args, **words)

    return {method_of(looks): forward}


def is_plain(x):
    return (x.dtype in DTYPES and 1 <= x.dim() <= 8 and x.layout == torch.strided and not x.is_nested and
            x.device.type in ("cpu", "cuda", "meta") and forward_ad._current_level < 0)


def revived(own, looks, form):
    kind = made(own, looks, form)
    return kind.__new__(kind)


def takes_as_pytorch(self, x):
    """PyTorch's own modules, by the dtypes of their parameters: such as give x's dtype there, too."""
    dtypes = {p.dtype for p in self._parameters.values() if p is not None}
    return dtypes <= {x.dtype} or (isinstance(self, torch.nn.LayerNorm) and dtypes == {torch.float32})


for kind in TORCH.values():
    kind.takes = takes_as_pytorch


# ---- Modules of libraries that are not known here, by what they hold. A trial says whether such a module computes what it
# looks like: a copy of it with random weights of few numbers gets random inputs.


def probe(module, parameters, modules, dtype):
    """A copy of a module in which these are others, and which shares nothing that a call may change."""
    other = copy.copy(module)
    kept = {n: copy.deepcopy(m) for n, m in module._modules.items() if n not in modules}
    other.__dict__.update(_parameters={**module._parameters, **parameters}, _modules={**kept, **modules},
                          _forward_hooks={}, _forward_pre_hooks={})
    return other.to(dtype)


def device_of(module):
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    return "cpu" if device.type == "meta" else device


def holds_nothing(module):
    return next(iter((*module.parameters(), *module.buffers(), *module.children())), None) is None


class ByLooks:
    SAME = tuple((d, d) for d in DTYPES)

    #: The dtypes of x and of the parameters that are tried.
    pairs = SAME
    #: Its parameters, whose dtype counts.
    parts = ()

    def takes(self, x):
        form = self.rooftile_form
        dtypes = [x.dtype]
        for part in self.rooftile_looks.parts:
            weight = getattr(self, part, None)
            weight = weight if weight is None or isinstance(weight, torch.Tensor) else getattr(weight, "weight", None)
            if weight is None:
                return False
            dtypes.append(weight.dtype)
        return (bool(self.training) in form.modes and x.dim() in form.ranks and len(set(dtypes[1:])) <= 1 and
                (x.dtype, dtypes[-1]) in form.dtypes)


class RMSNormByLooks(ByLooks):
    """`weight` and `variance_epsilon` or `eps`, in a class called …Norm: those of Llama, Qwen, Mistral, Gemma, T5."""

    computes = "RMS normalisation"
    pairs = tuple(itertools.product(DTYPES, DTYPES))
    parts = ("weight",)

    @staticmethod
    def forms(module):
        """The forms that it may have, if it looks like one: (the name of its eps, unit_offset)."""
        state = [n for n, _ in (*module.named_parameters(), *module.named_buffers())]
        if not type(module).__name__.endswith("Norm") or state != ["weight"] or module.weight.dim() != 1:
            return []
        names = [n for n in ("variance_epsilon", "eps") if isinstance(getattr(module, n, None), float)]
        return [(names[0], offset) for offset in (False, True)] if names else []

    @staticmethod
    def probe(module, dtype):
        """A copy for a trial, and the width of its input."""
        width, device = module.weight.shape[0], device_of(module)
        return probe(module, {"weight": torch.nn.Parameter(torch.randn(width).to(device))}, {}, dtype), width

    def forward(self, hidden_states):
        eps, unit_offset = self.rooftile_form.kind
        weight = self.weight if self.weight.dtype in (hidden_states.dtype, torch.float32) else self.weight.float()
        return functions["rms_norm"](hidden_states, weight=weight, eps=getattr(self, eps), unit_offset=unit_offset)


class UnweightedNormByLooks(ByLooks):
    """`variance_epsilon` or `eps` and nothing else, in a class called …Norm: those of Gemma 3n's and Llama 4's attention."""

    computes = "RMS or L2 normalisation"
    WIDTH = 210  # no multiple of the sizes of groups that a class may have

    @staticmethod
    def forms(module):
        names = [n for n in ("variance_epsilon", "eps") if isinstance(getattr(module, n, None), float)]
        if not type(module).__name__.endswith("Norm") or not names or not holds_nothing(module):
            return []
        return [(names[0], function) for function in ("rms_norm", "l2_normalize")]

    @staticmethod
    def probe(module, dtype):
        return probe(module, {}, {}, dtype), UnweightedNormByLooks.WIDTH

    def forward(self, x):
        eps, function = self.rooftile_form.kind
        return functions[function](x, eps=getattr(self, eps))


class ActivationByLooks(ByLooks):
    """A class that holds nothing, called …GELU…, …SiLU… or …Activation: those of model libraries."""

    computes = "an activation of rooftile's"
    FORMS = (("gelu", False), ("gelu", True), ("silu", None), ("relu", None), ("sigmoid", None), ("tanh", None))

    @staticmethod
    def forms(module):
        name = type(module).__name__.lower()
        looks = any(word in name for word in ("gelu", "silu", "swish", "activation"))
        return list(ActivationByLooks.FORMS) if looks and holds_nothing(module) else []

    @staticmethod
    def probe(module, dtype):
        return probe(module, {}, {}, dtype), 64

    def forward(self, x):
        name, tanh = self.rooftile_form.kind
        return functions[name](x) if tanh is None else functions[name](x, tanh=tanh)


class GatedByLooks(ByLooks):
    """Two projections, or one that holds both, an activation, and a projection back."""

    computes = "a gated MLP of SiLU or GELU"

    @classmethod
    def forms(cls, module):
        """The activations that it may have, if it looks like one."""
        looks = set(cls.parts) <= {n for n, _ in module.named_children()}
        return [(a,) for a in nn.GatedMLP.ACTIVATIONS] if looks else []

    @classmethod
    def probe(cls, module, dtype):
        small = nn.GatedMLP(8, 16).to(device_of(module))
        return probe(module, {}, dict(zip(cls.parts, (small.gate_proj, small.up_proj, small.down_proj))), dtype), 8

    def forward(self, x):
        looks = self.rooftile_looks
        *first, last = (getattr(self, part) for part in looks.parts)
        gate, up = looks.halves(first, x)
        if gate.dtype != up.dtype or gate.dtype not in DTYPES:  # a projection that another library has changed
            return None
        name, options = nn.GatedMLP.ACTIVATIONS[self.rooftile_form.kind[0]]
        return last(functions[name](gate, up, **options))

    @staticmethod
    def halves(projections, x):
        return projections[0](x), projections[1](x)


class GatedMLPByLooks(GatedByLooks):
    """gate_proj, up_proj and down_proj: down(f(gate(x))·up(x)), as Llama, Mistral, Qwen and Gemma have it."""

    parts = ("gate_proj", "up_proj", "down_proj")


class WiByLooks(GatedByLooks):
    """wi_0, wi_1 and wo: T5's."""

    parts = ("wi_0", "wi_1", "wo")


class W123ByLooks(GatedByLooks):
    """w1, w3 and w2: Llama's as Meta has it, and Mixtral's experts."""

    parts = ("w1", "w3", "w2")


class ExpertsByLooks(ByLooks):
    """Experts whose weights are stacked and that gate by a method: those of transformers where their products are grouped or
    batched. The method alone is replaced."""

    computes = "a gate of SiLU or GELU"
    method = "_apply_gate"

    @staticmethod
    def forms(module):
        own, stacked = type(module), isinstance(module._parameters.get("gate_up_proj"), torch.Tensor)
        if not callable(getattr(own, "_apply_gate", None)) or not stacked:
            return []
        code = getattr(inspect.unwrap(own.forward), "__code__", None)
        chosen = getattr(getattr(module, "config", None), "_experts_implementation", None)
        calls = (code is not None and "_apply_gate" in code.co_names) or chosen not in (None, "eager")
        return [(a,) for a in nn.GatedMLP.ACTIVATIONS] if calls else []

    @staticmethod
    def probe(module, dtype):
        return probe(module, dict.fromkeys(module._parameters), {}, dtype), 16

    def _apply_gate(self, gate_up):
        name, options = nn.GatedMLP.ACTIVATIONS[self.rooftile_form.kind[0]]
        return functions[name](*gate_up.chunk(2, -1), **options)


class PackedByLooks(GatedByLooks):
    """gate_up_proj, whose result holds gate, then up, and down_proj: those of Phi and GLM."""

    parts = ("gate_up_proj", "down_proj")

    @classmethod
    def probe(cls, module, dtype):
        device = device_of(module)
        small = {"gate_up_proj": torch.nn.Linear(8, 32, bias=False).to(device),
                 "down_proj": torch.nn.Linear(16, 8, bias=False).to(device)}
        return probe(module, {}, small, dtype), 8

    @staticmethod
    def halves(projections, x):
        return projections[0](x).chunk(2, -1)


LOOKS = (RMSNormByLooks, UnweightedNormByLooks, GatedMLPByLooks, WiByLooks, W123ByLooks, ExpertsByLooks, PackedByLooks,
         ActivationByLooks)
SIZES = {2: (2,), 3: (2, 3), 4: (2, 3, 2)}
#: Of the numbers in f32: clamps show by large ones, the place of an eps by small ones. GELU's two forms differ by 1e-4.
SCALES, F32_ERROR = (4.0, 4e3, 1e-3), 1e-5


def distance(actual, expected):
    """The largest difference, as a share of the largest number; infinite where they are not alike."""
    if not isinstance(expected, torch.Tensor) or actual.dtype != expected.dtype or actual.shape != expected.shape:
        return float("inf")
    error = (actual.double() - expected.double()).abs().max() / expected.double().abs().max()
    return error.item() if error.isfinite() else float("inf")


class Trial:
    """Runs a copy of a module as its own class and as ours."""

    def __init__(self, module, looks):
        self.own, self.looks, self.module = type(module), looks, module
        self.probes = {}

    def error(self, kind, x_dtype, dtype, rank, scale, training=False):
        """How far they are apart; an exception: its own class does not take that."""
        if dtype not in self.probes:
            torch.manual_seed(1)
            self.probes[dtype] = self.looks.probe(self.module, dtype)
        other, width = self.probes[dtype]
        other.train(training)
        torch.manual_seed(2)
        x = (scale * torch.randn(*SIZES[rank], width)).to(device=device_of(self.module), dtype=x_dtype)
        expected = getattr(self.own, method_of(self.looks))(other, x.clone())
        other.__class__ = made(self.own, self.looks, Form(kind, (training,), (rank,), ((x_dtype, dtype),)))
        try:
            return distance(getattr(self.looks, method_of(self.looks))(other, x), expected)
        finally:
            other.__class__ = self.own

    def run(self):
        """The form; or None, and why."""
        f32, refusal = torch.float32, None
        other_numbers = f"a trial of it gave other numbers than {self.looks.computes}"
        ranks, kind = [], None
        for rank in SIZES:
            try:
                if kind is None:
                    errors = {k: self.error(k, f32, f32, rank, SCALES[0]) for k in self.looks.forms(self.module)}
                    kind = min(errors, key=errors.get)
                if any(self.error(kind, f32, f32, rank, scale) > F32_ERROR for scale in SCALES):
                    return None, other_numbers
                ranks.append(rank)
            except Exception as error:  # of a class that nobody here knows
                refusal = refusal or f"a trial of it failed: {error}"
        if not ranks:
            return None, refusal
        return Form(kind, (False, True) if self.trains(kind, ranks) else (False,), tuple(ranks), self.dtypes(kind, ranks[-1])), ""

    def trains(self, kind, ranks):
        """Whether it computes the same in training: dropout and noise do not."""
        try:
            return all(self.error(kind, torch.float32, torch.float32, rank, SCALES[0], True) <= F32_ERROR for rank in ranks)
        except Exception:
            return False

    def dtypes(self, kind, rank):
        """The dtypes in which it gives the same, but for roundings on the way."""
        taken = []
        for x_dtype, dtype in self.looks.pairs:
            steps = 16 * max(torch.finfo(x_dtype).eps, torch.finfo(dtype).eps)
            try:
                if self.error(kind, x_dtype, dtype, rank, 1.0) <= max(steps, F32_ERROR):
                    taken.append((x_dtype, dtype))
            except Exception:
                continue
        return tuple(taken)


def trial(module, looks):
    """The class for a module that computes what rooftile's kernels do; or None, and why."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            form, reason = Trial(module, looks).run()
        except Exception as error:  # a module that is not copied, say
            return None, f"a trial of it failed: {error}"
    return (made(type(module), looks, form), "") if form else (None, reason)


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
    if _patch_attention.AttentionByInterface.forms(module):
        form, reason = _patch_attention.AttentionByInterface.trial(module)
        return (made(type(module), _patch_attention.AttentionByInterface, form), "") if form else (None, reason)
    ours = TORCH.get(type(module))
    looks = None if ours else next((kind for kind in LOOKS if kind.forms(module)), None)
    if not ours and not looks:
        return None
    reason = obstacle(module)
    if reason:
        return None, reason
    return (made(type(module), ours), "") if ours else trial(module, looks)


def patch_loss(model, done):
    """The losses of the model's causal language models, and their heads."""
    owners = [(n, m) for n, m in model.named_modules() if _patch_loss.CausalLMByLoss.forms(m)]
    for name, module in owners:
        if isinstance(module, Replaced):
            continue
        place, reason = _patch_loss.CausalLMByLoss.trial(module, made)
        if reason:
            done.kept.append((name, type(module).__name__, reason))
            continue
        head = module._modules[place]
        module.__class__, head.__class__ = made(type(module), _patch_loss.CausalLMByLoss, place), made(type(head), _patch_loss.HeadByLoss)
        done.replaced.extend([(name, type(module).__name__), (f"{name}.{place}".lstrip("."), type(head).__name__)])
    if not owners:
        done.kept.append(("", type(model).__name__, "no module of it makes its loss as transformers' causal language models do"))


def patch(model: torch.nn.Module, loss: bool = False) -> Patched:
    """Lets every module of `model` for which rooftile has a kernel run on it: those of torch.nn, and RMS and L2 norms, gated
    MLPs, experts' gates and activations of model libraries, which are recognised by what they hold and by a trial; and the attention
    of transformers' models that choose it by their config (eager or sdpa). What was not tried runs on the module's own forward.
    Returns which and which not, and prints nothing. Functions that a model calls by itself (torch.nn.functional) are not seen.

    loss: the losses of transformers' causal language models, too, by linear_cross_entropy. In training a call with labels then has no
    logits: output.logits is None, and a tuple lacks them. The call's skip_logits=False makes them, True leaves them out in
    evaluation. Who changes logits before the loss (a soft cap), has another loss, or another head than Linear keeps its own."""
    done = Patched([], [])
    if loss:
        patch_loss(model, done)
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


def unpatch(model: Model) -> Model:
    """Gives each module that patch() changed its own class back. Returns the model."""
    for module in model.modules():
        if isinstance(module, Replaced):
            module.__class__ = module.rooftile_own
    return model
