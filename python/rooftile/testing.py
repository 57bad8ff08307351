"""Speed of your own functions against size: what `rooftile bench --plot` does of the library's, in a few lines.

    from rooftile.testing import perf_report

    report = perf_report("softmax", {"NumPy": numpy_softmax, "rooftile": rooftile.softmax}, sizes=[1, 16, 256, 4096],
                         arguments=lambda rows: np.random.randn(rows, 512).astype(np.float32))
    print(report)
    report.plot("plots")

For functions of NumPy, PyTorch (CPU and CUDA) and JAX arrays, and of all else whose calls have returned when they are done.
"""

from __future__ import annotations

import datetime
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rooftile import _command
from rooftile._frameworks import is_jax, is_torch
from rooftile._version import version

__all__ = ["Report", "perf_report"]

_FLUSH_BYTES = 256 << 20  # five times an H200's L2: as the bench's
_SAMPLE_SECONDS = 50e-6  # a sample holds as many calls as take that long: the clock's own time is .1 µs
_LEAST, _MOST = 7, 101  # rounds
_WARM_UP = 3  # calls before the first sample: what compiles or tunes itself does so then
_DLPACK_CPU = 1  # kDLCPU
_BLOCK_SECONDS = 0.1  # so long a GPU's block of queued rounds may take
_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
           "int8": "i8", "uint8": "u8"}
#: How far results may be apart, as a share of the largest number: sums in another order, some roundings.
_TOLERANCES = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}


