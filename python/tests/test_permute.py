"""permute with dims, in NumPy, PyTorch and JAX: values, gradients, and what is refused."""

import numpy as np
import pytest

import rooftile

x = np.arange(2 * 5 * 7 * 3, dtype=np.float32).reshape(2, 5, 7, 3)
ORDERS = [(0, 3, 1, 2), (0, 2, 1, 3), (-1, -2, -3, -4), (0, 1, 2, 3)]


@pytest.mark.parametrize("dims", ORDERS)
def test_numpy(dims):
    y = rooftile.permute(x, dims)
    assert y.flags.c_contiguous
    np.testing.assert_array_equal(y, x.transpose(dims))
    np.testing.assert_array_equal(rooftile.permute(x.transpose(dims)), y)
    np.testing.assert_array_equal(rooftile.permute(x[::-1, :, :, ::2], dims), x[::-1, :, :, ::2].transpose(dims))


def test_concat_and_split():
    rgb, alpha = x.astype(np.uint8), np.full((2, 5, 7), 255, np.uint8)
    # [concat]
    y = np.empty((2, 4, 5, 7), np.uint8)
    rooftile.permute(rgb, (0, 3, 1, 2), out=y[:, :3])  # NHWC to NCHW, in a slice of the output
    rooftile.permute(alpha, out=y[:, 3])
    # [/concat]
    np.testing.assert_array_equal(y, np.concatenate([rgb.transpose(0, 3, 1, 2), alpha[:, None]], 1))
    np.testing.assert_array_equal(rooftile.permute(y[:, 2::-1], (0, 2, 3, 1)), rgb[..., ::-1])  # split, and BGR


@pytest.mark.parametrize("module", ["rooftile", "rooftile.torch", "rooftile.jax"])
def test_refusals(module):
    if module != "rooftile":
        pytest.importorskip(module[9:])
    permute = pytest.importorskip(module).permute
    given = pytest.importorskip("torch").from_numpy(x) if module == "rooftile.torch" else x
    with pytest.raises(ValueError, match="dims is .0, 1., 2 dimensions; x has 4: name each once"):
        permute(given, (0, 1))
    with pytest.raises(ValueError, match="4 is no dimension of x: they are from -4 to 3"):
        permute(given, (0, 1, 2, 4))
    with pytest.raises(ValueError, match="names dimension 3 twice"):
        permute(given, (0, 1, 3, -1))
    with pytest.raises(TypeError, match="must be the dimensions of x"):
        permute(given, 1.5)


@pytest.mark.parametrize("dims", ORDERS)
def test_torch(dims):
    torch = pytest.importorskip("torch")
    import rooftile.torch

    t = torch.from_numpy(x).double().requires_grad_()
    torch.testing.assert_close(rooftile.permute(t.detach(), dims), t.detach().permute(dims), rtol=0, atol=0)
    torch.autograd.gradcheck(lambda t: rooftile.torch.permute(t, dims), t[:1, :2, :3])
    torch.autograd.gradcheck(lambda t: rooftile.permute(t, dims), t[:1, :2, :3])
    torch.library.opcheck(torch.ops.rooftile.permute.default, (t.permute(dims),))
    batched = torch.vmap(lambda t: rooftile.torch.permute(t, dims))(t.detach()[None])
    torch.testing.assert_close(batched[0], t.detach().permute(dims), rtol=0, atol=0)


@pytest.mark.parametrize("dims", ORDERS)
def test_jax(dims):
    jax = pytest.importorskip("jax")
    import rooftile.jax

    run = jax.jit(lambda x: rooftile.jax.permute(x, dims))
    np.testing.assert_array_equal(run(x), x.transpose(dims))
    np.testing.assert_array_equal(rooftile.permute(jax.numpy.asarray(x), dims), x.transpose(dims))
    half = jax.numpy.asarray(x, jax.numpy.bfloat16)
    y = rooftile.permute(half, dims)
    assert y.dtype == half.dtype and (y == half.transpose(dims)).all()
    w = jax.numpy.asarray(np.random.default_rng(0).random(x.transpose(dims).shape, np.float32))
    g = jax.grad(lambda x: (run(x) * w).sum())(x)
    np.testing.assert_array_equal(g.transpose(dims), w)
    np.testing.assert_array_equal(jax.vmap(run)(x[None])[0], x.transpose(dims))
