"""torch.optim's AdamW on the library's kernel: one call for all parameters that are at one step."""

import torch

from rooftile import _functions

MEANS = {"m": "exp_avg", "v": "exp_avg_sq", "max_v": "max_exp_avg_sq", "master": "master"}


class AdamW(torch.optim.AdamW):
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
        f32 = self.master_weights and p.dtype in (torch.float16, torch.bfloat16)
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
            together = {}  # by device and number of the step: one call each
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.is_sparse:
                    raise RuntimeError("rooftile.torch.AdamW: a gradient is sparse; use torch.optim.SparseAdam")
                state = self.begin(p, group["amsgrad"])
                state["step"] += 1
                together.setdefault((p.device, int(state["step"])), []).append((p, state))
            for (_, number), items in together.items():
                lists = {o: [state.get(name) for _, state in items] for o, name in MEANS.items()}
                optional = {o: lists[o] for o in ("max_v", "master") if any(t is not None for t in lists[o])}
                _functions.public["adamw"](
                    [p for p, _ in items], [p.grad for p, _ in items], lists["m"], lists["v"], **optional,
                    lr=float(group["lr"]), beta1=float(group["betas"][0]), beta2=float(group["betas"][1]), eps=group["eps"],
                    weight_decay=group["weight_decay"], maximize=group["maximize"],
                    l2=not group.get("decoupled_weight_decay", True), step=number)
        return loss

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        # PyTorch's rounds each state to its parameter's dtype.
        places = [i for group in state_dict["param_groups"] for i in group["params"]]
        for i, p in zip(places, (p for group in self.param_groups for p in group["params"])):
            for name, value in state_dict["state"].get(i, {}).items():
                if name in MEANS.values() and value.dtype == torch.float32:
                    self.state[p][name] = value.to(p.device, copy=True)
