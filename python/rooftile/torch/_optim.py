"""torch.optim's AdamW and SGD, averages of parameters and clipping on the library's kernels: one call for all tensors."""

import torch

from rooftile import _functions

MEANS = {"m": "exp_avg", "v": "exp_avg_sq", "max_v": "max_exp_avg_sq", "master": "master"}
# Of 8 bits, under names of their own: PyTorch's AdamW would take the codes for means.
CODES = {"m": "exp_avg_codes", "v": "exp_avg_sq_codes"}
ABSMAX = {"m_absmax": "exp_avg_absmax", "v_absmax": "exp_avg_sq_absmax"}
BLOCK = 256  # codes that share a scale
STATES = (*MEANS.values(), *CODES.values(), *ABSMAX.values(), "momentum_buffer")
NO_AMSGRAD = "rooftile.torch.AdamW8bit: amsgrad is True, and there is no largest mean of 8 bits; use rooftile.torch.AdamW"
OWN = ("master_weights", "min_8bit_size")
HALVES = (torch.float16, torch.bfloat16)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """As torch.nn.utils.clip_grad_norm_ with norm_type 2, but that the norm is computed and returned in f32 for any gradients.

    Nothing waits for the GPU, unless error_if_nonfinite.
    """
    if float(norm_type) != 2:
        raise ValueError(f"rooftile.torch.clip_grad_norm_: norm_type is {norm_type}, must be 2; use torch.nn.utils.clip_grad_norm_")
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    together = {}  # by device: one call each
    for p in parameters:
        if p.grad is None:
            continue
        if p.grad.is_sparse:
            raise RuntimeError("rooftile.torch.clip_grad_norm_: a gradient is sparse; use torch.nn.utils.clip_grad_norm_")
        together.setdefault(p.grad.device, []).append(p.grad.detach())
    if not together:
        return torch.tensor(0.0)
    norms = [_functions.public["grad_norm"](gradients) for gradients in together.values()]
    norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]))
    if error_if_nonfinite and not torch.isfinite(norm):
        raise RuntimeError(f"rooftile.torch.clip_grad_norm_: the norm is {norm.item()}, so it cannot be clipped; "
                           "pass error_if_nonfinite=False to scale by it anyway")
    if float(max_norm) != float("inf"):
        for device, gradients in together.items():
            _functions.public["clip_by_norm"](gradients, norm.to(device), max_norm=float(max_norm))
    return norm


def get_ema_multi_avg_fn(decay=0.999):
    """As torch.optim.swa_utils.get_ema_multi_avg_fn; averages in f32 of parameters of 16 bits, too."""
    others = torch.optim.swa_utils.get_ema_multi_avg_fn(decay)

    @torch.no_grad()
    def ema_update(averages, parameters, count):
        if averages[0].dtype in (torch.float32, *HALVES):
            _functions.public["ema"](list(averages), list(parameters), decay=float(decay))
        else:
            others(averages, parameters, count)

    return ema_update


class WithMasters:
    """What AdamW and SGD share: states of other dtypes than their parameters'."""

    def wants_f32(self, p):
        return self.master_weights and p.dtype in HALVES

    def __getstate__(self):  # of a copy: PyTorch's forgets what it does not know
        return {**super().__getstate__(), **{name: its for name, its in vars(self).items() if name in OWN}}

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        # PyTorch's rounds each state to its parameter's dtype.
        places = [i for group in state_dict["param_groups"] for i in group["params"]]
        for i, p in zip(places, (p for group in self.param_groups for p in group["params"])):
            for name, value in state_dict["state"].get(i, {}).items():
                if name in STATES and value is not None and value.dtype in (torch.float32, torch.uint8):
                    self.state[p][name] = value.to(p.device, copy=True)
            if isinstance(self.state[p].get("step"), torch.Tensor):  # PyTorch's keeps the other one's counter
                self.state[p]["step"] = self.state[p]["step"].clone()


def with_gradients(group, name):
    for p in group["params"]:
        if p.grad is None:
            continue
        if p.grad.is_sparse:
            raise RuntimeError(f"rooftile.torch.{name}: a gradient is sparse; use torch.optim.{'SGD' if name == 'SGD' else 'SparseAdam'}")
        yield p


