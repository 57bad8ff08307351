"""Arguments that nobody should pass: each is refused by a Python exception, or computed; none is a crash."""

import ctypes
import gc
import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import NUMPY, SIZES, arguments, dtype_of, shape_of, takes_numbers
from dlpack import Speaks, Tensor, lying, new_capsule, versioned

import rooftile
from rooftile import _functions

F32 = np.ones((2, 3), np.float32)


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


# ---- Dtypes

ALL_DTYPES = {**NUMPY, "i16": np.int16, "u16": np.uint16, "c64": np.complex64}


def test_every_wrong_dtype_is_a_type_error(signature, call):
    """Of each operand, beside others of f32 and f16: what is refused is a TypeError, whichever operand it is."""
    name, refused = signature["name"], 0
    places = [o["name"] for o in _functions.inputs(signature)]
    for base in (np.float32, np.float16):
        by_place, words = arguments(name, True)
        plain = {n: a.astype(base) if a.dtype == np.float32 else a for n, a in (dict(zip(places, by_place)) | words).items()}
        for operand in signature["operands"]:
            for dtype in ALL_DTYPES.values():
                given = {n: a.copy() for n, a in plain.items()}
                if operand["name"] in given:
                    with np.errstate(all="ignore"):
                        given[operand["name"]] = given[operand["name"]].astype(dtype)
                elif operand["role"] == "output":
                    outputs = [o["name"] for o in _functions.outputs(signature)]
                    wrong = np.empty(shape_of(operand), dtype)
                    given |= ({operand["name"]: wrong} if operand["optional"] else
                              {"out": tuple(wrong if n == operand["name"] else None for n in outputs)})
                try:
                    call(**given)
                except TypeError as error:
                    refused += 1
                    assert str(error).startswith(name + ": ")
    assert refused


# ---- Sizes and strides


def test_a_size_of_0(signature, call, monkeypatch):
    for letter in {letter for o in signature["operands"] for letter in o["letters"]} & set(SIZES):
        with monkeypatch.context() as changed:
            changed.setitem(SIZES, letter, 0)
            places, words = arguments(signature["name"], True)
            if signature["name"] == "row_arg":
                with pytest.raises(ValueError, match="an empty row has no largest and no smallest element"):
                    call(*places, **words)
                continue
            if signature["name"] == "top_k":
                if letter != "K":  # the values', k
                    with pytest.raises(ValueError, match="C >= k"):
                        call(*places, **words)
                continue
            if signature["name"].startswith("conv2d") and letter in "HWRS":
                with pytest.raises(ValueError, match="must have|size P of y would be|size Q of y would be"):
                    call(*places, **words)
                continue
            for operand, result in zip(_functions.outputs(signature), as_list(call(*places, **words))):
                assert result.shape == shape_of(operand)


def test_rows_without_elements_cost_no_time():
    """2^40 rows of no columns, of all functions, in a process of their own: where each row is looked at, one takes minutes."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import conftest, rooftile
from numpy.lib.stride_tricks import as_strided

def long(a):
    shape = a.shape[:1] + (1 << 40,) + a.shape[2:]
    return as_strided(a, shape, (0,) * len(shape))

for name, f in conftest._functions.signatures.items():
    operands = {o["name"]: o for o in f["operands"]}
    if not all(set(o["dtypes"]) & set(conftest.NUMPY) for o in conftest._functions.inputs(f)):
        continue  # f8 alone, which NumPy has from ml_dtypes
    if name == "gemm_packed":
        continue  # it takes what gemm_pack wrote
    for letter in set("".join(o["letters"] for o in f["operands"])) & set(conftest.SIZES):
        before, conftest.SIZES[letter] = conftest.SIZES[letter], 0
        places, words = conftest.arguments(name, True, outer=(2, 3))
        conftest.SIZES[letter] = before
        given = dict(zip([o["name"] for o in conftest._functions.inputs(f)], places)) | words
        outer = [n for n, o in operands.items() if o["outer"] and (n in given or not o["optional"])]
        if outer and all(letter in operands[n]["letters"] for n in outer):  # else one would need memory
            print(name, letter, flush=True)
            getattr(rooftile, name)(**{n: long(a) if operands[n]["outer"] else a for n, a in given.items()})
"""
    said = subprocess.run([sys.executable, "-c", program, str(pathlib.Path(__file__).parent)], check=True, timeout=60,
                          capture_output=True, text=True).stdout
    assert "softmax C" in said


