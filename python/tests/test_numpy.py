"""Every function on NumPy arrays: results, shapes, dtypes, strides, outputs, options; then the errors."""

import ctypes
import inspect
import math
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import NUMPY, ON_CPUS_ALONE, arguments, shape_of, values
from dlpack import Speaks, lying, speaking

import rooftile
from rooftile import _frameworks, _functions


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_results_have_the_signatures_shapes(function, signature, call):
    places, words = arguments(function)
    copies = [p.copy() for p in places]
    results = as_list(call(*places, **words))
    for operand, result in zip(_functions.outputs(signature), results, strict=True):
        assert type(result) is np.ndarray
        assert result.shape == shape_of(operand)
        if operand["dtypes"][0].startswith("f8"):  # ml_dtypes'
            assert result.dtype.name.startswith("float8")
            result = result.astype(np.float32)
        else:
            assert result.dtype in [NUMPY[d] for d in operand["dtypes"] if d in NUMPY]
        assert np.isfinite(result).all()
    for operand, given, copy in zip(_functions.inputs(signature), places, copies):
        if operand["role"] == "input":
            np.testing.assert_array_equal(given, copy)


def test_out_receives_what_a_new_array_would(function, signature, call):
    if not _functions.has_out(signature):
        pytest.skip("writes its operand")
    places, words = arguments(function)
    fresh = as_list(call(*places, **words))
    out = [np.full_like(f, 77) for f in fresh]
    results = as_list(call(*places, **words, out=out[0] if len(out) == 1 else tuple(out)))
    for r, o, f in zip(results, out, fresh, strict=True):
        assert r is o
        np.testing.assert_array_equal(o, f)
        assert o.size == 0 or not (o == 77).all()


def test_strided_arrays_are_taken_as_they_are(function, call):
    places, words = arguments(function)
    expected = as_list(call(*[p.copy() for p in places], **words))

    def strided(x):  # every second element of each dimension, backwards, of memory full of NaN or 99
        room = np.full([2 * s for s in x.shape], 99 if x.dtype.kind != "f" else np.nan, x.dtype)
        view = room[(..., *(slice(None, None, -2) for _ in x.shape))]
        view[...] = x
        return view

    results = as_list(call(*[strided(p) for p in places], **words))
    for r, e in zip(results, expected):
        np.testing.assert_array_equal(r, e)


@pytest.mark.parametrize("outer", [(), (0,), (2, 0, 3), (1, 1, 1, 1)])
def test_outer_sizes_of_none_zero_and_one(function, signature, call, outer):
    places, words = arguments(function, outer=outer)
    for operand, result in zip(_functions.outputs(signature), as_list(call(*places, **words))):
        assert result.shape == shape_of(operand, outer)


def test_operands_by_their_names(function, signature, call):
    places, words = arguments(function)
    by_name = {o["name"]: p.copy() for o, p in zip(_functions.inputs(signature), places)}
    for r, e in zip(as_list(call(**by_name, **words)), as_list(call(*places, **words))):
        np.testing.assert_array_equal(r, e)


def test_optional_operands_and_outputs(function, signature, call):
    wanted = {o["name"]: True for o in signature["operands"] if o["optional"] and _functions.is_output(o)}
    places, words = arguments(function, optional=True)
    result = call(*places, **words, **wanted)
    if not wanted:
        return
    assert set(wanted) <= set(result._fields)
    copy = pickle.loads(pickle.dumps(result))
    for name, value in result._asdict().items():
        operand = next(o for o in signature["operands"] if o["name"] == name)
        assert value.shape == shape_of(operand)
        np.testing.assert_array_equal(getattr(copy, name), value)
    # An array in place of True receives the same.
    arrays = {name: np.zeros_like(getattr(result, name)) for name in wanted}
    again = call(*places, **words, **arrays)
    for name, array in arrays.items():
        assert getattr(again, name) is array
        np.testing.assert_array_equal(array, getattr(result, name))


