"""bench/llama_block.py at a size for a CPU."""

import importlib.util
import json
import pathlib

import pytest

torch = pytest.importorskip("torch")

path = pathlib.Path(__file__).resolve().parents[2] / "bench" / "llama_block.py"
spec = importlib.util.spec_from_file_location("llama_block", path)
llama_block = importlib.util.module_from_spec(spec)
spec.loader.exec_module(llama_block)

SHORT = ["--small", "--rounds", "3", "--layers", "1"]


@pytest.mark.parametrize("dtype, steps, tolerance", [("float32", 30, 1e-4), ("bfloat16", 60, 0.01)])
def test_a_patched_llama_learns_as_the_plain_one(dtype, steps, tolerance, tmp_path, capsys):
    written = tmp_path / "record.json"
    assert llama_block.main([*SHORT, "--dtype", dtype, "--steps", str(steps), "--tolerance", str(tolerance), "--json",
                             str(written)]) == 0, capsys.readouterr().out
    record = json.loads(written.read_text())
    eager, ours = record["curves"]["eager"], record["curves"]["rooftile"]
    assert eager != ours and len(ours) == steps  # the kernels are others
    assert ours[-1] < 0.9 * ours[0]
    assert record["over_eager"][0] > 0 and "rooftile over eager" in capsys.readouterr().out


def test_it_says_when_a_curve_leaves_the_tolerance(capsys):
    assert llama_block.main([*SHORT, "--steps", "10", "--tolerance", "1e-9"]) == 1
    assert "WERE allowed" in capsys.readouterr().out
