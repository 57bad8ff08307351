"""The loss of transformers' causal language models, which patch(model, loss=True) takes over: in training their head keeps its input
in the place of logits, and their loss function makes the loss of it, a chunk of logits at a time. A model that does anything else
with the logits, such as a soft cap, makes them by that."""

import copy
import functools
import inspect
import operator
import sys

import torch
from torch.autograd import forward_ad

from rooftile.torch import nn
from rooftile.torch._linear import cast
from rooftile.torch._linear_cross_entropy import loss_of
from rooftile.torch._operators import functions

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge",
             "getitem", "setitem")


class Unmade:
    """Logits that are not there: the head and its input. Who uses them as a tensor makes them."""

    def __init__(self, head, hidden):
        self.head, self.hidden, self.logits = head, hidden, None

    def tensor(self):
        if self.logits is None:
            self.logits = self.head.rooftile_own.forward(self.head, self.hidden)
        return self.logits

    def __getattr__(self, name):
        return getattr(self.tensor(), name)

    def __len__(self):
        return len(self.tensor())

    @classmethod
    def __torch_function__(cls, function, types, args=(), words=None):
        return function(*map(as_tensor, args), **{n: as_tensor(x) for n, x in (words or {}).items()})


def as_tensor(x):
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_tensor, x))
    return x.tensor() if isinstance(x, Unmade) else x


def applying(name):
    def apply(self, *others):
        return getattr(operator, f"__{name}__")(self.tensor(), *map(as_tensor, others))

    def reflected(self, other):
        return getattr(operator, f"__{name}__")(other, self.tensor())

    return apply, reflected


for name in OPERATORS:
    apply, reflected = applying(name)
    setattr(Unmade, f"__{name}__", apply)
    if name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        setattr(Unmade, f"__r{name}__", reflected)


class HeadByLoss:
    """A Linear whose owner may want its input instead of its product."""

    @staticmethod
    def overrides(own, looks):
        @functools.wraps(own.forward)
        def forward(self, *args, **words):
            if self.rooftile_waits and len(args) == 1 and not words:
                return Unmade(self, args[0])
            return own.forward(self, *args, **words)

        return {"forward": forward, "rooftile_waits": False}


def is_head(head):
    """Whether it is a Linear and nothing but that: no hook, adapter or other form of its weight."""
    return (isinstance(head, HeadByLoss) and not head._forward_hooks and not head._forward_pre_hooks and "forward" not in vars(head) and
            type(head.weight) in (torch.nn.Parameter, torch.Tensor) and head.weight.layout == torch.strided)


def fits(unmade):
    hidden, weight = cast(unmade.hidden, unmade.head.weight)
    return (hidden.dtype == weight.dtype and hidden.dtype in DTYPES and hidden.device == weight.device and
            hidden.device.type in ("cpu", "cuda", "meta") and forward_ad._current_level < 0)


def loss_for_causal_lm(unmade, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **ignored):
    """transformers' ForCausalLMLoss: tokens so far tell the next one."""
    if shift_labels is None:
        shift_labels = torch.nn.functional.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    hidden, head = unmade.hidden.flatten(0, -2), unmade.head
    target = shift_labels.reshape(-1).to(hidden.device)
    reduction = "mean" if num_items_in_batch is None else "sum"
    loss = loss_of(hidden, head.weight, target, head.bias, reduction=reduction, ignore_index=ignore_index)
    if num_items_in_batch is None:
        return loss
    return loss / (num_items_in_batch.to(loss.device) if torch.is_tensor(num_items_in_batch) else num_items_in_batch)


def loss_function(former, logits, labels, vocab_size, *args, **words):
    """former, which a model has chosen; ours where that is ForCausalLMLoss of logits that nobody has made."""
    if isinstance(logits, Unmade):
        same = former is sys.modules["transformers.loss.loss_utils"].ForCausalLMLoss
        if same and logits.logits is None and vocab_size == logits.head.weight.shape[0] and fits(logits):
            return loss_for_causal_lm(logits, labels, vocab_size, *args, **words)
        logits = logits.tensor()
    return former(logits, labels, vocab_size, *args, **words)


