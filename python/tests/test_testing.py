"""perf_report: what it measures is in turns and adds up, what it draws is its record, and what cannot be compared is refused."""

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import rooftile
from rooftile import _command, testing
from rooftile.testing import perf_report

SVG = "{http://www.w3.org/2000/svg}"
README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
needs_command = pytest.mark.skipif(_command.path() is None, reason="neither the package nor PATH has the command rooftile")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rows_of(rows):
    return np.random.default_rng(0).standard_normal((rows, 128)).astype(np.float32)


def short(functions, sizes=(4, 64), arguments=rows_of, **more):
    return perf_report("softmax", functions, sizes, arguments, **{"seconds": 0.02, **more})


def test_a_record_adds_up():
    report = short({"NumPy": softmax, "rooftile": rooftile.softmax}, flops=lambda rows: 5 * 128 * rows)
    record = report.record
    assert record["schema"] == 1 and record["machine"]["cpu"] and record["rooftile"] == rooftile.__version__
    assert [(r["variant"], r["shape"]) for r in record["results"]] == [
        ("NumPy", [4, 128]), ("rooftile", [4, 128]), ("NumPy", [64, 128]), ("rooftile", [64, 128])]
    for row in record["results"]:
        rows = row["shape"][0]
        assert row["bytes"] == 2 * 4 * 128 * rows  # each input and each output once
        assert row["flops"] == 5 * 128 * rows
        assert (row["op"], row["dtype"], row["group"], row["series"]) == ("softmax", "f32", "sweep", row["variant"])
        assert (row["backend"], row["cache"]) == ("cpu", "warm")
        assert 7 <= row["n"] <= 101
        assert 0 < row["p5_us"] <= row["median_us"] <= row["p95_us"]
        assert 0 < row["copy_p5_us"] <= row["copy_us"] <= row["copy_p95_us"]
    lines = str(report).splitlines()
    assert lines[0].split() == ["softmax,", "GB/s", "NumPy", "rooftile", "copy"]
    assert [line.split()[0] for line in lines[1:]] == ["4", "64"]
    row = record["results"][1]
    assert lines[1].split()[2] == f"{row['bytes'] / row['median_us'] / 1e3:.3g}"


def test_calls_take_turns():
    calls = []
    report = short({name: lambda x, name=name: calls.append(name) for name in "abc"}, sizes=[1], bytes=1 << 20, check=False)
    turns = re.findall(r"(.)\1*", "".join(calls))
    # Warmed up one by one, counted one by one, then in turns.
    assert "".join(turns) == "abc" * (2 + report.record["results"][0]["n"]), "".join(turns)[-40:]
    counts = [len(run.group()) for run in re.finditer(r"(.)\1*", "".join(calls))][-21:]
    assert min(counts) > 2, f"one call a sample is the clock's time: {counts}"


def test_the_copy_moves_as_many_bytes(monkeypatch):
    counts = []
    monkeypatch.setattr(testing._Timer, "copy", lambda self, count: counts.append(count) or (lambda: None))
    short({"f": softmax})
    assert counts == [4 * 128 * 4, 64 * 128 * 4]  # read once and written once


def test_a_gpu_s_samples_begin_behind_a_flush():
    """The order of what is queued, by a PyTorch that writes it down; times on a GPU: test_torch_on_a_gpu."""
    queued = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            queued.append("mark")

        def elapsed_time(self, end):
            assert queued[-1] == "wait"
            return 0.25  # ms

    class Cuda:
        def device(self, device):
            return contextlib.nullcontext()

        def _sleep(self, cycles):
            queued.append("sleep")

        def synchronize(self):
            queued.append("wait")

    class Torch:
        cuda = Cuda()

    class Flushed:
        def zero_(self):
            queued.append("flush")

    Torch.cuda.Event = Event
    timer = object.__new__(testing._CudaTimer)
    timer.torch, timer.device, timer.flushed = Torch, 0, Flushed()
    times = timer.samples({None: lambda: queued.append("copy"), "f": lambda: queued.append("f")}, 0)
    assert times[None] == times["f"] == [250.0] * 10
    turn = ["flush", "mark", "copy", "mark", "flush", "mark", "f", "mark"]
    assert queued == ["sleep", *turn, "wait", "sleep", *turn * 10, "wait"]