def perf_report(name: str, functions: Mapping[str, Callable[..., Any]], sizes: Iterable[Any], arguments: Callable[[Any], Any], *,
                bytes: float | Callable[[Any], float] | None = None, flops: float | Callable[[Any], float] = 0,
                seconds: float = 0.5, check: bool = True) -> Report:
    """Times functions side by side in several sizes, beside a copy of the same bytes. Returns a Report.

    name        what the functions compute: the picture's title and file name
    functions   {label: function}, all called with the same arguments
    sizes       of any type; each is passed to arguments (and to bytes and flops, where these are functions)
    arguments   a function from a size to the arguments of a call: a tuple, or one array
    bytes       that a call must move: a number or a function of the size; None: each array argument and each result once
                (what is updated in place counts twice, once read and once written: say so yourself)
    flops       of a call, in the same way
    seconds     for each size
    check       compare the functions' results, and refuse to time what computes something else

    All take turns, call after call, so that what slows the machine slows them all; the figures are medians, and the times that
    5% and 95% of the samples stay below. On a CPU the arrays are in whatever cache they fit. Tensors on a GPU are timed by CUDA
    events, each call behind 256 MiB that empty the second-level cache; a call's start on the host does not count. JAX's calls are
    waited for, on a GPU with their start. A copy is NumPy's on one thread, or that of PyTorch or JAX where the arrays are theirs.
    """
    if not functions:
        raise ValueError("perf_report: functions is empty, expected {label: function}")
    sizes = list(sizes)
    if not sizes:
        raise ValueError("perf_report: sizes is empty, expected a size or more")
    results = []
    for size in sizes:
        given = arguments(size)
        given = given if isinstance(given, tuple) else (given,)
        calls, outputs = {}, {}
        for label, function in functions.items():
            for _ in range(_WARM_UP):
                outputs[label] = _waited(function(*given))
            calls[label] = _call(function, given)
        if check:
            _compare(name, size, outputs)
        moved = _moved(name, size, given, outputs, bytes)
        arrays = [*_flat(given), *_flat(next(iter(outputs.values())))]
        timer = _timer(arrays)
        outputs.clear()
        samples = timer.samples({None: timer.copy(max(moved // 2, 1)), **calls}, seconds)
        results += [_row(name, label, size, arrays, moved, _of(flops, size), samples[label], samples[None], timer)
                    for label in functions]
    return Report({"schema": 1, "rooftile": version, "commit": "unknown", "command": f"rooftile.testing.perf_report {name}",
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "machine": _machine(timer), "results": results, "errors": [], "notes": []})


class Report:
    """What perf_report measured. `record` is it as JSON, in the form of `rooftile bench --json`; print() shows a table."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record; `rooftile plot PATH FOLDER` draws it, `rooftile report --from PATH` makes a page of it."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.record, file, indent=1)

    def plot(self, folder: str | os.PathLike[str]) -> list[str]:
        """Draws speed against size into the folder as SVG and, where there is rsvg-convert, PNG, and returns their paths. By the
        command: `rooftile plot`."""
        command = _command.path()
        if command is None:
            raise RuntimeError("perf_report: pictures are drawn by the command rooftile, which is neither in the package nor on PATH")
        drawn = subprocess.run([command, "plot", "-", os.fspath(folder)], input=json.dumps(self.record), text=True,
                               encoding="utf-8", capture_output=True, check=False)
        if drawn.returncode != 0:
            raise RuntimeError(drawn.stderr.strip() or f"{command} ended with {drawn.returncode}")
        paths = []
        for line in drawn.stdout.splitlines():
            if line.startswith("picture: "):
                svg, _, png = line.removeprefix("picture: ").partition(" and ")
                paths += [svg, svg.removesuffix(".svg") + png] if png else [svg]
            else:
                print(line, file=sys.stderr)
        return paths

    def __str__(self) -> str:
        rows = self.record["results"]
        labels = list(dict.fromkeys(row["variant"] for row in rows))
        lines = [[rows[0]["op"] + ", GB/s", *labels, "copy"]]
        for size in dict.fromkeys(row["size"] for row in rows):
            of_size = {row["variant"]: row for row in rows if row["size"] == size}
            some = next(iter(of_size.values()))
            rates = [_rate(of_size[label], "median_us") for label in labels]
            lines.append([size, *(f"{rate:.3g}" for rate in [*rates, _rate(some, "copy_us")])])
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join("  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths)))
                         for line in lines)


def _rate(row, field):
    return row["bytes"] / row[field] / 1e3


def _of(number, size):
    return float(number(size) if callable(number) else number)


def _is_array(x):
    return hasattr(x, "shape") and hasattr(x, "dtype")


def _nbytes(x):
    return math.prod(x.shape) * (x.element_size() if hasattr(x, "element_size") else x.dtype.itemsize)


def _flat(result):
    """The arrays of a result, which may be one, several, or in dictionaries."""
    if _is_array(result):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, (tuple, list)):
        return []
    return [array for part in result for array in _flat(part)]


def _waited(result):
    """The result, when it is there: JAX's calls return before."""
    for array in _flat(result):
        if hasattr(array, "block_until_ready"):
            array.block_until_ready()
    return result


def _call(function, given):
    return lambda: function(*given)


def _moved(name, size, given, outputs, bytes):
    if bytes is not None:
        moved = _of(bytes, size)
    else:
        first = next(iter(outputs.values()))
        arrays = [*_flat(given), *_flat(first)]
        moved = sum(_nbytes(array) for array in {id(array): array for array in arrays}.values())
    if not 1 <= moved < 2**62:
        raise ValueError(f"perf_report: {name} moves {moved:g} bytes in size {size}; name bytes=, a number from 1 on or a function of "
                         "the size")
    return int(moved)


def _values(array):
    import numpy

    if is_torch(type(array)):
        array = array.detach().double().cpu().numpy()
    return numpy.asarray(array).astype(numpy.float64)


def _compare(name, size, outputs):
    """Refuses functions whose results are apart: their times would say nothing of each other."""
    import numpy

    (first, right), *others = outputs.items()
    right = _flat(right)
    for label, result in others:
        result = _flat(result)
        where = f"perf_report: {name} in size {size}: {label!r}"
        if len(result) != len(right):
            raise ValueError(f"{where} returns {len(result)} arrays, {first!r} returns {len(right)}; check=False times them all the same")
        for theirs, ours in zip(result, right):
            if tuple(theirs.shape) != tuple(ours.shape):
                raise ValueError(f"{where} returns an array of shape {tuple(theirs.shape)}, {first!r} one of {tuple(ours.shape)}; "
                                 "check=False times them all the same")
            tolerance = max(_TOLERANCES.get(_dtype(array), 0) for array in (theirs, ours))
            a, b = _values(theirs), _values(ours)
            apart = tolerance * numpy.max(numpy.abs(b), initial=0, where=numpy.isfinite(b))
            wrong = numpy.count_nonzero(~numpy.isclose(a, b, rtol=0, atol=apart, equal_nan=True))
            if wrong:
                raise ValueError(f"{where} computes something else than {first!r}: {wrong} of {a.size} elements are more than "
                                 f"{apart:.3g} apart; check=False times them all the same")


def _dtype(array):
    name = str(array.dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)


def _timer(arrays):
    """By where the arrays are. A call that returns before it is done, and nobody here knows how to wait for, is refused."""
    tensors = [a for a in arrays if is_torch(type(a))]
    jax_arrays = [a for a in arrays if is_jax(type(a))]
    for tensor in tensors:
        if tensor.device.type not in ("cpu", "cuda"):
            raise ValueError(f"perf_report: a tensor is on {tensor.device}; it times PyTorch's on the CPU and on CUDA")
    for array in arrays:
        if not is_torch(type(array)) and not is_jax(type(array)) and hasattr(array, "__dlpack_device__"):
            if array.__dlpack_device__()[0] != _DLPACK_CPU:
                raise ValueError(f"perf_report: a {type(array).__name__} of {type(array).__module__} is on a device; it times PyTorch's "
                                 "and JAX's arrays there")
    cuda = next((tensor for tensor in tensors if tensor.is_cuda), None)
    if cuda is not None:
        return _CudaTimer(cuda.device)
    if tensors:
        return _TorchTimer()
    return _JaxTimer(jax_arrays[0]) if jax_arrays else _Timer()


class _Timer:
    """The host's clock, and NumPy's copy on one thread."""

    backend, cache, gpu = "cpu", "warm", None

    def copy(self, count):
        import numpy

        source, to = numpy.full(count, 7, numpy.uint8), numpy.zeros(count, numpy.uint8)
        return lambda: numpy.copyto(to, source)

    def flush(self):
        pass

    def begin(self, call):
        """Before a sample: one call, so that its data are in the caches where they fit."""
        _waited(call())

    def samples(self, calls, seconds):
        """{key: times of a call in µs}, in turns."""
        times = {key: [] for key in calls}
        counts = {key: self.count(call) for key, call in calls.items()}
        collecting = gc.isenabled()
        gc.disable()
        try:
            end = time.perf_counter() + seconds
            for turn in range(_MOST):
                if turn >= _LEAST and time.perf_counter() > end:
                    break
                for key, call in calls.items():
                    times[key].append(self.sample(call, counts[key]))
        finally:
            if collecting:
                gc.enable()
        return times

    def sample(self, call, count):
        self.begin(call)
        begin = time.perf_counter()
        for _ in range(count):
            result = call()
        _waited(result)
        return (time.perf_counter() - begin) / count * 1e6

    def count(self, call):
        """So many calls fill a sample."""
        count = 1
        while (us := self.sample(call, count)) * count < _SAMPLE_SECONDS * 1e6 and count < 10_000:
            count = max(count + 1, math.ceil(1.2 * _SAMPLE_SECONDS * 1e6 / max(us, 1e-3)))
        return count


class _TorchTimer(_Timer):
    """PyTorch on the CPU, whose copy runs on its threads."""

    def copy(self, count):
        import torch

        source, to = torch.full((count,), 7, dtype=torch.uint8), torch.zeros(count, dtype=torch.uint8)
        return lambda: to.copy_(source)


class _JaxTimer(_Timer):
    """JAX, whose calls are waited for. On a GPU each sample is one call behind a flush."""

    def __init__(self, array):
        import jax

        device = next(iter(array.devices()))
        self.jax, self.device = jax, device
        self.flushed = None
        if device.platform != "cpu":
            self.backend, self.cache, self.gpu = device.platform, "cold", device.device_kind
            self.flushed = jax.device_put(jax.numpy.zeros(_FLUSH_BYTES, jax.numpy.uint8), device)
            self.write = jax.jit(lambda x: x + 1)

    def copy(self, count):
        source = self.jax.device_put(self.jax.numpy.full(count, 7, self.jax.numpy.uint8), self.device)
        copied = self.jax.jit(self.jax.numpy.copy)
        _waited(copied(source))
        return lambda: copied(source)

    def begin(self, call):
        if self.flushed is None:
            return super().begin(call)
        self.flushed = _waited(self.write(self.flushed))

    def count(self, call):
        return 1 if self.flushed is not None else super().count(call)


class _CudaTimer:
    """PyTorch on a GPU: events around each call, everything queued before the first begins."""

    backend, cache = "cuda", "cold"

    def __init__(self, device):
        import torch

        self.torch, self.device, self.gpu = torch, device, torch.cuda.get_device_name(device)
        self.flushed = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=device)

    def copy(self, count):
        source = self.torch.full((count,), 7, dtype=self.torch.uint8, device=self.device)
        to = self.torch.zeros(count, dtype=self.torch.uint8, device=self.device)
        return lambda: to.copy_(source)

    def samples(self, calls, seconds):
        with self.torch.cuda.device(self.device):
            begin = time.perf_counter()
            self.block(calls, 1)
            once = time.perf_counter() - begin
            rounds = min(max(int(_BLOCK_SECONDS / max(once, 1e-6)), 1), 10)
            times = {key: [] for key in calls}
            end = time.perf_counter() + seconds
            while len(times[None]) < _MOST and (len(times[None]) < _LEAST or time.perf_counter() < end):
                for key, more in self.block(calls, rounds).items():
                    times[key] += more
            return times

    def block(self, calls, rounds):
        """Times of each call in so many turns. The device sleeps first while the host queues: some 60 µs for each call."""
        cuda = self.torch.cuda
        cuda._sleep(min(rounds * len(calls) * 120_000, 200_000_000))
        marks = {key: [] for key in calls}
        for _ in range(rounds):
            for key, call in calls.items():
                begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
                self.flushed.zero_()
                begin.record()
                call()
                end.record()
                marks[key].append((begin, end))
        cuda.synchronize()
        return {key: [begin.elapsed_time(end) * 1e3 for begin, end in pairs] for key, pairs in marks.items()}


def _figures(times, prefix=""):
    ranked = sorted(times)

    def at(share):
        return float(f"{ranked[min(int(share * len(ranked)), len(ranked) - 1)]:.5g}")

    return {f"{prefix}median_us" if not prefix else "copy_us": float(f"{statistics.median(ranked):.5g}"),
            f"{prefix}p5_us": at(0.05), f"{prefix}p95_us": at(0.95)}


def _row(name, label, size, arrays, moved, flops, times, copy, timer):
    """As a row of `rooftile bench --json`; what it cannot say is left out."""
    first = arrays[0] if arrays else None
    return {"op": name, "direction": "forward", "variant": label, "series": label, "size": str(size), "backend": timer.backend,
            "dtype": _dtype(first) if first is not None else "", "shape": [int(n) for n in first.shape] if first is not None else [],
            "layout": "contiguous", "cache": timer.cache, "group": "sweep", "n": len(times), "bytes": moved, "flops": flops,
            **_figures(times), **_figures(copy, "copy_"), "peers": []}


def _machine(timer):
    """As the command describes it, where it is there."""
    machine = {}
    command = _command.path()
    if command is not None:
        told = subprocess.run([command, "devices", "--no-measure", "--json", "-"], capture_output=True, text=True, check=False)
        if told.returncode == 0:
            machine = json.loads(told.stdout).get("machine", {})
    machine.setdefault("cpu", "a CPU")
    for part in ("isa", "isa_reason"):  # the library's, not these functions'
        machine.pop(part, None)
    if timer.gpu is not None:
        machine["gpu"] = timer.gpu
    return machine
