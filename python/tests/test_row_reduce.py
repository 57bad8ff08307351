"""rooftile.torch's reductions of rows against PyTorch's: values, gradients, indices."""

import math

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

THEIRS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "logsumexp": torch.logsumexp,
          "product": torch.prod}


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_along_any_dimension(kind, dim):
    x = torch.randn(5, 7, 33)
    torch.testing.assert_close(rt.row_reduce(x.movedim(dim, -1), kind=kind), THEIRS[kind](x, dim), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "mean", "logsumexp", "product"])
def test_gradients(kind):
    x = torch.randn(4, 33, requires_grad=True)
    dy = torch.randn(4)
    ours, = torch.autograd.grad(rt.row_reduce(x, kind=kind), x, dy)
    theirs, = torch.autograd.grad(THEIRS[kind](x, -1), x, dy)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("zeros", [0, 1, 2, 5])
def test_a_products_gradient_with_zeros(zeros):
    x = 1 + torch.randn(6, 40) / 10
    x[:, 3 : 3 + zeros] = 0
    x.requires_grad_()
    dy = torch.randn(6)
    ours, = torch.autograd.grad(rt.row_reduce(x, kind="product"), x, dy)
    theirs, = torch.autograd.grad(torch.prod(x, -1), x, dy)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert ours.count_nonzero() == (6 * 40 if zeros == 0 else 6 if zeros == 1 else 0)


def test_the_largest_has_no_gradient_and_says_so():
    x = torch.randn(4, 33, requires_grad=True)
    with pytest.raises(ValueError, match="kind is max, must be sum, mean, logsumexp or product"):
        rt.row_reduce(x, kind="max").sum().backward()


def test_nan_empty_and_infinite_rows():
    x = np.array([[1, math.nan, 3], [math.inf, 1, 2], [-math.inf] * 3], np.float32)
    for kind, theirs in THEIRS.items():
        expected = theirs(torch.from_numpy(x), -1).numpy()
        np.testing.assert_array_equal(rooftile.row_reduce(x, kind=kind), expected)
    empty = np.empty((2, 0), np.float32)
    np.testing.assert_array_equal(rooftile.row_reduce(empty), [0, 0])
    np.testing.assert_array_equal(rooftile.row_reduce(empty, kind="product"), [1, 1])
    np.testing.assert_array_equal(rooftile.row_reduce(empty, kind="mean"), [math.nan] * 2)
    np.testing.assert_array_equal(rooftile.row_reduce(empty, kind="logsumexp"), [-math.inf] * 2)
    with pytest.raises(ValueError, match="an empty row has no largest and no smallest element"):
        rooftile.row_reduce(empty, kind="max")


def test_long_rows_are_accurate():
    x = np.random.default_rng(0).random((1, 1 << 24), np.float32)
    np.testing.assert_allclose(rooftile.row_reduce(x)[0], x.sum(dtype=np.float64), rtol=3e-7)


@pytest.mark.parametrize("least", [False, True])
def test_indices(least):
    x = torch.randint(20, (6, 5000)).float()  # many equal ones: the first counts
    x[1, 77] = x[1, 99] = math.nan
    x[2] = -math.inf
    x[3] = math.inf
    expected = (np.argmin if least else np.argmax)(x.numpy(), -1)
    np.testing.assert_array_equal(rooftile.row_arg(x.numpy(), least=least), expected)
    assert rt.row_arg(x, least=least).dtype == torch.int64