def test_one_that_takes_three_times_as_long_says_so():
    x = np.ones(1 << 16, np.float32)

    def often(times):
        def function(x):
            for _ in range(times):
                y = np.sqrt(x)
            return y

        return function

    rows = short({"once": often(1), "four times": often(4)}, [1 << 16], lambda n: x[:n], seconds=0.2).record["results"]
    assert 2.5 < rows[1]["p5_us"] / rows[0]["p5_us"] < 6
    assert rows[0]["copy_us"] == rows[1]["copy_us"]


def test_bytes_and_arguments():
    def update(x, y, alpha):
        y += alpha * x
        return y

    def pair(n):
        return np.ones(n, np.float64), np.ones(n, np.float64), 1e-9

    row = short({"update": update}, [1000], pair).record["results"][0]
    assert row["bytes"] == 16000 and row["dtype"] == "f64"  # the result is an argument
    assert short({"update": update}, [1000], pair, bytes=lambda n: 24 * n).record["results"][0]["bytes"] == 24000
    assert short({"update": update}, [1000], pair, bytes=5).record["results"][0]["bytes"] == 5
    many = short({"split": lambda x: {"a": x + 1, "b": [x + 2, None, 3]}}, [8], lambda n: np.zeros(n, np.int64))
    assert many.record["results"][0]["bytes"] == 3 * 64
    named = short({"f": lambda x: x + 0}, ["small", (2, 3)], lambda size: np.ones(4 if size == "small" else size, np.float16))
    assert [(r["size"], r["shape"]) for r in named.record["results"]] == [("small", [4]), ("(2, 3)", [2, 3])]


@pytest.mark.parametrize("functions, more, sentence", [
    ({}, {}, "functions is empty"),
    ({"f": softmax}, {"sizes": []}, "sizes is empty"),
    ({"f": softmax, "g": lambda x: softmax(x) * 1.01}, {}, "in size 4: 'g' computes something else than 'f': [0-9]+ of 512 elements are"),
    ({"f": softmax, "g": lambda x: softmax(x)[1:]}, {}, r"'g' returns an array of shape \(3, 128\), 'f' one of \(4, 128\)"),
    ({"f": softmax, "g": lambda x: (softmax(x), x)}, {}, "'g' returns 2 arrays, 'f' returns 1"),
    ({"f": softmax, "g": lambda x: np.full_like(x, np.nan)}, {}, "'g' computes something else"),
    ({"f": lambda n: None}, {"arguments": lambda n: (n,)}, "moves 0 bytes in size 4; name bytes="),
    ({"f": softmax}, {"bytes": -1}, "moves -1 bytes"),
    ({"f": softmax}, {"bytes": float("nan")}, "moves nan bytes"),
])
def test_what_cannot_be_compared_is_refused(functions, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        short(functions, **more)


def test_arrays_that_nobody_can_wait_for_are_refused():
    class OnDevice(np.ndarray):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(ValueError, match="a OnDevice of .* is on a device"):
        short({"f": lambda x: x}, arguments=lambda n: np.zeros(n).view(OnDevice))


def test_check_false_times_all_the_same():
    rows = short({"f": softmax, "g": lambda x: x}, check=False).record["results"]
    assert len(rows) == 4


def test_nan_and_infinity_are_compared_as_they_are():
    x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    short({"f": lambda x: x * 1, "g": lambda x: x + 0}, [4], lambda n: x)
    with pytest.raises(ValueError, match="computes something else"):
        short({"f": lambda x: x * 1, "g": lambda x: np.nan_to_num(x, nan=np.nan, posinf=1, neginf=-np.inf)}, [4], lambda n: x)


def test_an_error_of_a_function_is_its_own():
    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        short({"broken": broken})


@needs_command
def test_its_picture_is_its_record(tmp_path):
    report = short({"NumPy <mine>": softmax, "rooftile": rooftile.softmax}, [1, 8, 64, 512])
    paths = report.plot(tmp_path / "plots")
    assert paths[0].endswith("plots/softmax_f32.svg") and all(os.path.getsize(path) > 100 for path in paths)
    tree = xml.parse(paths[0]).getroot()
    lines = [g for g in tree.iter(SVG + "g") if g.get("class") == "series"]
    assert [g.find(SVG + "title").text for g in lines] == ["NumPy <mine>", "rooftile"]
    for line in lines:
        assert len(list(line.iter(SVG + "path"))) == 4
    says = tree.find(SVG + "desc").text
    row = report.record["results"][-1]
    assert "softmax, f32" in says and "thread" not in says
    assert "rooftile: " in says and f"{row['bytes'] // 1024} KiB" in says
    # Equal rates of two lines stand at equal heights: the last mark of each, by the copy's ticks.
    marks = [list(line.iter(SVG + "path"))[-1].get("transform")[10:-1].split() for line in lines]
    rates = [math.log(r["bytes"] / r["median_us"]) for r in report.record["results"][-2:]]
    assert marks[0][0] == marks[1][0]
    assert abs(rates[0] - rates[1]) < 0.05 or (rates[0] > rates[1]) == (float(marks[0][1]) < float(marks[1][1]))
    report.save(tmp_path / "mine.json")
    for words in (["plot", "mine.json", "again"], ["report", "--from", "mine.json", "--out", "mine.html"]):
        subprocess.run([_command.path(), *words], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "again/softmax_f32.svg").read_bytes() == pathlib.Path(paths[0]).read_bytes()
    assert json.loads((tmp_path / "mine.json").read_text()) == report.record


@needs_command
def test_a_picture_that_cannot_be_is_a_sentence(tmp_path):
    one = short({"f": softmax}, [4])
    with pytest.raises(RuntimeError, match="rooftile: -: holds no speed against size"):
        one.plot(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="is not a folder"):
        short({"f": softmax}).plot(tmp_path / "file")


def test_without_the_command_a_picture_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "path", lambda: None)
    report = short({"f": softmax})
    assert report.record["machine"] == {"cpu": "a CPU"}
    with pytest.raises(RuntimeError, match="neither in the package nor on PATH"):
        report.plot(tmp_path)