def test_help_and_signature_say_what_it_takes(function, signature, call):
    parameters = inspect.signature(call).parameters
    assert {o["name"] for o in signature["operands"] if not _functions.is_output(o)} <= set(parameters)
    for option in signature["options"]:
        assert parameters[option["name"]].default is not inspect.Parameter.empty
        assert option["name"] in call.__doc__
    assert call.__module__ == "rooftile" and "Raises" in call.__doc__
    assert pickle.loads(pickle.dumps(call)) is call


def test_values():
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(np.float32)
    np.testing.assert_allclose(rooftile.softmax(x), softmax(x), rtol=1e-5)
    np.testing.assert_allclose(rooftile.softmax(x, scale=0.5), softmax(0.5 * x), rtol=1e-5)
    np.testing.assert_allclose(rooftile.softmax(x, log=True), np.log(softmax(x)), rtol=1e-4)
    y, mean, rstd = rooftile.layer_norm(x, mean=True, rstd=True, eps=0)
    np.testing.assert_allclose(mean, x.mean(-1), atol=1e-6)
    np.testing.assert_allclose(rstd, 1 / x.std(-1), rtol=1e-5)
    np.testing.assert_allclose(y, (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True), atol=1e-5)
    np.testing.assert_array_equal(rooftile.transpose(x), x.T)
    assert rooftile.transpose(x).shape == (33, 4)
    y = x.copy()
    assert rooftile.axpby(x, y, alpha=2, beta=-1) is y
    np.testing.assert_array_equal(y, x)
    assert rooftile.dot(x, x).shape == ()
    grey = np.full((2, 2, 3), 100, np.uint8)
    grey[..., 0] = 200
    assert rooftile.rgb_to_gray(grey, weights="bt601")[0, 0] == 130
    assert rooftile.rgb_to_gray(grey, weights="luminosity")[0, 0] == 121
    assert rooftile.rgb_to_gray(grey, weights=1)[0, 0] == 121


def test_in_place():
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(np.float32)
    expected = rooftile.softmax(x)
    assert rooftile.softmax(x, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("name", ["float16", "float64", "int64", "longlong", "int32", "int8", "uint8", "bool"])
def test_every_dtype_of_numpy(name):
    x = np.arange(24).reshape(4, 6).astype(name)
    y = rooftile.copy(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(ml_dtypes.bfloat16)
    y = rooftile.softmax(x)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y.astype(np.float32), softmax(x.astype(np.float32)), rtol=2**-8)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        x = np.arange(6).astype(getattr(ml_dtypes, name))
        np.testing.assert_array_equal(rooftile.copy(x).view(np.uint8), x.view(np.uint8))


def test_what_ml_dtypes_would_hold_without_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ModuleNotFoundError, match="a result of float8_e4m3fn is .* pip install ml_dtypes, or pass PyTorch's tensors"):
        _frameworks.numpy_dtype("f8e4m3")  # a call may have kept what it found before


def test_broadcast_inputs_and_crops():
    row = np.arange(5, dtype=np.float32)
    x = np.broadcast_to(row, (3, 5))
    np.testing.assert_array_equal(rooftile.add(x, x), 2 * x)
    picture = np.random.default_rng(0).integers(0, 255, (9, 8, 4), np.uint8)
    bgr = picture[2:7, ::2, 2::-1]
    np.testing.assert_array_equal(rooftile.rgb_to_gray(bgr), rooftile.rgb_to_gray(bgr.copy()))


