#!/usr/bin/env python3
"""A Llama-shaped model, forward and backward: PyTorch's eager modules, the same patched by rooftile.torch.patch, and with Liger's
kernels. RMS norms, SwiGLU and the log-softmax of the loss are exchanged; matrix products and attention are PyTorch's in all three.

    bench/llama_block.py --device cuda                 # 2 blocks of Llama 3 8B, 4 x 2048 tokens, bf16; needs a GPU
    bench/llama_block.py --small                       # a size for a CPU: a test of this program
    bench/llama_block.py --small --json FILE           # also as JSON

First all train for --steps steps from the same weights on the same tokens. A loss may differ from eager's by --tolerance of it; then
--rounds rounds of a step each, in turn, are timed: the medians, and of each round's ratios the median and the quartiles. Exits with 1
where a loss curve leaves the tolerance."""

import argparse
import copy
import json
import math
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

FULL = {"hidden": 4096, "intermediate": 14336, "heads": 32, "layers": 2, "vocabulary": 8192, "batch": 4, "tokens": 2048}
SMALL = {"hidden": 64, "intermediate": 160, "heads": 4, "layers": 2, "vocabulary": 96, "batch": 2, "tokens": 32}


class RMSNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden)), 1e-5

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * h.to(x.dtype)


class MLP(nn.Module):
    def __init__(self, hidden, intermediate):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(hidden, intermediate, bias=False) for _ in range(2))
        self.down_proj, self.act_fn = nn.Linear(intermediate, hidden, bias=False), nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, hidden))


class Block(nn.Module):
    def __init__(self, hidden, intermediate, heads):
        super().__init__()
        self.input_norm, self.attention = RMSNorm(hidden), Attention(hidden, heads)
        self.mlp_norm, self.mlp = RMSNorm(hidden), MLP(hidden, intermediate)

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        hidden = size["hidden"]
        self.embedding = nn.Embedding(size["vocabulary"], hidden)
        self.blocks = nn.Sequential(*[Block(hidden, size["intermediate"], size["heads"]) for _ in range(size["layers"])])
        self.norm, self.head = RMSNorm(hidden), nn.Linear(hidden, size["vocabulary"], bias=False)
        self.log_softmax = nn.LogSoftmax(-1)

    def logits(self, tokens):
        return self.head(self.norm(self.blocks(self.embedding(tokens))))

    def forward(self, tokens):
        return F.nll_loss(self.log_softmax(self.logits(tokens[:, :-1])).flatten(0, 1).float(), tokens[:, 1:].flatten())


def patched(model):
    import rooftile.torch

    done = rooftile.torch.patch(model)
    assert not done.kept, str(done)
    return model


