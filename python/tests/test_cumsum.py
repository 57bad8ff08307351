"""cumsum against PyTorch's: each way, values and gradients."""

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

WAYS = [(False, False), (True, False), (False, True), (True, True)]


def theirs(x, exclusive, reverse):
    x = x.flip(-1) if reverse else x
    y = x.cumsum(-1)
    y = torch.nn.functional.pad(y, (1, 0))[..., :-1] if exclusive else y
    return y.flip(-1) if reverse else y


@pytest.mark.parametrize("columns", [1, 33, 1500])
@pytest.mark.parametrize("exclusive, reverse", WAYS)
def test_values_and_gradients(columns, exclusive, reverse):
    x = torch.randn(3, 4, columns, requires_grad=True)
    dy = torch.randn(3, 4, columns)
    ours, expected = rt.cumsum(x, exclusive=exclusive, reverse=reverse), theirs(x.double(), exclusive, reverse)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-4)
    dx, = torch.autograd.grad(ours, x, dy)
    expected_dx, = torch.autograd.grad(expected, x, dy.double())
    torch.testing.assert_close(dx, expected_dx, rtol=1e-5, atol=1e-4)


def test_long_rows_are_accurate():
    # 1024 parts, each sum added in f32 to those before: 2 * sqrt(1024) * 2^-24 = 3.8e-6 by the tolerance of the checks.
    x = np.random.default_rng(0).random((1, 1 << 20), np.float32)
    np.testing.assert_allclose(rooftile.cumsum(x)[0], np.cumsum(x[0], dtype=np.float64), rtol=3e-6)


def test_an_infinity_changes_nothing_before_it():
    x = np.ones((2, 100), np.float32)
    x[0, 60] = np.inf
    np.testing.assert_array_equal(rooftile.cumsum(x)[0, :60], np.arange(1, 61))
    assert np.isinf(rooftile.cumsum(x, exclusive=True)[0, 61:]).all()
    np.testing.assert_array_equal(rooftile.cumsum(x, exclusive=True)[0, :61], np.arange(61))


def test_in_place():
    x = np.ones((5, 70), np.float32)
    assert rooftile.cumsum(x, out=x) is x
    np.testing.assert_array_equal(x, np.broadcast_to(np.arange(1, 71), (5, 70)))