def test_every_operand_of_too_few_and_too_many_dimensions(signature, call):
    places, words = arguments(signature["name"])
    for i, operand in enumerate(_functions.inputs(signature)):
        for shape in ((1,) * 9, (1,) * 32, () if operand["letters"] else (1,) * 9):
            if shape == () and signature["name"] in _functions.BROADCAST:  # broadcasts
                continue
            bad = list(places)
            bad[i] = np.ones(shape, NUMPY[dtype_of(operand)])
            with pytest.raises((ValueError, TypeError)) as info:
                call(*bad, **words)
            assert str(info.value).startswith(signature["name"] + ":")


def test_every_operand_of_every_wrong_kind(signature, call):
    places, words = arguments(signature["name"])
    for i in range(len(places)):
        for bad in (None, 3, 2.5, "x", b"x", [1.0], (1.0,), {}, object(), object, np, np.complex64(1), np.float32, type, print,
                    np.array(["a"]), np.array([None]), np.array([1], ">f4"), np.array([1], "c16"), np.array([1], "M8[s]"),
                    np.zeros(2, [("a", "f4")]), memoryview(b"abcd"), float("nan"), NotImplemented, ...):
            if type(bad) is int and takes_numbers(_functions.inputs(signature)[i]):
                continue
            if type(bad) in (int, float) and signature["name"] in _functions.BROADCAST:
                continue
            given = list(places)
            given[i] = bad
            with pytest.raises((ValueError, TypeError)) as info:
                call(*given, **words)
            assert signature["name"] in str(info.value)