class AdamW(WithMasters, torch.optim.AdamW):
    """As torch.optim.AdamW, whose state_dict it takes and gives.

    master_weights: of each parameter of 16 bits the optimiser keeps one of f32, and both means in f32; state_dict has it as
    "master", beside PyTorch's own names.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False,
                 master_weights=False):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, foreach=False)
        self.master_weights = master_weights

    def begin(self, p, amsgrad):
        """A parameter's state before its first step."""
        state = self.state[p]
        if state:
            return state
        f32 = self.wants_f32(p)
        wide = {"dtype": torch.float32} if f32 else {}
        state["step"] = torch.zeros((), dtype=torch.float32)  # on the host, as PyTorch has it: no step waits for a GPU
        for name in ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else [])):
            state[name] = torch.zeros_like(p, memory_format=torch.preserve_format, **wide)
        if f32:
            state["master"] = p.detach().clone(memory_format=torch.preserve_format).float()
        return state

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            together = {}  # by device, number of the step and bits of the means: one call each
            for p in with_gradients(group, type(self).__name__):
                state = self.begin(p, group["amsgrad"])
                state["step"] += 1
                small = CODES["m"] in state
                together.setdefault((p.device, int(state["step"]), small), []).append((p, state))
            for (_, number, small), items in together.items():
                if small:
                    self.update(group, items, "adamw_8bit", {**CODES, **ABSMAX, "master": "master"}, step=number)
                else:
                    self.update(group, items, "adamw", MEANS, step=number, l2=not group.get("decoupled_weight_decay", True))
        return loss

    def update(self, group, items, function, names, **numbers):
        """One step of parameters that have as many behind them; `names`: of the operands' states."""
        lists = {o: [state.get(name) for _, state in items] for o, name in names.items()}
        given = {o: its for o, its in lists.items() if any(t is not None for t in its)}  # masters of some, perhaps
        _functions.public[function](
            [p for p, _ in items], [p.grad for p, _ in items], **given, lr=float(group["lr"]), beta1=float(group["betas"][0]),
            beta2=float(group["betas"][1]), eps=group["eps"], weight_decay=group["weight_decay"], maximize=group["maximize"],
            **numbers)


class AdamW8bit(AdamW):
    """As torch.optim.AdamW, with means of one byte per element and an f32 for each 256 of them, as bitsandbytes' AdamW8bit.

    min_8bit_size: parameters with fewer elements have means of f32, and so have those whose state comes from
    torch.optim.AdamW's state_dict. master_weights: as AdamW's.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False,
                 master_weights=False, min_8bit_size=4096):
        if amsgrad:
            raise ValueError(NO_AMSGRAD)
        if min_8bit_size < 0:
            raise ValueError(f"rooftile.torch.AdamW8bit: min_8bit_size is {min_8bit_size}, must be 0 or more")
        self.min_8bit_size = min_8bit_size
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, master_weights=master_weights)

    def begin(self, p, amsgrad):
        if amsgrad:
            raise ValueError(NO_AMSGRAD)
        state = self.state[p]
        if state:
            return state
        state["step"] = torch.zeros((), dtype=torch.float32)
        if p.numel() < self.min_8bit_size:
            for name in (MEANS["m"], MEANS["v"]):
                state[name] = torch.zeros_like(p, memory_format=torch.preserve_format, dtype=torch.float32)
        else:
            for codes, absmax in zip(CODES.values(), ABSMAX.values()):
                state[codes] = torch.zeros_like(p, memory_format=torch.preserve_format, dtype=torch.uint8)
                state[absmax] = torch.zeros((p.numel() + BLOCK - 1) // BLOCK, dtype=torch.float32, device=p.device)
        if self.wants_f32(p):
            state["master"] = p.detach().clone(memory_format=torch.preserve_format).float()
        return state


class SGD(WithMasters, torch.optim.SGD):
    """As torch.optim.SGD, whose state_dict it takes and gives.

    master_weights: of each parameter of 16 bits the optimiser keeps one of f32, and the momentum buffer in f32; state_dict has it
    as "master", beside PyTorch's own name.
    """

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 master_weights=False):
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize, foreach=False)
        self.master_weights = master_weights

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            together = {}  # by device, and whether it is the first step: one call each
            for p in with_gradients(group, "SGD"):
                state, f32 = self.state[p], self.wants_f32(p)
                if f32 and "master" not in state:
                    state["master"] = p.detach().clone(memory_format=torch.preserve_format).float()
                first = group["momentum"] != 0 and state.get("momentum_buffer") is None
                if first:  # which writes it, unread
                    state["momentum_buffer"] = torch.empty_like(p, dtype=torch.float32 if f32 else p.dtype,
                                                                memory_format=torch.preserve_format)
                together.setdefault((p.device, first), []).append((p, state))
            for (_, first), items in together.items():
                lists = {"master": [state.get("master") for _, state in items]}
                if group["momentum"] != 0:
                    lists["momentum_buffer"] = [state["momentum_buffer"] for _, state in items]
                _functions.public["sgd"](
                    [p for p, _ in items], [p.grad for p, _ in items],
                    **{name: its for name, its in lists.items() if any(t is not None for t in its)}, lr=float(group["lr"]),
                    momentum=float(group["momentum"]), dampening=float(group["dampening"]) if group["momentum"] != 0 else 0.0,
                    weight_decay=float(group["weight_decay"]), nesterov=group["nesterov"], maximize=group["maximize"],
                    step=1 if first else 2)
        return loss
