"""Calls on PyTorch's tensors run on PyTorch's own threads."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rooftile

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "cpu_models.py"
openmp = pytest.mark.skipif("parallel backend: OpenMP" not in torch.__config__.parallel_info() or not sys.platform.startswith("linux"),
                            reason="this PyTorch has other threads than OpenMP's")

COUNT = """
import numpy as np, torch, rooftile
def threads():
    return int(next(l for l in open("/proc/self/status") if l.startswith("Threads:")).split()[1])
torch.set_num_threads(3)
x = torch.randn(512, 512)
expected = torch.softmax(x, -1)
before = threads()
seen = []
for n in (3, 1, 2):
    torch.set_num_threads(n)
    assert torch.allclose(rooftile.softmax(x), expected, atol=1e-6)
    seen.append(threads() - before)
before = threads()
queue = rooftile.Queue("cpu", threads=3)
rooftile.softmax(x, queue=queue)
print(max(seen), threads() - before)
"""


@openmp
def test_no_threads_are_added_to_pytorchs():
    said = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True).stdout
    assert said == "0 2\n"


def test_results_do_not_depend_on_the_threads():
    x = torch.randn(301, 1000)
    expected = rooftile.softmax(x.numpy())
    before = torch.get_num_threads()
    try:
        for n in (1, 2, 3, 7):
            torch.set_num_threads(n)
            np.testing.assert_array_equal(rooftile.softmax(x).numpy(), expected)
    finally:
        torch.set_num_threads(before)


def test_a_forked_process_goes_on_without_them():
    """OpenMP's threads do not exist there, and its runtime would wait for them."""
    x = torch.randn(301, 1000)
    expected = rooftile.softmax(x).numpy()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(rooftile.softmax(x).numpy(), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_of_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    x = [torch.randn(301, 500) for _ in range(8)]
    expected = [rooftile.softmax(one.numpy()) for one in x]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for y, e in zip(pool.map(rooftile.softmax, x), expected, strict=True):
                np.testing.assert_array_equal(y.numpy(), e)


def test_the_bench_of_models(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("cpu_models", BENCH)
    cpu_models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cpu_models)
    before = torch.get_num_threads()
    try:
        assert cpu_models.main(["--hidden", "64", "--tokens", "8", "--rounds", "2", "--json", str(tmp_path / "models.json")]) == 0
    finally:
        torch.set_num_threads(before)
    rows = json.loads((tmp_path / "models.json").read_text())["models"]
    assert [row["model"] for row in rows] == ["llama", "gemma", "gpt2", "bert", "t5"] and all(row["modules"] >= 6 for row in rows)
    said = capsys.readouterr().out
    assert "eager over patched" in said and "mean" in said
