"""The programs of the READMEs, as type checkers see them: by the stubs of rooftile, rooftile.torch and rooftile.jax, and the
annotations of rooftile.torch.nn and rooftile.testing."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

import rooftile
from rooftile import _functions

pytest.importorskip("torch")
pytest.importorskip("jax")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(rooftile.__file__).parent.parent
#: What a page's program takes from the reader's own.
GIVEN = {"torch": "x = torch.randn(2, 3)\nmodel: torch.nn.Module = torch.nn.GELU()\n", "jax": "x = jax.numpy.ones((2, 3))\n"}

#: Of each stub and annotated module: (statement, accepted).
STATEMENTS = """
rooftile.torch.softmax(x, scale=0.5).relu()  # good
rooftile.torch.softmax(x, scales=0.5)
rooftile.torch.softmax(x, dim=(0, 1)).relu()  # good
rooftile.torch.softmax(x, axis=0)
rooftile.torch.row_reduce(x, dim=0, keepdim=True).relu()  # good
rooftile.softmax(x, axis=0).relu()  # good
rooftile.softmax(x, keepdims=True)
rooftile.torch.softmax(x).no_such_method()
rooftile.torch.layer_norm(x, mean=True)[0].relu()  # good
rooftile.torch.patch(model).replaced[0][1].upper()  # good
rooftile.torch.patch(3)
rooftile.torch.patch(model, loss=True).kept[0][2].upper()  # good
rooftile.torch.patch(model, loss="yes")
rooftile.torch.nn.LinearCrossEntropyLoss.from_linear(torch.nn.Linear(2, 3), z_loss=0.1)(x, x).relu()  # good
rooftile.torch.nn.LinearCrossEntropyLoss(2, 3, reduction="all")
rooftile.torch.nn.PagedKVCache(4, 16, 2, 8).extend({0: 1}).attend(x, softcap=2.0).relu()  # good
rooftile.torch.nn.PagedKVCache(4, 16, 2, 8).free("0")
rooftile.torch.AdamW8bit(model.parameters(), lr=3e-4, master_weights=True).param_groups[0]["lr"]  # good
rooftile.torch.AdamW8bit(model.parameters(), learning_rate=3e-4)
rooftile.torch.unpatch(torch.nn.Linear(2, 3)).in_features  # good
rooftile.torch.scaled_dot_product_attention(x, x, x, is_causal=True).relu()  # good
rooftile.torch.scaled_dot_product_attention(x, x, x, causal=True)
rooftile.torch.nn.RMSNorm(8, unit_offset=True)(x)  # good
rooftile.torch.nn.GELU("tahn")
rooftile.torch.nn.GatedMLP(8, 16, "silu").down_proj.weight  # good
rooftile.torch.nn.GatedMLP(8)
rooftile.torch.nn.MultiHeadAttention(8, 2, causal=True)(x, cache=rooftile.torch.nn.KVCache(2, 9, 2, 4))[0].relu()  # good
rooftile.torch.nn.MultiHeadAttention(8, 2, window="all")
rooftile.torch.nn.MultiHeadAttention(8, 2).forward(x)[1].relu()
rooftile.torch.add(x, 2.0).relu()  # good
rooftile.torch.log_softmax(x, dim=0).relu()  # good
rooftile.jax.log_softmax(a, dim=0)
rooftile.jax.log_softmax(a, causal=True).at[0].set(1)  # good
rooftile.torch.softmax(x, causal=True, masked=False).relu()  # good
rooftile.torch.log_softmax(x, causal="yes")
rooftile.torch.add(x, "2")
rooftile.torch.permute(x, (1, 0)).relu()  # good
rooftile.torch.permute(x, 1.5)
rooftile.permute(x, dims=(1, 0)).relu()  # good
rooftile.jax.permute(a, (1, 0)).at[0].set(1)  # good
rooftile.jax.softmax(a, log=True).at[0].set(1)  # good
rooftile.jax.softmax(a, log="yes")
rooftile.jax.row_reduce(a, axis=[0, 1], keepdims=True).at[0].set(1)  # good
rooftile.jax.softmax(a, axis="rows")
rooftile.testing.perf_report("f", {}, [1], lambda n: x).save("f.json")  # good
rooftile.testing.perf_report("f", {}, [1], lambda n: x).safe("f.json")
rooftile.Queue("cpu", threads=2).threads + 1  # good
rooftile.Queue("gpu")
"""


def programs():
    for page in ("README.md", "python/README.md"):
        for place, text in enumerate(re.findall(r"^```python\n(.*?)^```", (SOURCE / page).read_text(), re.M | re.S)):
            own = next((f"import {n}\n{names}" for n, names in GIVEN.items()
                        if f"rooftile.{n}" in text and not re.search(r"^x = ", text, re.M)), "")
            yield f"{page.replace('/', '_').removesuffix('.md')}_{place}.py", own + text


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in programs():
        (folder / name).write_text(text)
    (folder / "statements.py").write_text("import jax, torch\nimport rooftile, rooftile.jax, rooftile.testing, rooftile.torch\n" +
                                          GIVEN["torch"] + "a = jax.numpy.ones((2, 3))\n" + STATEMENTS)
    return folder


def wrong_lines(text):
    return {i for i, line in enumerate(text.splitlines(), 1) if line.startswith("rooftile.") and not line.endswith("# good")}


def judge(written, output, pattern):
    """Every program is accepted, and of the statements those that are good."""
    found = {}
    for name, line in re.findall(pattern, output, re.M):
        found.setdefault(pathlib.Path(name).name, set()).add(int(line))
    assert found.pop("statements.py", set()) == wrong_lines((written / "statements.py").read_text()), output
    assert not found, output


def test_the_programs_are_there(written):
    assert len(list(written.glob("*README*.py"))) == 6


def test_mypy_accepts_the_readmes_programs(written, monkeypatch):
    pytest.importorskip("mypy")
    monkeypatch.setenv("MYPYPATH", str(PACKAGES))
    run = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(SOURCE / "build" / "mypy"),
                          *map(str, written.glob("*.py"))], capture_output=True, text=True)
    judge(written, run.stdout + run.stderr, r"^(\S+\.pyi?):(\d+)(?::\d+)?: error")


def test_pyright_accepts_the_readmes_programs(written):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    (written / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{PACKAGES}"], "reportUnusedExpression": false}}')
    run = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(written)],
                         capture_output=True, text=True)
    judge(written, run.stdout + run.stderr, r"^\s*(\S+\.pyi?):(\d+):\d+ - error")


def test_every_function_is_in_each_stub():
    folder = pathlib.Path(rooftile.__file__).parent
    for stub in ("__init__.pyi", "torch/__init__.pyi", "jax.pyi"):
        text = (folder / stub).read_text()
        compile(text, stub, "exec")
        lists = () if stub != "jax.pyi" else [name for name, f in _functions.signatures.items() if _functions.has_lists(f)]
        assert {name for name in _functions.signatures if f"\ndef {name}(" not in text} == set(lists), stub
