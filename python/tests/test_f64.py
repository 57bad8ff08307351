"""f64 on CPUs: what gradcheck runs in."""

import importlib

import numpy as np
import pytest
from conftest import arguments

import rooftile
from rooftile import _functions

torch = pytest.importorskip("torch")

import rooftile.torch

FORWARD = [n for n in ("relu", "sigmoid", "tanh", "silu", "gelu", "geglu", "swiglu") if n in _functions.signatures]
OPTIONS = {"gelu": {"tanh": True}, "geglu": {"tanh": True}, "silu": {"beta": 0.1}, "swiglu": {"beta": 0.1}}
CALLS = [(n, o) for n in FORWARD for o in ({}, *filter(None, [OPTIONS.get(n)]))]


def wide(name):
    places = [p.astype(np.float64) for p in arguments(name)[0]]
    return [p + 0.25 * np.sign(p) for p in places]  # away from relu's kink


@pytest.mark.parametrize("name, options", CALLS)
def test_gradients_by_differences(name, options):
    inputs = [torch.from_numpy(p).requires_grad_() for p in wide(name)]
    assert torch.autograd.gradcheck(lambda *x: getattr(rooftile.torch, name)(*x, **options), inputs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name, options", CALLS)
def test_numpys_and_jaxs_results_are_pytorchs(name, options):
    given = wide(name)
    ours = getattr(rooftile, name)(*given, **options)
    assert ours.dtype == np.float64
    torchs = getattr(rooftile.torch, name)(*map(torch.from_numpy, given), **options)
    np.testing.assert_array_equal(ours, torchs.numpy())
    if name in ("sigmoid", "tanh", "relu"):
        np.testing.assert_allclose(ours, getattr(torch, name)(torch.from_numpy(given[0])).numpy(), rtol=1e-15)
    if name == "gelu":
        theirs = torch.nn.functional.gelu(torch.from_numpy(given[0]), approximate="tanh" if options else "none")
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-14)
    jax = pytest.importorskip("jax")
    call = getattr(importlib.import_module("rooftile.jax"), name)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        jaxs = jax.jit(lambda *x: call(*x, **options))(*map(jax.numpy.asarray, given))
        assert jaxs.dtype == np.float64
        np.testing.assert_array_equal(ours, np.asarray(jaxs))


# -- Rows

ROWS = [(n, o) for n, several in {
    "softmax": ({}, {"log": True}, {"scale": 0.1}, {"causal": True}, {"masked": True}, {"log": True, "masked": True}),
    "rms_norm": ({}, {"eps": 1e-3}, {"unit_offset": True}), "layer_norm": ({}, {"eps": 1e-3}),
    "l1_normalize": ({}, {"eps": 100.0}), "l2_normalize": ({}, {"eps": 100.0})}.items() if n in _functions.signatures for o in several]


def rows_of(name):
    """Every input of it, those that may be absent, too."""
    places, words = arguments(name, optional=True)
    return [p.astype(np.float64) for p in places], {n: w.astype(np.float64) for n, w in words.items()}


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name, options", ROWS)
def test_gradients_of_rows_by_differences(name, options, optional):
    places, words = rows_of(name)
    if not optional:
        words = {}
    elif not words:
        pytest.skip("has no optional inputs")
    inputs = [torch.from_numpy(p).requires_grad_() for p in (*places, *words.values())]
    call = getattr(rooftile.torch, name)
    assert torch.autograd.gradcheck(lambda *x: call(*x[:len(places)], **dict(zip(words, x[len(places):])), **options), inputs,
                                    rtol=1e-7, atol=1e-8)


THEIRS = {"softmax": lambda x, log=False, scale=1: getattr(torch, "log_softmax" if log else "softmax")(x * scale, -1),
          "rms_norm": lambda x, weight, eps=1e-6: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps),
          "layer_norm": lambda x, weight, bias, eps=1e-5: torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
          "l1_normalize": lambda x, eps=1e-12: torch.nn.functional.normalize(x, 1, -1, eps),
          "l2_normalize": lambda x, eps=1e-12: torch.nn.functional.normalize(x, 2, -1, eps)}


@pytest.mark.parametrize("name, options", ROWS)
def test_rows_are_pytorchs_to_the_last_digits(name, options):
    if {"causal", "masked", "unit_offset"} & set(options):
        pytest.skip("PyTorch's has no such option")
    places, words = rows_of(name)
    words.pop("residual", None)
    ours = getattr(rooftile, name)(*places, **words, **options)
    assert ours.dtype == np.float64
    theirs = THEIRS[name](*map(torch.from_numpy, places), **{n: torch.from_numpy(w) for n, w in words.items()}, **options)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-13, atol=1e-14)


STATISTICS = [(n, s) for n, s in {"rms_norm": ("rstd",), "layer_norm": ("mean", "rstd"), "l1_normalize": ("norm",),
                                  "l2_normalize": ("norm",)}.items() if n in _functions.signatures]


@pytest.mark.parametrize("name, statistics", STATISTICS)
def test_statistics_are_as_wide_as_their_rows(name, statistics):
    """In each framework, and as PyTorch's compiler and JAX know them before they run."""
    asked = dict.fromkeys(statistics, True)
    (x,), _ = rows_of(name)
    for dtype, wide in ((np.float64, np.float64), (np.float32, np.float32), (np.float16, np.float32)):
        given = x.astype(dtype)
        ours = getattr(rooftile, name)(given, **asked)
        assert [r.dtype for r in ours] == [dtype] + [wide] * len(statistics)
        call = getattr(rooftile.torch, name)
        torchs = call(torch.from_numpy(given), **asked)
        with torch._subclasses.FakeTensorMode() as mode:
            fakes = call(mode.from_tensor(torch.from_numpy(given)), **asked)
        assert [r.dtype for r in torchs] == [f.dtype for f in fakes]
        for a, b in zip(ours, torchs, strict=True):
            np.testing.assert_array_equal(a, b.numpy())


@pytest.mark.parametrize("name, statistics", STATISTICS)
def test_narrower_statistics_are_refused_in_words(name, statistics):
    (x,), _ = rows_of(name)
    given = [np.ones(x.shape[:-1], np.float32)] * len(statistics)
    backward = getattr(rooftile, name + "_backward")
    sentence = f"{name}_backward: {statistics[0]} is 3x4 f32, must be f64 as x is"
    with pytest.raises(TypeError, match=sentence):
        backward(x, x, *given)
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        with pytest.raises(TypeError, match=sentence):
            getattr(importlib.import_module("rooftile.jax"), name + "_backward")(*map(jax.numpy.asarray, (x, x, *given)))


@pytest.mark.parametrize("name, options", ROWS)
def test_jaxs_rows_and_gradients_are_pytorchs(name, options):
    jax = pytest.importorskip("jax")
    places, _ = rows_of(name)
    ours = getattr(rooftile, name)(*places, **options)
    x = torch.from_numpy(places[0]).requires_grad_()
    getattr(rooftile.torch, name)(x, **options)[..., ::2].sum().backward()
    call = getattr(importlib.import_module("rooftile.jax"), name)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        given = jax.numpy.asarray(places[0])
        y = jax.jit(lambda x: call(x, **options))(given)
        dx = jax.jit(jax.grad(lambda x: call(x, **options)[..., ::2].sum()))(given)
        assert y.dtype == np.float64 and dx.dtype == np.float64
        np.testing.assert_array_equal(ours, np.asarray(y))
        np.testing.assert_array_equal(x.grad.numpy(), np.asarray(dx))
