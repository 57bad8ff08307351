"""examples/numba_simulator.py: what Numba's simulator sees is what lesson 15 says of it."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("numba")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LESSON = (SOURCE / "docs/course/15_numba.md").read_text()


def said(*options):
    """By kernel."""
    run = subprocess.run([sys.executable, str(SOURCE / "examples/numba_simulator.py"), *options], capture_output=True, text=True)
    return run, dict(line.split(maxsplit=1) for line in run.stdout.splitlines())


def shown(name):
    """The kernels' lines in the lesson's block that has this one first."""
    block = re.search(rf"```text\n(right +{name}.*?)```", LESSON, re.S)[1]
    return dict(line.split(maxsplit=1) for line in block.splitlines())


def without_thread(verdict):
    """Threads of a block run in any order, and the first that fails is named."""
    return re.sub(r"tid=\[\d+, 0, 0\]|index \d+", "…", verdict)


def test_the_simulator():
    run, verdicts = said()
    assert run.returncode == 0, run.stderr
    assert {n: without_thread(v) for n, v in verdicts.items()} == {n: without_thread(v) for n, v in shown("looks").items()}


def test_the_compiler():
    run, verdicts = said("--compile")
    if run.returncode == 1:
        assert re.match("numba_simulator: --compile needs libnvvm of the CUDA Toolkit", run.stderr)
        pytest.skip(run.stderr)
    assert verdicts.keys() == shown("compiles").keys()
    assert verdicts["numpys_own"] == shown("compiles")["numpys_own"]
    doubles = {n: int(re.match(r"compiles: (\d+)", v)[1]) for n, v in verdicts.items() if n != "numpys_own"}
    assert doubles.pop("in_double") >= 2 and set(doubles.values()) == {0}
