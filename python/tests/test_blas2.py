"""rooftile.torch's matrix and vector against PyTorch's: values, gradients, transposes, β = 0."""

import math

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("shape", [(5, 7), (1, 300), (300, 1), (0, 3), (3, 0), (40, 40)])
@pytest.mark.parametrize("turned", [False, True])
def test_gemv(shape, turned):
    a = torch.randn(*shape[::-1]).mT if turned else torch.randn(*shape)
    x, c = torch.randn(shape[1]), torch.randn(shape[0])
    torch.testing.assert_close(rt.gemv(a, x), a @ x, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(rt.gemv(a, x, c=c, alpha=0.5, beta=-2.0), torch.addmv(c, a, x, alpha=0.5, beta=-2), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(rt.gemv(a.mT, c), a.mT @ c, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 7), (40, 40), (0, 3)])
def test_geru(shape):
    x, y, c = torch.randn(shape[0]), torch.randn(shape[1]), torch.randn(*shape)
    torch.testing.assert_close(rt.geru(x, y), torch.outer(x, y))
    torch.testing.assert_close(rt.geru(x, y, c=c, alpha=-3.0), torch.addr(c, x, y, alpha=-3))


def test_gradients():
    a, x, c, y = doubles(5, 7), doubles(7), doubles(5), doubles(7)
    assert torch.autograd.gradcheck(lambda *v: rt.gemv(v[0], v[1], c=v[2], alpha=0.7, beta=-0.3), (a, x, c))
    assert torch.autograd.gradcheck(rt.gemv, (a, x))
    assert torch.autograd.gradcheck(lambda *v: rt.geru(v[0], v[1], c=v[2], alpha=0.7), (c, y, a))
    assert torch.autograd.gradcheck(rt.geru, (c, y))
    dx, = torch.autograd.grad(rt.gemv(a, x).sum(), x)  # one alone
    torch.testing.assert_close(dx, a.sum(0))


def test_unread_and_in_place():
    a, x = np.random.default_rng(0).random((6, 9)), np.ones(9)
    np.testing.assert_allclose(rooftile.gemv(a, x, c=np.full(6, math.nan)), a.sum(1))
    y = np.ones(6)
    rooftile.gemv(a, x, c=y, beta=2.0, out=y)
    np.testing.assert_allclose(y, a.sum(1) + 2)
    before = a.copy()
    rooftile.geru(y, x, c=a, out=a)
    np.testing.assert_allclose(a, before + np.outer(y, x))
    with pytest.raises(ValueError, match="beta is 1, but c is absent"):
        rooftile.gemv(a, x, beta=1.0)


def test_a_row_keeps_its_bits():
    a, x = np.random.default_rng(0).standard_normal((70, 5000), np.float32), np.ones(5000, np.float32)
    whole = rooftile.gemv(a, x)
    np.testing.assert_array_equal(rooftile.gemv(np.asfortranarray(a), x), whole)
    for i in (0, 1, 69):
        np.testing.assert_array_equal(rooftile.gemv(a[i:i + 1], x), whole[i:i + 1])