@pytest.mark.parametrize("steps", list(itertools.product([1, 2, -1, -2], [1, 3, -1, -3])))
def test_every_stride_of_input_and_output(steps):
    random = np.random.default_rng(3)
    room = random.standard_normal((12, 18)).astype(np.float32)
    x = room[::steps[0], ::steps[1]]
    expected = rooftile.softmax(x.copy())
    np.testing.assert_array_equal(rooftile.softmax(x), expected)
    target = np.full((24, 54), 7, np.float32)
    out = target[:x.shape[0] * 2:2, :x.shape[1] * 3:3][::steps[0] // abs(steps[0]), ::steps[1] // abs(steps[1])]
    assert rooftile.softmax(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    out[...] = 7
    assert (target == 7).all()  # nothing beside it was written


def test_strides_of_nothing_and_of_one():
    as_strided = np.lib.stride_tricks.as_strided
    for shape, strides in (((0, 3), (1 << 40, 1 << 40)), ((1, 3), (-(1 << 40), 4)), ((1, 1), (7, 3)), ((3, 0), (5, 5))):
        x = as_strided(np.ones(3, np.float32), shape, strides)
        assert rooftile.softmax(x).shape == shape
    with pytest.raises(ValueError):
        rooftile.softmax(as_strided(np.ones(3, np.float32), (2, 3), (3, 4)))


def test_read_only_arrays_are_read_and_not_written(signature, call):
    places, words = arguments(signature["name"])
    expected = as_list(call(*[p.copy() for p in places], **words))
    for p in places:
        p.flags.writeable = False
    if any(o["role"] == "in_out" for o in signature["operands"]):
        with pytest.raises(ValueError, match="is read-only, and the function writes it"):
            call(*places, **words)
        return
    for a, e in zip(as_list(call(*places, **words)), expected):
        np.testing.assert_array_equal(a, e)
    if not expected:  # gradients that nobody asks for
        return
    out = [np.empty_like(e) for e in expected]
    for o in out:
        o.flags.writeable = False
    with pytest.raises(ValueError, match="is read-only, and the function writes it"):
        call(*places, **words, out=out[0] if len(out) == 1 else tuple(out))


def test_subclasses_of_numpys_arrays(tmp_path):
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=(4, 8))
    for kind in (mapped, x.view(np.recarray), np.asmatrix(x)):
        np.testing.assert_array_equal(np.asarray(rooftile.softmax(kind)), rooftile.softmax(x))
    with pytest.raises(ValueError, match="y is read-only"):
        rooftile.softmax(x, out=mapped)


# ---- Options


class Raises:
    def __float__(self):
        raise KeyError("no number today")


class Counts:
    def __index__(self):
        return 2


@pytest.mark.parametrize("value, error", [(Raises(), KeyError), (10**400, OverflowError), ("1", TypeError), (None, TypeError),
                                          (1j, TypeError), (np.ones(2), TypeError), (float("nan"), ValueError),
                                          (float("inf"), ValueError)])
def test_options_that_are_no_numbers(value, error):
    with pytest.raises(error):
        rooftile.layer_norm(F32, eps=value)


def test_options_that_are_numbers():
    expected = rooftile.softmax(F32, scale=2)
    for value in (2, 2.0, Counts(), np.float32(2), np.int8(2), np.array(2.0)):
        np.testing.assert_array_equal(rooftile.softmax(F32, scale=value), expected)
    np.testing.assert_array_equal(rooftile.softmax(F32, **{"".join(["sc", "ale"]): 2}), expected)
    with pytest.raises(TypeError):
        rooftile.softmax(F32, **{"sc\0ale": 2})
    with pytest.raises((TypeError, ValueError)):
        rooftile.softmax(F32, device="emulated\0")
    with pytest.raises(ValueError, match="null"):
        rooftile.rgb_to_gray(np.zeros((2, 3), "u1"), weights="bt601\0")
    with pytest.raises((TypeError, ValueError, UnicodeError)):
        rooftile.softmax(F32, variant="\ud800")


def test_an_output_of_none_is_a_new_one():
    np.testing.assert_array_equal(rooftile.softmax(F32, out=(None,)), rooftile.softmax(F32))


@pytest.mark.parametrize("out", [(), (F32, F32), [F32], 3, (3,), "y"], ids=str)
def test_outputs_that_are_none(out):
    with pytest.raises((TypeError, ValueError)):
        rooftile.softmax(F32, out=out)


# ---- Objects that speak DLPack as they should not


@pytest.mark.parametrize("lies", [
    {"ndim": 2**31 - 1}, {"ndim": 9}, {"ndim": -(2**31)}, {"strides": (ctypes.c_int64 * 2)(2**62, 2**62)},
    {"strides": (ctypes.c_int64 * 2)(-(2**63), -(2**63))}, {"shape": (ctypes.c_int64 * 2)(2**62, 2**62)},
    {"shape": (ctypes.c_int64 * 2)(-(2**63), 3)}, {"byte_offset": 2**64 - 1}, {"byte_offset": 1}, {"bits": 0}, {"bits": 255},
    {"code": 255}, {"lanes": 65535}, {"lanes": 0}, {"device_type": -1}, {"device_type": 2**31 - 1}, {"data": 1}, {"data": 2},
], ids=str)
def test_structures_that_lie(lies):
    with pytest.raises((ValueError, TypeError)) as info:
        rooftile.copy(lying(**lies), out=np.empty((2, 3), np.float32))
    assert str(info.value).startswith("copy:")


@pytest.mark.parametrize("device", [None, 3, "cpu", (), (1,), ("cpu", 0), (1.5, 0), (2**40, 0), (2**70, 0), [1, 0]])
def test_devices_that_are_none(device):
    """What the capsule says counts; what the object says of its device decides only which stream it is told."""
    x = np.ones((2, 3), np.float32)
    out = np.zeros_like(x)
    try:
        rooftile.copy(Speaks(lambda **w: x.__dlpack__(), device), out=out)
    except (TypeError, ValueError, OverflowError, IndexError):
        return
    assert (out == x).all()


def test_the_stream_that_an_object_of_a_gpu_is_told():
    told = []

    def answer(**words):
        told.append(words)
        return lying(device_type=2).answer()

    with pytest.raises(ValueError):  # the other array is on the CPU
        rooftile.copy(Speaks(answer, (2, 0)), out=np.empty((2, 3), np.float32))
    assert told == [{"stream": 1, "max_version": (1, 3)}]


def test_objects_from_before_dlpack_1():
    told = []

    def answer(stream=None):
        told.append(stream)
        return F32.__dlpack__()

    out = np.empty_like(F32)
    rooftile.copy(Speaks(answer), out=out)
    assert told == [None] and (out == F32).all()


@pytest.mark.parametrize("what", ["a name", "no name", "another object"])
def test_capsules_of_something_else(what):
    tensor = Tensor()
    KEPT.append(tensor)
    made = {"a name": lambda **w: new_capsule(ctypes.addressof(tensor), b"something", None),
            "no name": lambda **w: new_capsule(ctypes.addressof(tensor), None, None), "another object": lambda **w: object()}
    with pytest.raises(TypeError, match="must return a capsule that is not used"):
        rooftile.copy(Speaks(made[what]), out=np.empty((2, 3), np.float32))


KEPT = []


@pytest.mark.parametrize("major, flags, error", [(1, 0, None), (1, 1, None), (2, 0, "speaks DLPack 2.0, this package 1.x"),
                                                 (0, 0, "speaks DLPack 0.0")])
def test_versioned_structures_are_given_back_once(major, flags, error):
    given_back = []
    x = versioned(major, flags, given_back)
    out = np.zeros((2, 3), np.float32)
    if error:
        with pytest.raises(ValueError, match=error):
            rooftile.copy(x, out=out)
    else:
        rooftile.copy(x, out=out)
        assert (out == 1).all()
    assert len(given_back) == 1
    if flags & 1:
        with pytest.raises(ValueError, match="y is read-only"):
            rooftile.copy(out, out=versioned(major, flags, given_back))
        assert len(given_back) == 2


ANOTHER = b"another"  # a capsule keeps its name's address alone


@pytest.mark.parametrize("api", [None, 3, object(), new_capsule(1, ANOTHER, None)], ids=["None", "3", "object", "capsule"])
def test_exchange_tables_that_are_none(api):
    kind = type("Exchanges", (), {"__dlpack_c_exchange_api__": api})
    with pytest.raises((TypeError, ValueError)):
        rooftile.copy(kind(), out=np.empty(3, np.float32))


def test_types_that_raise():
    class Meta(type):
        def __getattr__(cls, name):
            raise RuntimeError("not today")

    class Raising(metaclass=Meta):
        pass

    for _ in range(3):
        with pytest.raises((RuntimeError, TypeError)):
            rooftile.copy(Raising())


def test_more_types_than_are_remembered():
    out = np.empty((2, 3), np.float32)
    for i in range(200):
        kind = type(f"Kind{i}", (Speaks,), {})
        rooftile.copy(kind(lambda **w: F32.__dlpack__()), out=out)
    assert (out == 1).all()
    np.testing.assert_array_equal(rooftile.softmax(F32), rooftile.softmax(F32.copy()))


def test_an_object_that_calls_back_while_it_is_read():
    """__dlpack__ may run anything: another call, a collection, the end of its own array."""
    x = [np.ones((2, 3), np.float32)]

    def answer(**words):
        rooftile.softmax(F32)
        capsule = x[0].__dlpack__()
        x.clear()
        gc.collect()
        return capsule

    out = np.empty((2, 3), np.float32)
    rooftile.copy(Speaks(answer), out=out)
    assert (out == 1).all() and not x


def test_references_stay_even():
    x, out = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
    calls = [lambda: rooftile.softmax(x), lambda: rooftile.softmax(x, out=out), lambda: rooftile.softmax(x, scale="two"),
             lambda: rooftile.softmax(x, out=out[:1]), lambda: rooftile.softmax(x, x), lambda: rooftile.softmax(x, out=(x, out)),
             lambda: rooftile.layer_norm(x, mean=True), lambda: rooftile.layer_norm(x, weight=x), lambda: rooftile.softmax(x, y=out)]
    queue = rooftile.Queue(threads=1)
    calls += [lambda: rooftile.softmax(x, queue=queue), lambda: rooftile.softmax(x, queue=queue, device="cpu")]
    counted = (x, out, queue, x.dtype, None)
    for call in calls:
        before = [sys.getrefcount(o) for o in counted[:3]]
        for _ in range(50):
            try:
                call()
            except (TypeError, ValueError):
                pass
        gc.collect()
        assert [sys.getrefcount(o) for o in counted[:3]] == before


def test_tensors_without_memory():
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 3)
    x.untyped_storage().resize_(0)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for bad in (x, nested, torch.ones(2, 3).to_sparse_csr(), torch.ones(2, 3).to_mkldnn(), torch.ones(2, 3, dtype=torch.complex64)):
        with pytest.raises((ValueError, TypeError)) as info:
            rooftile.softmax(bad)
        assert str(info.value).startswith("softmax: x")


