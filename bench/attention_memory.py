#!/usr/bin/env python3
"""By how much a process's peak memory grows on a CPU in attention of S queries and S keys: rooftile's beside the standard form,
softmax(q·kᵀ)·v, in PyTorch; each length in a process of its own (Linux). Inputs do not count; what a call returns does.

    bench/attention_memory.py                               # one head of 64 channels, f32, 256 to 16384 keys
    bench/attention_memory.py --json bench/attention_memory.json

The figure of lesson 49 is drawn from that file."""

import argparse
import datetime
import json
import platform
import subprocess
import sys

import torch
from loss_memory import grown

import rooftile.torch

CHANNELS = 64
LENGTHS = [256 * 4**n for n in range(4)]


def standard(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return (torch.softmax(q @ k.mT / CHANNELS**0.5, -1) @ v).transpose(1, 2)


def flash(q, k, v):
    return rooftile.torch.attention(q, k, v)


FORMS = {"standard form": standard, "rooftile": flash}


def measure(form, length, backward):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, length, 1, CHANNELS, requires_grad=backward) for _ in range(3))
    few = [x[:, :16].detach().requires_grad_(backward) for x in (q, k, v)]

    def step(*inputs):
        y = FORMS[form](*inputs)
        if backward:
            y.sum().backward()

    step(*few)  # libraries load, threads start
    return grown(lambda: step(q, k, v))[0]


def cpu():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        form, length, direction = arguments.one
        return print(measure(form, int(length), direction == "backward"))
    results = []
    for direction in ("forward", "backward"):
        for length in LENGTHS:
            for form in FORMS:
                out = subprocess.run([sys.executable, __file__, "--one", form, str(length), direction], check=True, stdout=subprocess.PIPE, text=True).stdout
                results.append({"op": "attention", "form": form, "direction": direction, "dtype": "f32", "length": length, "mib": round(float(out), 3)})
                print(f"{form:13}  {'forward and backward' if direction == 'backward' else 'forward':20}  {length:6} keys  {results[-1]['mib']:8.1f} MiB", flush=True)
    if arguments.json:
        record = {"command": "bench/attention_memory.py --json FILE", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "machine": {"cpu": cpu()}, "results": results}
        with open(arguments.json, "w") as file:
            file.write(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