def test_queues():
    x = np.random.default_rng(1).standard_normal((64, 100)).astype(np.float32)
    expected = rooftile.softmax(x)
    for threads in (1, 3):
        queue = rooftile.Queue(threads=threads)
        assert (queue.device, queue.threads, queue.architecture, queue.index) == ("cpu", threads, 0, -1)
        assert queue.isa in repr(queue) and queue.isa in queue.isa_reason
        np.testing.assert_array_equal(rooftile.softmax(x, queue=queue), expected)
    np.testing.assert_array_equal(rooftile.softmax(x, device="cpu"), expected)
    for words, sentence in [({"threads": -1}, "threads is -1"), ({"isa": "avx3"}, "avx3"), ({"device": "tpu"}, "tpu"),
                            ({"plugin_folder": "/nowhere"}, "/nowhere")]:
        with pytest.raises(ValueError, match=sentence):
            rooftile.Queue(**words)
    with pytest.raises(TypeError):
        rooftile.Queue(thread=1)


def test_variant_by_name():
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(np.float32)
    np.testing.assert_allclose(rooftile.softmax(x, variant="01_scalar"), rooftile.softmax(x), rtol=1e-5)
    with pytest.raises(ValueError, match='no variant "fastest"'):
        rooftile.softmax(x, variant="fastest")


def emulated():
    try:
        return rooftile.Queue("emulated", threads=1, architecture=90, seed=3)
    except ValueError as error:
        pytest.skip(str(error))


def test_emulated_device(function, call):
    queue = emulated()
    assert queue.device == "emulated" and queue.architecture == 90 and queue.isa == "sm_90"
    places, words = arguments(function, outer=(2, 2))
    ours = as_list(call(*[p.copy() for p in places], **words))
    if function in ON_CPUS_ALONE:
        with pytest.raises(ValueError, match=f"{function}: is for CPUs alone"):
            call(*places, **words, queue=queue)
        return
    for run in ({"queue": queue}, {"device": "emulated"}):
        for a, b in zip(as_list(call(*[p.copy() for p in places], **words, **run)), ours):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_the_gil_is_free_during_a_kernel():
    x = np.zeros((4000, 4000), np.float32)
    queue = rooftile.Queue(threads=1)
    ran = []
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # only who lets go of the lock lets the other run
    try:
        other = threading.Thread(target=lambda: (time.sleep(0.01), ran.append(time.perf_counter())))
        other.start()
        rooftile.softmax(x, out=x, queue=queue, variant="01_scalar")
        end = time.perf_counter()
        other.join()
    finally:
        sys.setswitchinterval(switch)
    assert ran[0] < end