@needs_command
def test_the_readme_s_example_runs(tmp_path, monkeypatch, capsys):
    blocks = [b for b in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "perf_report" in b]
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[0], "README.md", "exec"), {})
    assert "softmax, GB/s" in capsys.readouterr().out
    assert (tmp_path / "plots/softmax_f32.svg").exists() and (tmp_path / "softmax.json").exists()


def test_torch_on_the_cpu():
    torch = pytest.importorskip("torch")

    def make(rows):
        return torch.randn(rows, 128, dtype=torch.bfloat16)

    functions = {"PyTorch": lambda x: torch.softmax(x, -1), "rooftile": rooftile.softmax}
    rows = short(functions, arguments=make).record["results"]
    assert [r["dtype"] for r in rows] == ["bf16"] * 4 and rows[0]["bytes"] == 2 * 2 * 128 * 4
    assert all(r["backend"] == "cpu" and r["copy_us"] > 0 for r in rows)
    with pytest.raises(ValueError, match="'half' computes something else"):
        short({**functions, "half": lambda x: torch.softmax(x, -1) / 2}, arguments=make)


def test_torch_on_no_device():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="a tensor is on meta"):
        short({"f": lambda x: x}, arguments=lambda n: torch.zeros(n, device="meta"), check=False)


def test_jax_is_waited_for():
    jax = pytest.importorskip("jax")
    n = 384

    def product(x):
        return x @ x @ x @ x

    def make(n):
        return jax.device_put(jax.numpy.ones((n, n), jax.numpy.float32) / n, jax.devices("cpu")[0])

    row = short({"JAX": jax.jit(product)}, [n], make, flops=6 * n**3).record["results"][0]
    assert row["dtype"] == "f32" and row["backend"] == "cpu"
    # A call that is not waited for returns within some 20 µs; 340 MFLOP take longer than 100 on whatever there is.
    assert row["p5_us"] > 100


def test_torch_on_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")

    def make(rows):
        return torch.randn(rows, 4096, dtype=torch.bfloat16, device="cuda")

    functions = {"PyTorch": lambda x: torch.softmax(x, -1), "rooftile": rooftile.softmax}
    record = short(functions, [64, 8192], make, seconds=0.2).record
    assert record["machine"]["gpu"] == torch.cuda.get_device_name()
    for row in record["results"]:
        assert (row["backend"], row["cache"]) == ("cuda", "cold")
        assert row["n"] >= 7 and 0 < row["p5_us"] <= row["median_us"] <= row["p95_us"]
    large = record["results"][2:]
    # From memory, 128 MiB: neither faster than any GPU's memory nor 50 times slower than the copy.
    for row in large:
        assert 0.02 < row["copy_us"] / row["median_us"] < 2
        assert row["bytes"] / row["p5_us"] / 1e3 < 10_000