def with_liger(model):
    """Liger's kernels at the same places; of the loss its cross entropy, since it has no log-softmax."""
    from liger_kernel.transformers import LigerCrossEntropyLoss, LigerRMSNorm
    from liger_kernel.transformers.swiglu import _swiglu_dispatch

    class LigerMLP(MLP):
        def forward(self, x):
            return self.down_proj(_swiglu_dispatch(self.gate_proj(x), self.up_proj(x)))

    class LigerModel(Model):
        def forward(self, tokens):
            return self.cross_entropy(self.logits(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    for module in list(model.modules()):
        if type(module) is MLP:
            module.__class__ = LigerMLP
        for name, child in list(module.named_children()):
            if type(child) is RMSNorm:
                norm = LigerRMSNorm(child.weight.numel(), eps=child.variance_epsilon).to(child.weight)
                norm.weight = child.weight
                setattr(module, name, norm)
    model.cross_entropy = LigerCrossEntropyLoss()
    model.__class__ = LigerModel
    return model


def make(size, device, dtype):
    torch.manual_seed(0)
    model = Model(size)
    for p in model.parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=p.shape[-1]**-0.5)
    model = model.to(device, dtype)
    ways = {"eager": model, "rooftile": patched(copy.deepcopy(model))}
    try:
        if torch.device(device).type != "cuda":
            raise ImportError("its Triton kernels need a GPU")
        ways["Liger"] = with_liger(copy.deepcopy(model))
    except ImportError as error:
        print(f"Liger is left out: {error}")
    return ways


def batches(size, device):
    """Tokens that are worth learning: each follows from the one before it, by a table, in nine of ten places."""
    random = torch.Generator().manual_seed(1)
    table = torch.randperm(size["vocabulary"], generator=random)
    while True:
        tokens = torch.randint(size["vocabulary"], (size["batch"], size["tokens"] + 1), generator=random)
        learnt = torch.rand(tokens.shape, generator=random) < 0.9
        for t in range(1, tokens.shape[1]):
            tokens[:, t] = torch.where(learnt[:, t], table[tokens[:, t - 1]], tokens[:, t])
        yield tokens.to(device)


def curve(model, size, device, steps, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for _, tokens in zip(range(steps), batches(size, device)):
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def timer(device):
    """A clock of the device, and what waits for it: microseconds of calls as they come."""
    if torch.device(device).type != "cuda":
        def measure(call):
            begin = time.perf_counter()
            call()
            return (time.perf_counter() - begin) * 1e6
    else:
        def measure(call):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e3
    return measure


def timed(ways, size, device, rounds):
    tokens, measure = next(batches(size, device)), timer(device)

    def step(model):
        for p in model.parameters():
            p.grad = None
        model(tokens).backward()

    taken = {name: [] for name in ways}
    for turn in range(rounds + 2):
        names = list(ways)[turn % len(ways):] + list(ways)[:turn % len(ways)]
        for name in names:
            us = measure(lambda: step(ways[name]))
            if turn >= 2:  # the first ones warm up
                taken[name].append(us)
    return taken


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--small", action="store_true", help="a size for a CPU")
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.02, help="the learning rate")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--tolerance", type=float, default=0.01, help="of eager's loss, in each step")
    parser.add_argument("--json")
    for name, value in FULL.items():
        parser.add_argument(f"--{name}", type=int, help=f"{value}; with --small {SMALL[name]}")
    options = parser.parse_args(arguments)
    size = {name: getattr(options, name) or value for name, value in (SMALL if options.small else FULL).items()}

    ways = make(size, options.device, getattr(torch, options.dtype))
    name = torch.cuda.get_device_name(options.device) if torch.device(options.device).type == "cuda" else "CPU"
    print(f"{name}, PyTorch {torch.__version__}, {options.dtype}: " + ", ".join(f"{k} {v}" for k, v in size.items()))
    taken = timed(ways, size, options.device, options.rounds)
    curves = {way: curve(model, size, options.device, options.steps, options.rate) for way, model in ways.items()}

    record, fine = {"device": name, "torch": torch.__version__, "dtype": options.dtype, "size": size, "curves": curves}, True
    for way, losses in curves.items():
        worst = max(abs(a - e) / e for a, e in zip(losses, curves["eager"]))
        ok = worst <= options.tolerance and math.isfinite(losses[-1])
        fine = fine and ok
        print(f"{way:9} loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} steps" + ("" if way == "eager" else
              f"; from eager's at most {worst:.2%} of it, {options.tolerance:.2%} {'are allowed' if ok else 'WERE allowed'}"))
    record["us"] = {way: statistics.median(us) for way, us in taken.items()}
    for way, us in taken.items():
        print(f"{way:9} {statistics.median(us):10.0f} us a step")
    for other in ways:
        if other == "rooftile":
            continue
        low, middle, high = statistics.quantiles([b / a for a, b in zip(taken["rooftile"], taken[other])], n=4)
        record[f"over_{other}"] = [low, middle, high]
        print(f"rooftile over {other}: {middle:.3f}x (quartiles {low:.3f} to {high:.3f} of {options.rounds} rounds)")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
