#!/usr/bin/env python3
"""A training step of small models on a CPU (hidden 512, 2 threads), patched by rooftile.torch.patch over PyTorch's eager modules:

    bench/cpu_models.py                       # a Llama- and a GPT-2-shaped model, of two blocks each
    bench/cpu_models.py --own-threads         # rooftile on its own threads beside PyTorch's, which spin
    bench/cpu_models.py --json FILE           # also as JSON

A round times one step of each, in turn; the figures are the median and the quartiles of the rounds' ratios."""

import argparse
import copy
import importlib.util
import json
import pathlib
import statistics
import time

import torch
from torch import nn

import rooftile.torch

spec = importlib.util.spec_from_file_location("llama_block", pathlib.Path(__file__).with_name("llama_block.py"))
llama_block = importlib.util.module_from_spec(spec)
spec.loader.exec_module(llama_block)

SIZE = {"hidden": 512, "intermediate": 1376, "heads": 8, "layers": 2, "vocabulary": 1024}


class Gpt2Block(nn.Module):
    def __init__(self, hidden, intermediate, heads):
        super().__init__()
        self.ln_1, self.attention, self.ln_2 = nn.LayerNorm(hidden), llama_block.Attention(hidden, heads), nn.LayerNorm(hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU("tanh"), nn.Linear(4 * hidden, hidden))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(llama_block.Model):
    def __init__(self, size):
        super().__init__(size)
        self.blocks = nn.Sequential(*[Gpt2Block(size["hidden"], 0, size["heads"]) for _ in range(size["layers"])])
        self.norm = nn.LayerNorm(size["hidden"])


MODELS = {"llama": llama_block.Model, "gpt2": Gpt2}


def on_own_threads(threads):
    """As it was without PyTorch's: every call gets a queue."""
    from rooftile import _functions
    from rooftile.torch import _operators

    queue = rooftile.Queue("cpu", threads=threads)
    for name, function in _operators.known.items():
        function.kernel = lambda *args, kernel=_functions.below_gradients[name], **words: kernel(*args, queue=queue, **words)


def step_of(model, tokens):
    def step():
        begin = time.perf_counter()
        logits = model.head(model.norm(model.blocks(model.embedding(tokens))))
        loss = nn.functional.nll_loss(model.log_softmax(logits).flatten(0, 1), tokens.flatten())
        loss.backward()
        model.zero_grad()
        return time.perf_counter() - begin

    return step


def measure(kind, size, batch, tokens, rounds):
    torch.manual_seed(0)
    eager = MODELS[kind](size)
    patched = copy.deepcopy(eager)
    replaced = rooftile.torch.patch(patched).replaced
    given = torch.randint(0, size["vocabulary"], (batch, tokens))
    steps = step_of(eager, given), step_of(patched, given)
    ratios, times = [], ([], [])
    for i in range(rounds + 2):
        order = (0, 1) if i % 2 else (1, 0)
        took = [0.0, 0.0]
        for k in order:
            took[k] = steps[k]()
        if i >= 2:
            ratios.append(took[0] / took[1])
            for k in (0, 1):
                times[k].append(took[k])
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"model": kind, "modules": len(replaced), "eager_ms": 1e3 * statistics.median(times[0]),
            "patched_ms": 1e3 * statistics.median(times[1]), "eager_over_patched": [middle, low, high]}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=SIZE["hidden"])
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--own-threads", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args(argv)
    torch.set_num_threads(given.threads)
    if given.own_threads:
        on_own_threads(given.threads)
    size = SIZE | {"hidden": given.hidden, "intermediate": given.hidden * 43 // 16}
    rows = [measure(kind, size, given.batch, given.tokens, max(given.rounds, 2)) for kind in MODELS]
    print(f"{'':8}{'eager, ms':>12}{'patched, ms':>12}   eager over patched: median (quartiles)")
    for row in rows:
        middle, low, high = row["eager_over_patched"]
        print(f"{row['model']:8}{row['eager_ms']:12.2f}{row['patched_ms']:12.2f}   {middle:.2f} ({low:.2f} to {high:.2f})")
    if given.json:
        record = {"rooftile": rooftile.__version__, "torch": torch.__version__, "threads": given.threads, "size": size,
                  "batch": given.batch, "tokens": given.tokens, "rounds": given.rounds, "own_threads": given.own_threads, "models": rows}
        pathlib.Path(given.json).write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
