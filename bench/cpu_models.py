#!/usr/bin/env python3
"""A training step of small models on a CPU (hidden 512, 2 threads), patched by rooftile.torch.patch over PyTorch's eager modules:

    bench/cpu_models.py                       # shaped as Llama, Gemma, GPT-2, BERT and T5's encoder, of two blocks each
    bench/cpu_models.py --models gemma,t5     # some of them
    bench/cpu_models.py --own-threads         # rooftile on its own threads beside PyTorch's, which spin
    bench/cpu_models.py --json FILE           # also as JSON

A round times one step of each, in turn; the figures are the median and the quartiles of the rounds' ratios. The last line is
the medians' geometric mean. Attention and the products are PyTorch's in both."""

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


class BertBlock(Gpt2Block):
    """Its norms come last."""

    def __init__(self, hidden, intermediate, heads):
        super().__init__(hidden, intermediate, heads)
        self.mlp[1] = nn.GELU()

    def forward(self, x):
        x = self.ln_1(x + self.attention(x))
        return self.ln_2(x + self.mlp(x))


class GemmaRMSNorm(nn.Module):
    """Its factor is weight + 1."""

    def __init__(self, hidden):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(hidden)), 1e-6

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight.float())).type_as(x)


class GemmaBlock(llama_block.Block):
    """Norms before and after attention and MLP."""

    def __init__(self, hidden, intermediate, heads):
        super().__init__(hidden, intermediate, heads)
        self.input_norm, self.mlp_norm, self.post_attention, self.post_mlp = (GemmaRMSNorm(hidden) for _ in range(4))
        self.mlp.act_fn = nn.GELU("tanh")

    def forward(self, x):
        x = x + self.post_attention(self.attention(self.input_norm(x)))
        return x + self.post_mlp(self.mlp(self.mlp_norm(x)))


class T5Gated(nn.Module):
    def __init__(self, hidden, intermediate):
        super().__init__()
        self.wi_0, self.wi_1 = (nn.Linear(hidden, intermediate, bias=False) for _ in range(2))
        self.wo, self.act, self.dropout = nn.Linear(intermediate, hidden, bias=False), nn.GELU("tanh"), nn.Dropout(0.0)

    def forward(self, x):
        return self.wo(self.dropout(self.act(self.wi_0(x)) * self.wi_1(x)))


class T5Block(llama_block.Block):
    def __init__(self, hidden, intermediate, heads):
        super().__init__(hidden, intermediate, heads)
        self.mlp = T5Gated(hidden, intermediate)


def of_blocks(block, norm):
    class Model(llama_block.Model):
        def __init__(self, size):
            super().__init__(size)
            self.blocks = nn.Sequential(*[block(size["hidden"], size["intermediate"], size["heads"]) for _ in range(size["layers"])])
            self.norm = norm(size["hidden"])

    return Model


MODELS = {"llama": llama_block.Model, "gemma": of_blocks(GemmaBlock, GemmaRMSNorm), "gpt2": of_blocks(Gpt2Block, nn.LayerNorm),
          "bert": of_blocks(BertBlock, nn.LayerNorm), "t5": of_blocks(T5Block, llama_block.RMSNorm)}


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
    done = rooftile.torch.patch(patched)
    assert not done.kept, str(done)
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
    return {"model": kind, "modules": len(done.replaced), "eager_ms": 1e3 * statistics.median(times[0]),
            "patched_ms": 1e3 * statistics.median(times[1]), "eager_over_patched": [middle, low, high]}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=SIZE["hidden"])
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--own-threads", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args(argv)
    kinds = given.models.split(",")
    if set(kinds) - set(MODELS):
        parser.error(f"no model {', '.join(sorted(set(kinds) - set(MODELS)))}; there are {', '.join(MODELS)}")
    torch.set_num_threads(given.threads)
    if given.own_threads:
        on_own_threads(given.threads)
    size = SIZE | {"hidden": given.hidden, "intermediate": given.hidden * 43 // 16}
    rows = [measure(kind, size, given.batch, given.tokens, max(given.rounds, 2)) for kind in kinds]
    print(f"{'':8}{'eager, ms':>12}{'patched, ms':>12}   eager over patched: median (quartiles)")
    for row in rows:
        middle, low, high = row["eager_over_patched"]
        print(f"{row['model']:8}{row['eager_ms']:12.2f}{row['patched_ms']:12.2f}   {middle:.2f} ({low:.2f} to {high:.2f})")
    print(f"{'mean':32}   {statistics.geometric_mean(row['eager_over_patched'][0] for row in rows):.2f}")
    if given.json:
        record = {"rooftile": rooftile.__version__, "torch": torch.__version__, "threads": given.threads, "size": size,
                  "batch": given.batch, "tokens": given.tokens, "rounds": given.rounds, "own_threads": given.own_threads, "models": rows}
        pathlib.Path(given.json).write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
