"""rooftile.torch.cross_entropy against PyTorch's: losses and gradients, by itself from the signatures."""

import pytest

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

F = torch.nn.functional


def case(shape=(4, 6), classes=50, dtype=torch.float32, ignored=-100, seed=0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, classes, generator=random).to(dtype)
    target = torch.randint(classes, shape, generator=random)
    target.view(-1)[::5] = ignored
    return x, target, torch.rand(classes, generator=random) + 0.1


def both(x, target, **named):
    """Loss and gradient, ours and PyTorch's in f64."""
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    loss = rt.cross_entropy(ours, target, **named)
    weight = named.pop("weight", None)
    expected = F.cross_entropy(theirs.flatten(0, -2), target.flatten(), None if weight is None else weight.double(), **named)
    loss.sum().backward()
    expected.backward()
    return loss.double().reshape(()), expected, ours.grad.double(), theirs.grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_pytorch(dtype, reduction, smoothing, weighted):
    x, target, weight = case(dtype=dtype)
    named = {"weight": weight} if weighted else {}
    loss, expected, gradient, its = both(x, target, reduction=reduction, label_smoothing=smoothing, **named)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    rounding = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(gradient, its, rtol=rounding, atol=1e-6)


def test_ignore_index_minus_1_with_weights_and_smoothing():
    x, target, weight = case(ignored=-1)
    loss, expected, gradient, its = both(x, target, weight=weight, ignore_index=-1, label_smoothing=0.2)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, its, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_every_row_ignored(reduction):
    x, target, _ = case()
    target.fill_(-100)
    loss, expected, gradient, _ = both(x, target, reduction=reduction)
    torch.testing.assert_close(loss, expected, equal_nan=True)
    assert not gradient.any()


def test_losses_of_rows():
    x, target, _ = case()
    x.requires_grad_()
    _, losses = rt.cross_entropy(x, target, losses=True)
    assert losses.shape == target.shape
    expected = F.cross_entropy(x.double().flatten(0, -2), target.flatten(), reduction="none").reshape(target.shape)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-5, atol=1e-5)
    slopes = torch.randn(target.shape)
    (gradient,) = torch.autograd.grad((losses * slopes).sum(), x)
    (its,) = torch.autograd.grad((expected * slopes).sum(), x)
    torch.testing.assert_close(gradient, its, rtol=1e-5, atol=1e-6)


def test_loss_and_losses_together():
    x, target, _ = case()
    x.requires_grad_()
    loss, losses = rt.cross_entropy(x, target, losses=True)
    (gradient,) = torch.autograd.grad(loss.sum() + 0.5 * losses.sum(), x)
    theirs = F.cross_entropy(x.flatten(0, -2), target.flatten())
    rows = F.cross_entropy(x.flatten(0, -2), target.flatten(), reduction="sum")
    (its,) = torch.autograd.grad(theirs + 0.5 * rows, x)
    torch.testing.assert_close(gradient, its, rtol=1e-5, atol=1e-6)


def test_z_loss_is_the_square_of_the_log_sum_exp():
    x, target, _ = case()
    x.requires_grad_()
    loss = rt.cross_entropy(x, target, z_loss=1e-2)
    kept = target.flatten() != -100
    expected = (F.cross_entropy(x.flatten(0, -2), target.flatten())
                + 1e-2 * torch.logsumexp(x.flatten(0, -2), -1)[kept].square().mean())
    torch.testing.assert_close(loss.reshape(()), expected)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    (its,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(gradient, its, rtol=1e-5, atol=1e-6)


def test_a_target_outside_of_the_classes_gives_nan():
    x, target, _ = case()
    target[1, 2] = 50
    _, losses = rt.cross_entropy(x, target, losses=True)
    assert losses.isnan().sum() == 1 and losses[1, 2].isnan()
