"""add with numbers and with shapes that broadcast."""

import numpy as np
import pytest

import rooftile

x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
OTHERS = [2.5, 3, x[0], x[:, :1], x[0, 0], x[0, 0][...], x[None, :, :][[0, 0]], np.empty((0, 1, 1), np.float32)]


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_numpy(place):
    other = OTHERS[place]
    for ours in (rooftile.add(x, other), rooftile.add(other, x), rooftile.add(y=other, x=x)):
        np.testing.assert_array_equal(ours, x + other)
        assert ours.dtype == np.float32
    out = np.empty_like(ours)
    assert rooftile.add(x, other, out=out) is out and np.array_equal(out, ours)


def test_the_dtype_is_the_arrays():
    for dtype in (np.float16, np.float64):
        y = rooftile.add(x.astype(dtype), 0.1)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, x.astype(dtype) + dtype(0.1))


def test_refusals():
    with pytest.raises(ValueError, match="add: y is 4x3 f32.*, must be 3x4"):
        rooftile.add(x, x.T)
    with pytest.raises(TypeError, match="add: x is of type float, must be an array"):
        rooftile.add(1.0, 2.0)
    with pytest.raises(TypeError, match="add: y is of type list, must be an array"):
        rooftile.add(2.0, [1.0])
    with pytest.raises(TypeError, match="add: y is absent"):
        rooftile.add(x)
    with pytest.raises(ValueError, match="add: z is 3x4 f32, must be 1x3x4"):
        rooftile.add(x[None], 1.0, out=np.empty_like(x))
    with pytest.raises(TypeError, match="add: y is .* f16.*, must be f32 as x is"):
        rooftile.add(x, x[0].astype(np.float16))


def test_torch():
    torch = pytest.importorskip("torch")
    import rooftile.torch

    t = torch.from_numpy(x)
    for add in (rooftile.add, rooftile.torch.add):
        for other in OTHERS:
            other = torch.from_numpy(other) if isinstance(other, np.ndarray) else other
            theirs = other if not isinstance(other, np.float32) else float(other)
            torch.testing.assert_close(add(t, other), t + theirs)
            torch.testing.assert_close(add(other, t), t + theirs)
            torch._dynamo.reset()
            if not isinstance(other, np.float32):
                torch.testing.assert_close(torch.compile(add, fullgraph=True, backend="aot_eager")(t, other), t + theirs)
        a, b = t.clone().requires_grad_(), t[0].clone().requires_grad_()
        for ours, theirs in zip(torch.autograd.grad(add(add(a, b), 2.0).square().sum(), (a, b)),
                                torch.autograd.grad((a + b + 2).square().sum(), (a, b)), strict=True):
            torch.testing.assert_close(ours, theirs)
        assert add(t.bfloat16(), 0.1).dtype == torch.bfloat16
        torch.testing.assert_close(torch.vmap(lambda t: add(t, 1.0))(t), t + 1)
        torch.testing.assert_close(add(t, x[0]), t + t[0])
        with pytest.raises(ValueError, match="add: y is 4x3 f32.*, must be 3x4"):
            add(t, t.T)
        with pytest.raises(TypeError, match="add: x is of type float, must be an array"):
            add(1.0, 2.0)
        with pytest.raises(TypeError, match="add: y is of type list, must be an array"):
            add(t, [1.0])


def test_jax():
    jax = pytest.importorskip("jax")
    import rooftile.jax

    a = jax.numpy.asarray(x)
    for add in (rooftile.add, rooftile.jax.add, jax.jit(rooftile.jax.add)):
        for other in OTHERS:
            other = float(other) if isinstance(other, int) and add not in (rooftile.add, rooftile.jax.add) else other
            other = jax.numpy.asarray(other) if isinstance(other, np.ndarray) else other
            np.testing.assert_array_equal(add(a, other), a + other)
            np.testing.assert_array_equal(add(other, a), a + other)
    gradients = jax.grad(lambda a, b: (rooftile.jax.add(rooftile.jax.add(a, b), 2.0) ** 2).sum(), argnums=(0, 1))(a, a[0])
    for ours, theirs in zip(gradients, jax.grad(lambda a, b: ((a + b + 2) ** 2).sum(), argnums=(0, 1))(a, a[0]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert rooftile.jax.add(a.astype("bfloat16"), 0.1).dtype == "bfloat16"
    assert jax.jit(lambda a: rooftile.jax.add(a, 0.1))(a.astype("float16")).dtype == "float16"
