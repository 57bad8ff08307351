#!/usr/bin/env python3
"""What a call of rooftile costs from Python: softmax of a 1x16 f32 tensor, in µs, the ways in turn, the best of --rounds rounds.

    bench/python_calls.py [--rounds N] [--command build/release/bin/rooftile] [--json FILE]     with the package and PyTorch installed

The C++ call is timed by the command rooftile in a process of its own, before and after; the less counts."""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
import torch

import rooftile
import rooftile.torch  # registers torch.ops.rooftile

CALLS = 2000


def cpp_call(command):
    words = [command, "bench", "softmax", "--shape", "1x16", "--dtype", "f32", "--threads", "1", "--no-baselines", "--json", "-"]
    record = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    return next(o["whole_ns"] for o in record["overheads"] if o["name"] == "call") / 1000


def best(seconds, call):
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return min(seconds, (time.perf_counter() - begin) / CALLS * 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=36)
    parser.add_argument("--command", default="rooftile")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()

    torch.set_num_threads(1)
    a = np.random.randn(1, 16).astype(np.float32)
    b, x = np.empty_like(a), torch.from_numpy(a)
    y, traced = torch.empty_like(x), torch.from_numpy(a.copy()).requires_grad_()
    operator = torch.ops.rooftile.softmax
    ways = {
        "rooftile.softmax(x, out=y), NumPy": lambda: rooftile.softmax(a, out=b),
        "rooftile.softmax(x, out=y), PyTorch": lambda: rooftile.softmax(x, out=y),
        "torch.softmax(x, -1, out=y)": lambda: torch.softmax(x, -1, out=y),
        "rooftile.softmax(x), NumPy": lambda: rooftile.softmax(a),
        "rooftile.softmax(x), PyTorch": lambda: rooftile.softmax(x),
        "torch.ops.rooftile.softmax(x, 1.0, False)": lambda: operator(x, 1.0, False),
        "the same, with a gradient": lambda: operator(traced, 1.0, False),
    }
    cpp, us = cpp_call(options.command), dict.fromkeys(ways, float("inf"))
    for _ in range(options.rounds):
        for name, call in ways.items():
            us[name] = best(us[name], call)
    cpp = min(cpp, cpp_call(options.command))
    print(f"{'way':44}{'µs':>8}{'over C++':>10}\n{'C++':44}{cpp:8.2f}")
    for name, its in us.items():
        print(f"{name:44}{its:8.2f}{its - cpp:10.2f}")
    if options.json:
        versions = {"python": sys.version.split()[0], "numpy": np.__version__, "torch": torch.__version__}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**versions, "cpp_us": cpp, "us": us}, file, indent=1)


if __name__ == "__main__":
    main()
