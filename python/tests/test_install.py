"""The package as it was installed: the command, and nothing of the folder that it was built in."""

import pathlib
import runpy
import subprocess
import sys

import pytest

import rooftile
from rooftile import _functions

FOLDER = pathlib.Path(rooftile.__file__).parent
SOURCE = pathlib.Path(__file__).resolve().parents[2]
installed = pytest.mark.skipif(not (FOLDER / "bin" / "rooftile").exists(), reason="run from a build folder")


@installed
def test_the_console_script_is_the_librarys_command():
    script = pathlib.Path(sys.executable).parent / "rooftile"
    for command in ([str(script)], [sys.executable, "-m", "rooftile"]):
        listed = subprocess.run([*command, "list"], check=True, capture_output=True, text=True).stdout
        assert all(name.removesuffix("_backward") in listed for name in _functions.signatures)
    refused = subprocess.run([str(script), "lisst"], capture_output=True, text=True)
    assert refused.returncode == 2 and "lisst" in refused.stderr


@installed
def test_no_path_of_the_build_remains():
    for file in [*FOLDER.glob("*.so"), *FOLDER.glob("lib/*.so*")]:
        assert str(SOURCE).encode() not in file.read_bytes(), file


def test_stubs_name_every_function():
    stub = (FOLDER / "__init__.pyi").read_text()
    compile(stub, "__init__.pyi", "exec")
    for name in _functions.signatures:
        assert f"\ndef {name}(" in stub
        assert getattr(rooftile, name).__doc__ in stub.replace("\\\\", "\\").replace("\n    ", "\n")
    assert (FOLDER / "py.typed").exists()


def test_the_readmes_example(capsys):
    pytest.importorskip("torch")
    runpy.run_path(str(SOURCE / "examples" / "first_call.py"))
    said = capsys.readouterr().out
    assert "[[0.032 0.087 0.237 0.644]]" in said and "2 modules run on its kernels" in said
