import numpy as np
import pytest

import rooftile
from rooftile import _functions

#: Sizes for the letters of shapes; odd ones, that differ.
SIZES = {"C": 37, "M": 5, "N": 7, "K": 3}


def shape_of(operand, outer=(3, 4)):
    sizes = [int(c) if c.isdigit() else SIZES.get(c, 6) for c in operand["letters"]]
    return () if operand["one"] else (*(outer if operand["outer"] else ()), *sizes)


def dtype_of(operand):
    """One that every framework has; f32 where the operand may have it."""
    return "f32" if "f32" in operand["dtypes"] else operand["dtypes"][0]


NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
         "u8": np.uint8, "bool": np.bool_}


def values(operand, seed=0, outer=(3, 4)):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape_of(operand, outer))
    dtype = NUMPY[dtype_of(operand)]
    return (np.abs(x) * 50 if dtype == np.uint8 else x).astype(dtype)


def arguments(name, optional=False, outer=(3, 4)):
    """Operands for a call by the function's name: those by place, those by word."""
    f = _functions.signatures[name]
    places = [values(o, i, outer) for i, o in enumerate(_functions.inputs(f))]
    words = {o["name"]: values(o, 10 + i, outer) for i, o in enumerate(f["operands"])
             if optional and o["optional"] and not _functions.is_output(o)}
    return places, words


@pytest.fixture(params=list(_functions.signatures))
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
