"""Writes, while the package is built, what follows from the signatures and from the comments at the C++ declarations:
stubs for type checkers and editors (of rooftile, rooftile.torch and rooftile.jax), and _comments.py, which help() shows.
  generate.py MODULE HEADERS_FOLDER OUT_FOLDER VERSION
"""

import importlib.util
import pathlib
import sys
import types


def comments_of(headers):
    """{"softmax": "Softmax along the last dimension: …"}, of each `Status name(` with /// lines before it."""
    found = {}
    for header in sorted(headers.glob("*/*.h")):
        comment = []
        for line in header.read_text().splitlines():
            if line.startswith("///"):
                comment.append(line[4:])
                continue
            if line.startswith("Status ") and "(" in line and comment:
                found.setdefault(line[len("Status "):line.index("(")], "\n".join(comment))
            comment = []
    return found


STUB_HEAD = '''"""Written by python/generate.py from the functions' signatures."""
from typing import Any, Literal, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union, overload

__version__: str
_Array = TypeVar("_Array")

class Queue:
    def __init__(self, device: Literal["cpu", "cuda", "emulated"] = "cpu", *, threads: int = 0, isa: Optional[str] = None,
                 architecture: int = 90, checked: bool = False, seed: int = 0, index: int = -1,
                 stream: Optional[int] = None, plugin_folder: Optional[str] = None) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def isa(self) -> str: ...
    @property
    def isa_reason(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def architecture(self) -> int: ...
    @property
    def index(self) -> int: ...
'''


CORE_STUB = '''"""Written by python/generate.py."""
from typing import Any

from rooftile import Queue as Queue

def __getattr__(name: str) -> Any: ...
'''

TORCH_HEAD = '''"""Written by python/generate.py from the functions' signatures."""
from typing import Any, Literal, Optional, Sequence, Tuple, Union

from torch import Tensor

from rooftile import Queue
from rooftile.torch import nn as nn
from rooftile.torch._8bit import linear_8bit as linear_8bit
from rooftile.torch._attention import scaled_dot_product_attention as scaled_dot_product_attention
from rooftile.torch._linear import linear as linear
from rooftile.torch._nf4 import linear_nf4 as linear_nf4
from rooftile.torch._optim import (SGD as SGD, AdamW as AdamW, AdamW8bit as AdamW8bit,
                                   clip_grad_norm_ as clip_grad_norm_,
                                   get_ema_multi_avg_fn as get_ema_multi_avg_fn)
from rooftile.torch._patch import Patched as Patched, patch as patch, unpatch as unpatch

def log_softmax(x: Tensor, *, scale: float = 1.0, causal: bool = False, masked: bool = False,
                dim: Union[int, Sequence[int]] = -1) -> Tensor: ...
'''

JAX_HEAD = '''"""Written by python/generate.py from the functions' signatures."""
from typing import Any, Literal, Optional, Sequence, Tuple, Union

from jax import Array
from jax.typing import ArrayLike

def log_softmax(x: ArrayLike, *, scale: float = 1.0, causal: bool = False, masked: bool = False,
                axis: Union[int, Sequence[int]] = -1) -> Array: ...
'''


def stub_of(f, functions, given="_Array", made="_Array", call_words=True, row_names=("axis", "keepdims")):
    """A function that takes arrays of one type and returns those of another. Without the words of a call (out, queue, …)
    optional outputs are True or False."""
    def option_type(o):
        words = ", ".join(map(repr, o["words"].split()))
        return {"flag": "bool", "choice": f"Literal[{words}]", "whole": "int"}.get(o["kind"], "float")

    asked = any(functions.is_output(o) and o["optional"] for o in f["operands"])
    count = len(functions.outputs(f))
    asked = asked or any(o["list"] for o in f["operands"])
    result = made if count == 1 else "Tuple[" + ", ".join([made] * count) + "]"

    def taken(o):
        if o["list"]:
            return f"Optional[Sequence[Optional[{given}]]]" if o["optional"] else f"Union[Sequence[{given}], {given}]"
        one = f"Union[{given}, int]" if o["one"] and "i64" in o["dtypes"] else given  # a seed may be a number of Python's
        one = f"Union[{given}, float]" if f["name"] in functions.BROADCAST else one
        return f"Optional[{one}]" if o["optional"] else one

    words = []
    for o in f["operands"]:
        if o["optional"] and functions.is_output(o) and not o["list"]:
            words.append(f"{o['name']}: Union[{given}, bool, None] = None" if call_words else f"{o['name']}: bool = False")
        elif o["optional"]:
            words.append(f"{o['name']}: {taken(o)} = None")
    words += [f"{o['name']}: {option_type(o)} = {functions.default_of(o)}" for o in f["options"]]
    words += [f"{w}: {'Union[int, Sequence[int]]' if value == -1 else 'bool'} = {value}"
              for w, value in functions.row_words(f, row_names).items()]
    types_of_words = {"out": f"Optional[{result}]", "queue": "Optional[Queue]",
                      "device": "Optional[Literal['cpu', 'cuda', 'emulated']]", "variant": "Optional[str]"}
    if call_words:
        words += [f"{w}: {types_of_words[w]} = None" for w in functions.call_words(f)]
    parameters = [f"{o['name']}: {taken(o)}" for o in functions.inputs(f)]
    if f["name"] == "permute":
        parameters.append("dims: Optional[Sequence[int]] = None")  # rooftile/_permute.py
    parameters += ["*", *words] if words else []
    doc = functions.docstring(f, row_names)
    if f["name"] == "permute":
        doc = functions._permute.documented(functions._permute.USAGE, doc)
    doc = doc.replace("\\", "\\\\").replace("\n", "\n    ").replace("    \n", "\n")
    return (f"\ndef {f['name']}({', '.join(parameters)}) -> {'Any' if asked else result}:\n"
            f'    """{doc}\n    """\n')


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(module, headers, out, version):
    comments = comments_of(pathlib.Path(headers))
    here = pathlib.Path(__file__).parent / "rooftile"
    package = types.ModuleType("rooftile")
    package.__path__ = [str(here)]
    sys.modules["rooftile"] = package
    package._core = load("rooftile._core", module)
    known = types.ModuleType("rooftile._comments")
    known.comments = comments
    sys.modules["rooftile._comments"] = known
    from rooftile import _functions

    missing = [name for name in _functions.signatures if name not in comments]
    if missing:
        sys.exit(f"generate.py: no header of {headers} declares {', '.join(missing)} with a comment")
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    every = list(_functions.signatures.values())
    (out / "torch").mkdir(exist_ok=True)
    (out / "__init__.pyi").write_text(STUB_HEAD + "".join(stub_of(f, _functions) for f in every))
    (out / "_core.pyi").write_text(CORE_STUB)
    (out / "torch" / "__init__.pyi").write_text(
        TORCH_HEAD + "".join(stub_of(f, _functions, "Tensor", "Tensor", _functions.has_lists(f), _functions.DIM) for f in every))
    (out / "jax.pyi").write_text(JAX_HEAD + "".join(stub_of(f, _functions, "ArrayLike", "Array", False)
                                              for f in every if not _functions.has_lists(f)))
    (out / "_comments.py").write_text(
        '"""Written by python/generate.py: the comments at the C++ declarations."""\n\ncomments = {\n' +
        "".join(f"    {name!r}: {comments[name]!r},\n" for name in _functions.signatures) + "}\n")
    (out / "_version.py").write_text(f"version = {version!r}\n")
    (out / "py.typed").write_text("")


if __name__ == "__main__":
    main(*sys.argv[1:])
