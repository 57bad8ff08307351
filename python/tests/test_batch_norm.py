"""Batch norm from Python: against PyTorch's, its running statistics over many steps, its modules."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rooftile
import rooftile.torch

nn, F, ours = torch.nn, torch.nn.functional, rooftile.torch.nn
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def test_numpy_and_in_place():
    x = np.random.default_rng(1).normal(size=(4, 3, 50)).astype(np.float32)
    mean, var = np.ones(3, np.float32), np.full(3, 2, np.float32)
    made = rooftile.batch_norm(x, running_mean=mean, running_var=var, momentum=0.25, mean=True, rstd=True,
                               new_running_mean=mean, new_running_var=var)
    assert made.new_running_mean is mean
    np.testing.assert_allclose(mean, 0.75 + 0.25 * x.mean((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(var, 1.5 + 0.25 * x.var((0, 2), ddof=1), rtol=1e-6)  # unbiased
    np.testing.assert_allclose(made.y, (x - x.mean((0, 2))[:, None]) / np.sqrt(x.var((0, 2)) + 1e-5)[:, None], atol=2e-6)


@pytest.mark.parametrize("momentum", [0.1, None], ids=str)
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last], ids=str)
def test_fifty_steps_are_pytorchs(momentum, memory):
    torch.manual_seed(0)
    mine, theirs = ours.BatchNorm2d(6, momentum=momentum), nn.BatchNorm2d(6, momentum=momentum).double()
    for step in range(50):
        x = (torch.randn(5, 6, 9, 7) * (1 + step % 3) + step).to(memory_format=memory)
        torch.testing.assert_close(mine(x).double(), theirs(x.double()), rtol=1e-6, atol=1e-6)
    for n, buffer in theirs.state_dict().items():
        torch.testing.assert_close(mine.state_dict()[n].double(), buffer.double(), rtol=2e-6, atol=1e-6)
    assert int(mine.num_batches_tracked) == 50
    torch.testing.assert_close(mine.eval()(x).double(), theirs.eval()(x.double()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", [(7, 5), (3, 5, 40), (2, 8, 6, 7), (2, 3, 2, 3, 5)], ids=str)
def test_values_and_gradients_are_pytorchs(dtype, shape):
    torch.manual_seed(1)
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    w, b = (torch.randn(shape[1], requires_grad=True) for _ in range(2))
    y = ours.batch_norm(x, None, None, w, b, training=True)
    e = F.batch_norm(x.double(), None, None, w.double(), b.double(), training=True)
    assert y.dtype == dtype and y.shape == x.shape
    torch.testing.assert_close(y.double(), e, rtol=TOLERANCE[dtype], atol=3 * TOLERANCE[dtype])
    g = torch.randn_like(e).to(dtype)
    for mine, theirs in zip(torch.autograd.grad(y, (x, w, b), g), torch.autograd.grad(e, (x, w, b), g.double()), strict=True):
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=10 * TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def test_channels_last_stays():
    x = torch.randn(2, 8, 6, 7).to(memory_format=torch.channels_last)
    y = ours.batch_norm(x, None, None, training=True)
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, F.batch_norm(x, None, None, training=True), rtol=1e-5, atol=1e-5)


def test_inference_has_gradients():
    x = torch.randn(3, 4, 5, requires_grad=True)
    mean, var = torch.randn(4), torch.rand(4) + 0.5
    w = torch.randn(4, requires_grad=True)
    mine, theirs = ours.batch_norm(x, mean, var, w), F.batch_norm(x, mean, var, w)
    for a, e in zip(torch.autograd.grad(mine.square().sum(), (x, w)), torch.autograd.grad(theirs.square().sum(), (x, w)), strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(ours.batch_norm(x, mean, var, w), theirs, rtol=1e-5, atol=1e-5)


def test_one_element_is_refused():
    with pytest.raises(ValueError, match="a channel has 1 element"):
        ours.batch_norm(torch.randn(1, 4), None, None, training=True)
    assert ours.batch_norm(torch.randn(1, 4), torch.zeros(4), torch.ones(4)).shape == (1, 4)


def test_opcheck():
    x, w, b = torch.randn(3, 4, 10, requires_grad=True), torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    state = torch.zeros(4), torch.ones(4)
    torch.library.opcheck(torch.ops.rooftile.batch_norm.default, (x, w, b, *state, 1e-5, 0.1, True, True, True, True))
    torch.library.opcheck(torch.ops.rooftile.batch_norm_inference.default, (x.detach(), *state, w.detach(), b.detach(), 1e-5))


def test_patch_takes_over():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
    other = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
    other.load_state_dict(model.state_dict())
    assert any(kind == "BatchNorm2d" for _, kind in rooftile.torch.patch(model).replaced)
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(model.eval()(x), other.eval()(x), rtol=1e-4, atol=1e-5)


def test_jax():
    jax = pytest.importorskip("jax")
    import rooftile.jax

    x = np.random.default_rng(3).normal(size=(4, 3, 20)).astype(np.float32)
    old = np.zeros(3, np.float32), np.ones(3, np.float32)

    def loss(x):
        made = rooftile.jax.batch_norm(x, running_mean=old[0], running_var=old[1], new_running_mean=True, new_running_var=True)
        return (made.y * np.arange(20)).sum(), made

    (_, made), dx = jax.jit(jax.value_and_grad(loss, has_aux=True))(x)
    t = torch.tensor(x, requires_grad=True)
    mean, var = map(torch.tensor, old)
    y = F.batch_norm(t, mean, var, training=True)
    (expected,) = torch.autograd.grad((y * torch.arange(20)).sum(), t)
    np.testing.assert_allclose(dx, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made.new_running_mean, mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(made.new_running_var, var, rtol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("shape", "groups"), [((3, 8, 40), 4), ((2, 8, 6, 7), 8), ((2, 6, 2, 3, 5), 1), ((5, 6), 2)], ids=str)
def test_group_norm(dtype, shape, groups):
    torch.manual_seed(4)
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    w, b = (torch.randn(shape[1], requires_grad=True) for _ in range(2))
    y, e = ours.group_norm(x, groups, w, b), F.group_norm(x.double(), groups, w.double(), b.double())
    torch.testing.assert_close(y.double(), e, rtol=TOLERANCE[dtype], atol=3 * TOLERANCE[dtype])
    g = torch.randn_like(e).to(dtype)
    for mine, theirs in zip(torch.autograd.grad(y, (x, w, b), g), torch.autograd.grad(e, (x, w, b), g.double()), strict=True):
        torch.testing.assert_close(mine.double(), theirs.double(), rtol=10 * TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


def test_group_and_instance_norm_modules():
    x = torch.randn(2, 6, 5, 4).to(memory_format=torch.channels_last)
    torch.testing.assert_close(ours.GroupNorm(3, 6)(x), nn.GroupNorm(3, 6)(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.InstanceNorm2d(6)(x), nn.InstanceNorm2d(6)(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.InstanceNorm2d(6)(x[0]), nn.InstanceNorm2d(6)(x[0]), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="track_running_stats is True"):
        ours.InstanceNorm2d(6, track_running_stats=True)(x)