def test_threads_call_at_once():
    x = np.random.default_rng(1).standard_normal((100, 100)).astype(np.float32)
    expected, wrong = rooftile.softmax(x), []

    def work():
        for _ in range(50):
            if not np.array_equal(rooftile.softmax(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- Errors: a sentence that says what was seen


def refused(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value), str(info.value)


F32 = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("error, sentence, call", [
    (TypeError, "softmax: x is absent; it takes softmax(x, *, scale=1.0", lambda: rooftile.softmax()),
    (TypeError, "softmax: takes 1 arrays by place, was given 2", lambda: rooftile.softmax(F32, F32)),
    (TypeError, "softmax: x is given twice", lambda: rooftile.softmax(F32, x=F32)),
    (TypeError, "softmax: takes no 'scales'", lambda: rooftile.softmax(F32, scales=1)),
    (TypeError, "softmax: takes no 'y'", lambda: rooftile.softmax(F32, y=F32)),
    (TypeError, "softmax: x is of type list, must be an array", lambda: rooftile.softmax([1.0, 2.0])),
    (TypeError, "softmax: x is of type NoneType", lambda: rooftile.softmax(None)),
    (TypeError, "softmax: x is of type float, must be an array", lambda: rooftile.softmax(1.0)),
    (ValueError, "softmax: x is scalar f32, needs at least 1 dimension", lambda: rooftile.softmax(np.float32(1))),
    (ValueError, "axpby: y is a NumPy scalar, and the function writes it", lambda: rooftile.axpby(np.float32(1), np.float32(1))),
    (TypeError, "layer_norm: weight is 3 f64, must be f32 as x is", lambda: rooftile.layer_norm(F32, weight=np.ones(3))),
    (TypeError, "layer_norm: weight is 3 f64, must be f32, or f16 as x is",
     lambda: rooftile.layer_norm(F32.astype("f2"), weight=np.ones(3))),
    (TypeError, "softmax: x is 2x3 i32, must be one of f64, f32, f16, bf16", lambda: rooftile.softmax(F32.astype("i4"))),
    (TypeError, "x has dtype complex64, which the library does not know", lambda: rooftile.softmax(F32.astype("c8"))),
    (TypeError, "x has dtype object, which", lambda: rooftile.copy(np.array([None]))),
    (TypeError, "add: y is 2x3 f16, must be f32 as x is", lambda: rooftile.add(F32, F32.astype("f2"))),
    (TypeError, "softmax: scale is 'two', must be a number", lambda: rooftile.softmax(F32, scale="two")),
    (TypeError, "softmax: log is [], must be True or False", lambda: rooftile.softmax(F32, log=[])),
    (ValueError, "softmax: log is 2, must be 0 or 1", lambda: rooftile.softmax(F32, log=2)),
    (ValueError, "layer_norm: eps is -1, must be finite and not negative", lambda: rooftile.layer_norm(F32, eps=-1)),
    (ValueError, "rgb_to_gray: weights is 'red', must be one of: bt601 luminosity",
     lambda: rooftile.rgb_to_gray(np.zeros((2, 3), "u1"), weights="red")),
    (ValueError, "weights is 7, must be bt601 (0) or luminosity (1)",
     lambda: rooftile.rgb_to_gray(np.zeros((2, 3), "u1"), weights=7)),
    (ValueError, "rgb is 2x4 u8, must be ...x3", lambda: rooftile.rgb_to_gray(np.zeros((2, 4), "u1"))),
    (ValueError, "needs at least 1 dimension", lambda: rooftile.softmax(np.array(1, "f4"))),
    (ValueError, "9", lambda: rooftile.softmax(np.ones((1,) * 9, "f4"))),
    (ValueError, "add: y is 3x2 f32, must be 2x3 where x is 2x3 f32", lambda: rooftile.add(F32, F32.T.copy(), out=F32.copy())),
    (ValueError, "softmax: y is 2x2 f32, must be 2x3", lambda: rooftile.softmax(F32, out=np.ones((2, 2), "f4"))),
    (ValueError, "softmax: y is read-only, and the function writes it",
     lambda: rooftile.softmax(F32, out=np.broadcast_to(F32[:1], (2, 3)))),
    (ValueError, "overlaps x", lambda: (lambda a: rooftile.softmax(a[:8], out=a[1:9]))(np.ones(9, "f4"))),
    (ValueError, "several elements at one address",
     lambda: rooftile.softmax(F32, out=np.lib.stride_tricks.as_strided(np.ones(3, "f4"), (2, 3), (0, 4)))),
    (ValueError, "x has dtype >f4, whose bytes are in the other order", lambda: rooftile.softmax(F32.astype(">f4"))),
    (ValueError, "x has a stride of 6 bytes, which is no multiple of the 4 bytes of f32",
     lambda: rooftile.softmax(np.zeros(3, [("a", "f4"), ("b", "u2")])["a"])),
    (ValueError, "which is not a multiple of the 4 bytes of f32",
     lambda: rooftile.softmax(np.frombuffer(bytearray(13), "u1")[1:].view("f4"))),
    (TypeError, "x is a masked array", lambda: rooftile.softmax(np.ma.masked_less(F32, 0))),
    (TypeError, "queue is 3, must be a rooftile.Queue", lambda: rooftile.softmax(F32, queue=3)),
    (TypeError, "takes queue or device, not both",
     lambda: rooftile.softmax(F32, device="cpu", queue=rooftile.Queue(threads=1))),
    (TypeError, "device is 1, must be a text", lambda: rooftile.softmax(F32, device=1)),
    (ValueError, 'device is "gpu", must be cpu, cuda or emulated', lambda: rooftile.softmax(F32, device="gpu")),
    (ValueError, "out holds 1 arrays, must hold one for each output",
     lambda: rooftile.swiglu_backward(F32, F32, F32, out=(F32.copy(),))),
    (TypeError, "axpby: has no output that out could be", lambda: rooftile.axpby(F32, F32.copy(), out=F32.copy())),
    (ValueError, "axpby: y is read-only", lambda: rooftile.axpby(F32, np.broadcast_to(F32[:1], (2, 3)))),
])
def test_refusals(error, sentence, call):
    refused(error, sentence, call)


# ---- Objects that speak DLPack, and such as lie about it


def test_any_object_that_speaks_dlpack():
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(np.float32)
    out = np.empty_like(x)
    assert rooftile.softmax(speaking(x), out=out) is out
    np.testing.assert_array_equal(out, rooftile.softmax(x))
    y = np.empty((2, 3), np.float32)
    rooftile.copy(lying(), out=y)
    assert (y == 1).all()
    assert type(rooftile.softmax(speaking(x))) is np.ndarray


def raises(**words):
    raise RuntimeError("no capsule today")


@pytest.mark.parametrize("error, sentence, x", [
    (TypeError, "must return a capsule that is not used", Speaks(lambda **w: 7)),
    (RuntimeError, "no capsule today", Speaks(raises)),
    (TypeError, "has dtype complex64, which the library does not know", lying(code=5, bits=64)),
    (TypeError, "(DLPack's code 2, 32 bits, 4 lanes)", lying(lanes=4)),
    (ValueError, "came by DLPack with -1 dimensions", lying(ndim=-1)),
    (ValueError, "dimensions and no shape", lying(shape=ctypes.POINTER(ctypes.c_int64)())),
    (ValueError, "on a device of DLPack's type 4", lying(device_type=4)),
    (ValueError, "x is 2x3 f32, but its data is null", lying(data=None)),
    (ValueError, "-1", lying(shape=(ctypes.c_int64 * 2)(2, -1))),
    (ValueError, "2^62", lying(shape=(ctypes.c_int64 * 2)(1 << 40, 1 << 40))),
    (ValueError, "y is on the CPU, x on CUDA device 1; all arrays", lying(device_type=2, device_id=1)),
])
def test_objects_that_lie_about_dlpack(error, sentence, x):
    refused(error, sentence, lambda: rooftile.copy(x, out=np.empty((2, 3), np.float32)))


def test_a_used_capsule_is_refused():
    capsule = np.ones(3, np.float32).__dlpack__()
    out = np.empty(3, np.float32)
    rooftile.copy(Speaks(lambda **w: capsule), out=out)
    refused(TypeError, "a capsule that is not used", lambda: rooftile.copy(Speaks(lambda **w: capsule), out=out))


def test_tensors_are_given_back():
    x = np.ones(300, np.float32)
    out = np.empty_like(x)
    rooftile.copy(speaking(x), out=out)
    before = sys.getrefcount(x)
    for _ in range(10):
        rooftile.copy(speaking(x), out=out)
        with pytest.raises(ValueError):
            rooftile.copy(speaking(x), out=out[:3])
    assert sys.getrefcount(x) == before


def test_memory_does_not_grow():
    import resource

    x = np.ones((2000, 1000), np.float32)  # a workspace of 256 KiB
    out = np.empty_like(x)
    rooftile.layer_norm_backward(x, x, x[:, 0], x[:, 0], dweight=True, out=out)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        rooftile.layer_norm_backward(x, x, x[:, 0], x[:, 0], dweight=True, out=out)
        with pytest.raises(ValueError):
            rooftile.softmax(x[:1], out=x[:2])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB; 77 MB were made


def test_two_runs_of_workspace_give_the_same_bits():
    x = np.random.default_rng(2).standard_normal((200, 77)).astype(np.float32)
    y, mean, rstd = rooftile.layer_norm(x, mean=True, rstd=True)
    first = rooftile.layer_norm_backward(x, y, mean, rstd, dweight=True, dbias=True)
    again = rooftile.layer_norm_backward(x, y, mean, rstd, dweight=True, dbias=True, queue=rooftile.Queue(threads=3))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(first.dbias, y.sum(0), atol=1e-3)


def test_import_needs_neither_numpy_nor_other_frameworks():
    code = "import rooftile, sys; assert not {'numpy', 'torch', 'jax'} & set(sys.modules); print(rooftile.__version__)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_sizes_that_no_memory_has():
    x = np.broadcast_to(np.float32(1), (1 << 40, 3))
    with pytest.raises((MemoryError, ValueError)):
        rooftile.softmax(x)
    assert math.isfinite(rooftile.dot(x[:1000], x[:1000]))
    assert values({"letters": "C", "one": False, "outer": False, "dtypes": ["f32"]}).shape == (37,)


# ---- Long rows


@pytest.mark.parametrize("name", ["softmax", "softmax_backward", "rms_norm", "l1_normalize", "l2_normalize"])
def test_errors_do_not_grow_with_the_row(name):
    """2^22 columns: one accumulator a lane was off by 3.6e-6 on AVX-512 and 4.2e-4 on baseline."""
    random, columns = np.random.default_rng(0), 1 << 22
    x = random.standard_normal((1, columns)).astype(np.float32)
    e, d = np.exp(x.astype(np.float64)), x.astype(np.float64)
    if name == "softmax_backward":
        y, dy = (e / e.sum()).astype(np.float32), random.random((1, columns)).astype(np.float32)
        actual, exact = rooftile.softmax_backward(y, dy), y * (dy - (y.astype(np.float64) * dy).sum())
        assert np.abs(actual - exact).max() < 6e-7 * np.abs(exact).max()
        return
    exact = {"softmax": e / e.sum(), "rms_norm": d / np.sqrt(np.square(d).mean()), "l1_normalize": d / np.abs(d).sum(),
             "l2_normalize": d / np.sqrt(np.square(d).sum())}[name]
    actual = getattr(rooftile, name)(x, **({} if name == "softmax" else {"eps": 0.0}))
    assert np.abs(actual / exact - 1).max() < 1e-6
    for wrong in (np.inf, np.nan):  # what is put aside stays what it was
        x[0, columns // 2] = wrong
        result = getattr(rooftile, name)(x)
        assert np.isnan(result[0, columns // 2]) and (np.isnan(result).all() or (result == 0).sum() >= columns - 1)


def test_numpy_scalars_are_arrays_of_one_element():
    assert rooftile.relu(np.float32(3)) == 3 and rooftile.relu(np.array(3, "f4")).shape == ()
    x = np.linspace(-1, 1, 8, dtype="f4")[None]
    np.testing.assert_array_equal(rooftile.dyt(x, np.float32(0.5)), rooftile.dyt(x, np.array([0.5], "f4")))
    np.testing.assert_array_equal(rooftile.softmax(x, scale=np.float32(0.5), log=np.bool_(True)), rooftile.softmax(x, scale=0.5, log=True))


def test_producers_of_dlpack_that_make_no_arrays_get_numpys():
    class Borrowed:  # as the arrays of PyArrow and tvm_ffi
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **words):
            return self.array.__dlpack__(**words)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = np.linspace(-1, 1, 8, dtype="f4")
    y = rooftile.softmax(Borrowed(x))
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, rooftile.softmax(x))
    for module, make in (("pyarrow", lambda m: m.array(x)), ("tvm_ffi", lambda m: m.from_dlpack(x))):
        try:
            given = make(__import__(module))
        except ImportError:
            continue
        np.testing.assert_array_equal(rooftile.softmax(given), y)