def without_logits(output):
    """A model's output: logits that nobody has made are None, or left out of a tuple."""
    if isinstance(output, tuple):
        output = (x.logits if isinstance(x, Unmade) else x for x in output)
        return tuple(x for x in output if x is not None)
    return type(output)(**{n: x.logits if isinstance(x, Unmade) else x for n, x in output.items()})


class CausalLMByLoss:
    """A model of transformers that gives a head's result to its loss function."""

    @staticmethod
    def overrides(own, looks):
        place = list(inspect.signature(own.forward).parameters).index("labels") - 1

        @functools.wraps(own.forward)
        def forward(self, *args, **words):
            skip = words.pop("skip_logits", None)
            labels = words.get("labels", args[place] if len(args) > place else None)
            head = self._modules.get(self.rooftile_form)
            if labels is None or not (self.training if skip is None else skip) or not is_head(head):
                return own.forward(self, *args, **words)
            head.rooftile_waits = True
            try:
                output = own.forward(self, *args, **words)
            finally:
                head.rooftile_waits = False
            return without_logits(output)

        former = own.loss_function
        return {"forward": forward, "loss_function": property(lambda self: functools.partial(loss_function, former.fget(self)), former.fset)}

    @staticmethod
    def forms(module):
        """Whether it is one."""
        own = type(module)
        code = getattr(inspect.unwrap(own.forward), "__code__", None)
        return ("linear_cross_entropy" in functions and "transformers.modeling_utils" in sys.modules and code is not None and
                "loss_function" in code.co_names and "labels" in code.co_varnames and isinstance(getattr(own, "loss_function", None), property))

    @staticmethod
    def trial(module, made):
        """(its head's name, ""), or (None, why it keeps its own loss). made: what makes classes."""
        head, base = module.get_output_embeddings(), getattr(module, "base_model_prefix", "")
        place = next((n for n, child in module._modules.items() if child is head), None)
        if type(head) not in (torch.nn.Linear, nn.Linear) or getattr(head, "activation", "none") != "none":
            return None, f"its head is {type(head).__name__}, must be Linear"
        if place is None or not isinstance(module._modules.get(base), torch.nn.Module):
            return None, "its head or the model below is not its own module"
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            try:
                reason = trial_of_loss(module, place, base, made)
            except Exception as error:  # of a class that nobody here knows
                reason = f"a trial of its loss failed: {error}"
        return (None, reason) if reason else (place, "")


class Output:
    """A model's below the head: hidden states, and nothing else."""

    def __init__(self, hidden):
        self.last_hidden_state = hidden

    def __getattr__(self, name):
        return None

    def __getitem__(self, which):
        return (self.last_hidden_state,)[which]


class Below(torch.nn.Module):
    """In the place of the model below the head."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden

    def forward(self, *args, **words):
        return Output(self.hidden)


def trial_of_loss(module, place, base, made):
    """A copy of a model with few channels and nothing below the head, whose loss must be the model's own."""
    own, head = type(module), module._modules[place]
    torch.manual_seed(1)
    device = "cpu" if head.weight.is_meta else head.weight.device
    small = torch.nn.Linear(4, head.out_features, bias=head.bias is not None).to(device)
    labels = torch.randint(head.out_features, (2, 5)).to(device)
    labels[0, 2] = -100
    other = copy.copy(module)
    other.__dict__.update(_modules={**module._modules, base: Below(torch.randn(2, 5, 4).to(device)), place: small}, _forward_hooks={},
                          _forward_pre_hooks={})
    for count in (None, 6):
        words = {"input_ids": labels.clamp_min(0), "labels": labels} | ({"num_items_in_batch": count} if count else {})
        expected = own.forward(other, **words)
        other.__class__, small.__class__ = made(own, CausalLMByLoss, place), made(torch.nn.Linear, HeadByLoss)
        try:
            actual = other.forward(skip_logits=True, **words)
        finally:
            other.__class__, small.__class__ = own, torch.nn.Linear
        if actual.get("logits") is not None:
            return "its logits are changed before the loss, or its loss is not ForCausalLMLoss"
        if not torch.allclose(actual["loss"], expected["loss"], rtol=1e-5):
            return "a trial of its loss gave another number than rooftile's"
    return ""
