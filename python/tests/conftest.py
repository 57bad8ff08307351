import importlib.util
import math

import numpy as np
import pytest

import rooftile
from rooftile import _functions, _vectors

#: Sizes for the letters of shapes; odd ones, that differ.
SIZES = {"C": 37, "M": 5, "N": 7, "K": 3, "R": 3}


def sizes_of(f, outer):
    """A size for each letter; those that a relation of the signature gives follow from the others and the options' defaults."""
    sizes = {c: SIZES.get(c, 6) for o in f["operands"] for c in o["letters"] if not c.isdigit()}
    options = {o["name"]: int(o["default"]) for o in f["options"] if o["kind"] not in ("real", "any_real")}
    for relation in f["where"].split(";"):
        left, _, right = relation.partition("=")
        if left.strip() in sizes:
            sizes[left.strip()] = eval(right.replace("/", "//"), {}, sizes | options | {"outer": math.prod(outer)})
    return sizes


def shape_of(operand, outer=(3, 4)):
    f = next((f for f in _functions.signatures.values() if any(o is operand for o in f["operands"])), None)
    known = sizes_of(f, outer) if f else SIZES
    sizes = [int(c) if c.isdigit() else known[c] for c in operand["letters"]]
    return () if operand["one"] else (*(outer if operand["outer"] else ()), *sizes)


def dtype_of(operand):
    """One that every framework has; f32 where the operand may have it."""
    return "f32" if "f32" in operand["dtypes"] else next(d for d in operand["dtypes"] if d in NUMPY)


NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
         "u8": np.uint8, "bool": np.bool_}


def values(operand, seed=0, outer=(3, 4)):
    random = np.random.default_rng(seed)
    if operand.get("below"):
        return random.integers(0, max(SIZES.get(operand["below"], 6), 1), shape_of(operand, outer)).astype(NUMPY[dtype_of(operand)])
    x = random.standard_normal(shape_of(operand, outer))
    dtype = NUMPY[dtype_of(operand)]
    if dtype == np.uint8:
        x = np.abs(x) * 50
    return (np.abs(x) if operand.get("name") == "running_var" else x).astype(dtype)


#: Optional operands that rule out others: those have tests of their own.
NOT_WITH_OTHERS = {"cu_seqlens_q", "cu_seqlens_k"}


def arguments(name, optional=False, outer=(3, 4)):
    """Operands for a call by the function's name: those by place, those by word."""
    f = _functions.signatures[name]
    places = [values(o, i, outer) for i, o in enumerate(_functions.inputs(f))]
    words = {o["name"]: values(o, 10 + i, outer) for i, o in enumerate(f["operands"])
             if optional and o["optional"] and not _functions.is_output(o) and o["name"] not in NOT_WITH_OTHERS}
    return places, words


def follows(f):
    """Whether each output's sizes follow from an input's; where they do not, a call needs out=. Lists, which
    optimisers take, and inputs of dtypes that NumPy lacks have tests of their own; so have outputs where ml_dtypes is missing."""
    made = f["operands"] if importlib.util.find_spec("ml_dtypes") is None else _functions.inputs(f)
    if not _functions.inputs(f) or not all(set(o["dtypes"]) & set(NUMPY) for o in made):
        return False
    outer = any(o["outer"] for o in _functions.inputs(f)) or not any(o["outer"] for o in _functions.outputs(f))
    known = {c for o in _functions.inputs(f) for c in o["letters"]} | {r.partition("=")[0].strip() for r in f["where"].split(";")}
    letters = all(c.isdigit() or c in known for o in _functions.outputs(f) for c in o["letters"])
    return outer and letters and not _functions.has_lists(f)


def takes_numbers(operand):
    """A seed may be a number of Python's."""
    return operand["one"] and "i64" in operand["dtypes"]


def learns(f):
    """The operands that have a gradient: whatever the backward gives, or what rules give of a function that has none. Indices and
    seeds, and weights of classes, have none."""
    if f.name in _vectors.RULES or f.name == "gemm":
        return set(_vectors.RULES.get(f.name, ("a", "b", "c", "bias")))
    given = f.known[f.backward].output_names if f.backward else []
    return {n for n, d in f.gradient_names([*f.places, *f.words]).items() if d in given}


#: A staircase: its differences are steps.
STAIRCASE = {"fake_quantize"}
#: What an option wants beside it.
WITH = {("gemv", "beta"): "c", ("gemm", "beta"): "c", ("gemm", "gate"): "c", ("attention", "dropout"): "seed"}
#: With these the library computes no gradient, and says so.
REFUSED = {("conv2d", "activation"): "relu gelu gelu_tanh silu sigmoid tanh".split(), ("row_reduce", "kind"): ["max", "min"]}


def choices(f, words):
    """Options, one at a time, that change a gradient: flags, numbers, and each word of a choice."""
    yield {}
    for option in f.options:
        name, kind = option["name"], option["kind"]
        if kind == "whole" or WITH.get((f.name, name), name) not in (name, *words):
            continue
        values = [True] if kind == "flag" else option["words"].split()[1:] if kind == "choice" else [0.7]
        yield from ({name: value} for value in values if value not in REFUSED.get((f.name, name), ()))


#: A GPU has none of these, and says so.
ON_CPUS_ALONE = {"gemm_pack", "gemm_packed"}


@pytest.fixture(params=[name for name, f in _functions.signatures.items() if follows(f)])
def function(request):
    return request.param


@pytest.fixture
def signature(function):
    return _functions.signatures[function]


@pytest.fixture
def call(function):
    return getattr(rooftile, function)


#: (file, test, function) of all tests that are there, chosen by -k or not.
tried = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    config.stash[tried] = {(item.path.name, item.originalname, item.callspec.params.get("function", item.callspec.params.get("name")))
                           for item in items if hasattr(item, "callspec")}
