#!/usr/bin/env python3
"""By how much a process's peak memory grows on a CPU in the loss of a language model's head: rooftile.torch.linear_cross_entropy
beside PyTorch's F.cross_entropy(F.linear(hidden, weight), target), each in a process of its own (Linux).
--model: in a training step of a Llama of one layer, as transformers computes it and after rooftile.torch.patch(model, loss=True).

    bench/loss_memory.py                              # 4096 tokens, 256 channels, 32,000 classes
    bench/loss_memory.py --tokens 1024 --classes 8000
    bench/loss_memory.py --model

The last line is the loss of the bf16 inputs in f64."""

import argparse
import subprocess
import sys

import torch
from torch.nn.functional import cross_entropy, linear

import rooftile.torch

LOSSES = {"PyTorch": lambda h, w, y: cross_entropy(linear(h, w), y), "rooftile": lambda h, w, y: rooftile.torch.linear_cross_entropy(h, w, y).sum()}


def inputs(sizes, dtype):
    torch.manual_seed(0)
    hidden = torch.randn(sizes.tokens, sizes.channels).to(dtype)
    weight = (torch.randn(sizes.classes, sizes.channels) / sizes.channels**0.5).to(dtype)
    return hidden, weight, torch.randint(sizes.classes, (sizes.tokens,))


def peak():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) / 1024


def grown(call):
    """By how many MiB a call lets the peak grow, and its result."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is what there is now
    before = peak()
    result = call()
    return peak() - before, result


def measure_model(sizes, who, dtype):
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=sizes.classes, hidden_size=sizes.channels, intermediate_size=2 * sizes.channels, num_hidden_layers=1,
                                      num_attention_heads=4, max_position_embeddings=sizes.tokens, use_cache=False)
    model = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype)).train()
    if who == "patched":
        rooftile.torch.patch(model, loss=True)
    tokens = torch.randint(sizes.classes, (1, sizes.tokens))

    def step():
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        return loss

    grew, loss = grown(step)
    print(f"{who:9}  {dtype:9}  a training step  {grew:6.0f} MiB  loss {loss.item():.4f}")


def measure(sizes, who, dtype, backward):
    hidden, weight, target = inputs(sizes, getattr(torch, dtype))

    def step():
        loss = LOSSES[who](hidden.requires_grad_(backward), weight.requires_grad_(backward), target)
        if backward:
            loss.backward()
        return loss

    grew, loss = grown(step)
    print(f"{who:9}  {dtype:9}  {'forward and backward' if backward else 'forward':20}  {grew:6.0f} MiB  loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, size in {"tokens": 4096, "channels": 256, "classes": 32000}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--model", action="store_true", help="a training step of a model")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    sizes = parser.parse_args()
    if sizes.one and sizes.model:
        return measure_model(sizes, *sizes.one[:2])
    if sizes.one:
        return measure(sizes, sizes.one[0], sizes.one[1], sizes.one[2] == "1")
    for dtype in ("float32", "bfloat16"):
        for backward in "1" if sizes.model else "01":
            for who in ("own", "patched") if sizes.model else LOSSES:
                subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", who, dtype, backward], check=True)
    if sizes.model:
        return
    hidden, weight, target = inputs(sizes, torch.bfloat16)
    parts = [cross_entropy(linear(h.double(), weight.double()), y, reduction="sum").item() for h, y in zip(hidden.split(512), target.split(512))]
    print(f"exact: {sum(parts) / sizes.tokens:.4f}")


if __name__ == "__main__":
    main()
