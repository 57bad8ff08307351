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
