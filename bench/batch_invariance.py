#!/usr/bin/env python3
"""What bits that do not depend on the batch cost in a transformer's products, bf16, on a GPU. rooftile.gemm adds each element of y
up in one chain of K, whatever M is. Beside it, by the same kernels: K cut into 2, 4 or 8 parts, whose products are then added up.

    bench/batch_invariance.py                                          # the four products of Llama 3 8B and of 70B, 1 to 4096 rows
    bench/batch_invariance.py --json bench/h200_batch_invariance.json

Each way is one CUDA graph of calls with as many weights as leave L2 no use; the graphs take turns, and the medians count. The price
of a shape is the time of the one chain beyond the fastest way's; the last line has the geometric mean."""

import argparse
import datetime
import json
import math
import statistics

import torch

import rooftile

WEIGHTS = {"8B qkv": (6144, 4096), "8B out": (4096, 4096), "8B up": (28672, 4096), "8B down": (4096, 14336),
           "70B qkv": (10240, 8192), "70B out": (8192, 8192), "70B up": (57344, 8192), "70B down": (8192, 28672)}  # fmt: skip
ROWS = (1, 16, 64, 128, 256, 512, 1024, 4096)
CUTS = (2, 4, 8)
COLD = 256 << 20  # bytes of weights in a graph at least: five times an H200's L2


def whole(x, w, y):
    rooftile.gemm(x, w.mT, out=y)


def cut(parts):
    def run(x, w, y):
        (m, k), n = x.shape, w.shape[0]
        sums = torch.empty(parts, m, n, dtype=x.dtype, device=x.device)
        rooftile.gemm(x.view(m, parts, k // parts).transpose(0, 1), w.view(n, parts, k // parts).permute(1, 2, 0), out=sums)
        torch.sum(sums, 0, out=y)
    return run


WAYS = {"whole": whole, **{f"cut by {parts}": cut(parts) for parts in CUTS}}


def graph_of(way, x, weights, y):
    way(x, weights[0], y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for w in weights:
            way(x, w, y)
    return graph


def measure(rows, n, k, seconds):
    """Microseconds of a call, by way."""
    count = max(1, -(-COLD // (n * k * 2)))
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
    x, y = (torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) for columns in (k, n))
    graphs = {name: graph_of(way, x, weights, y) for name, way in WAYS.items()}
    taken, spent = {name: [] for name in graphs}, 0
    while spent < seconds * 1e6 or len(taken["whole"]) < 7:
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            us = begin.elapsed_time(end) * 1e3
            taken[name].append(us / count)
            spent += us
    return {name: statistics.median(us[2:]) for name, us in taken.items()}  # the first ones warm up


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a shape at least")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU; this program times products on one")

    results, logarithms = [], []
    print(f"{'product':9}{'M':>6}{'N':>7}{'K':>7}" + "".join(f"{way:>10}" for way in WAYS) + f"{'price':>8}")
    for name, (n, k) in WEIGHTS.items():
        for m in ROWS:
            us = measure(m, n, k, options.seconds)
            price = us["whole"] / min(us.values()) - 1
            logarithms.append(math.log1p(price))
            results.append({"product": name, "m": m, "n": n, "k": k, "us": us, "price": price})
            print(f"{name:9}{m:6}{n:7}{k:7}" + "".join(f"{its:10.1f}" for its in us.values()) + f"{price:8.1%}", flush=True)
    mean = math.expm1(statistics.mean(logarithms))
    print(f"price of the same bits in every batch: {mean:.2%}, the geometric mean of {len(results)} products (µs of a call)")
    if options.json:
        record = {"command": f"bench/batch_invariance.py --seconds {options.seconds:g} --json FILE", "gpu": torch.cuda.get_device_name(),
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "versions": {"torch": torch.__version__, "rooftile": rooftile.__version__}, "price": mean, "results": results}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