def test_an_array_of_jax_that_was_deleted():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((2, 3))
    x.delete()
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        rooftile.softmax(x)


# ---- Interpreters


def test_a_subinterpreter_is_refused():
    """In a process of its own: whether the main interpreter has it or not."""
    program = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.argv[1] == "yes":
    import rooftile
one = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
code = "try:\\n  import rooftile\\nexcept ImportError as e:\\n  print(e)\\nelse:\\n  print('taken')"
interpreters.run_string(one, code)
"""
    for main in ("yes", "no"):
        said = subprocess.run([sys.executable, "-c", program, main], capture_output=True, text=True, check=True).stdout
        assert "rooftile: is imported in a subinterpreter" in said


def test_unloading_the_library_leaves_a_live_queue_alone():
    """dlclose, as a program with plug-ins of its own may do it: the queue's threads go on."""
    folder = pathlib.Path(rooftile.__file__).parent
    file = next(f for f in (folder / "lib" / "librooftile.so.0", folder.parents[1] / "lib" / "librooftile.so") if f.exists())
    program = """
import _ctypes, ctypes, sys, time
class Status(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 1000)]
library, queue = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
library.rooftile_queue_cpu.restype = Status
said = library.rooftile_queue_cpu(2, ctypes.byref(queue)).message
_ctypes.dlclose(library._handle)
time.sleep(0.2)
sys.exit(said.decode() or 0)
"""
    assert subprocess.run([sys.executable, "-c", program, file]).returncode == 0
